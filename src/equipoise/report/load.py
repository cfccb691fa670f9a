"""What the cluster was asked for and what it gave, and how evenly its hosts were loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from equipoise.model.words import counted
from equipoise.report.actions import Deed, Ending
from equipoise.report.chart import plot
from equipoise.report.chart.frame import nothing
from equipoise.report.chart.markup import Markup, joined, tag, text
from equipoise.report.chart.plot import Look, Plot, Series
from equipoise.report.chart.scale import Figures
from equipoise.report.material import Material, Summary, Thinning, figure, figures, times_of
from equipoise.report.section import Section
from equipoise.report.words import amount, moment, number, percent, unit_for

NO_SAMPLES: Final = "No samples were taken in this run, so there is nothing to draw."
_RESOURCES: Final = (("CPU", "cpu", "mhz"), ("Memory", "memory", "mib"))


def load(material: Material) -> Section:
    """CPU and memory of the whole cluster over time."""
    said, charts = [], []
    for title, resource, recorded in _RESOURCES:
        said.append(_said(material, title, resource, recorded))
        charts += [tag("h3", text(title)), _chart(material, title, resource, recorded)]
    note = Thinning(times_of(material.record.cluster)).note
    note += " A triangle is the failure of a host." if material.marks() else ""
    see = " ".join(filter(None, said)) or NO_SAMPLES
    return Section("load", "Load of the cluster", see + note, joined(charts))


def _said(material: Material, title: str, resource: str, recorded: str) -> str:
    cluster = material.record.cluster
    demand = figures(cluster, f"{resource}_demand_{recorded}")
    if not np.isfinite(demand).any():
        return ""
    peak = int(np.nanargmax(demand))
    capacity = figures(cluster, f"{resource}_capacity_{recorded}")[peak]
    share = f", {percent(demand[peak] / capacity * 100)} of capacity" if capacity > 0 else ""
    when = moment(times_of(cluster)[peak])
    met = figure(material.summary, f"satisfied_pct.{resource}")
    got = "" if met is None else f"; {percent(met)} of all demand was met"
    return (
        f"{title} demand was highest at {when} with {amount(demand[peak], recorded)}{share}{got}."
    )


def _chart(material: Material, title: str, resource: str, recorded: str) -> Markup:
    cluster = material.record.cluster
    thin = Thinning(times_of(cluster))
    looks = (("used", Look.AREA, 1), ("demand", Look.LINE, 2), ("capacity", Look.STEP, 0))
    known = {
        name: thin.mean(figures(cluster, f"{resource}_{name}_{recorded}")) for name, _, _ in looks
    }
    unit = unit_for(recorded, _largest(*known.values()))
    series = [
        Series(name=name, values=known[name] / unit.size, look=look, colour=colour)
        for name, look, colour in looks
    ]
    picture = Plot(
        label=f"{title} used, demanded and available over time",
        span=material.span,
        times=thin.times,
        series=series,
        unit=unit.name,
        marks=material.marks(),
    )
    return plot.draw(picture, empty=NO_SAMPLES)


def _largest(*columns: Figures) -> float:
    finite = np.concatenate([column[np.isfinite(column)] for column in columns])
    return float(finite.max(initial=0.0))


# Imbalance


def imbalance(material: Material, deeds: list[Deed]) -> Section:
    """How evenly the hosts were loaded, and the migrations that made it so."""
    thin = Thinning(times_of(material.record.cluster))
    target = figure(material.summary, "imbalance.target")
    values = thin.mean(figures(material.record.cluster, "imbalance"))
    line = Plot(
        label="Imbalance of the hosts over time",
        span=material.span,
        times=thin.times,
        series=[Series(name="imbalance", values=values, colour=1)],
        levels=[] if target is None else [(target, "target")],
        marks=material.marks(),
    )
    charts = [
        plot.draw(line, empty="The imbalance of this run was not recorded."),
        tag("h3", text("Migrations started around each sample")),
        _migrations(material, thin, deeds),
    ]
    see = _said_of_imbalance(material, target, deeds)
    return Section("imbalance", "Imbalance and migrations", see, joined(charts))


def _said_of_imbalance(material: Material, target: float | None, deeds: list[Deed]) -> str:
    values = figures(material.record.cluster, "imbalance")
    known = values[np.isfinite(values)]
    moved = sum(deed.migrates and deed.ending is Ending.FINISHED for deed in deeds)
    moves = f"{counted(moved, 'migration')} finished."
    if not len(known):
        return moves
    way = f"The imbalance went from {number(known[0])} to {number(known[-1])}"
    way = way if len(known) > 1 else f"The imbalance was {number(known[0])}"
    return f"{way}{_met(material.summary, target)} (the lower, the more evenly loaded); {moves}"


def _met(summary: Summary, target: float | None) -> str:
    """When the target was met, if that was looked at."""
    imbalance = summary.get("imbalance")
    if not isinstance(imbalance, Mapping) or "below_target_at_s" not in imbalance:
        return ""
    named = "its target" if target is None else f"its target of {number(target)}"
    below = figure(summary, "imbalance.below_target_at_s")
    if below is None:
        return f" and never met {named}"
    return f" and first met {named} at {moment(below)}"


def _migrations(material: Material, thin: Thinning, deeds: list[Deed]) -> Markup:
    moves = [deed for deed in deeds if deed.migrates]
    if not moves:
        return nothing("No migrations were carried out.")
    if not len(thin.times):
        return nothing(NO_SAMPLES)
    around = plot.edges(thin.times, material.span)
    kinds = (
        ("finished", 1, {Ending.FINISHED}),
        ("unfinished", 2, set(Ending) - {Ending.FINISHED}),
    )
    series = []
    for name, colour, endings in kinds:
        starts = [deed.start_s for deed in moves if deed.ending in endings]
        counts = np.histogram(starts, bins=around)[0].astype(np.float64)
        if counts.any():
            series.append(Series(name=name, values=counts, look=Look.COLUMNS, colour=colour))
    picture = Plot(
        label="Migrations started in the time around each sample",
        span=material.span,
        times=thin.times,
        series=series,
        height=90,
        whole=True,
    )
    return plot.draw(picture, empty="No migration was started while samples were taken.")
