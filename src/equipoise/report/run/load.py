"""Demand, utilisation and imbalance of the cluster, and the happiness of the VMs of each pool."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import UNSET

from equipoise.documents.simulation import ImbalanceFigures
from equipoise.model.quantity import format_count
from equipoise.report.chart import plot
from equipoise.report.chart.frame import Floats, empty_note
from equipoise.report.chart.markup import Markup, Section, concat, tag, text
from equipoise.report.chart.plot import Plot, PlotSeries, SeriesStyle
from equipoise.report.format import (
    format_amount,
    format_moment,
    format_number,
    format_percent,
    unit_for,
)
from equipoise.report.run.actions import ActionAttempt, ActionOutcome
from equipoise.report.run.data import (
    Downsampler,
    RunData,
    column_times,
    column_values,
    encode_names,
    pool_label,
    row_count,
)
from equipoise.sim.measure.sampling import SampleTable

NO_SAMPLES: Final = "This run has no samples."
_RESOURCES: Final = (("CPU", "cpu", "mhz"), ("Memory", "memory", "mib"))


def load_section(run: RunData) -> Section:
    """Return CPU and memory of the whole cluster over time."""
    captions, charts = [], []
    for title, resource, recorded in _RESOURCES:
        captions.append(_load_caption(run, title, resource, recorded))
        charts += [tag("h3", text(title)), _load_chart(run, title, resource, recorded)]
    note = Downsampler(column_times(run.record.cluster)).note
    note += " A triangle marks a host failure." if run.marks() else ""
    caption = " ".join(filter(None, captions)) or NO_SAMPLES
    return Section("load", "Load of the cluster", caption + note, concat(charts))


def _load_caption(run: RunData, title: str, resource: str, recorded: str) -> str:
    cluster = run.record.cluster
    demand = column_values(cluster, f"{resource}_demand_{recorded}")
    if not np.isfinite(demand).any():
        return ""
    peak = int(np.nanargmax(demand))
    capacity = column_values(cluster, f"{resource}_capacity_{recorded}")[peak]
    share = f", {format_percent(demand[peak] / capacity * 100)} of capacity" if capacity > 0 else ""
    when = format_moment(column_times(cluster)[peak])
    satisfied = run.document.satisfied_pct
    met = satisfied.cpu if resource == "cpu" else satisfied.memory
    got = "" if met is None else f"; {format_percent(met)} of all demand was met"
    amount = format_amount(demand[peak], recorded)
    return f"{title} demand was highest at {when} with {amount}{share}{got}."


def _load_chart(run: RunData, title: str, resource: str, recorded: str) -> Markup:
    cluster = run.record.cluster
    thin = Downsampler(column_times(cluster))
    looks = (
        ("used", SeriesStyle.AREA, 1),
        ("demand", SeriesStyle.LINE, 2),
        ("capacity", SeriesStyle.STEP, 0),
    )
    known = {
        name: thin.mean(column_values(cluster, f"{resource}_{name}_{recorded}"))
        for name, _, _ in looks
    }
    unit = unit_for(recorded, _largest(*known.values()))
    series = [
        PlotSeries(name=name, values=known[name] / unit.size, look=look, colour=colour)
        for name, look, colour in looks
    ]
    picture = Plot(
        label=f"{title} used, demanded and available over time",
        span=run.span,
        times=thin.times,
        series=series,
        unit=unit.name,
        marks=run.marks(),
    )
    return plot.draw(picture, empty=NO_SAMPLES)


def _largest(*columns: Floats) -> float:
    finite = np.concatenate([column[np.isfinite(column)] for column in columns])
    return float(finite.max(initial=0.0))


# Imbalance


def imbalance_section(run: RunData, attempts: list[ActionAttempt]) -> Section:
    """Return the imbalance over time, and the migrations."""
    thin = Downsampler(column_times(run.record.cluster))
    target = run.document.imbalance.target
    values = thin.mean(column_values(run.record.cluster, "imbalance"))
    line = Plot(
        label="Imbalance of the hosts over time",
        span=run.span,
        times=thin.times,
        series=[PlotSeries(name="imbalance", values=values, colour=1)],
        levels=[] if target is None else [(target, "target")],
        marks=run.marks(),
    )
    charts = [
        plot.draw(line, empty="The run has no record of the imbalance."),
        tag("h3", text("Migrations started around each sample")),
        _migrations_chart(run, thin, attempts),
    ]
    caption = _imbalance_caption(run, target, attempts)
    return Section("imbalance", "Imbalance and migrations", caption, concat(charts))


def _imbalance_caption(run: RunData, target: float | None, attempts: list[ActionAttempt]) -> str:
    values = column_values(run.record.cluster, "imbalance")
    known = values[np.isfinite(values)]
    moved = sum(
        attempt.is_migration and attempt.outcome is ActionOutcome.FINISHED for attempt in attempts
    )
    moves = f"{format_count(moved, 'migration')} finished."
    if not len(known):
        return moves
    way = f"The imbalance went from {format_number(known[0])} to {format_number(known[-1])}"
    way = way if len(known) > 1 else f"The imbalance was {format_number(known[0])}"
    return f"{way}{_target_text(run.document.imbalance)} (lower is better balanced); {moves}"


def _target_text(imbalance: ImbalanceFigures) -> str:
    """Return the time at which the imbalance fell below its target, if it was recorded."""
    below, target = imbalance.below_target_at_s, imbalance.target
    if below is UNSET:
        return ""
    name = "its target" if target is None else f"its target of {format_number(target)}"
    if below is None:
        return f" and never met {name}"
    return f" and first met {name} at {format_moment(below)}"


def _migrations_chart(run: RunData, thin: Downsampler, attempts: list[ActionAttempt]) -> Markup:
    moves = [attempt for attempt in attempts if attempt.is_migration]
    if not moves:
        return empty_note("The run has no migrations.")
    if not len(thin.times):
        return empty_note(NO_SAMPLES)
    around = plot.sample_edges(thin.times, run.span)
    kinds = (
        ("finished", 1, {ActionOutcome.FINISHED}),
        ("unfinished", 2, set(ActionOutcome) - {ActionOutcome.FINISHED}),
    )
    series = []
    for name, colour, endings in kinds:
        starts = [attempt.start_s for attempt in moves if attempt.outcome in endings]
        counts = np.histogram(starts, bins=around)[0].astype(np.float64)
        if counts.any():
            series.append(
                PlotSeries(name=name, values=counts, look=SeriesStyle.COLUMNS, colour=colour)
            )
    picture = Plot(
        label="Migrations started in the time around each sample",
        span=run.span,
        times=thin.times,
        series=series,
        height=90,
        whole=True,
    )
    return plot.draw(picture, empty="No migration started between the first and the last sample.")


_POOLS_MAX: Final = 8
_ALL_PCT: Final = 99.9999
_EMPTY: Final = "The run has no record of happiness."
_MEANING: Final = "Happiness is the share of its entitled CPU demand that a VM receives."
_CHARTS: Final = (
    ("Mean happiness", "happiness_pct", "Mean happiness of the VMs of each pool over time"),
    ("Share of happy VMs", "happy_pct", "Share of happy VMs in each pool over time"),
)


def happiness_section(run: RunData) -> Section:
    """Return happiness per pool over time: the mean, and the share of happy VMs."""
    pools = run.record.pools
    thin, columns = values_per_pool(pools, "happiness_pct")
    shown = sorted(columns, key=lambda name: _lowest(columns[name]))[:_POOLS_MAX]
    charts = []
    for title, column, label in _CHARTS:
        lines = values_per_pool(pools, column)[1]
        series = [
            PlotSeries(name=name, values=lines[name], colour=colour)
            for colour, name in enumerate(sorted(shown), start=1)
        ]
        low = min((_lowest(line.values) for line in series), default=0.0)
        picture = Plot(
            label=label,
            span=run.span,
            times=thin.times,
            series=series,
            unit="%",
            low=min(90.0, low // 10 * 10) if np.isfinite(low) else 0.0,
            high=100.0,
            marks=run.marks(),
        )
        charts += [tag("h3", text(title)), plot.draw(picture, empty=_EMPTY)]
    caption = _caption(pools, columns, len(columns) - len(shown)) + thin.note
    return Section("happiness", "Happiness", caption, concat(charts))


def values_per_pool(pools: SampleTable, column: str) -> tuple[Downsampler, dict[str, Floats]]:
    """Return one line of figures per pool, over the times of all pools."""
    moments, sample = np.unique(column_times(pools), return_inverse=True)
    thin = Downsampler(moments)
    if not row_count(pools):
        return thin, {}
    names, code = encode_names(pools["pool"])
    values = column_values(pools, column)
    lines = {}
    for place, name in enumerate(names):
        line = np.full(len(moments), np.nan)
        line[sample[code == place]] = values[code == place]
        lines[pool_label(name, alone=len(names) == 1)] = thin.mean(line)
    return thin, lines


def _lowest(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.min()) if len(finite) else np.inf


def _caption(pools: SampleTable, columns: dict[str, Floats], left_out: int) -> str:
    values = column_values(pools, "happiness_pct")
    if not np.isfinite(values).any():
        return _MEANING
    worst = int(np.nanargmin(values))
    if values[worst] >= _ALL_PCT:
        return f"{_MEANING} All VMs received 100 % all the time."
    name = pool_label(str(pools["pool"][worst]), alone=len(columns) == 1)
    low = (
        f"{format_percent(values[worst])} in {name} at {format_moment(column_times(pools)[worst])}"
    )
    more = (
        f" The charts show the {_POOLS_MAX} least happy pools; "
        f"the other {left_out} are in pools.csv."
        if left_out
        else ""
    )
    return f"{_MEANING} The mean was lowest with {low}.{more}"
