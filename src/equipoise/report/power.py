"""What the cluster and each host drew, how many hosts were awake for it, and what it came to."""

from __future__ import annotations

from typing import Final

import numpy as np

from equipoise.report.bill import bill
from equipoise.report.chart import heat, plot
from equipoise.report.chart.frame import nothing
from equipoise.report.chart.heat import HeatMap, Ramp
from equipoise.report.chart.markup import EMPTY, Markup, joined, tag, text
from equipoise.report.chart.plot import Look, Plot, Series
from equipoise.report.chart.scale import Figures
from equipoise.report.grid import grid_of, share
from equipoise.report.material import Material, Thinning, figure, figures, rows_of, times_of
from equipoise.report.section import Section
from equipoise.report.words import number, percent, unit_for

_UNKNOWN: Final = (
    "No power was drawn: the hosts of this run have no power figures (idle_watts, peak_watts)."
)


def power(material: Material) -> Section:
    """Watts of the cluster and of each host, hosts that are on, and the bill."""
    thin = Thinning(times_of(material.record.cluster))
    charts = [
        tag("h3", text("Drawn by the cluster")),
        _watts(material, thin),
        _per_host(material),
        tag("h3", text("Hosts that are on")),
        _hosts_on(material, thin),
        bill(material.summary),
    ]
    return Section("power", "Power", _said(material) + thin.note, joined(charts))


def _said(material: Material) -> str:
    watts = figures(material.record.cluster, "watts")
    if not np.nansum(watts) > 0:
        return "What the cluster drew, and how many hosts were on."
    unit = unit_for("watts", float(np.nanmax(watts)))
    low, high = (number(one / unit.size) for one in (np.nanmin(watts), np.nanmax(watts)))
    between = f"between {low} and {high} {unit.name}"
    energy = figure(material.summary, "energy_kwh")
    total = "" if energy is None else f", {number(energy)} kWh in all"
    on = figures(material.record.cluster, "hosts_on")
    awake = ""
    if np.isfinite(on).any():
        fewest, most = number(np.nanmin(on)), number(np.nanmax(on))
        awake = f" {most} hosts" if fewest == most else f" {fewest} to {most} hosts"
        awake += " were on."
    return f"The cluster drew {between}{total}.{awake}{_saved(material)}"


def _saved(material: Material) -> str:
    if not _slept(material):
        return ""
    saved, part = (figure(material.summary, f"energy.saved_{one}") for one in ("kwh", "pct"))
    known = saved is not None and part is not None
    total = f" Sleep saved {number(saved)} kWh, {percent(part)} of that." if known else ""
    return (
        " The dashed line is an estimate: what it would have drawn if all hosts had stayed on, "
        f"the sleepers with nothing to do.{total}"
    )


def _slept(material: Material) -> bool:
    return bool(np.nan_to_num(_sleepers(material)).any())


def _sleepers(material: Material) -> Figures:
    """What the sleepers of each sample would have drawn on top, had they been on and idle."""
    return figures(material.record.cluster, "watts_saved")


def _watts(material: Material, thin: Thinning) -> Markup:
    watts = thin.mean(figures(material.record.cluster, "watts"))
    if not np.nansum(watts) > 0:
        return nothing(_UNKNOWN)
    awake = watts + thin.mean(_sleepers(material)) if _slept(material) else watts
    unit = unit_for("watts", float(np.nanmax(awake)))
    series = [Series(name="power", values=watts / unit.size, look=Look.AREA, colour=4)]
    if _slept(material):
        # Below the other line, which hides it where nobody sleeps.
        series.insert(0, Series(name="if all on", values=awake / unit.size, colour=0))
    picture = Plot(
        label="Power drawn by the cluster over time",
        span=material.span,
        times=thin.times,
        series=series,
        unit=unit.name,
        marks=material.marks(),
    )
    return plot.draw(picture, empty=_UNKNOWN)


def _per_host(material: Material) -> Markup:
    """Watts of every host that is on, as a heat map from the least to the most that was drawn."""
    table = material.record.hosts
    watts = figures(table, "watts")
    if not rows_of(table) or not np.nansum(watts) > 0:
        return EMPTY
    grid = grid_of(table)
    drawn = np.where(grid.on & np.isfinite(watts), watts, 0.0)
    views = {"power": grid.cells(share(grid.summed(drawn), grid.counted(grid.on)))}
    if grid.mixed:
        highest = grid.cells(grid.highest(np.where(grid.on, watts, np.nan)))
        views = {"mean per host": views["power"], "highest": highest}
    known = np.concatenate([one[one >= 0] for one in views.values()])
    high = int(known.max(initial=0))
    low = int(known.min(initial=high))
    picture = HeatMap(
        label="Power drawn by each host over time",
        span=material.span,
        edges=plot.edges(grid.times, material.span),
        rows=grid.names,
        views=views,
        flaws=grid.flaws,
        ramp=Ramp(low if low < high else 0, high, "W"),
    )
    title = tag("h3", text("Drawn by each host"))
    note = tag("p", text(grid.note), class_="note") if grid.note else EMPTY
    return joined([title, note, heat.draw(picture, name="power-hosts")])


def _hosts_on(material: Material, thin: Thinning) -> Markup:
    on = thin.mean(figures(material.record.cluster, "hosts_on"))
    picture = Plot(
        label="Hosts that are on over time",
        span=material.span,
        times=thin.times,
        series=[Series(name="hosts on", values=on, look=Look.STEP, colour=3)],
        height=90,
        whole=True,
        marks=material.marks(),
    )
    return plot.draw(picture, empty="How many hosts were on was not recorded.")
