"""Columns that grow: a table whose rows may be written at any time, at a steady mean cost."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Streams = NDArray[np.uint64]

FOREVER: Final = 2**60
"""More milliseconds than any run has, and few enough to add two of them."""


class Sheet:
    """Columns by name. A row that was never written is all zeros."""

    def __init__(self, **kinds: type[np.generic]) -> None:
        self._columns: dict[str, NDArray[Any]] = {
            name: np.zeros(0, dtype=kind) for name, kind in kinds.items()
        }
        self._room = 0

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The column, which is at least as long as the rows that were written."""
        return self._columns[name]

    def write(self, rows: Integers, **values: ArrayLike) -> None:
        """Set some columns of some rows."""
        if rows.size:
            self.make_room(int(rows.max()) + 1)
            for name, given in values.items():
                self._columns[name][rows] = given

    def make_room(self, size: int) -> None:
        """See to it that there are so many rows."""
        if size <= self._room:
            return
        room = max(size, 2 * self._room, 16)  # doubling: each number is copied about once
        for name, column in self._columns.items():
            grown = np.zeros(room, dtype=column.dtype)
            grown[: self._room] = column
            self._columns[name] = grown
        self._room = room


def counted_from(first: Integers, counts: Integers) -> Integers:
    """For each ``first`` that and the following numbers, so many as ``counts`` says, in a row."""
    before = np.cumsum(counts) - counts
    numbers: Integers = np.arange(counts.sum(), dtype=np.int64) + np.repeat(first - before, counts)
    return numbers
