"""Chance for many trials at once, each from a key of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from equipoise.spec.batch.cases import Array

_TOPIC: Final = np.uint64(0xD1B54A32D192ED03)
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_LAST: Final = np.uint64(31)
_WHOLE: Final = 1 << 30


class Chance:
    """Numbers by chance: the n-th that a trial is given depends on its key and on n alone.

    So everybody must draw the same number of times, whether the numbers are of use or not; or
    only some of them, ``about`` something that is asked once.
    """

    def __init__(self, keys: Array) -> None:
        self._keys = keys
        self._drawn = 0

    def about(self, topic: int, trials: Array) -> Chance:
        """Chance for some of the trials, about one topic: other numbers than for all others."""
        return Chance(mix(self._keys[trials] + np.array(topic % (1 << 32), np.uint64) * _TOPIC))

    def only(self, which: Array) -> Chance:
        """Chance for some of the trials, who have drawn as often as all."""
        found = Chance(self._keys[which])
        found._drawn = self._drawn
        return found

    def numbers(self, *shape: int) -> Array:
        """For each trial as many numbers as a shape has places, as large as they come."""
        count = int(np.prod(shape, dtype=int))
        places = np.arange(self._drawn + 1, self._drawn + count + 1, dtype=np.uint64)
        self._drawn += count
        mixed = mix(self._keys[:, None] + places * _STEP)
        # Half of the bits are plenty, and whole numbers with a sign are easier to live with.
        return (mixed >> np.uint64(33)).astype(np.int64).reshape(len(self._keys), *shape)

    def below(self, most: Any, *shape: int) -> Array:
        """Numbers from 0 to below another; 0 where there are none."""
        return below(self.numbers(*shape), most)

    def within(self, span: tuple[int, int], *shape: int) -> Array:
        """Numbers within a span."""
        return within(self.numbers(*shape), span)

    def happens(self, part: float, *shape: int) -> Array:
        """Whether something happens that does so in a part of all cases."""
        return happens(self.numbers(*shape), part)

    def one_of(self, mask: Array) -> Array:
        """The place of one of those that are true in each row; -1 if none is."""
        return one_of(self.numbers(), mask)


def below(numbers: Array, most: Any) -> Array:
    """Numbers from 0 to below another; 0 where there are none."""
    found: Array = numbers % np.maximum(most, 1)
    return found


def within(numbers: Array, span: tuple[int, int]) -> Array:
    """Numbers within a span."""
    found: Array = span[0] + numbers % (span[1] - span[0] + 1)
    return found


def happens(numbers: Array, part: float) -> Array:
    """Whether something happens that does so in a part of all cases."""
    found: Array = numbers % _WHOLE < round(part * _WHOLE)
    return found


def one_of(numbers: Array, mask: Array) -> Array:
    """The place of one of those that are true in each row; -1 if none is."""
    sums = np.cumsum(mask, axis=1)
    left = below(numbers, sums[:, -1])
    found: Array = np.where(sums[:, -1] > 0, np.argmax(sums > left[:, None], axis=1), -1)
    return found


class Weighed:
    """Some of several, by weight, as their codes."""

    def __init__(self, weights: Mapping[Any, int], codes: Mapping[Any, int]) -> None:
        self._sums = np.cumsum(list(weights.values()))
        self._codes = np.array([codes[one] for one in weights])

    def chosen(self, numbers: Array) -> Array:
        """One for each number."""
        places = np.searchsorted(self._sums, numbers % self._sums[-1], side="right")
        found: Array = self._codes[places]
        return found


def mix(numbers: Array) -> Array:
    """Make numbers that are near each other differ in half of their bits (SplitMix64)."""
    for shift, odd in _MIX:
        numbers = (numbers ^ (numbers >> shift)) * odd
    found: Array = numbers ^ (numbers >> _LAST)
    return found
