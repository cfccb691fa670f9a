"""The page and the tables of a study of Batkube's clock."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from equipoise.documents.kubernetes import (
    ClockStudyDocument,
    ClockStudyPointRow,
    ClockStudyReferenceRow,
    EstimateRow,
)
from equipoise.report.chart.frame import (
    LEFT,
    RIGHT,
    TOP,
    ChartFrame,
    LinearScale,
    TimeSpan,
    empty_note,
    legend_entry,
    legend_list,
    round_ticks,
)
from equipoise.report.chart.markup import Markup, Section, concat, html_table, px, tag, text
from equipoise.report.format import NO_VALUE, format_number, with_unit
from equipoise.report.run.page import html_document

EXACT: Final = "exact"
"""Stands for an infinite accuracy."""
_HEIGHT: Final = 180
_COLOURS: Final = 8
_APART: Final = 6
"""The distance of two series at one timeout."""
_FAILED: Final = "No run came to its end."


class _Measure(NamedTuple):
    """One figure that a chart shows for all points."""

    title: str
    unit: str
    estimate: Callable[[ClockStudyPointRow], EstimateRow | None]
    reference: Callable[[ClockStudyReferenceRow], float] | None


_MEASURES: Final = (
    _Measure("Makespan", "s", lambda row: row.makespan_s, lambda row: row.makespan_s),
    _Measure("Mean waiting time", "s", lambda row: row.mean_waiting_s,
             lambda row: row.mean_waiting_s),
    _Measure("Simulation time", "s", lambda row: row.wall_s, lambda row: row.wall_s),
    _Measure("Distance from the reference", "s", lambda row: row.distance_s, None),
    _Measure("Accuracy", "1/s", lambda row: row.accuracy, None),
    _Measure("Crash rate", "%", lambda row: _plain(100 * row.crash_rate, row.runs), None),
)  # fmt: skip


def _plain(value: float, runs: int) -> EstimateRow:
    return EstimateRow(mean=value, low=None, high=None, runs=runs)


# The page


def clock_study_page(document: ClockStudyDocument) -> str:
    """Return the page of a study: charts and a table for each workload."""
    title = "Study of the clock with a timeout"
    about = (
        f"{document.scheduler}, {document.repeats} runs of each point, compared with the clock "
        f"{document.reference_clock}. Error bars are 95 % intervals of the mean."
    )
    top = tag("header", tag("h1", text(title)), tag("p", text(about), class_="about"))
    sections: list[Section] = []
    for reference in document.references:
        rows = [row for row in document.points if row.workload == reference.workload]
        sections += _workload_sections(reference, rows, len(sections))
    return html_document(f"{title}: Equipoise", top, sections)


def _workload_sections(
    reference: ClockStudyReferenceRow, rows: Sequence[ClockStudyPointRow], number: int
) -> list[Section]:
    name = reference.workload
    caption = (
        f"{reference.pods:,} pods on {reference.nodes:,} nodes. The reference has a makespan of "
        f"{reference.makespan_s:,.3f} s and a mean waiting time of "
        f"{reference.mean_waiting_s:,.3f} s, simulated in {reference.wall_s:.1f} s. "
        "Charts: by timeout, one line for each largest step."
    )
    charts = [
        tag("div", tag("h3", text(measure.title)), _chart(measure, reference, rows))
        for measure in _MEASURES
    ]
    return [
        Section(f"w{number}", name, caption, concat(charts)),
        Section(f"w{number}-table", f"{name}: all points", _TABLE_CAPTION, _table(rows)),
    ]


_TABLE_CAPTION: Final = (
    "Accuracy is one by the distance of makespan and mean waiting time from the reference, over "
    "the runs that differ; runs that equal it are counted as exact."
)


def _table(rows: Iterable[ClockStudyPointRow]) -> Markup:
    columns = ("timeout", "largest step", "shortest wait", "makespan", "waiting time",
               "simulation time", "accuracy", "exact runs", "crash rate",
               "over-allocations")  # fmt: skip
    body = [
        [text(cell) for cell in (
            with_unit(row.timeout_ms, "ms"), with_unit(row.max_step_s, "s"),
            with_unit(row.min_delay_ms, "ms"), with_interval(row.makespan_s),
            with_interval(row.mean_waiting_s), with_interval(row.wall_s), accuracy_words(row),
            f"{row.exact_runs} of {row.runs}", with_unit(100 * row.crash_rate, "%"),
            f"{row.over_allocations:,}",
        )] for row in rows
    ]  # fmt: skip
    return html_table(columns, body, right=columns)


def with_interval(estimate: EstimateRow | None) -> str:
    """Return a mean, with the half of its interval."""
    if estimate is None:
        return NO_VALUE
    decimals = 1 if abs(estimate.mean) >= 1 else 3
    mean = f"{estimate.mean:,.{decimals}f}"
    if estimate.high is None:
        return mean
    return f"{mean} ± {estimate.high - estimate.mean:,.{decimals}f}"


def accuracy_words(row: ClockStudyPointRow) -> str:
    """Return the accuracy of a point; ``exact`` if all its runs equal the reference."""
    if row.accuracy is None and row.exact_runs:
        return EXACT
    return with_interval(row.accuracy)


# Charts


def _chart(
    measure: _Measure, reference: ClockStudyReferenceRow, rows: Sequence[ClockStudyPointRow]
) -> Markup:
    """Draw a line for each series over the timeouts, which stand at equal distances."""
    timeouts = sorted({row.timeout_ms for row in rows})
    places = {timeout_ms: float(place) for place, timeout_ms in enumerate(timeouts)}
    level = None if measure.reference is None else measure.reference(reference)
    found = [estimate for row in rows if (estimate := measure.estimate(row)) is not None]
    if not found:
        exact = measure.title == "Accuracy" and any(row.exact_runs for row in rows)
        return empty_note("All runs equal the reference." if exact else _FAILED)
    tops = [estimate.high or estimate.mean for estimate in found]
    lows = [estimate.mean if estimate.low is None else estimate.low for estimate in found]
    known = [] if level is None else [level]
    # Makespans differ by seconds of thousands: from zero, all lines would be one.
    # A share has the whole of its scale.
    low, high = (0.0, 100.0) if measure.unit == "%" else (min(lows + known), max(tops + known))
    at = round_ticks(max(low, 0.0), high)
    frame = ChartFrame(
        span=TimeSpan(-0.5, len(timeouts) - 0.5),
        height=_HEIGHT,
        label=f"{measure.title} of {reference.workload} by timeout",
        ticks=[(places[timeout_ms], with_unit(timeout_ms, "ms")) for timeout_ms in timeouts],
    )
    y = LinearScale(at[0], at[-1], frame.bottom, TOP)
    series = _series(rows)
    drawn = [
        _line(
            measure,
            members,
            # Series stand side by side, so that no error bar hides another.
            {
                timeout_ms: frame.x(place) + _APART * (number - (len(series) - 1) / 2)
                for timeout_ms, place in places.items()
            },
            y,
            number % _COLOURS + 1,
        )
        for number, members in enumerate(series.values())
    ]
    legend = [
        legend_entry(f"column c{number % _COLOURS + 1}", name) for number, name in enumerate(series)
    ]
    if level is not None:
        title = tag("title", text(f"reference {format_number(level)}"))
        drawn.append(tag("path", title, class_="level", d=f"M{LEFT} {y(level):.1f}H{RIGHT}"))
    return frame.figure(_axis(at, y, measure.unit), *drawn, readings=None,
                        legend=legend_list(*legend))  # fmt: skip


def _axis(at: Sequence[float], y: LinearScale, unit: str) -> Markup:
    parts = []
    for place, value in enumerate(at):
        # Round steps need their digits: 2,210.5 is not 2,210.
        words = f"{value:,.6g}" if abs(value) < 1e5 else format_number(value)  # noqa: PLR2004
        words = f"{words} {unit}" if place == len(at) - 1 else words
        parts.append(tag("path", class_="grid", d=f"M{LEFT} {y(value):.1f}H{RIGHT}"))
        parts.append(tag("text", text(words), class_="tick end", x=LEFT - 8, y=y(value) + 4))
    return concat(parts)


def _series(rows: Iterable[ClockStudyPointRow]) -> dict[str, list[ClockStudyPointRow]]:
    """Return the points by their largest step and shortest wait."""
    series: dict[str, list[ClockStudyPointRow]] = {}
    for row in sorted(rows, key=lambda row: (row.min_delay_ms, row.max_step_s, row.timeout_ms)):
        name = f"step {row.max_step_s:g} s"
        if row.min_delay_ms:
            name += f", wait {row.min_delay_ms:g} ms"
        series.setdefault(name, []).append(row)
    return series


def _line(
    measure: _Measure,
    rows: Iterable[ClockStudyPointRow],
    places: dict[float, float],
    y: LinearScale,
    colour: int,
) -> Markup:
    points, parts = [], []
    for row in rows:
        estimate = measure.estimate(row)
        if estimate is None:
            continue
        x = places[row.timeout_ms]
        points.append(f"{px(x)} {px(y(estimate.mean))}")
        title = tag("title", text(f"{row.timeout_ms:g} ms, {row.max_step_s:g} s: "
                                  f"{with_interval(estimate)} {measure.unit}"))  # fmt: skip
        parts.append(tag("circle", title, class_=f"dot c{colour}", cx=x, cy=y(estimate.mean), r=4))
        if estimate.low is not None and estimate.high is not None:
            low, high = y(max(estimate.low, y.low)), y(estimate.high)
            bar = f"M{px(x)} {px(low)}V{px(high)}M{px(x - 4)} {px(high)}h8"
            parts.append(tag("path", class_=f"line c{colour}", d=bar))
    line = tag("path", class_=f"line c{colour}", d="M" + "L".join(points)) if points else Markup("")
    return concat([line, *parts])


# Tables


def clock_study_csv(document: ClockStudyDocument) -> dict[str, str]:
    """Return the contents of ``points.csv``, ``runs.csv`` and ``references.csv``."""
    return {
        "points.csv": _csv([_flat(row.to_json_object()) for row in document.points]),
        "runs.csv": _csv([row.to_json_object() for row in document.runs]),
        "references.csv": _csv([row.to_json_object() for row in document.references]),
    }


_ESTIMATES: Final = ("makespan_s", "mean_waiting_s", "wall_s", "distance_s", "accuracy")


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with a column for each part of an estimate."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if key in _ESTIMATES:
            for part, name in (("mean", key), ("low", f"{key}_low"), ("high", f"{key}_high")):
                flat[name] = None if value is None else value[part]
        elif key == "failures":
            flat[key] = " ".join(f"{code}={count}" for code, count in value.items())
        else:
            flat[key] = value
    return flat


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return ""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()
