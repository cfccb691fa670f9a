"""The placement timeline as a Gantt chart: a lane per host, a row per VM.

The axis has the periods of the plan instead of round times, with the states before and after it.
Shared network links have a lane each below the hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId, format_count
from equipoise.model.vm import VmState
from equipoise.report.chart import gantt
from equipoise.report.chart.frame import TimeMark, TimeSpan, legend_entry, legend_list, note_line
from equipoise.report.chart.gantt import GanttBackground, GanttBar, GanttChart
from equipoise.report.chart.markup import EMPTY, Markup, tag
from equipoise.report.placement.timeline import (
    NO_HOST,
    HostStatePeriod,
    LinkUsePeriod,
    PlacementTimeline,
    PresencePeriod,
    SharedLink,
    VmPresence,
    format_seconds,
    period_text,
    presence_period_text,
    presence_text,
    shared_links,
    step_verb,
)

LANES_MAX: Final = 30
ROWS_MAX: Final = 30
"""Rows of VMs in one lane."""


@dataclass(frozen=True, slots=True)
class PlacementLane:
    """One host, or the VMs without a host."""

    name: str
    host_state_periods: tuple[HostStatePeriod, ...]
    """The states of the host in order."""
    rows: tuple[tuple[PresencePeriod, ...], ...]
    """One row for each VM that is ever on the host."""
    left_out: int = 0
    """Number of VMs without a row."""

    @property
    def switches(self) -> tuple[HostStatePeriod, ...]:
        """Periods with a step on the host itself."""
        return tuple(period for period in self.host_state_periods if period.step is not None)

    @property
    def moves(self) -> bool:
        """Whether the lane has a step."""
        stays = [stay for row in self.rows for stay in row]
        return len(self.host_state_periods) > 1 or any(
            stay.presence.step is not None for stay in stays
        )


def placement_lanes(timeline: PlacementTimeline) -> tuple[list[PlacementLane], int]:
    """Return a lane for each host, then one for VMs without a host; and the number left out.

    With too many hosts, those without steps are left out first, and of those the empty ones.
    """
    by_host: dict[HostId | None, dict[VmId, list[PresencePeriod]]] = {}
    for stay in timeline.stays:
        by_host.setdefault(stay.presence.host, {}).setdefault(stay.presence.vm, []).append(stay)
    hosts = [_make_lane(timeline, host, by_host.get(host, {})) for host in timeline.states[0].hosts]
    places = sorted(range(len(hosts)), key=lambda place: _idleness(hosts[place]))[:LANES_MAX]
    shown = [hosts[place] for place in sorted(places)]
    unplaced = [_make_lane(timeline, None, by_host[None])] if None in by_host else []
    return [*shown, *unplaced], len(hosts) - len(shown)


def _idleness(lane: PlacementLane) -> int:
    return 0 if lane.moves else 1 if lane.rows else 2


def _make_lane(
    timeline: PlacementTimeline, host: HostId | None, rows: dict[VmId, list[PresencePeriod]]
) -> PlacementLane:
    host_state_periods = () if host is None else tuple(timeline.host_state_periods(host))
    busy = sorted(rows.values(), key=_is_unchanged)
    shown = [tuple(row) for row in rows.values() if row in busy[:ROWS_MAX]]
    return PlacementLane(
        NO_HOST if host is None else host, host_state_periods, tuple(shown), len(rows) - len(shown)
    )


def _is_unchanged(row: Sequence[PresencePeriod]) -> bool:
    return all(stay.presence.step is None for stay in row)


_OUTSIDE: Final = 15.0
"""The part before the plan, and the part after it, in percent of the width."""
_WIDTH: Final = 100.0
_APART_MIN: Final = 9.0
"""Smallest distance of two labels of the axis, in percent of the width."""
_ROW_HEIGHT: Final = 24.0
_BAND: Final = (0.08, 0.92)
_DESCRIBED_MAX: Final = 60
_LOOKS: Final = {
    VmState.INIT: "waiting",
    VmState.READY: "waiting",
    VmState.RUNNING: "running",
    VmState.SLEEPING: "sleeping",
    VmState.TERMINATED: "ended",
}
_MEANINGS: Final = {
    "running": "runs",
    "sleeping": "suspended",
    "arriving": "has capacity, but does not run here yet",
    "waiting": "not started",
    "ended": "terminated",
    "switched": "host changes its state",
    "carrying": "link carries migrations",
    "overloaded": "link is overloaded",
}
_HOST_STATES: Final = {
    HostState.STANDBY: "host in standby",
    HostState.MAINTENANCE: "host in maintenance",
    HostState.FAILED: "host has failed",
}


class ViolationFlag(NamedTuple):
    """The first period with a violation, and the violation."""

    period: int
    words: str


@dataclass(frozen=True, slots=True)
class _PeriodScale:
    """Maps periods to percent of the width."""

    timeline: PlacementTimeline

    def start(self, number: int) -> float:
        """Return the start of a period."""
        return 0.0 if number == 0 else self.instant(self.timeline.instants_ms[number - 1])

    def end(self, number: int) -> float:
        """Return the end of a period."""
        last = number == len(self.timeline.instants_ms)
        return _WIDTH if last else self.instant(self.timeline.instants_ms[number])

    def instant(self, at_ms: int) -> float:
        """Return the position of an instant of the plan."""
        return _OUTSIDE + (_WIDTH - 2 * _OUTSIDE) * at_ms / self.timeline.instants_ms[-1]

    def ticks(self) -> list[tuple[float, str]]:
        """Return the positions of all instants, with labels where there is space."""
        labelled = set(self._labelled_instants())
        instants = [
            (self.instant(at_ms), f"{format_seconds(at_ms)} s" if at_ms in labelled else "")
            for at_ms in self.timeline.instants_ms
        ]
        half = _OUTSIDE / 2
        return [(half, "before"), *instants, (_WIDTH - half, "after")] if instants else []

    def _labelled_instants(self) -> list[int]:
        """Return the instants whose labels do not overlap; the last one is always among them."""
        kept: list[int] = []
        for at_ms in self.timeline.instants_ms:
            near = [*kept[-1:], *self.timeline.instants_ms[-1:]]
            apart = [
                abs(self.instant(at_ms) - self.instant(other)) for other in near if other != at_ms
            ]
            if not apart or min(apart) >= _APART_MIN or at_ms == near[-1]:
                kept.append(at_ms)
        return kept


def draw(timeline: PlacementTimeline, name: str, flag: ViolationFlag | None = None) -> Markup:
    """Return the placement over time as a Gantt chart; ``name`` is the id of the picture."""
    scale = _PeriodScale(timeline)
    lanes, hidden = placement_lanes(timeline)
    links = shared_links(timeline)
    rows: list[tuple[str, str]] = []
    bars: list[GanttBar] = []
    backgrounds: list[GanttBackground] = []
    for lane in lanes:
        first = len(rows)
        bars += _lane_bars(timeline, scale, lane, first)
        note = f"{format_count(lane.left_out, 'VM')} more" if lane.left_out else ""
        rows += [(lane.name, note)] * _height(lane)
        backgrounds += _lane_backgrounds(timeline, scale, lane, first)
    for link in links:
        bars += _link_bars(timeline, scale, link, len(rows))
        rows.append((link.lane, ""))
    if flag is not None:
        start, end = scale.start(flag.period), scale.end(flag.period)
        # First, so that it lies below the states of hosts.
        backgrounds.insert(0, GanttBackground(0, len(rows), start, end, "wrong", flag.words))
    chart = GanttChart(
        label="Placement over time",
        span=TimeSpan(0.0, _WIDTH),
        rows=rows,
        bars=bars,
        backgrounds=backgrounds,
        flag=None if flag is None else TimeMark(scale.start(flag.period), flag.words),
        ticks=scale.ticks(),
        description=_description(timeline, flag),
        row_height=_ROW_HEIGHT,
        static=True,
    )
    picture = gantt.draw(chart, _legend(lanes, links))
    return tag("div", picture, _hidden_note(timeline, hidden), class_="placement", id=name)


def _hidden_note(timeline: PlacementTimeline, count: int) -> Markup:
    if not count:
        return EMPTY
    known = len(timeline.states[0].hosts)
    words = f"The chart shows the {known - count} busiest of {known:,} hosts."
    return note_line(words)


def _height(lane: PlacementLane) -> int:
    return max(1, len(lane.rows) + len(lane.switches[:1]))


def _lane_bars(
    timeline: PlacementTimeline, scale: _PeriodScale, lane: PlacementLane, row: int
) -> Iterator[GanttBar]:
    """Yield the switches of the host in the first row, then one row per VM."""
    for period in lane.switches:
        verb = step_verb(period.step) if period.step is not None else ""
        words = f"{lane.name} {verb}, {period_text(timeline, period.first, period.last)}"
        yield _bar(scale, period, row, "switched", words, verb)
    row += 1 if lane.switches else 0
    for stays in lane.rows:
        for stay in stays:
            presence = stay.presence
            is_plain = presence.step is None and presence.state.has_host
            state = str(presence.state) if presence.step is None else presence_text(presence)
            words = presence_period_text(timeline, stay)
            bar = _bar(scale, stay, row, _presence_class(presence), words, presence.vm)
            yield bar._replace(suffix="" if is_plain else state)
        row += 1


def _lane_backgrounds(
    timeline: PlacementTimeline, scale: _PeriodScale, lane: PlacementLane, row: int
) -> Iterator[GanttBackground]:
    """Yield the periods in which the host is not on."""
    for period in lane.host_state_periods:
        if period.state is not HostState.ON:
            times = period_text(timeline, period.first, period.last)
            yield GanttBackground(
                row,
                _height(lane),
                scale.start(period.first),
                scale.end(period.last),
                f"state {period.state}",
                f"{_HOST_STATES[period.state]}, {times}",
            )


def _link_bars(
    timeline: PlacementTimeline, scale: _PeriodScale, link: SharedLink, row: int
) -> Iterator[GanttBar]:
    for period in link.carried:
        usage = link.usage_text(period.mbps)
        words = f"{link.lane}: {usage}, {period_text(timeline, period.first, period.last)}"
        yield _bar(scale, period, row, _link_class(link, period), words, usage)


def _bar(
    scale: _PeriodScale,
    period: PresencePeriod | HostStatePeriod | LinkUsePeriod,
    row: int,
    look: str,
    words: str,
    name: str,
) -> GanttBar:
    start, end = scale.start(period.first), scale.end(period.last)
    return GanttBar(row, start, end, f"presence {look}", words, _BAND, name)


def _link_class(link: SharedLink, period: LinkUsePeriod) -> str:
    return "overloaded" if period.mbps > link.capacity_mbps else "carrying"


def _presence_class(presence: VmPresence) -> str:
    return "arriving" if presence.arriving else _LOOKS[presence.state]


def _description(timeline: PlacementTimeline, flag: ViolationFlag | None) -> str:
    """Return the picture as sentences, for screen readers."""
    sentences = [presence_period_text(timeline, stay) for stay in timeline.stays[:_DESCRIBED_MAX]]
    more = len(timeline.stays) - len(sentences)
    sentences += [f"and {more:,} more"] if more else []
    sentences += [
        f"{link.lane}: up to {link.usage_text(max(link.by_period))}"
        for link in shared_links(timeline)
    ]
    sentences += [] if flag is None else [flag.words]
    return "; ".join(sentences) or "No VM."


def _legend(lanes: Sequence[PlacementLane], links: Sequence[SharedLink]) -> Markup:
    looks = {_presence_class(stay.presence) for lane in lanes for row in lane.rows for stay in row}
    looks |= {"switched"} if any(lane.switches for lane in lanes) else set()
    looks |= {_link_class(link, period) for link in links for period in link.carried}
    states = {period.state for lane in lanes for period in lane.host_state_periods}
    return legend_list(
        *(legend_entry(f"presence {look}", words) for look, words in _MEANINGS.items()
          if look in looks),
        *(legend_entry(f"state {state}", words) for state, words in _HOST_STATES.items()
          if state in states),
    )  # fmt: skip
