"""Ties as curves between boxes: from the dependent to its sponsor, peers both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from equipoise.model.resource import DependencyKind, Presence
from equipoise.report.chart.markup import Markup, joined, short, tag, text
from equipoise.report.graphs.layers import Placed
from equipoise.report.graphs.sketch import Tie

_HEAD_LONG, _HEAD_HALF = 7.0, 3.0
_ARC: Final = 16.0
_SPREAD: Final = 0.7
"""Over how much of a box's width its ties are spread."""

Point = tuple[float, float]


def look_of(kind: DependencyKind, presence: Presence, *, incompatible: bool) -> str:
    """The classes of the style sheet for a tie."""
    family = "support" if kind.is_vm_supporting else "peer" if kind.is_symmetrical else kind.value
    clash = " clash" if incompatible else ""
    return f"tie {family} {presence.value}{clash}"


def drawn_ties(
    ties: Sequence[Tie], placed: Mapping[str, Placed], corners: Mapping[str, Point]
) -> Markup:
    """Draw all ties, those that clash on top."""
    ports = _ports(ties, placed, corners)
    order = sorted(range(len(ties)), key=lambda number: ties[number].incompatible)
    return joined(
        _tie(ties[number], placed, corners, ports[number])
        for number in order
        if ties[number].dependent != ties[number].sponsor
    )


def _tie(
    tie: Tie, placed: Mapping[str, Placed], corners: Mapping[str, Point], port: tuple[float, float]
) -> Markup:
    one, other = placed[tie.dependent], placed[tie.sponsor]
    if one.line == other.line:
        way, head = _beside(one, other, corners, peers=tie.kind.is_symmetrical)
    else:
        down = other.line > one.line
        top = corners[tie.dependent][1] + (one.high if down else 0.0)
        end = corners[tie.sponsor][1] + (0.0 if down else other.high)
        way, head = _across((port[0], top), (port[1], end))
    words = f"{tie.dependent} {_verb(tie)} {tie.sponsor}"
    words += f" ({tie.count:,} times)" if tie.count > 1 else ""
    parts = [tag("title", text(words)), tag("path", d=way), tag("path", class_="tip", d=head)]
    look = look_of(tie.kind, tie.presence, incompatible=tie.incompatible)
    return tag("g", *parts, class_=look)


def _verb(tie: Tie) -> str:
    when = {Presence.CURRENT: "until now ", Presence.FUTURE: "in future "}.get(tie.presence, "")
    clash = ", versions clash" if tie.incompatible else ""
    return f"needs ({when}{tie.kind.value.replace('_', ' ')}{clash})"


def _across(start: Point, end: Point) -> tuple[str, str]:
    """A curve that leaves and arrives upright, and the tip of its arrow."""
    sign = 1.0 if end[1] > start[1] else -1.0
    stop = end[1] - sign * _HEAD_LONG
    bend = (stop - start[1]) * 0.5
    way = (
        f"M{short(start[0])} {short(start[1])}C{short(start[0])} {short(start[1] + bend)} "
        f"{short(end[0])} {short(stop - bend)} {short(end[0])} {short(stop)}"
    )
    return way, _tip(end, (0.0, sign))


def _beside(
    one: Placed, other: Placed, corners: Mapping[str, Point], *, peers: bool
) -> tuple[str, str]:
    """Neighbours are joined side by side, others by an arc below their line."""
    (x1, y1), (x2, y2) = corners[one.box.id], corners[other.box.id]
    left, right = ((one, x1, y1), (other, x2, y2)) if x1 < x2 else ((other, x2, y2), (one, x1, y1))
    gap = right[1] - (left[1] + left[0].wide)
    if 0 <= gap <= 4 * _ARC:
        y = max(y1, y2) + min(one.high, other.high) / 2
        start, end = left[1] + left[0].wide, right[1]
        inner = (start + _HEAD_LONG, end - _HEAD_LONG) if peers else (start, end - _HEAD_LONG)
        back = _tip((start, y), (-1.0, 0.0)) if peers else ""
        forth = _tip((end, y), (1.0, 0.0))
        return f"M{short(inner[0])} {short(y)}H{short(inner[1])}", forth + back
    x1, x2 = left[1] + left[0].wide / 2, right[1] + right[0].wide / 2
    y1, y2 = left[2] + left[0].high, right[2] + right[0].high
    low = max(y1, y2) + 2 * _ARC
    way = f"M{short(x1)} {short(y1)}C{short(x1)} {short(low)} {short(x2)} {short(low)} "
    return f"{way}{short(x2)} {short(y2 + _HEAD_LONG)}", _tip((x2, y2), (0.0, -1.0))


def _tip(at: Point, towards: Point) -> str:
    (x, y), (across, down) = at, towards
    base = x - across * _HEAD_LONG, y - down * _HEAD_LONG
    side = down * _HEAD_HALF, across * _HEAD_HALF
    return (
        f"M{short(x)} {short(y)}L{short(base[0] + side[0])} {short(base[1] + side[1])}"
        f"L{short(base[0] - side[0])} {short(base[1] - side[1])}z"
    )


def _ports(
    ties: Sequence[Tie], placed: Mapping[str, Placed], corners: Mapping[str, Point]
) -> dict[int, tuple[float, float]]:
    """Where each tie leaves and arrives, so that those of one box lie side by side, uncrossed."""
    ends: dict[tuple[str, bool], list[tuple[float, int, int]]] = {}
    for number, tie in enumerate(ties):
        pair = tie.dependent, tie.sponsor
        for side in (0, 1):
            own, far = pair[side], pair[1 - side]
            below = placed[far].line > placed[own].line
            ends.setdefault((own, below), []).append((placed[far].x, number, side))
    found: dict[int, list[float]] = {number: [0.0, 0.0] for number in range(len(ties))}
    for (own, _), those in ends.items():
        x, wide = corners[own][0], placed[own].wide
        for place, (_, number, side) in enumerate(sorted(those)):
            share = (place + 0.5) / len(those)
            found[number][side] = x + wide * (0.5 + (share - 0.5) * _SPREAD)
    return {number: (both[0], both[1]) for number, both in found.items()}
