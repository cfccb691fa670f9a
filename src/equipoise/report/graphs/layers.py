"""A layered layout: sponsors below, what depends on them above, few crossings.

Sugiyama's way in its simplest form: ranks by the longest path, order by the middle of the
neighbours, places as near to the neighbours as boxes leave room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from equipoise.report.graphs.sketch import Box, Sketch, Tie

_SWEEPS: Final = 6
_GAP: Final = 14.0
_WIDE_MAX: Final = 2100.0
"""A layer that is wider goes on in a second line."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A box with its place: the middle of its width, its line, and its size."""

    box: Box
    x: float
    line: int
    wide: float
    high: float


def laid_out(sketch: Sketch, sizes: Mapping[str, tuple[float, float]]) -> list[list[Placed]]:
    """Give the boxes their places, line by line from the top."""
    boxes = {box.id: box for box in sketch.boxes}
    ranks = _ranks(sketch)
    near = _near(sketch.ties)
    lines = _ordered(ranks, near)
    lines = [part for line in lines for part in _broken(line, sizes)]
    places = _placed(lines, near, sizes)
    return [
        [Placed(boxes[one], places[one], number, *sizes[one]) for one in line]
        for number, line in enumerate(lines)
    ]


def _ranks(sketch: Sketch) -> dict[str, int]:
    """How many sponsors are in a row below each box; circles are opened where they close."""
    users, waiting = _users(sketch)
    ranks = dict.fromkeys(users, 0)
    ready = [one for one, count in waiting.items() if not count]
    while waiting:
        if not ready:
            ready = [min(waiting, key=lambda one: waiting[one])]
        one = ready.pop(0)
        if waiting.pop(one, None) is None:
            continue
        for user in users[one]:
            if user in waiting:
                ranks[user] = max(ranks[user], ranks[one] + 1)
                waiting[user] -= 1
                ready += [] if waiting[user] else [user]
    return ranks


def _users(sketch: Sketch) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Who depends on each box, and on how many boxes each one depends."""
    users: dict[str, list[str]] = {box.id: [] for box in sketch.boxes}
    waiting = dict.fromkeys(users, 0)
    # The storage of VMs lies on hosts and below hosts; it is drawn above those it lies on.
    pairs = dict.fromkeys(
        (tie.dependent, tie.sponsor)
        for tie in sketch.ties
        if not (tie.kind.is_symmetrical or tie.kind.is_vm_supporting)
    )
    for dependent, sponsor in pairs:
        if dependent != sponsor:
            users[sponsor].append(dependent)
            waiting[dependent] += 1
    return users, waiting


def _near(ties: Iterable[Tie]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for tie in ties:
        found.setdefault(tie.dependent, []).append(tie.sponsor)
        found.setdefault(tie.sponsor, []).append(tie.dependent)
    return found


def _ordered(ranks: Mapping[str, int], near: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The lines from the top, each ordered by the middle of what its boxes are tied to."""
    top = max(ranks.values(), default=0)
    lines: list[list[str]] = [[] for _ in range(top + 1)]
    for one, rank in ranks.items():
        lines[top - rank].append(one)
    for sweep in range(_SWEEPS):
        numbers = range(len(lines)) if sweep % 2 else reversed(range(len(lines)))
        for number in numbers:
            at = {
                one: (place + 0.5) / len(line) for line in lines for place, one in enumerate(line)
            }
            here = set(lines[number])
            lines[number].sort(key=lambda one: _middle(one, near, at, here))
    return lines


def _middle(
    one: str, near: Mapping[str, Sequence[str]], at: Mapping[str, float], here: set[str]
) -> float:
    """Where the neighbours on other lines are, and peers on its own line a little."""
    pulls = [at[other] for other in near.get(one, ()) if other not in here]
    pulls = pulls or [at[other] for other in near.get(one, ())]
    return sum(pulls) / len(pulls) if pulls else at[one]


def _broken(line: list[str], sizes: Mapping[str, tuple[float, float]]) -> list[list[str]]:
    """A line that is too wide as several of about the same width."""
    wide = sum(sizes[one][0] + _GAP for one in line)
    parts = max(1, -int(-wide // _WIDE_MAX))
    size = -(-len(line) // parts)
    return [line[start : start + size] for start in range(0, len(line), size)]


def _placed(
    lines: Sequence[Sequence[str]],
    near: Mapping[str, Sequence[str]],
    sizes: Mapping[str, tuple[float, float]],
) -> dict[str, float]:
    places: dict[str, float] = {}
    for line in lines:
        _side_by_side(line, dict.fromkeys(line, 0.0), sizes, places)
    for sweep in range(_SWEEPS):
        for line in lines if sweep % 2 else reversed(lines):
            wished = {}
            here = set(line)
            for one in line:
                pulls = [places[other] for other in near.get(one, ()) if other not in here]
                wished[one] = sum(pulls) / len(pulls) if pulls else places[one]
            _side_by_side(line, wished, sizes, places)
    return places


def _side_by_side(
    line: Sequence[str],
    wished: Mapping[str, float],
    sizes: Mapping[str, tuple[float, float]],
    places: dict[str, float],
) -> None:
    """Place a line as wished, as far as its boxes do not overlap: between the two extremes."""
    halves = [sizes[one][0] / 2 for one in line]
    right: list[float] = []
    for number, one in enumerate(line):
        least = right[-1] + halves[number - 1] + halves[number] + _GAP if right else wished[one]
        right.append(max(wished[one], least))
    left = [0.0] * len(line)
    for number in reversed(range(len(line))):
        most = wished[line[number]]
        if number + 1 < len(line):
            most = min(most, left[number + 1] - halves[number + 1] - halves[number] - _GAP)
        left[number] = most
    for number, one in enumerate(line):
        places[one] = (left[number] + right[number]) / 2
