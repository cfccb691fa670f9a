"""Scores: how far hosts are from what they should use. Equations 5 and 6 of the DRS paper."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from equipoise.place.water import Floats

DUST: Final = 1e-9
"""A difference of so little is none."""


class Scores(NamedTuple):
    """Of CPU and of memory: how much too much, and how much too little hosts have to do."""

    high: tuple[float, float]
    low: tuple[float, float]

    @property
    def is_high(self) -> bool:
        """Whether some host has too much to do."""
        return max(self.high) > DUST

    @property
    def is_low(self) -> bool:
        """Whether hosts have little to do, by CPU and by memory, if not the same ones."""
        return min(self.low) > DUST


def scores(on: Floats, off: Floats, high: float, low: float) -> Scores:
    """The scores of hosts that use so much by the span for waking, and so by that for sleeping.

    Distances are added up as squares: one host that is far off counts more than many that are a
    little, and nobody makes up for another.
    """
    above = _length(np.maximum(0.0, on - high))
    below = _length(np.maximum(0.0, low - off))
    return Scores(above, below)


def _length(distances: Floats) -> tuple[float, float]:
    cpu, memory = np.sqrt((distances**2).sum(axis=0)).tolist()
    return cpu, memory


def raised(before: tuple[float, float], after: tuple[float, float]) -> bool:
    """Whether a score of CPU or memory has risen."""
    return any(two > one + DUST for one, two in zip(before, after, strict=True))


def lowered(before: tuple[float, float], after: tuple[float, float]) -> bool:
    """Whether one of them has fallen and none has risen."""
    return not raised(before, after) and raised(after, before)
