"""Random numbers without state: a number depends on the seed, the name of the stream and its index.

So a VM has the same load at the same time in every run with the same seed, whatever else happens in
the run, and a million numbers can be drawn at once. The mixing function is SplitMix64.
"""

from __future__ import annotations

from hashlib import blake2b
from math import cos, log, pi, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from equipoise.model.scenario.load import Distribution, NumberSpec

_GOLDEN: Final = 0x9E3779B97F4A7C15
_MIX_1: Final = 0xBF58476D1CE4E5B9
_MIX_2: Final = 0x94D049BB133111EB
_MASK_64: Final = 2**64 - 1
_UNIT: Final = 2.0**-53


def stream_key(seed: int, *words: str) -> int:
    """Return the key of a stream: a hash of the seed and the words, practically unique."""
    text = "\x1f".join((str(seed), *words)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def draw_uniform(streams: NDArray[np.uint64], indexes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for each stream the number at the index beside it, uniform in [0, 1)."""
    golden = np.uint64(_GOLDEN)
    with np.errstate(over="ignore"):  # SplitMix64 is arithmetic modulo 2**64
        mixed = _mix(streams + (indexes.astype(np.uint64) + np.uint64(1)) * golden)
        # Mixed twice: neighbouring indexes of neighbouring streams must not be correlated.
        mixed = _mix(mixed ^ golden)
    result: NDArray[np.float64] = (mixed >> np.uint64(11)).astype(np.float64) * _UNIT
    return result


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX_1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX_2)
    return z ^ (z >> np.uint64(31))


def _mix_one(z: int) -> int:
    z = (z ^ (z >> 30)) * _MIX_1 & _MASK_64
    z = (z ^ (z >> 27)) * _MIX_2 & _MASK_64
    return z ^ (z >> 31)


class RandomStream:
    """One stream, drawn number after number: the same numbers as ``draw_uniform`` returns."""

    def __init__(self, seed: int, *words: str) -> None:
        self._stream = stream_key(seed, *words)
        self._index = 0

    def uniform(self) -> float:
        """Return the next number, uniform in [0, 1)."""
        self._index += 1
        mixed = _mix_one((self._stream + self._index * _GOLDEN) & _MASK_64)
        return (_mix_one(mixed ^ _GOLDEN) >> 11) * _UNIT

    def randrange(self, count: int) -> int:
        """Return an integer from 0 to ``count - 1``, each with the same probability."""
        return int(self.uniform() * count)

    def sample(self, level: NumberSpec) -> float:
        """Return a number: a fixed one, one of a list, from a range or normally distributed."""
        if not isinstance(level, Distribution):
            return float(level)
        if level.one_of:
            return float(level.one_of[self.randrange(len(level.one_of))])
        if level.low is not None and level.high is not None:
            return level.low + (level.high - level.low) * self.uniform()
        assert level.mean is not None, "the file reader checks the form of a distribution"
        assert level.sd is not None, "the file reader checks the form of a distribution"
        # Box-Muller: two uniform numbers make one of the normal distribution.
        radius = sqrt(-2 * log(1 - self.uniform()))
        return level.mean + level.sd * radius * cos(2 * pi * self.uniform())
