"""Utilisation of each host over time as a heat map; many hosts or samples share a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from equipoise.model.quantity import format_count
from equipoise.report.chart import heatmap, plot
from equipoise.report.chart.frame import Floats, empty_note
from equipoise.report.chart.heatmap import ABSENT, STATES, Cells, HeatMap
from equipoise.report.chart.markup import Section
from equipoise.report.format import format_moment, format_percent
from equipoise.report.run.data import (
    POINTS_MAX,
    RunData,
    column_times,
    column_values,
    encode_names,
    row_count,
)
from equipoise.sim.measure.sampling import SampleTable

_ROWS_MAX: Final = 60
_CELL_MAX: Final = 10**9
"""The largest value of a cell."""


@dataclass(frozen=True, slots=True)
class HostGrid:
    """The cell of the heat map of each row of the host table."""

    hosts: list[str]
    times: Floats
    """The middle of each column."""
    per_row: int
    """Number of hosts that share a row of the map."""
    per_column: int
    cell: NDArray[np.int64]
    on: NDArray[np.bool_]
    states: dict[str, NDArray[np.bool_]]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return -(-len(self.hosts) // self.per_row), len(self.times)

    @property
    def mixed(self) -> bool:
        """Whether a cell stands for several figures."""
        return self.per_row > 1 or self.per_column > 1

    @property
    def names(self) -> list[str]:
        """The labels of the rows."""
        if self.per_row == 1:
            return self.hosts
        starts = range(0, len(self.hosts), self.per_row)
        groups = [self.hosts[start : start + self.per_row] for start in starts]
        return [f"{group[0]} +{len(group) - 1}" if len(group) > 1 else group[0] for group in groups]

    @property
    def flawed_cells(self) -> NDArray[np.bool_]:
        """Cells in which a host has failed while others are on."""
        failed = self.states.get("failed")
        if failed is None or not self.mixed:
            return np.zeros(self.shape, dtype=np.bool_)
        return (self.counted(failed) > 0) & (self.counted(self.on) > 0)

    @property
    def note(self) -> str:
        """A sentence about shared rows and columns; empty if there are none."""
        parts = []
        if self.per_row > 1:
            total = format_count(len(self.hosts), "host")
            parts.append(f"Each row is {self.per_row} of {total}.")
        if self.per_column > 1:
            parts.append(f"Each column is {self.per_column} samples.")
        return " ".join(parts)

    def counted(self, chosen: NDArray[np.bool_]) -> Floats:
        """Return the number of chosen table rows in each cell."""
        return self.summed(chosen.astype(np.float64))

    def summed(self, values: Floats) -> Floats:
        """Return the sum of a table column in each cell."""
        rows, columns = self.shape
        sums = np.bincount(self.cell, values, rows * columns).astype(np.float64)
        return sums.reshape(rows, columns)

    def highest(self, values: Floats) -> Floats:
        """Return the highest figure of a column in each cell; NaN where none is known."""
        rows, columns = self.shape
        highest = np.full(rows * columns, np.nan)
        np.fmax.at(highest, self.cell, values)
        return highest.reshape(rows, columns)

    def cells(self, values: Floats) -> Cells:
        """Return integers; where no figure is known, the worst state of the hosts."""
        cells = np.full(self.shape, ABSENT, dtype=np.int32)
        # A state that this version does not know carries no load, so it counts as standby.
        cells[self.counted(~self.on) > 0] = min(STATES)
        # From the mildest state to the worst: the last one that is written stays.
        for state, name in sorted(STATES.items()):
            if name in self.states:
                cells[self.counted(self.states[name]) > 0] = state
        known = np.isfinite(values)
        whole = np.clip(np.round(np.where(known, values, 0.0)), 0, _CELL_MAX).astype(np.int32)
        return np.where(known, whole, cells).astype(np.int32)


def host_grid(table: SampleTable) -> HostGrid:
    """Return the layout of the heat map of a host table."""
    names, code = encode_names(table["host"])
    moments, sample = np.unique(column_times(table), return_inverse=True)
    states, state = encode_names(table["state"])
    per_row = -(-len(names) // _ROWS_MAX)
    per_column = -(-len(moments) // POINTS_MAX)
    starts = np.arange(0, len(moments), per_column)
    ends = np.minimum(starts + per_column, len(moments))
    return HostGrid(
        hosts=names,
        times=np.add.reduceat(moments, starts) / (ends - starts),
        per_row=per_row,
        per_column=per_column,
        cell=code // per_row * len(starts) + sample // per_column,
        on=state == (states.index("on") if "on" in states else -1),
        states={name: state == place for place, name in enumerate(states)},
    )


def divide(part: Floats, whole: Floats) -> Floats:
    """Return the quotient; NaN where the divisor is not positive."""
    quotient = np.full(part.shape, np.nan)
    np.divide(part, whole, out=quotient, where=whole > 0)
    return quotient


_PERCENT_MAX: Final = 999
_RESOURCES: Final = (("CPU", "cpu", "mhz"), ("memory", "memory", "mib"))
_TITLE: Final = "Hosts over time"


def hosts_section(run: RunData) -> Section:
    """Return a heat map of CPU and memory utilisation of every host."""
    table = run.record.hosts
    if not row_count(table):
        return Section("hosts", _TITLE, "Utilisation of each host.",
                       empty_note("This run has no samples of hosts."))  # fmt: skip
    grid = host_grid(table)
    picture = HeatMap(
        label="Utilisation of each host over time",
        span=run.span,
        edges=plot.sample_edges(grid.times, run.span),
        rows=grid.names,
        views=dict(_views(table, grid)),
        flawed_cells=grid.flawed_cells,
    )
    return Section(
        "hosts", _TITLE, _hosts_caption(table, grid), heatmap.draw(picture, name="hosts")
    )


def _views(table: SampleTable, grid: HostGrid) -> list[tuple[str, Cells]]:
    """Return the mean utilisation of each cell and, for shared cells, the highest."""
    all_views = []
    for title, resource, recorded in _RESOURCES:
        used = np.where(grid.on, column_values(table, f"{resource}_used_{recorded}"), 0.0)
        capacity = np.where(grid.on, column_values(table, f"{resource}_capacity_{recorded}"), 0.0)
        mean = divide(grid.summed(used), grid.summed(capacity))
        views = [(f"{title}, mean" if grid.mixed else title, mean)]
        if grid.mixed:
            views.append((f"{title}, highest", grid.highest(divide(used, capacity))))
        all_views += [
            (name, grid.cells(np.minimum(part * 100, _PERCENT_MAX))) for name, part in views
        ]
    return all_views


def _hosts_caption(table: SampleTable, grid: HostGrid) -> str:
    used = divide(
        np.where(grid.on, column_values(table, "cpu_used_mhz"), 0.0),
        np.where(grid.on, column_values(table, "cpu_capacity_mhz"), 0.0),
    )
    parts = []
    if np.isfinite(used).any():
        top = int(np.nanargmax(used))
        when = format_moment(column_times(table)[top])
        busy = format_percent(used[top] * 100)
        parts.append(f"The busiest host was {table['host'][top]} at {when}, {busy} of its CPU.")
    return " ".join(filter(None, [*parts, grid.note])) or "No host is on in this run."
