"""The happiness of the VMs of each pool: the share of their entitled demand that they receive."""

from __future__ import annotations

from typing import Final

import numpy as np

from equipoise.report.chart import plot
from equipoise.report.chart.frame import Floats
from equipoise.report.chart.markup import concat, tag, text
from equipoise.report.chart.plot import Plot, PlotSeries
from equipoise.report.format import format_moment, format_percent
from equipoise.report.run.data import (
    Downsampler,
    RunData,
    column_times,
    column_values,
    encode_names,
    pool_label,
    row_count,
)
from equipoise.report.section import Section
from equipoise.sim.measure.sampling import SampleTable

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
