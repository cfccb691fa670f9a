"""The placement over time as a picture: a lane for each host, a bar for each stay of a VM.

Parts of a network that several migrations share have a lane each as well, below the hosts.

Widths are parts of the whole and heights are fixed, so that letters are as large on a narrow screen
as on a wide one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from equipoise.model.host import HostState
from equipoise.model.vm import VmState
from equipoise.model.words import counted
from equipoise.report.chart.frame import legend, swatch
from equipoise.report.chart.markup import EMPTY, Markup, joined, tag, text
from equipoise.report.placement.course import Course, Presence, Service, Stay
from equipoise.report.placement.lanes import Lane, lanes_of
from equipoise.report.placement.shared import Carried, Part, shared
from equipoise.report.placement.words import does, is_or_does, period, seconds, stay_told

_OUTSIDE: Final = 15.0
"""The part before the plan, and the part after it, in percent of the width."""
_MIDDLE: Final = 50.0
_WIDE_MIN: Final = 0.8
_APART_MIN: Final = 9.0
"""How far the words of two instants must be apart."""
_LINE, _ROW, _BAR = 18, 24, 20
"""The heights of a line of words, of a row, and of the bar in it."""
_PART: Final = _LINE + _ROW + 6
"""That of a part of a network."""
_TOLD_MAX: Final = 60
_LOOKS: Final = {
    VmState.INIT: "waiting",
    VmState.READY: "waiting",
    VmState.RUNNING: "running",
    VmState.SLEEPING: "sleeping",
    VmState.TERMINATED: "ended",
}
_MEANINGS: Final = {
    "running": "runs",
    "sleeping": "sleeps",
    "arriving": "has room, but is not here yet",
    "waiting": "is not started",
    "ended": "has ended",
    "switched": "host is switched",
    "carrying": "carries migrations",
    "overloaded": "cannot carry them",
}
_SERVICES: Final = {
    HostState.STANDBY: "host in standby",
    HostState.MAINTENANCE: "host in maintenance",
    HostState.FAILED: "host has failed",
}


class Flag(NamedTuple):
    """The first period in which something is wrong, and what."""

    period: int
    words: str


@dataclass(frozen=True, slots=True)
class _Scale:
    """From periods to places, in percent of the width."""

    course: Course

    def start(self, number: int) -> float:
        """Where a period begins."""
        return 0.0 if number == 0 else self.instant(self.course.instants_ms[number - 1])

    def end(self, number: int) -> float:
        """Where it ends."""
        last = number == len(self.course.instants_ms)
        return 100.0 if last else self.instant(self.course.instants_ms[number])

    def instant(self, at_ms: int) -> float:
        """Where an instant of the plan is."""
        return _OUTSIDE + (100 - 2 * _OUTSIDE) * at_ms / self.course.instants_ms[-1]


def draw(course: Course, name: str, flag: Flag | None = None) -> Markup:
    """Draw a course. The ``name`` tells the picture from others in the page."""
    scale = _Scale(course)
    lanes, left_out = lanes_of(course)
    top = _LINE * (2 if flag else 1) + 4
    parts = shared(course)
    bottom = top + sum(map(_height, lanes)) + len(parts) * _PART
    content: list[Markup] = [_ends(course), _flagged(flag, scale, bottom)]
    content.append(_grid(course, scale, top, bottom))
    y = top
    for lane in lanes:
        content.append(_lane(course, scale, lane, y))
        y += _height(lane)
    for part in parts:
        content.append(_part(course, scale, part, y))
        y += _PART
    content.append(_flag(flag, scale, bottom))
    words = (f"{name}-title", f"{name}-told")
    title = tag("title", text("Placement over time"), id=words[0])
    told = tag("desc", text(_told(course, flag)), id=words[1])
    picture = tag(
        "svg", title, told, *content,
        width="100%", height=bottom + _LINE + 4, role="img", aria_labelledby=" ".join(words),
    )  # fmt: skip
    return tag(
        "div", _legend(lanes, parts), picture, _left_out(course, left_out), class_="placement"
    )


def _left_out(course: Course, count: int) -> Markup:
    if not count:
        return EMPTY
    known = len(course.states[0].hosts)
    words = f"The {known - count} busiest of {known:,} hosts are shown; there are {count:,} more."
    return tag("p", text(words), class_="note")


def _height(lane: Lane) -> int:
    rows = len(lane.rows) + len(lane.switches[:1])
    return _LINE + max(rows, 1) * _ROW + (_LINE if lane.left_out else 0) + 6


def _ends(course: Course) -> Markup:
    """What is before and after the plan, named above it."""
    if not course.instants_ms:
        return EMPTY
    after = tag("text", text("after"), class_="tick end", x="100%", y=13)
    return joined([tag("text", text("before"), class_="tick", x=0, y=13), after])


def _flagged(flag: Flag | None, scale: _Scale, bottom: int) -> Markup:
    """The period that is wrong, shaded."""
    if flag is None:
        return EMPTY
    left, right = scale.start(flag.period), scale.end(flag.period)
    return _box(left, right, _LINE, bottom - _LINE, class_="wrong")


def _flag(flag: Flag | None, scale: _Scale, bottom: int) -> Markup:
    if flag is None:
        return EMPTY
    x = scale.start(flag.period)
    is_late = x > _MIDDLE
    line = tag("line", x1=_pct(x), x2=_pct(x), y1=_LINE, y2=bottom)
    words = tag(
        "text", text(flag.words), class_="end" if is_late else None, x=_pct(x), y=_LINE + 14,
        dx=-5 if is_late else 5,
    )  # fmt: skip
    return tag("g", tag("title", text(flag.words)), line, words, class_="flag")


def _grid(course: Course, scale: _Scale, top: int, bottom: int) -> Markup:
    parts = []
    for at_ms in course.instants_ms:
        x = _pct(scale.instant(at_ms))
        parts.append(tag("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom + 4))
    for at_ms in _named(course, scale):
        x, words = _pct(scale.instant(at_ms)), f"{seconds(at_ms)} s"
        parts.append(tag("text", text(words), class_="tick middle", x=x, y=bottom + 17))
    return joined(parts)


def _named(course: Course, scale: _Scale) -> list[int]:
    """The instants that have room for their words; the last one always has."""
    kept: list[int] = []
    for at_ms in course.instants_ms:
        near = [*kept[-1:], *course.instants_ms[-1:]]
        apart = [abs(scale.instant(at_ms) - scale.instant(one)) for one in near if one != at_ms]
        if not apart or min(apart) >= _APART_MIN or at_ms == near[-1]:
            kept.append(at_ms)
    return kept


def _lane(course: Course, scale: _Scale, lane: Lane, y: int) -> Markup:
    parts = [_service(course, scale, one, y, _height(lane) - 6) for one in lane.services]
    parts.append(tag("line", class_="axis", x1=0, x2="100%", y1=y, y2=y))
    parts.append(tag("text", text(lane.name), class_="lane", x=4, y=y + 14))
    y += _LINE
    for one in lane.switches:
        words = does(one.step) if one.step is not None else ""
        told = f"{lane.name} {words}, {period(course, one.first, one.last)}"
        parts.append(_bar(scale, one, y, "switched", (words, ""), told))
    y += _ROW if lane.switches else 0
    for row in lane.rows:
        parts += [_stay(course, scale, stay, y) for stay in row]
        y += _ROW
    if lane.left_out:
        more = f"and {counted(lane.left_out, 'more VM')}"
        parts.append(tag("text", text(more), class_="tick", x=4, y=y + 13))
    return joined(parts)


def _part(course: Course, scale: _Scale, part: Part, y: int) -> Markup:
    found = [
        tag("line", class_="axis", x1=0, x2="100%", y1=y, y2=y),
        tag("text", text(part.lane), class_="lane", x=4, y=y + 14),
    ]
    for one in part.carried:
        words = part.told(one.mbps)
        told = f"{part.lane}: {words}, {period(course, one.first, one.last)}"
        found.append(_bar(scale, one, y + _LINE, _burden(part, one), (words, ""), told))
    return joined(found)


def _burden(part: Part, one: Carried) -> str:
    return "overloaded" if one.mbps > part.capacity_mbps else "carrying"


def _service(course: Course, scale: _Scale, one: Service, y: int, high: int) -> Markup:
    if one.state is HostState.ON:
        return EMPTY
    words = f"{_SERVICES[one.state]}, {period(course, one.first, one.last)}"
    left, right = scale.start(one.first), scale.end(one.last)
    return _box(left, right, y, high, tag("title", text(words)), class_=f"state {one.state}")


def _stay(course: Course, scale: _Scale, stay: Stay, y: int) -> Markup:
    one = stay.presence
    is_plain = one.step is None and one.state.has_host
    more = "" if is_plain else f" {one.state if one.step is None else is_or_does(one)}"
    return _bar(scale, stay, y, _look(one), (one.vm, more), stay_told(course, stay))


def _look(one: Presence) -> str:
    return "arriving" if one.arriving else _LOOKS[one.state]


def _bar(
    scale: _Scale,
    span: Stay | Service | Carried,
    y: int,
    look: str,
    words: tuple[str, str],
    told: str,
) -> Markup:
    """A bar with words in it, which are cut off where it ends."""
    left, right = scale.start(span.first), scale.end(span.last)
    name, more = words
    label = tag("text", tag("tspan", text(name), class_="name"), text(more), x=6, y=14.5)
    bar = tag("rect", width="100%", height=_BAR)
    return tag(
        "svg",
        tag("title", text(told)), bar, label,
        class_=f"stay {look}", x=_pct(left), y=y, height=_BAR,
        width=_pct(max(right - left, _WIDE_MIN)),
    )  # fmt: skip


def _box(left: float, right: float, y: int, high: int, *inside: Markup, class_: str) -> Markup:
    wide = max(right - left, _WIDE_MIN)
    return tag("rect", *inside, class_=class_, x=_pct(left), width=_pct(wide), y=y, height=high)


def _pct(value: float) -> str:
    return f"{value:.2f}%"


def _told(course: Course, flag: Flag | None) -> str:
    """The picture in sentences, for those who cannot see it."""
    found = [stay_told(course, stay) for stay in course.stays[:_TOLD_MAX]]
    left = len(course.stays) - len(found)
    found += [f"and {left:,} more"] if left else []
    found += [f"{one.lane}: up to {one.told(max(one.by_period))}" for one in shared(course)]
    found += [] if flag is None else [flag.words]
    return "; ".join(found) or "No VM."


def _legend(lanes: Sequence[Lane], parts: Sequence[Part]) -> Markup:
    stays = {_look(stay.presence) for lane in lanes for row in lane.rows for stay in row}
    stays |= {"switched"} if any(lane.switches for lane in lanes) else set()
    stays |= {_burden(part, one) for part in parts for one in part.carried}
    states = {one.state for lane in lanes for one in lane.services}
    return legend(*_entries(stays, states))


def _entries(looks: set[str], states: set[HostState]) -> Iterator[Markup]:
    for look, words in _MEANINGS.items():
        if look in looks:
            yield swatch(f"stay {look}", words)
    for state, words in _SERVICES.items():
        if state in states:
            yield swatch(f"state {state}", words)
