// Values under the pointer, and the box that filters the table. Without it, nothing is missing.
(() => {
  "use strict";

  const moment = (seconds) => {
    const whole = Math.round(seconds);
    const days = whole >= 172800 ? Math.floor(whole / 86400) : 0;
    const rest = whole - days * 86400;
    const two = (value) => String(value).padStart(2, "0");
    const clock = `${Math.floor(rest / 3600)}:${two(Math.floor((rest % 3600) / 60))}`;
    return (days ? `${days} d ` : "") + clock + (rest % 60 ? `:${two(rest % 60)}` : "");
  };

  const nearest = (times, at) => {
    let low = 0;
    let high = times.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] > at) high = middle; else low = middle;
    }
    return Math.abs(times[low] - at) <= Math.abs(times[high] - at) ? low : high;
  };

  const column = (edges, at) => {
    let place = 0;
    while (place < edges.length - 2 && edges[place + 1] <= at) place += 1;
    return place;
  };

  const written = (value) =>
    value.toLocaleString("en-GB", { maximumSignificantDigits: value >= 1000 ? 6 : 4 });

  const readLines = (chart, at) => {
    if (!chart.times.length) return "";
    const place = nearest(chart.times, at);
    const values = chart.series
      .filter(([, figures]) => figures[place] !== null)
      .map(([name, figures]) => `${name} ${written(figures[place])} ${chart.unit}`.trim());
    return [moment(chart.times[place]), ...values].join("  ·  ");
  };

  const states = { f: "failed", m: "in maintenance", s: "not on", ".": "not there" };

  const readHeat = (chart, at, row) => {
    if (row === null) return moment(at);
    const checked = chart.figure.parentElement.querySelector(":scope > input:checked");
    const [name, rows] = chart.views[checked ? Number(checked.className.slice(1)) : 0];
    const cell = rows[row].split(" ")[column(chart.edges, at)];
    const value = states[cell] ?? `${name} ${cell} ${chart.unit}`;
    return `${moment(at)}  ·  ${chart.rows[row]}  ·  ${value}`;
  };

  const readBars = (chart, at, row) =>
    row === null ? moment(at) : `${moment(at)}  ·  ${chart.rows[row]}`;

  const read = { lines: readLines, heat: readHeat, bars: readBars };

  const charts = [...document.querySelectorAll("figure.chart:not(.static)")].map((figure) => ({
    ...JSON.parse(figure.querySelector(":scope > script").textContent),
    figure,
    svg: figure.querySelector(":scope > svg"),
    cursor: figure.querySelector(":scope > svg .cursor"),
    readout: figure.querySelector(":scope > .readout"),
  }));

  const rowAt = (chart, y) => {
    if (!chart.rows) return null;
    const row = Math.floor((y - chart.top) / chart.tall);
    return row >= 0 && row < chart.rows.length ? row : null;
  };

  const show = (at, over, y) => {
    for (const chart of charts) {
      if (at < chart.low || at > chart.high) continue;
      const part = (at - chart.low) / (chart.high - chart.low);
      const x = chart.left + part * (chart.right - chart.left);
      chart.cursor.setAttribute("x1", x);
      chart.cursor.setAttribute("x2", x);
      chart.cursor.setAttribute("visibility", "visible");
      const row = chart === over ? rowAt(chart, y) : null;
      chart.readout.textContent = read[chart.kind](chart, at, row);
    }
  };

  const hide = () => {
    for (const chart of charts) {
      chart.cursor.setAttribute("visibility", "hidden");
      chart.readout.textContent = "";
    }
  };

  for (const chart of charts) {
    chart.svg.addEventListener("pointermove", (event) => {
      const box = chart.svg.getBoundingClientRect();
      const unit = chart.width / box.width;
      const x = (event.clientX - box.left) * unit;
      const part = (x - chart.left) / (chart.right - chart.left);
      if (part < 0 || part > 1) return hide();
      show(chart.low + part * (chart.high - chart.low), chart, (event.clientY - box.top) * unit);
    });
    chart.svg.addEventListener("pointerleave", hide);
  }

  const filter = document.querySelector("#filter");
  if (filter) {
    filter.parentElement.hidden = false;
    const rows = [...document.querySelectorAll("#rows tbody tr")];
    const words = rows.map((row) => row.textContent.toLowerCase());
    const count = filter.parentElement.querySelector("output");
    filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      let shown = 0;
      rows.forEach((row, place) => {
        const fits = words[place].includes(wanted);
        row.classList.toggle("hidden", !fits);
        shown += fits ? 1 : 0;
      });
      count.textContent = wanted ? `${shown} of ${rows.length} rows` : "";
    });
  }

  document.documentElement.dataset.ready = String(charts.length);
})();
