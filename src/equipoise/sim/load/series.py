"""Series: parts that change at moments of their own, as steps and traces do.

VMs with the same steps or the same trace share one copy of it. The stretches between the changes
are counted from 0; -1 is the time before the first moment.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from equipoise.model.story.load import Spread, Steps, Trace
from equipoise.sim.load.level import Levels
from equipoise.sim.load.sheet import FOREVER, Floats, Integers, Sheet, Streams
from equipoise.sim.load.trace import TraceReader

SeriesPart = Steps | Trace


class Series:
    """All series of a run, one behind the other in two long columns."""

    def __init__(self, levels: Levels, traces: TraceReader) -> None:
        self._levels = levels
        self._traces = traces
        self._sheet = Sheet(first=np.int64, count=np.int64, period=np.int64)
        self._rows = Sheet(at=np.int64, value=np.float64, level=np.int64)
        self._known = 0
        self._size = 0

    def add(self, part: SeriesPart) -> int:
        """Take up the series of a part; its number."""
        if isinstance(part, Trace):
            at_ms, values = self._traces.read(part)
            return self._add(at_ms, values, [-1], _period(at_ms) if part.repeat else FOREVER)
        # Of two points for the same moment, the later one in the list is meant.
        points = sorted({point.at_s: point.level for point in part.points}.items())
        drawn = [isinstance(level, Spread) for _, level in points]
        return self._add(
            np.array([at_s * 1000 for at_s, _ in points]),
            np.array([0.0 if isinstance(level, Spread) else level for _, level in points]),
            [self._levels.number(level) if is_drawn else -1
             for (_, level), is_drawn in zip(points, drawn, strict=True)],
            FOREVER,
        )  # fmt: skip

    def _add(self, at_ms: Integers, values: Floats, levels: Iterable[int], period: int) -> int:
        number, first = self._known, self._size
        self._known += 1
        self._size += len(at_ms)
        self._sheet.write(np.array([number]), first=first, count=len(at_ms), period=period)
        rows = np.arange(first, self._size)
        self._rows.write(rows, at=at_ms, value=values, level=np.array(list(levels)))
        return number

    def stretches(self, series: Integers, at_ms: Integers) -> Integers:
        """In which stretch each series is at the time beside it."""
        period = self._sheet["period"][series]
        rounds = at_ms // period
        passed = self._passed(series, at_ms - rounds * period)
        found: Integers = rounds * self._sheet["count"][series] + passed - 1
        return found

    def _passed(self, series: Integers, at_ms: Integers) -> Integers:
        """How many moments of each series are not after the time: by halving, for all at once."""
        moments = self._rows["at"]
        low: Integers = self._sheet["first"][series]
        first, high = low, low + self._sheet["count"][series]
        while (is_open := low < high).any():
            middle = np.where(is_open, (low + high) >> 1, first)
            is_later = moments[middle] > at_ms
            low = np.where(is_open & ~is_later, middle + 1, low)
            high = np.where(is_open & is_later, middle, high)
        return low - first

    def starts(self, series: Integers, stretches: Integers) -> Integers:
        """When each of the stretches, none of them -1, begins."""
        rounds, row = self._found(series, stretches)
        start: Integers = rounds * self._sheet["period"][series] + self._rows["at"][row]
        return start

    def values(self, series: Integers, streams: Streams, stretches: Integers) -> Floats:
        """The level of each series in the stretch beside it."""
        _, row = self._found(series, np.maximum(stretches, 0))
        out = np.where(stretches < 0, 0.0, self._rows["value"][row])
        level = self._rows["level"][row]
        drawn = np.flatnonzero((level >= 0) & (stretches >= 0))
        if drawn.size:
            # A drawn level is drawn once per point, and what repeats are traces only.
            out[drawn] = self._levels.values(level[drawn], streams[drawn], stretches[drawn])
        return out

    def _found(self, series: Integers, stretches: Integers) -> tuple[Integers, Integers]:
        count = self._sheet["count"][series]
        rounds = stretches // count
        return rounds, self._sheet["first"][series] + stretches - rounds * count


def _period(at_ms: Integers) -> int:
    """How long a trace lasts: its last level holds for as long as one of them does as a rule."""
    if len(at_ms) == 1:
        return FOREVER
    return int(at_ms[-1]) + int(np.rint(np.median(np.diff(at_ms))))
