"""How happy the VMs of each pool were: how much of what they deserve they got."""

from __future__ import annotations

from typing import Final

import numpy as np

from equipoise.report.chart import plot
from equipoise.report.chart.markup import joined, tag, text
from equipoise.report.chart.plot import Plot, Series
from equipoise.report.chart.scale import Figures
from equipoise.report.material import (
    Material,
    Thinning,
    coded,
    figures,
    pool_called,
    rows_of,
    times_of,
)
from equipoise.report.section import Section
from equipoise.report.words import moment, percent
from equipoise.sim.measure.record import Table

_POOLS_MAX: Final = 8
_ALL_PCT: Final = 99.9999
_EMPTY: Final = "The happiness of VMs was not recorded in this run."
_MEANING: Final = "Happiness is how much of the CPU that it deserves and wants a VM gets."
_CHARTS: Final = (
    ("Mean happiness", "happiness_pct", "Mean happiness of the VMs of each pool over time"),
    ("Share of happy VMs", "happy_pct", "Share of happy VMs in each pool over time"),
)


def happiness(material: Material) -> Section:
    """Happiness per pool over time, as a mean and as the share of the happy."""
    pools = material.record.pools
    thin, columns = spread(pools, "happiness_pct")
    shown = sorted(columns, key=lambda name: _lowest(columns[name]))[:_POOLS_MAX]
    charts = []
    for title, column, label in _CHARTS:
        found = spread(pools, column)[1]
        series = [
            Series(name=name, values=found[name], colour=colour)
            for colour, name in enumerate(sorted(shown), start=1)
        ]
        low = min((_lowest(one.values) for one in series), default=0.0)
        picture = Plot(
            label=label,
            span=material.span,
            times=thin.times,
            series=series,
            unit="%",
            low=min(90.0, low // 10 * 10) if np.isfinite(low) else 0.0,
            high=100.0,
            marks=material.marks(),
        )
        charts += [tag("h3", text(title)), plot.draw(picture, empty=_EMPTY)]
    see = _said(pools, columns, len(columns) - len(shown)) + thin.note
    return Section("happiness", "Happiness", see, joined(charts))


def spread(pools: Table, column: str) -> tuple[Thinning, dict[str, Figures]]:
    """One line of figures per pool, over the moments of all of them."""
    moments, sample = np.unique(times_of(pools), return_inverse=True)
    thin = Thinning(moments)
    if not rows_of(pools):
        return thin, {}
    names, code = coded(pools["pool"])
    values = figures(pools, column)
    found = {}
    for place, name in enumerate(names):
        line = np.full(len(moments), np.nan)
        line[sample[code == place]] = values[code == place]
        found[pool_called(name, alone=len(names) == 1)] = thin.mean(line)
    return thin, found


def _lowest(values: Figures) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.min()) if len(finite) else np.inf


def _said(pools: Table, columns: dict[str, Figures], left_out: int) -> str:
    values = figures(pools, "happiness_pct")
    if not np.isfinite(values).any():
        return _MEANING
    worst = int(np.nanargmin(values))
    if values[worst] >= _ALL_PCT:
        return f"{_MEANING} All VMs were perfectly happy, all the time."
    name = pool_called(str(pools["pool"][worst]), alone=len(columns) == 1)
    low = f"{percent(values[worst])} in {name} at {moment(times_of(pools)[worst])}"
    more = (
        f" The {_POOLS_MAX} least happy pools are shown; the other {left_out} are in pools.csv."
        if left_out
        else ""
    )
    return f"{_MEANING} The mean was lowest with {low}.{more}"
