"""Two runs side by side: the measures in which they differ, and their figures over time."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from typing import Final, Literal, NamedTuple

import numpy as np

from equipoise.report.chart import plot
from equipoise.report.chart.frame import Span, nothing
from equipoise.report.chart.markup import Markup, tag, text
from equipoise.report.chart.plot import Plot, Series
from equipoise.report.chart.scale import Figures
from equipoise.report.folder import Run
from equipoise.report.head import facts
from equipoise.report.material import POINTS_MAX, figures, span_of, times_of
from equipoise.report.measures import NEITHER, Measure, measures
from equipoise.report.page import document
from equipoise.report.section import Section, listed
from equipoise.report.words import NONE, unit_for
from equipoise.sim.measure.record import Table

Better = Literal["A", "B", "same", ""]


class _Chart(NamedTuple):
    """A column of the cluster's table that is shown for both runs."""

    name: str
    title: str
    column: str
    recorded: str
    see: str
    held: bool = False
    """Whether a figure stays until the next sample, like a count."""


_CHARTS: Final = (
    _Chart("imbalance", "Imbalance", "imbalance", "", "The lower, the more evenly loaded."),
    _Chart("cpu", "CPU used", "cpu_used_mhz", "mhz", "What VMs got of the CPU."),
    _Chart("memory", "Memory used", "memory_used_mib", "mib", "What VMs got of the memory."),
    _Chart("power", "Power", "watts", "watts", "What the cluster drew."),
    _Chart("hosts", "Hosts that are on", "hosts_on", "", "The others sleep, or failed.", True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measure in both runs."""

    measure: str
    a: float | None
    b: float | None
    difference: float | None
    """How much more B has than A, where they can be compared."""
    better: Better
    """Which run has the better figure; empty if neither direction is good or one is not known."""
    words: tuple[str, str, str]
    """A, B and B less A, as people read them."""


def differences(run_a: Run, run_b: Run) -> list[Difference]:
    """Every figure that one of the runs has, with the difference and who is better."""
    of_a = {one.path: one for one in measures(run_a.summary)}
    of_b = {one.path: one for one in measures(run_b.summary)}
    paths = dict.fromkeys([*of_a, *of_b])
    found = [_difference(of_a.get(path), of_b.get(path)) for path in paths]
    return [one for one in found if one.a is not None or one.b is not None]


def _difference(in_a: Measure | None, in_b: Measure | None) -> Difference:
    known = in_a or in_b
    assert known is not None, "a measure comes from one of the runs"
    a, b = in_a.value if in_a else None, in_b.value if in_b else None
    less = None if a is None or b is None or _unlike(in_a, in_b) else b - a
    sign = "+" if less is not None and less > 0 else ""
    return Difference(
        measure=known.label,
        a=a,
        b=b,
        difference=less,
        better=_better(in_a, in_b),
        words=(
            in_a.words if in_a else NONE,
            in_b.words if in_b else NONE,
            "" if less is None else f"{sign}{known.say(less)}",
        ),
    )


def _better(in_a: Measure | None, in_b: Measure | None) -> Better:
    if in_a is None or in_b is None or in_a.better == NEITHER or _unlike(in_a, in_b):
        return ""
    # What never came to pass is worse than what came late.
    a, b = (one.better * (one.value if one.value is not None else np.inf) for one in (in_a, in_b))
    if a == b or isclose(a, b, rel_tol=1e-9):
        return "same"
    return "A" if a > b else "B"


def _unlike(in_a: Measure | None, in_b: Measure | None) -> bool:
    """Whether they have different units: prices can be in two currencies."""
    return in_a is not None and in_b is not None and in_a.unit != in_b.unit


def compare(run_a: Run, run_b: Run) -> str:
    """Make one page of two runs."""
    span = _span(run_a, run_b)
    see = "How much of what it deserves a VM gets, as the mean of all VMs."
    happy = [_happiness(run.pools, _moments(span)) for run in (run_a, run_b)]
    sections = [
        _measured(run_a, run_b),
        *(Section(one.name, one.title, one.see, _overlay(run_a, run_b, one)) for one in _CHARTS),
        Section("happiness", "Happiness", see, _plot("Happiness", span, happy, "%")),
    ]
    title = f"{run_a.name} and {run_b.name}: Equipoise"
    return document(title, _head(run_a, run_b), sections)


def _span(run_a: Run, run_b: Run) -> Span:
    spans = [span_of(run.cluster, run.summary) for run in (run_a, run_b)]
    return Span(min(one.low_s for one in spans), max(one.high_s for one in spans))


def _head(run_a: Run, run_b: Run) -> Markup:
    lines = [
        tag(
            "p",
            tag("strong", text(f"{letter}: {run.name}")),
            text(f", {_facts(run)}"),
            class_="about",
        )
        for letter, run in (("A", run_a), ("B", run_b))
    ]
    unlike = [
        words
        for words, key in (("scenario", "scenario"), ("seed", "seed"), ("length", "duration_s"))
        if run_a.summary.get(key) != run_b.summary.get(key)
    ]
    warning = f"The runs are not of the same {' and '.join(unlike)}: compare with care."
    note = [tag("p", text(warning), class_="empty")] if unlike else []
    return tag("header", tag("h1", text(f"{run_a.name} and {run_b.name}")), *lines, *note)


def _facts(run: Run) -> str:
    return f"{run.summary.get('scenario') or 'a run without a name'}, {facts(run.summary)}"


def _measured(run_a: Run, run_b: Run) -> Section:
    found = differences(run_a, run_b)
    rows = [
        [
            text(one.measure),
            _marked(one.words[0], one.better == "A"),
            _marked(one.words[1], one.better == "B"),
            text(one.words[2]),
            text(one.better),
        ]
        for one in found
    ]
    columns = ("measure", "A", "B", "B less A", "better")
    wins = {letter: sum(one.better == letter for one in found) for letter in ("A", "B", "same")}
    see = (
        f"A is better in {wins['A']} measures, B in {wins['B']}; "
        f"{wins['same']} are the same. Which of them matter is for you to say."
    )
    body = listed(columns, rows, right=columns[1:4])
    return Section("measures", "Measures", see, body)


def _marked(words: str, better: bool) -> Markup:
    return tag("span", text(words), class_="better") if better else text(words)


# Over time


def _overlay(run_a: Run, run_b: Run, chart: _Chart) -> Markup:
    span = _span(run_a, run_b)
    values = [
        _at(
            times_of(run.cluster),
            figures(run.cluster, chart.column),
            _moments(span),
            held=chart.held,
        )
        for run in (run_a, run_b)
    ]
    finite = np.concatenate([one[np.isfinite(one)] for one in values])
    if chart.column == "watts" and not finite.any():
        return nothing("The hosts of these runs have no power figures.")
    unit = unit_for(chart.recorded, float(finite.max(initial=0.0)))
    return _plot(chart.title, span, [one / unit.size for one in values], unit.name)


def _plot(title: str, span: Span, values: list[Figures], unit: str) -> Markup:
    picture = Plot(
        label=f"{title} in both runs over time",
        span=span,
        times=_moments(span),
        series=[
            Series(name=name, values=line, colour=colour)
            for name, colour, line in zip(("A", "B"), (1, 2), values, strict=True)
        ],
        unit=unit,
        high=100.0 if unit == "%" else None,
    )
    return plot.draw(picture, empty=f"{title} was not recorded in either run.")


def _moments(span: Span) -> Figures:
    return np.linspace(span.low_s, span.high_s, POINTS_MAX)


def _at(times: Figures, values: Figures, moments: Figures, *, held: bool = False) -> Figures:
    """What was known at each moment, or between two samples; nothing before and after them.

    What is ``held`` keeps its value until the next sample, like a count.
    """
    known = np.isfinite(values)
    times, values = times[known], values[known]
    if not len(times):
        return np.full(len(moments), np.nan)
    if held:
        place = np.searchsorted(times, moments, side="right") - 1
        return np.where(place >= 0, values[np.maximum(place, 0)], np.nan)
    return np.interp(moments, times, values, left=np.nan, right=np.nan)


def _happiness(pools: Table, moments: Figures) -> Figures:
    """The mean over all VMs, each pool with the weight of its VMs."""
    times, sample = np.unique(times_of(pools), return_inverse=True)
    values, vms = figures(pools, "happiness_pct"), figures(pools, "vms")
    known = np.isfinite(values) & np.isfinite(vms)
    total = np.bincount(sample[known], (values * vms)[known], len(times))
    count = np.bincount(sample[known], vms[known], len(times))
    mean = np.full(len(times), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return _at(times, mean, moments)
