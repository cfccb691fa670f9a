"""Random numbers for many trials at once, each from a key of its own."""

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


class KeyedRandom:
    """Random numbers: the n-th number of a trial depends only on its key and on n.

    So all trials draw the same number of times, even if a trial ignores its numbers. A generator
    ``about`` one topic serves a subset of the trials, once per topic.
    """

    def __init__(self, keys: Array) -> None:
        self._keys = keys
        self._drawn = 0

    def about(self, topic: int, trials: Array) -> KeyedRandom:
        """A generator for some trials and one topic; its numbers differ from all other topics."""
        return KeyedRandom(
            mix(self._keys[trials] + np.array(topic % (1 << 32), np.uint64) * _TOPIC)
        )

    def only(self, which: Array) -> KeyedRandom:
        """A generator for some trials that continues after the numbers drawn so far."""
        selected = KeyedRandom(self._keys[which])
        selected._drawn = self._drawn
        return selected

    def numbers(self, *shape: int) -> Array:
        """Random integers of 31 bits for each trial, in a shape."""
        count = int(np.prod(shape, dtype=int))
        counters = np.arange(self._drawn + 1, self._drawn + count + 1, dtype=np.uint64)
        self._drawn += count
        # SplitMix64 in counter form: the n-th number needs no earlier ones, so trials draw in any
        # order.
        mixed = mix(self._keys[:, None] + counters * _STEP)
        # 31 bits are enough, and signed integers avoid the pitfalls of unsigned arithmetic.
        return (mixed >> np.uint64(33)).astype(np.int64).reshape(len(self._keys), *shape)

    def below(self, most: Any, *shape: int) -> Array:
        """Numbers from 0 to below ``most``; 0 where ``most`` is 0."""
        return below(self.numbers(*shape), most)

    def within(self, span: tuple[int, int], *shape: int) -> Array:
        """Numbers within a range, both ends included."""
        return within(self.numbers(*shape), span)

    def happens(self, probability: float, *shape: int) -> Array:
        """Whether an event with a probability happens."""
        return happens(self.numbers(*shape), probability)

    def one_of(self, mask: Array) -> Array:
        """The index of a random true element of each row; -1 if there is none."""
        return one_of(self.numbers(), mask)


def below(numbers: Array, most: Any) -> Array:
    """Numbers from 0 to below ``most``; 0 where ``most`` is 0."""
    result: Array = numbers % np.maximum(most, 1)
    return result


def within(numbers: Array, span: tuple[int, int]) -> Array:
    """Numbers within a range, both ends included."""
    result: Array = span[0] + numbers % (span[1] - span[0] + 1)
    return result


def happens(numbers: Array, probability: float) -> Array:
    """Whether an event with a probability happens."""
    result: Array = numbers % _WHOLE < round(probability * _WHOLE)
    return result


def one_of(numbers: Array, mask: Array) -> Array:
    """The index of a random true element of each row; -1 if there is none."""
    sums = np.cumsum(mask, axis=1)
    rank = below(numbers, sums[:, -1])
    result: Array = np.where(sums[:, -1] > 0, np.argmax(sums > rank[:, None], axis=1), -1)
    return result


class WeightedChoice:
    """A weighted choice; the results are codes."""

    def __init__(self, weights: Mapping[Any, int], codes: Mapping[Any, int]) -> None:
        self._sums = np.cumsum(list(weights.values()))
        self._codes = np.array([codes[value] for value in weights])

    def chosen(self, numbers: Array) -> Array:
        """The chosen code for each number."""
        indexes = np.searchsorted(self._sums, numbers % self._sums[-1], side="right")
        chosen: Array = self._codes[indexes]
        return chosen


def mix(numbers: Array) -> Array:
    """Mix the bits of numbers (SplitMix64): close numbers then differ in half of their bits."""
    for shift, odd in _MIX:
        numbers = (numbers ^ (numbers >> shift)) * odd
    result: Array = numbers ^ (numbers >> _LAST)
    return result
