"""Scales: from a figure to a place on the page, and the round figures to write beside an axis."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from equipoise.report.words import DAY_S, HOUR_S, MINUTE_S, moment

Figures = NDArray[np.float64]

_TIME_STEPS: Final = (
    *(1, 2, 5, 10, 15, 30),
    *(one * MINUTE_S for one in (1, 2, 5, 10, 15, 30)),
    *(one * HOUR_S for one in (1, 2, 3, 6, 12)),
    *(one * DAY_S for one in (1, 2, 7, 14, 28, 91, 364)),
)
_ROUND: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight line from ``low``..``high`` to ``start``..``end``."""

    low: float
    high: float
    start: float
    end: float

    @overload
    def __call__(self, value: float) -> float: ...
    @overload
    def __call__(self, value: Figures) -> Figures: ...
    def __call__(self, value: float | Figures) -> float | Figures:
        """Give the place of one figure or of many."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def ticks(low: float, high: float, about: int = 4, *, whole: bool = False) -> list[float]:
    """Give round figures from at or below ``low`` to at or above ``high``."""
    assert low <= high
    wide = high - low or abs(high) or 1.0
    rough = max(wide / about, 1.0) if whole else wide / about
    power = 10.0 ** floor(log10(rough))
    steps = [one * power for one in _ROUND if not whole or (one * power).is_integer()]
    step = next(one for one in steps if one >= rough * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(place * step, 12) for place in range(first, max(last, first + 1) + 1)]


def time_step(low_s: float, high_s: float, most: int = 8) -> int:
    """Give the step between the moments on an axis that has room for so many of them."""
    wide = high_s - low_s
    longest = _TIME_STEPS[-1]
    return next(
        (step for step in _TIME_STEPS if wide / step <= most),
        longest * ceil(wide / longest / most),
    )


def time_ticks(low_s: float, high_s: float, most: int = 8) -> list[tuple[int, str]]:
    """Give round moments within a span, with their words."""
    step = time_step(low_s, high_s, most)
    places = range(ceil(low_s / step) * step, floor(high_s) + 1, step)
    return [(at_s, f"{at_s // DAY_S} d" if step >= DAY_S else moment(at_s)) for at_s in places]
