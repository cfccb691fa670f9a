"""A layered layout: sponsors below, what depends on them above, few crossings.

Sugiyama's way in its simplest form: ranks by the longest path, order by the middle of the
neighbours, places as near to the neighbours as boxes leave room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from equipoise.report.upgrade_graph.diagram import Diagram, DiagramBox, DiagramLine

_SWEEPS: Final = 6
_GAP: Final = 14.0
_WIDE_MAX: Final = 2100.0
"""A wider layer continues in a second line."""


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """A box with its position (the middle of its width), its line and its size."""

    box: DiagramBox
    x: float
    line: int
    wide: float
    high: float


def layered_layout(
    diagram: Diagram, sizes: Mapping[str, tuple[float, float]]
) -> list[list[PlacedBox]]:
    """Return the boxes with their positions, line by line from the top."""
    boxes = {box.id: box for box in diagram.boxes}
    ranks = _ranks(diagram)
    near = _neighbours(diagram.ties)
    lines = _ordered(ranks, near)
    lines = [part for line in lines for part in _wrapped(line, sizes)]
    places = _positions(lines, near, sizes)
    return [
        [PlacedBox(boxes[box], places[box], number, *sizes[box]) for box in line]
        for number, line in enumerate(lines)
    ]


def _ranks(diagram: Diagram) -> dict[str, int]:
    """Return the layer of each box: the longest chain of sponsors; cycles are cut."""
    users, waiting = _users(diagram)
    ranks = dict.fromkeys(users, 0)
    ready = [node for node, count in waiting.items() if not count]
    while waiting:
        if not ready:
            # All remaining boxes are on or above a cycle. The one with the fewest open sponsors
            # starts it.
            ready = [min(waiting, key=lambda other: waiting[other])]
        node = ready.pop(0)
        del waiting[node]
        for user in users[node]:
            if user in waiting:
                ranks[user] = max(ranks[user], ranks[node] + 1)
                waiting[user] -= 1
                ready += [] if waiting[user] else [user]
    return ranks


def _users(diagram: Diagram) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return the dependents of each box, and the number of its sponsors."""
    users: dict[str, list[str]] = {box.id: [] for box in diagram.boxes}
    waiting = dict.fromkeys(users, 0)
    # The storage of VMs lies on hosts and below hosts; it is drawn above those it lies on.
    pairs = dict.fromkeys(
        (tie.dependent, tie.sponsor)
        for tie in diagram.ties
        if not (tie.kind.is_symmetrical or tie.kind.is_vm_supporting)
    )
    for dependent, sponsor in pairs:
        if dependent != sponsor:
            users[sponsor].append(dependent)
            waiting[dependent] += 1
    return users, waiting


def _neighbours(ties: Iterable[DiagramLine]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for tie in ties:
        found.setdefault(tie.dependent, []).append(tie.sponsor)
        found.setdefault(tie.sponsor, []).append(tie.dependent)
    return found


def _ordered(ranks: Mapping[str, int], near: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the lines from the top; boxes are ordered by the middle of their neighbours."""
    top = max(ranks.values(), default=0)
    lines: list[list[str]] = [[] for _ in range(top + 1)]
    for node, rank in ranks.items():
        lines[top - rank].append(node)
    for sweep in range(_SWEEPS):
        numbers = range(len(lines)) if sweep % 2 else reversed(range(len(lines)))
        for number in numbers:
            at = {
                cell: (place + 0.5) / len(line) for line in lines for place, cell in enumerate(line)
            }
            here = set(lines[number])
            lines[number].sort(key=lambda cell: _neighbour_mean(cell, near, at, here))
    return lines


def _neighbour_mean(
    name: str, near: Mapping[str, Sequence[str]], at: Mapping[str, float], here: set[str]
) -> float:
    """Return the positions of the neighbours on other lines; peers count less."""
    pulls = [at[other] for other in near.get(name, ()) if other not in here]
    pulls = pulls or [at[other] for other in near.get(name, ())]
    return sum(pulls) / len(pulls) if pulls else at[name]


def _wrapped(line: list[str], sizes: Mapping[str, tuple[float, float]]) -> list[list[str]]:
    """Return a line that is too wide as several lines of similar width."""
    wide = sum(sizes[box][0] + _GAP for box in line)
    parts = max(1, -int(-wide // _WIDE_MAX))
    size = -(-len(line) // parts)
    return [line[start : start + size] for start in range(0, len(line), size)]


def _positions(
    lines: Sequence[Sequence[str]],
    near: Mapping[str, Sequence[str]],
    sizes: Mapping[str, tuple[float, float]],
) -> dict[str, float]:
    places: dict[str, float] = {}
    for line in lines:
        _side_by_side(line, dict.fromkeys(line, 0.0), sizes, places)
    for sweep in range(_SWEEPS):
        for line in lines if sweep % 2 else reversed(lines):
            desired = {}
            here = set(line)
            for box in line:
                pulls = [places[other] for other in near.get(box, ()) if other not in here]
                desired[box] = sum(pulls) / len(pulls) if pulls else places[box]
            _side_by_side(line, desired, sizes, places)
    return places


def _side_by_side(
    line: Sequence[str],
    desired: Mapping[str, float],
    sizes: Mapping[str, tuple[float, float]],
    places: dict[str, float],
) -> None:
    """Place the boxes of a line near their desired positions without overlaps."""
    halves = [sizes[box][0] / 2 for box in line]
    right: list[float] = []
    for number, box in enumerate(line):
        least = right[-1] + halves[number - 1] + halves[number] + _GAP if right else desired[box]
        right.append(max(desired[box], least))
    left = [0.0] * len(line)
    for number in reversed(range(len(line))):
        most = desired[line[number]]
        if number + 1 < len(line):
            most = min(most, left[number + 1] - halves[number + 1] - halves[number] - _GAP)
        left[number] = most
    for number, box in enumerate(line):
        # The mean of two arrangements without overlaps has none either, and favours no side.
        places[box] = (left[number] + right[number]) / 2
