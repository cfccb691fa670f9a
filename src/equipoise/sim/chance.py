"""Chance without memory: a drawn number depends on the seed, on who draws, and on which draw it is.

So a VM has the same load at the same time in every run with the same seed, whatever else happens in
it, and a million numbers can be drawn at once. The mixing is SplitMix64's.
"""

from __future__ import annotations

from hashlib import blake2b
from math import cos, log, pi, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from equipoise.model.story.load import Level, Spread

_GOLDEN: Final = 0x9E3779B97F4A7C15
_MIX_1: Final = 0xBF58476D1CE4E5B9
_MIX_2: Final = 0x94D049BB133111EB
_WORD: Final = 2**64 - 1
_UNIT: Final = 2.0**-53


def stream(seed: int, *words: str) -> int:
    """Who draws: a number that is as good as unique for a seed and some words."""
    text = "\x1f".join((str(seed), *words)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def draw(streams: NDArray[np.uint64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Numbers from 0 up to but not including 1: the ``places``-th ones of the ``streams``."""
    golden = np.uint64(_GOLDEN)
    with np.errstate(over="ignore"):
        mixed = _mix(streams + (places.astype(np.uint64) + np.uint64(1)) * golden)
        mixed = _mix(mixed ^ golden)
    result: NDArray[np.float64] = (mixed >> np.uint64(11)).astype(np.float64) * _UNIT
    return result


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX_1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX_2)
    return z ^ (z >> np.uint64(31))


def _mix_one(z: int) -> int:
    z = (z ^ (z >> 30)) * _MIX_1 & _WORD
    z = (z ^ (z >> 27)) * _MIX_2 & _WORD
    return z ^ (z >> 31)


class Dice:
    """One stream, drawn one number after the other: the same numbers as ``draw`` gives."""

    def __init__(self, seed: int, *words: str) -> None:
        self._stream = stream(seed, *words)
        self._place = 0

    def roll(self) -> float:
        """The next number from 0 up to but not including 1."""
        self._place += 1
        mixed = _mix_one((self._stream + self._place * _GOLDEN) & _WORD)
        return (_mix_one(mixed ^ _GOLDEN) >> 11) * _UNIT

    def choose(self, count: int) -> int:
        """One of so many, evenly."""
        return int(self.roll() * count)

    def draw(self, level: Level) -> float:
        """A number as a level says: itself, one of a list, from a range or from a bell curve."""
        if not isinstance(level, Spread):
            return float(level)
        if level.one_of:
            return float(level.one_of[self.choose(len(level.one_of))])
        if level.low is not None and level.high is not None:
            return level.low + (level.high - level.low) * self.roll()
        assert level.mean is not None, "the forms of a spread are checked when files are read"
        assert level.sd is not None, "the forms of a spread are checked when files are read"
        return level.mean + level.sd * sqrt(-2 * log(1 - self.roll())) * cos(2 * pi * self.roll())
