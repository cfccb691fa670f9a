"""Levels of a load: fixed or drawn numbers, and the growing table that stores them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.model.scenario.load import Distribution, DiurnalLoad, NumberSpec
from equipoise.sim.random_streams import draw_uniform

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


_FIXED, _UNIFORM, _NORMAL, _ONE_OF, _WAVE = range(5)
_SECOND_DRAW: Final = 2**60
"""The index offset of the second uniform number of a normal one; no first number is that far."""
_COSINE_DIGITS: Final = 12
"""The last bits of a cosine differ between machines. Without rounding, a demand that is exactly
half way between two whole numbers would differ too."""


class LevelTable:
    """All levels of the loads of a run."""

    def __init__(self) -> None:
        self._numbers: dict[NumberSpec | DiurnalLoad, int] = {}
        self._choices: list[float] = []
        self._choice = np.zeros(0)
        self._table = DemandTable(
            form=np.int8,
            start=np.float64,
            width=np.float64,
            first=np.int64,
            count=np.int64,
            every=np.int64,
            peak=np.int64,
            period=np.int64,
        )

    def number(self, level: NumberSpec | DiurnalLoad) -> int:
        """Return the number of a level; add the level if it is new.

        A diurnal wave is a level, too: its value follows from the index instead of a draw.
        """
        number = self._numbers.get(level)
        if number is None:
            number = self._numbers[level] = len(self._numbers)
            self._table.write(np.array([number]), **self._figures(level))
        return number

    def _figures(self, level: NumberSpec | DiurnalLoad) -> dict[str, float]:
        if isinstance(level, DiurnalLoad):
            return {
                "form": _WAVE, "start": level.low, "width": level.high - level.low,
                "every": level.every_s * 1000, "peak": level.peak_s * 1000,
                "period": level.period_s * 1000,
            }  # fmt: skip
        if not isinstance(level, Distribution):
            return {"form": _FIXED, "start": level}
        if level.one_of:
            first = len(self._choices)
            self._choices.extend(level.one_of)
            self._choice = np.array(self._choices)
            return {"form": _ONE_OF, "first": first, "count": len(level.one_of)}
        if level.mean is not None:
            assert level.sd is not None, "a normal distribution has a mean and an sd"
            return {"form": _NORMAL, "start": level.mean, "width": level.sd}
        assert level.low is not None, "a range has a low end"
        assert level.high is not None, "a range has a high end"
        return {"form": _UNIFORM, "start": level.low, "width": level.high - level.low}

    def values(self, numbers: Integers, streams: Streams, indexes: Integers) -> Floats:
        """Return the levels with these numbers, drawn at these indexes of these streams."""
        forms = self._table["form"][numbers]
        # Fancy indexing copies, so the table is not changed below.
        out: Floats = self._table["start"][numbers]
        for form in np.flatnonzero(np.bincount(forms)):
            if form == _FIXED:
                continue
            chosen = np.flatnonzero(forms == form)
            levels, at = numbers[chosen], indexes[chosen]
            if form == _ONE_OF:
                out[chosen] = self._chosen(levels, draw_uniform(streams[chosen], at))
                continue
            if form == _WAVE:
                shape = self._wave(levels, at)
            elif form == _NORMAL:
                shape = _normal(streams[chosen], at)
            else:
                shape = draw_uniform(streams[chosen], at)
            out[chosen] += self._table["width"][levels] * shape
        return out

    def _chosen(self, numbers: Integers, drawn: Floats) -> Floats:
        index = (drawn * self._table["count"][numbers]).astype(np.int64)
        chosen: Floats = self._choice[self._table["first"][numbers] + index]
        return chosen

    def _wave(self, numbers: Integers, indexes: Integers) -> Floats:
        """Return the height of the wave, from 0 to 1, at the start of these intervals."""
        period = self._table["period"][numbers]
        start = indexes * self._table["every"][numbers]
        since_peak = (start - self._table["peak"][numbers]) % period
        cosine = np.round(np.cos(2 * np.pi * (since_peak / period)), _COSINE_DIGITS)
        height: Floats = (1 + cosine) / 2
        return height


def _normal(streams: Streams, indexes: Integers) -> Floats:
    """Return numbers of the standard normal distribution, by the method of Box and Muller."""
    # ``log1p`` of the negative: a draw of 0 is possible, a draw of 1 is not.
    radius = np.sqrt(-2 * np.log1p(-draw_uniform(streams, indexes)))
    normal: Floats = radius * np.cos(2 * np.pi * draw_uniform(streams, indexes + _SECOND_DRAW))
    return normal
