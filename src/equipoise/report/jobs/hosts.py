"""Jobs on hosts over time: a Gantt chart, or a heat map if there are too many for one."""

from __future__ import annotations

from typing import Final

import numpy as np

from equipoise.model.quantity import format_count
from equipoise.report.chart import gantt, heatmap
from equipoise.report.chart.frame import Floats, empty_note, legend_entry, legend_list
from equipoise.report.chart.gantt import GanttBar, GanttChart
from equipoise.report.chart.heatmap import ColourRamp, HeatMap
from equipoise.report.chart.markup import Markup, Section
from equipoise.report.format import format_duration, format_moment
from equipoise.report.jobs.data import SUCCEEDED, JobRecord

ROWS_MAX: Final = 128
BARS_MAX: Final = 5000
"""A chart with more hosts or bars is no longer readable, and its page no longer small."""
_GROUPS_MAX: Final = 64
_COLUMNS: Final = 150
_LANE_HEIGHT: Final = 14.0
_LANES_DRAWN_MAX: Final = 12
"""Of the lanes of a host with more jobs at one time, each is thinner."""
_COLOURS: Final = (1, 3, 4, 6, 7, 8)


def hosts_section(record: JobRecord, host_names: tuple[str, ...]) -> Section:
    """Return which jobs run where, and when."""
    places = np.flatnonzero(record.ran)
    if not len(places) or not host_names:
        note = empty_note("No job has run, so there is nothing to draw.")
        return Section("hosts", "Jobs on hosts", "", note)
    intervals = [
        (int(place), pair) for place in places.tolist() for pair in record.intervals(int(place))
    ]
    if len(host_names) <= ROWS_MAX and len(intervals) <= BARS_MAX:
        caption = (
            "One row per host; a bar is a job on neighbouring hosts, so a job on scattered hosts"
            " has several. Jobs that share a host are one below the other. Point at a bar for its"
            " job. Colours only tell neighbours apart."
        )
        body = _gantt(record, host_names, intervals)
        return Section("hosts", "Jobs on hosts", caption, body)
    size = -(-len(host_names) // _GROUPS_MAX)
    column_s = (record.span.high_s - record.span.low_s) / _COLUMNS
    caption = (
        f"{len(places):,} jobs on {len(host_names):,} hosts are too many for a Gantt chart, which"
        f" has at most {BARS_MAX:,} bars on {ROWS_MAX} hosts. The map shows the share of time in"
        f" which hosts run jobs: a row is {format_count(size, 'host')} in the order of numbers,"
        f" a column {format_duration(column_s)}."
    )
    return Section("hosts", "Jobs on hosts", caption, _map(record, host_names, intervals, size))


Intervals = list[tuple[int, tuple[int, int]]]


def _gantt(record: JobRecord, host_names: tuple[str, ...], intervals: Intervals) -> Markup:
    lanes, lanes_max = _lanes(record, intervals)
    bars = [
        GanttBar(
            row=first,
            start_s=float(record.start_s[place]),
            end_s=float(record.end_s[place]),
            look=_look(record, place),
            words=_words(record, place),
            band=lanes.get(place, (0.08, last - first + 0.92)),
            name=record.names[place],
        )
        for place, (first, last) in intervals
    ]
    failed = any(record.states[place] != SUCCEEDED for place, _ in intervals)
    entries = [legend_entry("action column c1", "a job")]
    if failed:
        entries.append(legend_entry("action lost", "failed, killed or out of time"))
    chart = GanttChart(
        label="Jobs on hosts over time",
        span=record.span,
        rows=[(name, "") for name in host_names],
        bars=bars,
        titled_max=BARS_MAX,
        row_height=_LANE_HEIGHT * min(lanes_max, _LANES_DRAWN_MAX) if lanes_max > 1 else None,
    )
    return gantt.draw(chart, legend_list(*entries))


def _lanes(record: JobRecord, intervals: Intervals) -> tuple[dict[int, tuple[float, float]], int]:
    """Return the part of the row of each job that shares its host, and the largest number of parts.

    A job takes the first part that is free at its start. Wide jobs cover whole rows.
    """
    of_host: dict[int, list[int]] = {}
    for place, (first, last) in intervals:
        if first == last:
            of_host.setdefault(first, []).append(place)
    bands: dict[int, tuple[float, float]] = {}
    lanes_max = 1
    for places in of_host.values():
        ends: list[float] = []
        lane_of: dict[int, int] = {}
        for place in sorted(places, key=lambda place: float(record.start_s[place])):
            start_s, end_s = float(record.start_s[place]), float(record.end_s[place])
            lane = next((n for n, free_s in enumerate(ends) if free_s <= start_s), len(ends))
            ends[lane : lane + 1] = [end_s]
            lane_of[place] = lane
        count = len(ends)
        if count > 1:
            lanes_max = max(lanes_max, count)
            bands |= {
                place: (0.04 + 0.92 * lane / count, 0.04 + 0.92 * (lane + 1) / count)
                for place, lane in lane_of.items()
            }
    return bands, lanes_max


def _look(record: JobRecord, place: int) -> str:
    if record.states[place] != SUCCEEDED:
        return "action lost"
    return f"action column c{_COLOURS[place % len(_COLOURS)]}"


def _words(record: JobRecord, place: int) -> str:
    start_s, end_s = float(record.start_s[place]), float(record.end_s[place])
    waited = format_duration(start_s - float(record.submit_s[place]))
    state = record.states[place].lower().replace("_", " ")
    begin = format_moment(start_s, exact=True)
    return (
        f"job {record.names[place]}, hosts {record.hosts[place]}: {begin}"
        f" to {format_moment(end_s, exact=True)}, ran {format_duration(end_s - start_s)},"
        f" waited {waited}, {state}"
    )


def _map(record: JobRecord, host_names: tuple[str, ...], intervals: Intervals, size: int) -> Markup:
    groups = -(-len(host_names) // size)
    edges = np.linspace(*record.span, _COLUMNS + 1)
    cells = np.zeros((groups, _COLUMNS), dtype=np.int32)
    members: list[list[tuple[int, int]]] = [[] for _ in range(groups)]
    for place, (first, last) in intervals:
        for group in range(first // size, last // size + 1):
            low, high = max(first, group * size), min(last, group * size + size - 1)
            members[group].append((place, high - low + 1))
    for group, spans in enumerate(members):
        hosts = min(size, len(host_names) - group * size)
        if spans:
            places, weights = (np.array(column) for column in zip(*spans, strict=True))
            busy = _busy_share(record, places, weights.astype(np.float64), edges) / hosts
            cells[group] = np.rint(100 * busy).astype(np.int32)
    names = [
        host_names[group * size] if size == 1 else f"{host_names[group * size]} …"
        for group in range(groups)
    ]
    picture = HeatMap(
        label="Share of time that hosts run jobs",
        span=record.span,
        edges=edges,
        rows=names,
        views={"busy": cells},
        flawed_cells=np.zeros(cells.shape, dtype=np.bool_),
        ramp=ColourRamp(0, 100, "%", "of the time busy"),
    )
    return heatmap.draw(picture, name="busy-hosts")


def _busy_share(record: JobRecord, places: Floats, weights: Floats, edges: Floats) -> Floats:
    """Return how many hosts run these jobs, as the mean of each column."""
    total = np.zeros(len(edges))
    for times, sign in ((record.start_s[places], 1.0), (record.end_s[places], -1.0)):
        order = np.argsort(times)
        at, weight = times[order], weights[order]
        # The host time since each start (or end) up to an edge, from two running sums.
        below = np.searchsorted(at, edges, side="right")
        sums = np.concatenate([[0.0], np.cumsum(weight)])[below]
        moments = np.concatenate([[0.0], np.cumsum(weight * at)])[below]
        total += sign * (sums * edges - moments)
    return np.clip(np.diff(total) / np.diff(edges), 0.0, None)
