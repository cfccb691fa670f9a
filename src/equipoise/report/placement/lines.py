"""The placement over time as lines of text: a row for each host, a column for each period.

Parts of a network that several migrations share have a row each as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from equipoise.model.action import Kill, Shutdown
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId
from equipoise.model.vm import VmState
from equipoise.report.placement.course import Course, Presence
from equipoise.report.placement.shared import Part, shared
from equipoise.report.placement.words import NO_HOST, seconds

_NOBODY: Final = "-"
_WRONG: Final = "!"
_SLEEPS, _ARRIVES, _LEAVES, _CHANGES = "(v)", ">v", "v>", "v~"
_MEANS: Final = {
    _SLEEPS: "sleeps",
    _ARRIVES: "arrives",
    _LEAVES: "leaves or ends",
    _CHANGES: "changes",
    _WRONG: "wrong",
}


def lines(course: Course, wrong: int | None = None) -> list[str]:
    """Who is where in which period, and a line that explains the signs.

    The period that is the first ``wrong`` one is marked.
    """
    rows = [["", *_heads(course, wrong)]]
    rows += [[host, *_row(course, host)] for host in course.states[0].hosts]
    nowhere = [NO_HOST, *_row(course, None)]
    rows += [nowhere] if any(cell != _NOBODY for cell in nowhere[1:]) else []
    rows += [[part.lane, *_used(part)] for part in shared(course)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    drawn = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [*drawn, *_explained(course, wrong)]


def _heads(course: Course, wrong: int | None) -> Iterator[str]:
    instants = [seconds(at_ms) for at_ms in course.instants_ms]
    between = [f"{begun}-{ended} s" for begun, ended in pairwise(instants)]
    for place, name in enumerate(["before", *between, "after"] if instants else ["always"]):
        yield f"{name} {_WRONG}" if place == wrong else name


def _row(course: Course, host: HostId | None) -> Iterator[str]:
    here = [stay for stay in course.stays if stay.presence.host == host]
    for place, state in enumerate(course.states):
        known = [] if host is None else [state.hosts[host].state]
        away = [f"[{one}]" for one in known if one is not HostState.ON]
        found = [_cell(stay.presence) for stay in here if stay.first <= place <= stay.last]
        yield " ".join([*away, *found]) or _NOBODY


def _used(part: Part) -> Iterator[str]:
    for mbps in part.by_period:
        yield f"{mbps}/{part.capacity_mbps}" if mbps else _NOBODY


def _cell(one: Presence) -> str:
    written = f"{one.vm}:{one.state}" if one.host is None else one.vm
    for sign in _signs(one):
        before, after = sign.split("v")
        written = f"{before}{written}{after}"
    return written


def _signs(one: Presence) -> Iterator[str]:
    """How a VM is written, by the example of ``v``."""
    if one.arriving:
        yield _ARRIVES
        return
    if one.state is VmState.SLEEPING:
        yield _SLEEPS
    if one.step is not None:
        ends = isinstance(one.step.action, Kill | Shutdown)
        goes = one.step.footprint.target not in {None, one.host}
        yield _LEAVES if ends or goes else _CHANGES


def _explained(course: Course, wrong: int | None) -> list[str]:
    used = {sign for stay in course.stays for sign in _signs(stay.presence)}
    used |= set() if wrong is None else {_WRONG}
    told = [f"{sign} {means}" for sign, means in _MEANS.items() if sign in used]
    return [", ".join(told)] if told else []
