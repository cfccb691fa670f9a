"""Compares two runs: the table of their measures, and a page with both over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isclose
from typing import Final, Literal, NamedTuple

import numpy as np

from equipoise.report.chart import plot
from equipoise.report.chart.frame import Floats, TimeSpan, empty_note
from equipoise.report.chart.markup import Markup, Section, html_table, tag, text
from equipoise.report.chart.plot import Plot, PlotSeries
from equipoise.report.format import NO_VALUE, unit_for
from equipoise.report.run.data import POINTS_MAX, column_times, column_values, run_span
from equipoise.report.run.measures import NEITHER, RunMeasure, run_measures
from equipoise.report.run.page import UNNAMED, html_document, run_facts
from equipoise.report.run_folder import SavedRun
from equipoise.sim.measure.sampling import SampleTable

Better = Literal["A", "B", "same", ""]


class _ComparedColumn(NamedTuple):
    """A column of the cluster table that the page shows for both runs."""

    name: str
    title: str
    column: str
    recorded: str
    caption: str
    held: bool = False
    """Whether a value holds until the next sample, like a count."""


_COLUMNS: Final = (
    _ComparedColumn("imbalance", "Imbalance", "imbalance", "", "Lower is better balanced."),
    _ComparedColumn("cpu", "CPU used", "cpu_used_mhz", "mhz", "CPU that VMs received."),
    _ComparedColumn("memory", "Memory used", "memory_used_mib", "mib", "Memory that VMs received."),
    _ComparedColumn("power", "Power", "watts", "watts", "Power of the cluster."),
    _ComparedColumn(
        "hosts",
        "Hosts that are on",
        "hosts_on",
        "",
        "The others are in standby, in maintenance or failed.",
        True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureDifference:
    """One measure in both runs."""

    measure: str
    a: float | None
    b: float | None
    difference: float | None
    """B minus A, if both have the same unit."""
    better: Better
    """The run with the better figure; empty if no direction is good or a figure is missing."""
    words: tuple[str, str, str]
    """A, B and B minus A, as text."""


def differences(run_a: SavedRun, run_b: SavedRun) -> list[MeasureDifference]:
    """Return every figure that one of the runs has, the difference, and the better run."""
    return measure_differences(
        run_measures(run_a.document, run_a.extra), run_measures(run_b.document, run_b.extra)
    )


def measure_differences(
    measures_a: Iterable[RunMeasure], measures_b: Iterable[RunMeasure]
) -> list[MeasureDifference]:
    """Return every figure of either list, the difference, and the better one."""
    of_a, of_b = (
        {measure.path: measure for measure in measures} for measures in (measures_a, measures_b)
    )
    paths = dict.fromkeys([*of_a, *of_b])
    rows = [_difference(of_a.get(path), of_b.get(path)) for path in paths]
    return [row for row in rows if row.a is not None or row.b is not None]


def _difference(in_a: RunMeasure | None, in_b: RunMeasure | None) -> MeasureDifference:
    known = in_a or in_b
    assert known is not None, "a measure comes from one of the runs"
    a, b = in_a.value if in_a else None, in_b.value if in_b else None
    less = None if a is None or b is None or _differ_in_unit(in_a, in_b) else b - a
    sign = "+" if less is not None and less > 0 else ""
    return MeasureDifference(
        measure=known.label,
        a=a,
        b=b,
        difference=less,
        better=_better(in_a, in_b),
        words=(
            in_a.words if in_a else NO_VALUE,
            in_b.words if in_b else NO_VALUE,
            "" if less is None else f"{sign}{known.say(less)}",
        ),
    )


def _better(in_a: RunMeasure | None, in_b: RunMeasure | None) -> Better:
    if in_a is None or in_b is None or in_a.better == NEITHER or _differ_in_unit(in_a, in_b):
        return ""
    # "never" is worse than any time.
    a, b = (
        measure.better * (measure.value if measure.value is not None else np.inf)
        for measure in (in_a, in_b)
    )
    if a == b or isclose(a, b, rel_tol=1e-9):
        return "same"
    return "A" if a > b else "B"


def _differ_in_unit(in_a: RunMeasure | None, in_b: RunMeasure | None) -> bool:
    """Return whether the units differ: prices can be in two currencies."""
    return in_a is not None and in_b is not None and in_a.unit != in_b.unit


def compare_page(run_a: SavedRun, run_b: SavedRun) -> str:
    """Return a page that compares two runs."""
    span = _span(run_a, run_b)
    caption = "Share of its entitled demand that a VM receives; mean of all VMs."
    happy = [_happiness(run.pools, _moments(span)) for run in (run_a, run_b)]
    sections = [
        _measures_section(run_a, run_b),
        *(
            Section(column.name, column.title, column.caption, _overlay(run_a, run_b, column))
            for column in _COLUMNS
        ),
        Section("happiness", "Happiness", caption, _plot("Happiness", span, happy, "%")),
    ]
    title = f"{run_a.name} and {run_b.name}: Equipoise"
    return html_document(title, _head(run_a, run_b), sections)


def _span(run_a: SavedRun, run_b: SavedRun) -> TimeSpan:
    spans = [run_span(run.cluster, run.document) for run in (run_a, run_b)]
    return TimeSpan(min(span.low_s for span in spans), max(span.high_s for span in spans))


def _head(run_a: SavedRun, run_b: SavedRun) -> Markup:
    lines = [
        tag(
            "p",
            tag("strong", text(f"{letter}: {run.name}")),
            text(f", {_facts(run)}"),
            class_="about",
        )
        for letter, run in (("A", run_a), ("B", run_b))
    ]
    a, b = run_a.document, run_b.document
    unequal = [
        name
        for name, same in (
            ("scenario", a.scenario == b.scenario),
            ("seed", a.seed == b.seed),
            ("length", a.duration_s == b.duration_s),
        )
        if not same
    ]
    warning = f"The runs differ in {' and '.join(unequal)}: compare with care."
    note = [tag("p", text(warning), class_="empty")] if unequal else []
    return tag("header", tag("h1", text(f"{run_a.name} and {run_b.name}")), *lines, *note)


def _facts(run: SavedRun) -> str:
    return f"{run.document.scenario or UNNAMED}, {run_facts(run.document)}"


def _measures_section(run_a: SavedRun, run_b: SavedRun) -> Section:
    compared = differences(run_a, run_b)
    rows = [
        [
            text(row.measure),
            _mark_better(row.words[0], row.better == "A"),
            _mark_better(row.words[1], row.better == "B"),
            text(row.words[2]),
            text(row.better),
        ]
        for row in compared
    ]
    columns = ("measure", "A", "B", "B minus A", "better")
    wins = {letter: sum(row.better == letter for row in compared) for letter in ("A", "B", "same")}
    caption = f"A is better in {wins['A']} measures, B in {wins['B']}; {wins['same']} are the same."
    body = html_table(columns, rows, right=columns[1:4])
    return Section("measures", "Measures", caption, body)


def _mark_better(words: str, better: bool) -> Markup:
    return tag("span", text(words), class_="better") if better else text(words)


# Over time


def _overlay(run_a: SavedRun, run_b: SavedRun, chart: _ComparedColumn) -> Markup:
    span = _span(run_a, run_b)
    values = [
        _values_at(
            column_times(run.cluster),
            column_values(run.cluster, chart.column),
            _moments(span),
            held=chart.held,
        )
        for run in (run_a, run_b)
    ]
    finite = np.concatenate([line[np.isfinite(line)] for line in values])
    if chart.column == "watts" and not finite.any():
        return empty_note("The hosts of these runs have no power figures.")
    unit = unit_for(chart.recorded, float(finite.max(initial=0.0)))
    return _plot(chart.title, span, [line / unit.size for line in values], unit.name)


def _plot(title: str, span: TimeSpan, values: list[Floats], unit: str) -> Markup:
    picture = Plot(
        label=f"{title} in both runs over time",
        span=span,
        times=_moments(span),
        series=[
            PlotSeries(name=name, values=line, colour=colour)
            for name, colour, line in zip(("A", "B"), (1, 2), values, strict=True)
        ],
        unit=unit,
        high=100.0 if unit == "%" else None,
    )
    return plot.draw(picture, empty=f"Neither run has a record of {title}.")


def _moments(span: TimeSpan) -> Floats:
    return np.linspace(span.low_s, span.high_s, POINTS_MAX)


def _values_at(times: Floats, values: Floats, moments: Floats, *, held: bool = False) -> Floats:
    """Return the value at each moment, interpolated; NaN outside the samples.

    A value that is ``held`` stays until the next sample, like a count.
    """
    known = np.isfinite(values)
    times, values = times[known], values[known]
    if not len(times):
        return np.full(len(moments), np.nan)
    if held:
        place = np.searchsorted(times, moments, side="right") - 1
        return np.where(place >= 0, values[np.maximum(place, 0)], np.nan)
    return np.interp(moments, times, values, left=np.nan, right=np.nan)


def _happiness(pools: SampleTable, moments: Floats) -> Floats:
    """Return the mean over all VMs: each pool has the weight of its VMs."""
    times, sample = np.unique(column_times(pools), return_inverse=True)
    values, vms = column_values(pools, "happiness_pct"), column_values(pools, "vms")
    known = np.isfinite(values) & np.isfinite(vms)
    total = np.bincount(sample[known], (values * vms)[known], len(times))
    count = np.bincount(sample[known], vms[known], len(times))
    mean = np.full(len(times), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return _values_at(times, mean, moments)
