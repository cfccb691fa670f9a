"""The parts of the loads of all VMs, each with a number, and their levels over time.

Steps and traces change at given times; the other parts are periodic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.model.scenario.load import CyclicLoad, Distribution, LoadPart, StepLoad, TraceLoad
from equipoise.sim.load.levels import (
    FOREVER,
    DemandTable,
    Floats,
    Integers,
    LevelTable,
    Streams,
    ranges_from,
)
from equipoise.sim.load.periodic import PeriodicPart, PeriodicParts, PeriodicStreams, periodic_part
from equipoise.sim.load.trace_reader import TraceReader
from equipoise.sim.random_streams import stream_key

SeriesPart = StepLoad | TraceLoad


class TimeSeriesParts:
    """All series of a run, concatenated in one table."""

    def __init__(self, levels: LevelTable, traces: TraceReader) -> None:
        self._levels = levels
        self._traces = traces
        self._table = DemandTable(first=np.int64, count=np.int64, period=np.int64)
        self._rows = DemandTable(at=np.int64, value=np.float64, level=np.int64)
        self._known = 0
        self._size = 0

    def add(self, part: SeriesPart) -> int:
        """Add the series of a part and return its number."""
        if isinstance(part, TraceLoad):
            at_ms, values = self._traces.read(part)
            return self._add(at_ms, values, [-1], _period(at_ms) if part.repeat else FOREVER)
        # Of two points at the same time, the later one in the list holds.
        points = sorted({point.at_s: point.level for point in part.points}.items())
        drawn = [isinstance(level, Distribution) for _, level in points]
        return self._add(
            np.array([at_s * 1000 for at_s, _ in points]),
            np.array([0.0 if isinstance(level, Distribution) else level for _, level in points]),
            [self._levels.number(level) if is_drawn else -1
             for (_, level), is_drawn in zip(points, drawn, strict=True)],
            FOREVER,
        )  # fmt: skip

    def _add(self, at_ms: Integers, values: Floats, levels: Iterable[int], period: int) -> int:
        number, first = self._known, self._size
        self._known += 1
        self._size += len(at_ms)
        self._table.write(np.array([number]), first=first, count=len(at_ms), period=period)
        rows = np.arange(first, self._size)
        self._rows.write(rows, at=at_ms, value=values, level=np.array(list(levels)))
        return number

    def segments(self, series: Integers, at_ms: Integers) -> Integers:
        """Return the segment of each series at the time beside it."""
        period = self._table["period"][series]
        rounds = at_ms // period
        passed = self._passed(series, at_ms - rounds * period)
        segment: Integers = rounds * self._table["count"][series] + passed - 1
        return segment

    def _passed(self, series: Integers, at_ms: Integers) -> Integers:
        """Count the points of each series up to a time: a binary search for all at once."""
        times = self._rows["at"]
        low: Integers = self._table["first"][series]
        first, high = low, low + self._table["count"][series]
        while (is_open := low < high).any():
            middle = np.where(is_open, (low + high) >> 1, first)
            is_later = times[middle] > at_ms
            low = np.where(is_open & ~is_later, middle + 1, low)
            high = np.where(is_open & is_later, middle, high)
        return low - first

    def starts(self, series: Integers, segments: Integers) -> Integers:
        """Return when each segment begins; none of them is -1."""
        rounds, row = self._locate(series, segments)
        start: Integers = rounds * self._table["period"][series] + self._rows["at"][row]
        return start

    def values(self, series: Integers, streams: Streams, segments: Integers) -> Floats:
        """Return the level of each series in the segment beside it."""
        _, row = self._locate(series, np.maximum(segments, 0))
        out = np.where(segments < 0, 0.0, self._rows["value"][row])
        level = self._rows["level"][row]
        drawn = np.flatnonzero((level >= 0) & (segments >= 0))
        if drawn.size:
            # Only steps have drawn levels, one draw per point. Only traces repeat.
            out[drawn] = self._levels.values(level[drawn], streams[drawn], segments[drawn])
        return out

    def _locate(self, series: Integers, segments: Integers) -> tuple[Integers, Integers]:
        """Return the repetition and the row of each segment."""
        count = self._table["count"][series]
        rounds = segments // count
        return rounds, self._table["first"][series] + segments - rounds * count


def _period(at_ms: Integers) -> int:
    """Return the length of a trace; its last level holds for the median interval."""
    if len(at_ms) == 1:
        return FOREVER
    return int(at_ms[-1]) + int(np.rint(np.median(np.diff(at_ms))))


_CHUNK: Final = 2**15
"""The number of parts per step, chosen so that the intermediate arrays fit the CPU cache."""
_Number = TypeVar("_Number", np.int64, np.float64)


class PartOwner(NamedTuple):
    """The VM and the resource that a part belongs to, and its position in the list."""

    vm: str
    resource: str
    position: int
    size_mib: int
    """The base of a level in percent; 0 if the level is an amount."""


class LoadSegments(NamedTuple):
    """Segments of parts: the times between two changes."""

    owner: Integers
    """The index of the part in the query."""
    number: Integers
    at_ms: Integers
    """When the segment begins."""


class LoadParts:
    """The parts of all VMs."""

    def __init__(self, seed: int, traces: TraceReader) -> None:
        self._seed = seed
        self._levels = LevelTable()
        self._periodic = PeriodicParts(self._levels)
        self._series = TimeSeriesParts(self._levels, traces)
        self._shapes: dict[LoadPart, PeriodicPart | int] = {}
        self._table = DemandTable(next=np.int64, size=np.int64, series=np.int64, stream=np.uint64)
        self._new_periodic: dict[int, tuple[PeriodicPart, PeriodicStreams]] = {}
        self._new: dict[int, tuple[int, int, int, int]] = {}
        self._freed: list[int] = []
        self._last = 0

    def register(self, part: LoadPart) -> None:
        """Read the trace of a part, if it has one; raise ``InvalidInput`` if that fails."""
        if part in self._shapes:
            return
        if isinstance(part, StepLoad | TraceLoad):
            self._shapes[part] = self._series.add(part)
        else:
            self._shapes[part] = periodic_part(part, self._levels)

    def add(self, part: LoadPart, owner: PartOwner, following: int) -> int:
        """Add a registered part in front of the part ``following``; return its number."""
        # Numbers are used again, so that a cluster with much churn does not grow the tables.
        if self._freed:
            number = self._freed.pop()
        else:
            number = self._last = self._last + 1
        shape = self._shapes[part]
        # The words name the random stream. Parts with the same ``together`` rise and fall at once.
        words = (part.together or owner.vm, owner.resource, str(owner.position))
        if isinstance(shape, PeriodicPart):
            self._new_periodic[number] = (shape, self._streams(part, shape, words))
            self._new[number] = (following, owner.size_mib, -1, 0)
        else:
            key = stream_key(self._seed, *words) if isinstance(part, StepLoad) else 0
            self._new[number] = (following, owner.size_mib, shape, key)
        return number

    def _streams(
        self, part: LoadPart, periodic: PeriodicPart, words: tuple[str, ...]
    ) -> PeriodicStreams:
        high = (*words, "high") if isinstance(part, CyclicLoad) else words
        return PeriodicStreams(
            begin=stream_key(self._seed, *words, "phase") if periodic.begin_ms is None else 0,
            high=stream_key(self._seed, *high) if periodic.high.drawn else 0,
            low=stream_key(self._seed, *words, "low") if periodic.low.drawn else 0,
        )

    def free(self, head: int) -> None:
        """Free a chain of parts."""
        self.write()
        while head:
            self._freed.append(head)
            head = int(self._table["next"][head])

    def write(self) -> None:
        """Write the parts that were added since the last call into the tables."""
        if self._new:
            following, size, series, streams = zip(*self._new.values(), strict=True)
            self._table.write(
                np.array(list(self._new), dtype=np.int64),
                next=following,
                size=size,
                series=series,
                stream=np.array(streams, dtype=np.uint64),
            )
            self._new.clear()
        if self._new_periodic:
            self._periodic.write(self._new_periodic)
            self._new_periodic.clear()

    def following(self, parts: Integers) -> Integers:
        """Return the next part in the list of each part; 0 after the last."""
        following: Integers = self._table["next"][parts]
        return following

    def changes(self, parts: Integers, from_ms: int, until_ms: int) -> int:
        """Count the changes of parts after ``from_ms``, up to and including ``until_ms``."""
        return int(self._counts(parts, from_ms, until_ms)[1].sum())

    def segments(self, parts: Integers, from_ms: int, until_ms: int) -> LoadSegments:
        """Return the segments that begin after ``from_ms``, up to ``until_ms``, part by part."""
        first, counts = self._counts(parts, from_ms, until_ms)
        owner = np.repeat(np.arange(len(parts)), counts)
        numbers = ranges_from(first + 1, counts)
        starts = self._by_form(
            np.int64, self._periodic.starts, self._series_starts, parts[owner], numbers
        )
        return LoadSegments(owner, numbers, starts)

    def _counts(self, parts: Integers, from_ms: int, until_ms: int) -> tuple[Integers, Integers]:
        first = self.segment_at(parts, np.full(len(parts), from_ms))
        return first, self.segment_at(parts, np.full(len(parts), until_ms)) - first

    def segment_at(self, parts: Integers, at_ms: Integers) -> Integers:
        """Return the segment of each part at the time beside it."""
        return self._by_form(np.int64, self._periodic.segments, self._series_segments, parts, at_ms)

    def values(self, parts: Integers, segments: Integers) -> Floats:
        """Return the amount of each part in the segment beside it."""
        return self._by_form(
            np.float64, self._periodic_values, self._series_values, parts, segments
        )

    def _by_form(
        self,
        kind: type[_Number],
        of_periodic: Callable[[Integers, Integers], NDArray[_Number]],
        of_series: Callable[[Integers, Integers], NDArray[_Number]],
        parts: Integers,
        argument: Integers,
    ) -> NDArray[_Number]:
        """Call ``of_periodic`` or ``of_series`` for each part, in chunks."""
        out: NDArray[Any] = np.empty(len(parts), dtype=kind)
        for first in range(0, len(parts), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            is_series = self._table["series"][parts[chunk]] >= 0
            for chosen, function in ((~is_series, of_periodic), (is_series, of_series)):
                if chosen.all():  # without a mask, which is the common case
                    out[chunk] = function(parts[chunk], argument[chunk])
                elif chosen.any():
                    out[chunk][chosen] = function(parts[chunk][chosen], argument[chunk][chosen])
        return out

    def _series_segments(self, parts: Integers, at_ms: Integers) -> Integers:
        return self._series.segments(self._table["series"][parts], at_ms)

    def _series_starts(self, parts: Integers, segments: Integers) -> Integers:
        return self._series.starts(self._table["series"][parts], segments)

    def _series_values(self, parts: Integers, segments: Integers) -> Floats:
        series, streams = self._table["series"][parts], self._table["stream"][parts]
        return self._scaled_to_vm(parts, self._series.values(series, streams, segments))

    def _periodic_values(self, parts: Integers, segments: Integers) -> Floats:
        return self._scaled_to_vm(parts, self._periodic.values(parts, segments))

    def _scaled_to_vm(self, parts: Integers, levels: Floats) -> Floats:
        size = self._table["size"][parts]
        return np.where(size > 0, levels * size / 100, levels) if size.any() else levels
