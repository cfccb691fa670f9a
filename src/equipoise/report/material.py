"""What a page is made from: the summary, the tables, the events, and how to look things up there.

The summary is written by one version and read by another, so nothing in it is taken for granted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from equipoise.model.event import Event, HostFailed
from equipoise.report.chart.frame import Mark, Span
from equipoise.report.chart.scale import Figures
from equipoise.sim.measure.record import Column, Record, Table

Summary = Mapping[str, Any]
Tell = Callable[[Event], str]

POINTS_MAX: Final = 300
"""So many moments a chart shows; more would not be seen, and would make the page heavy."""
_MARKS_MAX: Final = 40
_NO_POOL: Final = frozenset({"", "(no pool)"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A run, as its page is made from it."""

    summary: Summary
    record: Record
    events: Sequence[Event]
    tell: Tell

    @property
    def span(self) -> Span:
        """From the first sample to the end of the run."""
        return span_of(self.record.cluster, self.summary)

    def marks(self) -> tuple[Mark, ...]:
        """The failures of hosts, which explain much of what is seen; not when they are many."""
        found = [
            Mark(event.at_ms / 1000, self.tell(event))
            for event in self.events
            if isinstance(event, HostFailed)
        ]
        span = self.span
        inside = [mark for mark in found if span.low_s <= mark.at_s <= span.high_s]
        return tuple(inside) if len(inside) <= _MARKS_MAX else ()


def span_of(cluster: Table, summary: Summary) -> Span:
    """From the first sample to the end of the run, never empty."""
    times = times_of(cluster)
    low_s = float(times[0]) if len(times) else 0.0
    last_s = float(times[-1]) if len(times) else 0.0
    high_s = max(last_s, figure(summary, "duration_s") or 0.0)
    return Span(low_s, high_s if high_s > low_s else low_s + 1.0)


def figure(summary: Summary, path: str) -> float | None:
    """Look up a number by its path, e.g. ``imbalance.final``; nothing if it is not there."""
    found = looked_up(summary, path)
    usable = isinstance(found, int | float) and not isinstance(found, bool) and isfinite(found)
    return float(found) if usable else None


def looked_up(summary: Summary, path: str) -> Any:
    """Look up whatever is at a path; nothing if it is not there."""
    found: Any = summary
    for key in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def pool_called(name: str, *, alone: bool) -> str:
    """What to call a pool: VMs that are in none have no name of their own."""
    if name not in _NO_POOL:
        return name
    return "all VMs" if alone else "no pool"


# Tables


def rows_of(table: Table) -> int:
    """How many rows a table has; one without columns has none."""
    return len(table) if table.columns else 0


def figures(table: Table, name: str) -> Figures:
    """A column as numbers; one that is not there has no figures."""
    if name not in table.columns:
        return np.full(rows_of(table), np.nan)
    return np.asarray(table[name], dtype=np.float64)


def times_of(table: Table) -> Figures:
    """When the rows were taken."""
    return figures(table, "at_s")


def coded(column: Column | Iterable[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Names in the order of their first appearance, and for each row the place of its name."""
    places: dict[str, int] = {}
    listed = column.tolist() if isinstance(column, np.ndarray) else list(column)
    codes = np.fromiter(
        (places.setdefault(name, len(places)) for name in listed), dtype=np.int64, count=len(listed)
    )
    return [str(name) for name in places], codes


class Thinning:
    """Many samples made few: each point is the mean of as many neighbours as it takes."""

    def __init__(self, times: Figures) -> None:
        self.size = max(1, -(-len(times) // POINTS_MAX))
        self._starts = np.arange(0, len(times), self.size)
        self.times = self.mean(times)

    def mean(self, values: Figures) -> Figures:
        """The mean of each bundle, of the figures that are known."""
        if self.size == 1:
            return values
        known = np.isfinite(values)
        total = np.add.reduceat(np.where(known, values, 0.0), self._starts)
        count = np.add.reduceat(known.astype(np.float64), self._starts)
        mean = np.full(len(total), np.nan)
        np.divide(total, count, out=mean, where=count > 0)
        return mean

    @property
    def note(self) -> str:
        """What to say about it, if there is anything to say."""
        if len(self.times) == 1:
            return " There is one sample only, hence dots instead of lines."
        return f" Each point is the mean of {self.size} samples." if self.size > 1 else ""
