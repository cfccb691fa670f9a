"""Every host over time, as a heat map; many are taken together, so that the page stays small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from equipoise.report.chart import heat, plot
from equipoise.report.chart.frame import nothing
from equipoise.report.chart.heat import ABSENT, STATES, Cells, HeatMap
from equipoise.report.chart.scale import Figures
from equipoise.report.material import POINTS_MAX, Material, coded, figures, rows_of, times_of
from equipoise.report.section import Section
from equipoise.report.words import counted, moment, percent
from equipoise.sim.measure.record import Table

_ROWS_MAX: Final = 60
_RESOURCES: Final = (("CPU", "cpu", "mhz"), ("memory", "memory", "mib"))
_TITLE: Final = "Hosts over time"


@dataclass(frozen=True, slots=True)
class _Grid:
    """Which cell of the map each row of the table belongs to."""

    hosts: list[str]
    times: Figures
    """The middle of each column."""
    per_row: int
    """How many hosts are taken together."""
    per_column: int
    cell: NDArray[np.int64]
    on: NDArray[np.bool_]
    states: dict[str, NDArray[np.bool_]]

    @property
    def shape(self) -> tuple[int, int]:
        return -(-len(self.hosts) // self.per_row), len(self.times)

    def counted(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """How many of the chosen rows of the table fall into each cell."""
        return self.summed(chosen.astype(np.float64))

    def summed(self, values: Figures) -> Figures:
        """The sum of a column over the rows that fall into each cell."""
        rows, columns = self.shape
        sums = np.bincount(self.cell, values, rows * columns).astype(np.float64)
        return sums.reshape(rows, columns)


def hosts(material: Material) -> Section:
    """CPU and memory use of every host."""
    table = material.record.hosts
    if not rows_of(table):
        return Section("hosts", _TITLE, "How much each host was used.",
                       nothing("No host was sampled in this run."))  # fmt: skip
    grid = _grid(table)
    picture = HeatMap(
        label="Use of each host over time",
        span=material.span,
        edges=plot.edges(grid.times, material.span),
        rows=_names(grid),
        views=dict(_views(table, grid)),
        flaws=_flaws(grid),
    )
    return Section("hosts", _TITLE, _said(table, grid), heat.draw(picture, name="hosts"))


def _grid(table: Table) -> _Grid:
    names, code = coded(table["host"])
    moments, sample = np.unique(times_of(table), return_inverse=True)
    states, state = coded(table["state"])
    per_row = -(-len(names) // _ROWS_MAX)
    per_column = -(-len(moments) // POINTS_MAX)
    starts = np.arange(0, len(moments), per_column)
    ends = np.minimum(starts + per_column, len(moments))
    return _Grid(
        hosts=names,
        times=np.add.reduceat(moments, starts) / (ends - starts),
        per_row=per_row,
        per_column=per_column,
        cell=code // per_row * len(starts) + sample // per_column,
        on=state == (states.index("on") if "on" in states else -1),
        states={name: state == place for place, name in enumerate(states)},
    )


def _views(table: Table, grid: _Grid) -> list[tuple[str, Cells]]:
    """The mean use in each cell and, where several figures are taken together, the highest."""
    found = []
    for title, resource, recorded in _RESOURCES:
        used = np.where(grid.on, figures(table, f"{resource}_used_{recorded}"), 0.0)
        room = np.where(grid.on, figures(table, f"{resource}_capacity_{recorded}"), 0.0)
        whole = grid.summed(room)
        mean = _share(grid.summed(used), whole)
        mixed = grid.per_row > 1 or grid.per_column > 1
        found.append((f"{title}, mean" if mixed else title, _cells(mean, grid)))
        if mixed:
            highest = np.full(whole.size, np.nan)
            np.fmax.at(highest, grid.cell, _share(used, room))
            found.append((f"{title}, highest", _cells(highest.reshape(grid.shape), grid)))
    return found


def _share(used: Figures, room: Figures) -> Figures:
    share = np.full(used.shape, np.nan)
    np.divide(used, room, out=share, where=room > 0)
    return share


def _cells(share: Figures, grid: _Grid) -> Cells:
    """Percentages, or the state of what is not on: the worst one, if several are in a cell."""
    cells = np.full(grid.shape, ABSENT, dtype=np.int16)
    # Whatever is neither on nor of a known state sleeps, as far as load is concerned.
    cells[grid.counted(~grid.on) > 0] = min(STATES)
    for state, name in sorted(STATES.items()):
        if name in grid.states:
            cells[grid.counted(grid.states[name]) > 0] = state
    known = np.isfinite(share)
    percent = np.clip(np.round(np.where(known, share, 0.0) * 100), 0, 999).astype(np.int16)
    return np.where(known, percent, cells).astype(np.int16)


def _flaws(grid: _Grid) -> NDArray[np.bool_]:
    failed = grid.states.get("failed")
    if failed is None or (grid.per_row == 1 and grid.per_column == 1):
        return np.zeros(grid.shape, dtype=np.bool_)
    return (grid.counted(failed) > 0) & (grid.counted(grid.on) > 0)


def _names(grid: _Grid) -> list[str]:
    if grid.per_row == 1:
        return grid.hosts
    starts = range(0, len(grid.hosts), grid.per_row)
    groups = [grid.hosts[start : start + grid.per_row] for start in starts]
    return [f"{group[0]} +{len(group) - 1}" if len(group) > 1 else group[0] for group in groups]


def _said(table: Table, grid: _Grid) -> str:
    share = _share(
        np.where(grid.on, figures(table, "cpu_used_mhz"), 0.0),
        np.where(grid.on, figures(table, "cpu_capacity_mhz"), 0.0),
    )
    parts = []
    if np.isfinite(share).any():
        top = int(np.nanargmax(share))
        when = moment(times_of(table)[top])
        busy = percent(share[top] * 100)
        parts.append(f"The busiest host was {table['host'][top]} at {when}, {busy} of its CPU.")
    if grid.per_row > 1:
        total = counted(len(grid.hosts), "host")
        parts.append(f"Each row takes {grid.per_row} neighbours of {total} together.")
    if grid.per_column > 1:
        parts.append(f"Each column takes {grid.per_column} samples together.")
    return " ".join(parts) or "No host was on in this run."
