"""The parts of the loads of all VMs, each under a number, and their levels over time.

The parts of one list are a chain: each knows the next. A number is used again when its part has
been freed, and 0 is no part. What is added is written down when the next question comes, so that
adding many VMs and adding one are both cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.model.story.load import Part, Pattern, Steps, Trace
from equipoise.sim.chance import stream
from equipoise.sim.load.beat import Beat, Beats, BeatStreams, beat_of
from equipoise.sim.load.level import Levels
from equipoise.sim.load.series import Series
from equipoise.sim.load.sheet import Floats, Integers, Sheet, counted_from
from equipoise.sim.load.trace import TraceReader

_CHUNK: Final = 2**15
"""So many at once that the arrays in between stay in the cache."""
_Number = TypeVar("_Number", np.int64, np.float64)


class Place(NamedTuple):
    """Whose part it is."""

    vm: str
    resource: str
    position: int
    size_mib: int
    """What the level is a percentage of; 0 if it is an amount."""


class Stretches(NamedTuple):
    """Times between two changes of parts: of which of those asked for, and when they begin."""

    asked: Integers
    number: Integers
    at_ms: Integers


class Parts:
    """The parts of all VMs."""

    def __init__(self, seed: int, traces: TraceReader) -> None:
        self._seed = seed
        self._levels = Levels()
        self._beats = Beats(self._levels)
        self._series = Series(self._levels, traces)
        self._shapes: dict[Part, Beat | int] = {}
        self._sheet = Sheet(next=np.int64, size=np.int64, series=np.int64, stream=np.uint64)
        self._new_beats: dict[int, tuple[Beat, BeatStreams]] = {}
        self._new: dict[int, tuple[int, int, int, int]] = {}
        self._freed: list[int] = []
        self._last = 0

    def learn(self, part: Part) -> None:
        """Read what must be read for a part; what cannot be read is complained about here."""
        if part in self._shapes:
            return
        if isinstance(part, Steps | Trace):
            self._shapes[part] = self._series.add(part)
        else:
            self._shapes[part] = beat_of(part, self._levels)

    def add(self, part: Part, place: Place, following: int) -> int:
        """Add a part that was learnt, before the one that follows it in the list; its number."""
        if self._freed:
            number = self._freed.pop()
        else:
            number = self._last = self._last + 1
        shape = self._shapes[part]
        words = (part.together or place.vm, place.resource, str(place.position))
        if isinstance(shape, Beat):
            self._new_beats[number] = (shape, self._streams(part, shape, words))
            self._new[number] = (following, place.size_mib, -1, 0)
        else:
            who = stream(self._seed, *words) if isinstance(part, Steps) else 0
            self._new[number] = (following, place.size_mib, shape, who)
        return number

    def _streams(self, part: Part, beat: Beat, words: tuple[str, ...]) -> BeatStreams:
        high = (*words, "high") if isinstance(part, Pattern) else words
        return BeatStreams(
            begin=stream(self._seed, *words, "phase") if beat.begin_ms is None else 0,
            high=stream(self._seed, *high) if beat.high.drawn else 0,
            low=stream(self._seed, *words, "low") if beat.low.drawn else 0,
        )

    def free(self, head: int) -> None:
        """Forget a chain of parts."""
        self.write()
        while head:
            self._freed.append(head)
            head = int(self._sheet["next"][head])

    def write(self) -> None:
        """Write down what was added since the last time."""
        if self._new:
            following, size, series, streams = zip(*self._new.values(), strict=True)
            self._sheet.write(
                np.array(list(self._new), dtype=np.int64),
                next=following,
                size=size,
                series=series,
                stream=np.array(streams, dtype=np.uint64),
            )
            self._new.clear()
        if self._new_beats:
            self._beats.write(self._new_beats)
            self._new_beats.clear()

    def following(self, parts: Integers) -> Integers:
        """The next part in the list of each; 0 if it is the last."""
        found: Integers = self._sheet["next"][parts]
        return found

    def changes(self, parts: Integers, from_ms: int, until_ms: int) -> int:
        """How often the parts change in the time after ``from_ms`` and not after ``until_ms``."""
        return int(self._counts(parts, from_ms, until_ms)[1].sum())

    def stretches(self, parts: Integers, from_ms: int, until_ms: int) -> Stretches:
        """The stretches that begin after ``from_ms`` and not after ``until_ms``, part by part."""
        first, counts = self._counts(parts, from_ms, until_ms)
        asked = np.repeat(np.arange(len(parts)), counts)
        numbers = counted_from(first + 1, counts)
        starts = self._each(
            np.int64, self._beats.starts, self._series_starts, parts[asked], numbers
        )
        return Stretches(asked, numbers, starts)

    def _counts(self, parts: Integers, from_ms: int, until_ms: int) -> tuple[Integers, Integers]:
        first = self.stretch_at(parts, np.full(len(parts), from_ms))
        return first, self.stretch_at(parts, np.full(len(parts), until_ms)) - first

    def stretch_at(self, parts: Integers, at_ms: Integers) -> Integers:
        """In which stretch each part is at the time beside it."""
        return self._each(np.int64, self._beats.stretches, self._series_stretches, parts, at_ms)

    def values(self, parts: Integers, stretches: Integers) -> Floats:
        """The amount of each part in the stretch beside it."""
        return self._each(np.float64, self._beat_values, self._series_values, parts, stretches)

    def _each(
        self,
        kind: type[_Number],
        of_beats: Callable[[Integers, Integers], NDArray[_Number]],
        of_series: Callable[[Integers, Integers], NDArray[_Number]],
        parts: Integers,
        beside: Integers,
    ) -> NDArray[_Number]:
        """Ask beats and series each for theirs, some at a time."""
        out: NDArray[Any] = np.empty(len(parts), dtype=kind)
        for first in range(0, len(parts), _CHUNK):
            some = slice(first, first + _CHUNK)
            is_series = self._sheet["series"][parts[some]] >= 0
            for chosen, how in ((~is_series, of_beats), (is_series, of_series)):
                if chosen.all():
                    out[some] = how(parts[some], beside[some])
                elif chosen.any():
                    out[some][chosen] = how(parts[some][chosen], beside[some][chosen])
        return out

    def _series_stretches(self, parts: Integers, at_ms: Integers) -> Integers:
        return self._series.stretches(self._sheet["series"][parts], at_ms)

    def _series_starts(self, parts: Integers, stretches: Integers) -> Integers:
        return self._series.starts(self._sheet["series"][parts], stretches)

    def _series_values(self, parts: Integers, stretches: Integers) -> Floats:
        series, streams = self._sheet["series"][parts], self._sheet["stream"][parts]
        return self._sized(parts, self._series.values(series, streams, stretches))

    def _beat_values(self, parts: Integers, stretches: Integers) -> Floats:
        return self._sized(parts, self._beats.values(parts, stretches))

    def _sized(self, parts: Integers, levels: Floats) -> Floats:
        size = self._sheet["size"][parts]
        return np.where(size > 0, levels * size / 100, levels) if size.any() else levels
