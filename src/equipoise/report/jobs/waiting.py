"""The jobs that waited longest, and why, as far as starts and ends tell."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from equipoise.model.quantity import format_count
from equipoise.report.chart.frame import Floats, empty_note
from equipoise.report.chart.markup import Section, html_table, text
from equipoise.report.format import format_duration, format_moment, format_percent, shorten_middle
from equipoise.report.jobs.data import REJECTED, JobRecord, job_widths, used_hosts

_ROWS: Final = 15
_HOLDERS: Final = 3
_NAME_MAX: Final = 24
_SAME_S: Final = 1e-6
"""Times in files have six decimals."""


class LongWait(NamedTuple):
    """One job that waited."""

    place: int
    waited_s: float
    blocked: float
    """The share of the wait in which fewer hosts were free than the job requested."""
    holders: tuple[tuple[int, float], ...]
    """The jobs that held most host time during the wait, with their share of it."""
    released_by: int | None
    """A job on the same hosts that ended when this one started."""
    overtaken_by: int
    """Jobs that arrived later and started earlier."""


def long_waits(record: JobRecord, hosts: int) -> list[LongWait]:
    """Return the longest waits, longest first; equal ones in the order of the file."""
    waited = np.where(record.ran, record.start_s - record.submit_s, -1.0)
    order = np.argsort(-waited, kind="stable")[:_ROWS]
    widths = job_widths(record)
    used = used_hosts(record, widths)
    return [
        _explain(record, int(place), hosts, used, widths)
        for place in order
        if waited[place] > _SAME_S
    ]


def _explain(
    record: JobRecord,
    place: int,
    hosts: int,
    used: tuple[Floats, Floats],
    widths: Floats,
) -> LongWait:
    low_s, high_s = float(record.submit_s[place]), float(record.start_s[place])
    with np.errstate(invalid="ignore"):
        overlap = np.minimum(record.end_s, high_s) - np.maximum(record.start_s, low_s)
    held = np.where(np.isfinite(overlap) & (overlap > 0), overlap * widths, 0.0)
    total = float(held.sum())
    most = np.argsort(-held, kind="stable")[:_HOLDERS]
    mine = _hosts(record, place)
    ending = np.flatnonzero(np.abs(record.end_s - high_s) <= _SAME_S)
    released = next((n for n in ending.tolist() if n != place and _hosts(record, n) & mine), None)
    later = (record.submit_s > low_s) & (record.start_s < high_s)
    return LongWait(
        place=place,
        waited_s=high_s - low_s,
        blocked=_blocked_share(used, hosts - float(record.requested[place]), low_s, high_s),
        holders=tuple((int(n), float(held[n]) / total) for n in most if held[n] > 0),
        released_by=released,
        overtaken_by=int(later.sum()),
    )


def _hosts(record: JobRecord, place: int) -> set[int]:
    return {n for first, last in record.intervals(place) for n in range(first, last + 1)}


def _blocked_share(used: tuple[Floats, Floats], limit: float, low_s: float, high_s: float) -> float:
    """Return the share of a time in which more than ``limit`` hosts were in use."""
    times, counts = used
    inside = times[(times > low_s) & (times < high_s)]
    edges = np.concatenate([[low_s], inside, [high_s]])
    place = np.searchsorted(times, edges[:-1], side="right") - 1
    busy = np.where(place >= 0, counts[np.maximum(place, 0)], 0.0)
    return float(np.diff(edges)[busy > limit].sum() / (high_s - low_s))


def waits_section(record: JobRecord, hosts: int) -> Section:
    """Return the longest waits with the jobs that caused them."""
    waits = long_waits(record, hosts)
    if not waits:
        return Section("waits", "Longest waits", "", empty_note("No job waited."))
    caption = (
        "While fewer hosts were free than a job requested, it could not start: the jobs that held"
        " the most host time meanwhile are named with their share. For the rest of its wait enough"
        " hosts were free, but the scheduler kept them for other jobs, or they were asleep."
    )
    rows = [
        [
            text(_name(record, wait.place)),
            text(format_moment(float(record.submit_s[wait.place]), exact=True)),
            text(format_duration(wait.waited_s)),
            text(f"{record.requested[wait.place]:.0f}"),
            text(format_percent(100 * wait.blocked)),
            text(_reason(record, wait)),
        ]
        for wait in waits
    ]
    columns = ("job", "submitted", "waited", "hosts", "too few free", "why")
    return Section("waits", "Longest waits", caption, html_table(columns, rows, right=columns[1:5]))


def _name(record: JobRecord, place: int) -> str:
    return shorten_middle(record.names[place], _NAME_MAX)


def _reason(record: JobRecord, wait: LongWait) -> str:
    held = ", ".join(
        f"{_name(record, n)} ({format_percent(100 * part)})" for n, part in wait.holders
    )
    parts = [f"hosts held by {held}" if held else "no job held a host"]
    if wait.released_by is not None:
        parts.append(f"it started when {_name(record, wait.released_by)} ended")
    if wait.overtaken_by:
        parts.append(f"{format_count(wait.overtaken_by, 'later job')} started earlier")
    return "; ".join(parts)


def rejected_note(record: JobRecord) -> str:
    """Return a sentence about rejected jobs; empty if there are none."""
    names = [_name(record, place) for place, state in enumerate(record.states) if state == REJECTED]
    if not names:
        return ""
    more = f" and {len(names) - _ROWS:,} more" if len(names) > _ROWS else ""
    return f"Rejected: {', '.join(names[:_ROWS])}{more}."
