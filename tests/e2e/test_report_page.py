"""The pages in a real browser: every chart has marks, the script runs, and nothing complains."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from equipoise.report import compare_page, read_run, write_run
from unit.report.parsed import Element, parsed
from unit.report.synthetic import a_run

TESTS = Path(__file__).parent.parent
CHROMIUM = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))), None)
MARKS = {"path": {"line", "column", "action"}, "rect": {"action"}, "circle": {"dot"}}

# What a reader would do: point at some charts, look at memory, and type into the filter.
A_VISITOR = """<script>
addEventListener("load", () => {
  const chart = document.querySelector("figure.lines > svg");
  const box = chart.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + 60, bubbles: true };
  document.querySelector("#hosts-1").checked = true;
  chart.dispatchEvent(new PointerEvent("pointermove", at));
  const read = document.createElement("pre");
  for (const heat of document.querySelectorAll("figure.heat > svg")) {
    const area = heat.getBoundingClientRect();
    const on = { clientX: area.left + area.width / 2, clientY: area.top + area.height / 3 };
    heat.dispatchEvent(new PointerEvent("pointermove", { ...on, bubbles: true }));
    read.append(heat.parentElement.querySelector(".readout").textContent + "; ");
  }
  document.body.append(read);
  const filter = document.querySelector("#filter");
  filter.value = "Refused";
  filter.dispatchEvent(new Event("input"));
});
</script>"""

PROGRAM = """
import sys
from pathlib import Path
from unit.report.synthetic import a_run, write
write(Path(sys.argv[1]), a_run(hosts=70, samples=40, pools=("d", "a", "c", "b")))
"""


def opened(page: Path) -> Element:
    """Open a page in a browser and take what became of it; complaints are failures."""
    if CHROMIUM is None:
        pytest.skip("no chromium on the PATH (Debian: apt-get install chromium)")
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
         f"--user-data-dir={page.parent / 'profile'}", "--window-size=1280,2000",
         "--dump-dom", page.as_uri()],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    return parsed(done.stdout)


def marks(figure: Element) -> int:
    """How many marks a chart has, the axes and the legend not counted."""
    if "heat" in figure.attributes["class"]:
        looks = [element.attributes.get("class", "") for element in figure.all("path")]
        return sum(bool(re.match(r"h\d|state", look)) for look in looks)
    inside = figure.all("svg")[-1]
    return sum(
        bool(MARKS.get(element.name, set()) & set(element.attributes.get("class", "").split()))
        for element in inside.all()
    )


def test_every_chart_has_marks_and_no_script_is_refused(tmp_path: Path) -> None:
    for name, samples in (("a", 60), ("b", 45)):
        given = a_run(hosts=30, samples=samples)
        write_run(tmp_path / name, given.document, given.record, given.journal)
    both = tmp_path / "both.html"
    both.write_text(compare_page(read_run(tmp_path / "a"), read_run(tmp_path / "b")))
    for path, count in ((tmp_path / "a" / "report.html", 12), (both, 6)):
        page = opened(path)
        assert page.one("html").attributes["data-ready"] == str(count)
        charts = page.all("figure")
        assert len(charts) == count
        assert all(marks(chart) for chart in charts), [marks(chart) for chart in charts]


def test_values_are_read_out_and_the_table_is_filtered(tmp_path: Path) -> None:
    given = a_run(hosts=30, samples=60)
    page = write_run(tmp_path / "a", given.document, given.record, given.journal).page
    content = re.sub(r"<meta http-equiv=[^>]+>", "", page.read_text())
    visited = tmp_path / "visited.html"
    visited.write_text(content.replace("</body>", f"{A_VISITOR}</body>"))
    made = opened(visited)
    said = [element.text for element in made.all("p", "readout")]
    assert all(said)
    assert re.fullmatch(r"[\d:]+ · used [\d,.]+ GHz · demand .* · capacity .*",
                        " ".join(said[0].split()))  # fmt: skip
    heat = made.one("pre").text
    assert re.search(r"esx-\d+ +· +memory \d+ %; .* esx-\d+ +· +power \d+ W;", heat)
    decided = next(element for element in made.all() if element.attributes.get("id") == "rows")
    rows = decided.one("tbody").all("tr")
    shown = [row for row in rows if "hidden" not in row.attributes.get("class", "")]
    assert len(rows) > len(shown) == 1
    assert "refused" in shown[0].text
    assert made.one("output").text == f"1 of {len(rows)} rows"


def test_the_page_has_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path / seed)],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(TESTS)},
        )
        for seed in ("1", "2")
    ]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    for path in sorted((tmp_path / "1").iterdir()):
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name
