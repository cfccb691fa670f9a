"""The data of a run that its page shows: document, tables and events.

The document may come from another version, so every figure may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from equipoise.documents.event_text import describe_event
from equipoise.documents.simulation import SimulationDocument
from equipoise.model.event import Event, HostFailed
from equipoise.report.chart.frame import Floats, TimeMark, TimeSpan
from equipoise.sim.measure.sampling import Column, RunRecord, SampleTable

POINTS_MAX: Final = 300
"""Points of a chart. More are not visible and make the page large."""
_MARKS_MAX: Final = 40
_NO_POOL: Final = frozenset({"", "(no pool)"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """All data that the page of a run shows."""

    document: SimulationDocument
    record: RunRecord
    events: Sequence[Event]

    @property
    def span(self) -> TimeSpan:
        """The time from the first sample to the end of the run."""
        return run_span(self.record.cluster, self.document)

    def marks(self) -> tuple[TimeMark, ...]:
        """Host failures as marks on the time axis; none if they are too many to read."""
        failures = [
            TimeMark(event.at_ms / 1000, describe_event(event))
            for event in self.events
            if isinstance(event, HostFailed)
        ]
        span = self.span
        inside = [mark for mark in failures if span.low_s <= mark.at_s <= span.high_s]
        return tuple(inside) if len(inside) <= _MARKS_MAX else ()


def run_span(cluster: SampleTable, document: SimulationDocument) -> TimeSpan:
    """Return the time from the first sample to the end of the run, never an empty span."""
    times = column_times(cluster)
    low_s = float(times[0]) if len(times) else 0.0
    last_s = float(times[-1]) if len(times) else 0.0
    high_s = max(last_s, document.duration_s or 0.0)
    return TimeSpan(low_s, high_s if high_s > low_s else low_s + 1.0)


def pool_label(name: str, *, alone: bool) -> str:
    """Return the name of a pool on a page; VMs outside all pools have a pool without a name."""
    if name not in _NO_POOL:
        return name
    return "all VMs" if alone else "no pool"


# Tables


def row_count(table: SampleTable) -> int:
    """Return the number of rows; a table without columns has none."""
    return len(table) if table.columns else 0


def column_values(table: SampleTable, name: str) -> Floats:
    """Return a column as numbers; NaN for each row if the table has no such column."""
    if name not in table.columns:
        return np.full(row_count(table), np.nan)
    return np.asarray(table[name], dtype=np.float64)


def column_times(table: SampleTable) -> Floats:
    """Return the times of the rows, in seconds."""
    return column_values(table, "at_s")


def encode_names(column: Column | Iterable[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct names in the order of first appearance, and the index of each row."""
    places: dict[str, int] = {}
    listed = column.tolist() if isinstance(column, np.ndarray) else list(column)
    codes = np.fromiter(
        (places.setdefault(name, len(places)) for name in listed), dtype=np.int64, count=len(listed)
    )
    return [str(name) for name in places], codes


class Downsampler:
    """Reduces many samples to at most ``POINTS_MAX``: each point is the mean of neighbours."""

    def __init__(self, times: Floats) -> None:
        self.size = max(1, -(-len(times) // POINTS_MAX))
        self._starts = np.arange(0, len(times), self.size)
        self.times = self.mean(times)

    def mean(self, values: Floats) -> Floats:
        """Return the mean of each group of neighbours; NaN values do not count."""
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
        """A sentence about the reduction for the caption; empty if nothing was reduced."""
        if len(self.times) == 1:
            return " The run has one sample, so charts show dots instead of lines."
        return f" Each point is the mean of {self.size} samples." if self.size > 1 else ""
