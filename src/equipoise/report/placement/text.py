"""The placement over time as lines of text: a row per host, a column per period.

Links and switches that several migrations share have a row each, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from equipoise.model.action import Kill, Shutdown
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId
from equipoise.model.vm import VmState
from equipoise.report.placement.timeline import (
    NO_HOST,
    PlacementTimeline,
    SharedLink,
    VmPresence,
    format_seconds,
    shared_links,
)

_NONE: Final = "-"
_WRONG: Final = "!"
_SLEEPS, _ARRIVES, _LEAVES, _CHANGES = "(v)", ">v", "v>", "v~"
_MEANS: Final = {
    _SLEEPS: "sleeps",
    _ARRIVES: "arrives",
    _LEAVES: "leaves or ends",
    _CHANGES: "changes",
    _WRONG: "violation",
}


def placement_text(timeline: PlacementTimeline, wrong: int | None = None) -> list[str]:
    """Return the VMs of each host and period, and a line that explains the signs.

    The period ``wrong``, the first with a violation, is marked.
    """
    rows = [["", *_heads(timeline, wrong)]]
    rows += [[host, *_row(timeline, host)] for host in timeline.states[0].hosts]
    nowhere = [NO_HOST, *_row(timeline, None)]
    rows += [nowhere] if any(cell != _NONE for cell in nowhere[1:]) else []
    rows += [[part.lane, *_used(part)] for part in shared_links(timeline)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    drawn = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [*drawn, *_key_line(timeline, wrong)]


def _heads(timeline: PlacementTimeline, wrong: int | None) -> Iterator[str]:
    instants = [format_seconds(at_ms) for at_ms in timeline.instants_ms]
    between = [f"{start}-{end} s" for start, end in pairwise(instants)]
    for place, name in enumerate(["before", *between, "after"] if instants else ["always"]):
        yield f"{name} {_WRONG}" if place == wrong else name


def _row(timeline: PlacementTimeline, host: HostId | None) -> Iterator[str]:
    here = [stay for stay in timeline.stays if stay.presence.host == host]
    for place, state in enumerate(timeline.states):
        known = [] if host is None else [state.hosts[host].state]
        away = [f"[{state}]" for state in known if state is not HostState.ON]
        cells = [_cell(stay.presence) for stay in here if stay.first <= place <= stay.last]
        yield " ".join([*away, *cells]) or _NONE


def _used(part: SharedLink) -> Iterator[str]:
    for mbps in part.by_period:
        yield f"{mbps}/{part.capacity_mbps}" if mbps else _NONE


def _cell(presence: VmPresence) -> str:
    written = f"{presence.vm}:{presence.state}" if presence.host is None else presence.vm
    for sign in _signs(presence):
        before, after = sign.split("v")
        written = f"{before}{written}{after}"
    return written


def _signs(presence: VmPresence) -> Iterator[str]:
    """Yield the signs of a VM, each written around ``v``."""
    if presence.arriving:
        yield _ARRIVES
        return
    if presence.state is VmState.SLEEPING:
        yield _SLEEPS
    if presence.step is not None:
        ends = isinstance(presence.step.action, Kill | Shutdown)
        goes = presence.step.footprint.target not in {None, presence.host}
        yield _LEAVES if ends or goes else _CHANGES


def _key_line(timeline: PlacementTimeline, wrong: int | None) -> list[str]:
    used = {sign for stay in timeline.stays for sign in _signs(stay.presence)}
    used |= set() if wrong is None else {_WRONG}
    keys = [f"{sign} {meaning}" for sign, meaning in _MEANS.items() if sign in used]
    return [", ".join(keys)] if keys else []
