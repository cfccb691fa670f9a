"""Every host over time, as rows and columns; many are taken together, so that pages stay small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from equipoise.model.words import counted
from equipoise.report.chart.heat import ABSENT, STATES, Cells
from equipoise.report.chart.scale import Figures
from equipoise.report.material import POINTS_MAX, coded, times_of
from equipoise.sim.measure.record import Table

_ROWS_MAX: Final = 60
_MOST: Final = 10**9
"""More would not fit into a cell."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Which cell of a map each row of the table of hosts belongs to."""

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
        """Rows and columns."""
        return -(-len(self.hosts) // self.per_row), len(self.times)

    @property
    def mixed(self) -> bool:
        """Whether a cell takes several figures together."""
        return self.per_row > 1 or self.per_column > 1

    @property
    def names(self) -> list[str]:
        """What to write beside the rows."""
        if self.per_row == 1:
            return self.hosts
        starts = range(0, len(self.hosts), self.per_row)
        groups = [self.hosts[start : start + self.per_row] for start in starts]
        return [f"{group[0]} +{len(group) - 1}" if len(group) > 1 else group[0] for group in groups]

    @property
    def flaws(self) -> NDArray[np.bool_]:
        """Cells in which some host has failed while others were on."""
        failed = self.states.get("failed")
        if failed is None or not self.mixed:
            return np.zeros(self.shape, dtype=np.bool_)
        return (self.counted(failed) > 0) & (self.counted(self.on) > 0)

    @property
    def note(self) -> str:
        """What to say about what is taken together, if there is anything to say."""
        parts = []
        if self.per_row > 1:
            total = counted(len(self.hosts), "host")
            parts.append(f"Each row takes {self.per_row} neighbours of {total} together.")
        if self.per_column > 1:
            parts.append(f"Each column takes {self.per_column} samples together.")
        return " ".join(parts)

    def counted(self, chosen: NDArray[np.bool_]) -> Figures:
        """How many of the chosen rows of the table fall into each cell."""
        return self.summed(chosen.astype(np.float64))

    def summed(self, values: Figures) -> Figures:
        """The sum of a column over the rows that fall into each cell."""
        rows, columns = self.shape
        sums = np.bincount(self.cell, values, rows * columns).astype(np.float64)
        return sums.reshape(rows, columns)

    def highest(self, values: Figures) -> Figures:
        """The highest figure of a column in each cell; nothing where none is known."""
        rows, columns = self.shape
        found = np.full(rows * columns, np.nan)
        np.fmax.at(found, self.cell, values)
        return found.reshape(rows, columns)

    def cells(self, values: Figures) -> Cells:
        """Whole figures or, where none is known, the state: the worst one, if there are several."""
        cells = np.full(self.shape, ABSENT, dtype=np.int32)
        # Whatever is neither on nor of a known state sleeps, as far as load is concerned.
        cells[self.counted(~self.on) > 0] = min(STATES)
        for state, name in sorted(STATES.items()):
            if name in self.states:
                cells[self.counted(self.states[name]) > 0] = state
        known = np.isfinite(values)
        whole = np.clip(np.round(np.where(known, values, 0.0)), 0, _MOST).astype(np.int32)
        return np.where(known, whole, cells).astype(np.int32)


def grid_of(table: Table) -> Grid:
    """Lay out the table of hosts."""
    names, code = coded(table["host"])
    moments, sample = np.unique(times_of(table), return_inverse=True)
    states, state = coded(table["state"])
    per_row = -(-len(names) // _ROWS_MAX)
    per_column = -(-len(moments) // POINTS_MAX)
    starts = np.arange(0, len(moments), per_column)
    ends = np.minimum(starts + per_column, len(moments))
    return Grid(
        hosts=names,
        times=np.add.reduceat(moments, starts) / (ends - starts),
        per_row=per_row,
        per_column=per_column,
        cell=code // per_row * len(starts) + sample // per_column,
        on=state == (states.index("on") if "on" in states else -1),
        states={name: state == place for place, name in enumerate(states)},
    )


def share(part: Figures, whole: Figures) -> Figures:
    """Divide, where there is something to divide by."""
    found = np.full(part.shape, np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found
