"""Parts of a load that change at given times: steps and traces.

VMs with the same steps or the same trace share one copy. Segments are the times between two
changes, counted from 0; -1 is the time before the first one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from equipoise.model.scenario.load import Distribution, StepLoad, TraceLoad
from equipoise.sim.load.demand_table import FOREVER, DemandTable, Floats, Integers, Streams
from equipoise.sim.load.levels import LevelTable
from equipoise.sim.load.trace_reader import TraceReader

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
