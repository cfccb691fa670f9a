"""How much each host was used over time, as a heat map."""

from __future__ import annotations

from typing import Final

import numpy as np

from equipoise.report.chart import heat, plot
from equipoise.report.chart.frame import nothing
from equipoise.report.chart.heat import Cells, HeatMap
from equipoise.report.grid import Grid, grid_of, share
from equipoise.report.material import Material, figures, rows_of, times_of
from equipoise.report.section import Section
from equipoise.report.words import moment, percent
from equipoise.sim.measure.record import Table

_PERCENT_MOST: Final = 999
_RESOURCES: Final = (("CPU", "cpu", "mhz"), ("memory", "memory", "mib"))
_TITLE: Final = "Hosts over time"


def hosts(material: Material) -> Section:
    """CPU and memory use of every host."""
    table = material.record.hosts
    if not rows_of(table):
        return Section("hosts", _TITLE, "How much each host was used.",
                       nothing("No host was sampled in this run."))  # fmt: skip
    grid = grid_of(table)
    picture = HeatMap(
        label="Use of each host over time",
        span=material.span,
        edges=plot.edges(grid.times, material.span),
        rows=grid.names,
        views=dict(_views(table, grid)),
        flaws=grid.flaws,
    )
    return Section("hosts", _TITLE, _said(table, grid), heat.draw(picture, name="hosts"))


def _views(table: Table, grid: Grid) -> list[tuple[str, Cells]]:
    """The mean use in each cell and, where several figures are taken together, the highest."""
    found = []
    for title, resource, recorded in _RESOURCES:
        used = np.where(grid.on, figures(table, f"{resource}_used_{recorded}"), 0.0)
        room = np.where(grid.on, figures(table, f"{resource}_capacity_{recorded}"), 0.0)
        mean = share(grid.summed(used), grid.summed(room))
        views = [(f"{title}, mean" if grid.mixed else title, mean)]
        if grid.mixed:
            views.append((f"{title}, highest", grid.highest(share(used, room))))
        found += [(name, grid.cells(np.minimum(part * 100, _PERCENT_MOST))) for name, part in views]
    return found


def _said(table: Table, grid: Grid) -> str:
    used = share(
        np.where(grid.on, figures(table, "cpu_used_mhz"), 0.0),
        np.where(grid.on, figures(table, "cpu_capacity_mhz"), 0.0),
    )
    parts = []
    if np.isfinite(used).any():
        top = int(np.nanargmax(used))
        when = moment(times_of(table)[top])
        busy = percent(used[top] * 100)
        parts.append(f"The busiest host was {table['host'][top]} at {when}, {busy} of its CPU.")
    return " ".join(filter(None, [*parts, grid.note])) or "No host was on in this run."
