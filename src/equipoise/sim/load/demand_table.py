"""A table with columns that grow: any row can be written at any time, at a constant mean cost."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Streams = NDArray[np.uint64]

FOREVER: Final = 2**60
"""More milliseconds than any run has; two of them can be added without overflow."""


class DemandTable:
    """Columns by name. A row that was never written is all zeros."""

    def __init__(self, **kinds: type[np.generic]) -> None:
        self._columns: dict[str, NDArray[Any]] = {
            name: np.zeros(0, dtype=kind) for name, kind in kinds.items()
        }
        self._capacity = 0

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column. It has at least as many rows as were written."""
        return self._columns[name]

    def write(self, rows: Integers, **values: ArrayLike) -> None:
        """Set some columns of some rows."""
        if rows.size:
            self.reserve_rows(int(rows.max()) + 1)
            for name, given in values.items():
                self._columns[name][rows] = given

    def reserve_rows(self, size: int) -> None:
        """Grow the table to at least ``size`` rows."""
        if size <= self._capacity:
            return
        capacity = max(size, 2 * self._capacity, 16)  # doubling copies each number about once
        for name, column in self._columns.items():
            grown = np.zeros(capacity, dtype=column.dtype)
            grown[: self._capacity] = column
            self._columns[name] = grown
        self._capacity = capacity


def ranges_from(first: Integers, counts: Integers) -> Integers:
    """Return the concatenated ranges ``first[i], first[i] + 1, ...`` of ``counts[i]`` numbers."""
    before = np.cumsum(counts) - counts
    numbers: Integers = np.arange(counts.sum(), dtype=np.int64) + np.repeat(first - before, counts)
    return numbers
