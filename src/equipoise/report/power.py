"""What the cluster drew, and how many hosts were awake for it."""

from __future__ import annotations

from typing import Final

import numpy as np

from equipoise.report.chart import plot
from equipoise.report.chart.frame import nothing
from equipoise.report.chart.markup import Markup, joined, tag, text
from equipoise.report.chart.plot import Look, Plot, Series
from equipoise.report.material import Material, Thinning, figure, figures, times_of
from equipoise.report.section import Section
from equipoise.report.words import number, unit_for

_UNKNOWN: Final = (
    "No power was drawn: the hosts of this run have no power figures (idle_watts, peak_watts)."
)


def power(material: Material) -> Section:
    """Watts of the cluster and hosts that are on, over time."""
    thin = Thinning(times_of(material.record.cluster))
    charts = [
        tag("h3", text("Drawn by the cluster")),
        _watts(material, thin),
        tag("h3", text("Hosts that are on")),
        _hosts_on(material, thin),
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
    return f"The cluster drew {between}{total}.{awake}"


def _watts(material: Material, thin: Thinning) -> Markup:
    watts = thin.mean(figures(material.record.cluster, "watts"))
    if not np.nansum(watts) > 0:
        return nothing(_UNKNOWN)
    unit = unit_for("watts", float(np.nanmax(watts)))
    picture = Plot(
        label="Power drawn by the cluster over time",
        span=material.span,
        times=thin.times,
        series=[Series(name="power", values=watts / unit.size, look=Look.AREA, colour=4)],
        unit=unit.name,
        marks=material.marks(),
    )
    return plot.draw(picture, empty=_UNKNOWN)


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
