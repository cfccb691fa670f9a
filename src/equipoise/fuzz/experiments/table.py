"""What comes of an experiment: tables that a person can read, and sentences about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Cell = str | int
Row = Mapping[str, Cell]
ALL: Final = "all"
"""What the row with the sums is called."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that have the same columns; the first one says what a row is about."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that hold numbers."""
        return tuple(
            name for name in self.columns if any(isinstance(row[name], int) for row in self.rows)
        )


@dataclass(frozen=True, slots=True)
class Result:
    """What an experiment has shown."""

    tables: Sequence[Table]
    notes: Sequence[str] = ()
    """What one has to know to read the tables, and what the paper says of the same."""


def with_sum(rows: Iterable[Row], columns: Sequence[str]) -> list[Row]:
    """The rows, and one with the sums of all columns but the first."""
    found = list(rows)
    first, *others = columns
    sums: dict[str, Cell] = {first: ALL}
    for name in others:
        cells = [row[name] for row in found]
        sums[name] = sum(one for one in cells if isinstance(one, int))
    return [*found, sums]
