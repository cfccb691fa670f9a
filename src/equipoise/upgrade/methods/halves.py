"""Split mode: a unit in two halves, as even as its peers and constituents allow (5.1.4.1).

Exact: no other division that keeps the rules is more even. Which blocks are on which side is
counted as a difference; the differences that can be reached are the bits of an integer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from equipoise.upgrade.methods.anatomy import Anatomy, Place

_BOTH: Final = 3
"""Both sides were seen: 1 for the first, 2 for the second."""
_SLACK: Final = 64
"""How far from even it may be on the way, before all differences are tried."""


class Halves(NamedTuple):
    """The blocks of each side."""

    first: tuple[Place, ...]
    second: tuple[Place, ...]
    difference: int
    """How many members the first has more than the second."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Blocks of which the sides hang together: the one side of all decides."""

    ahead: tuple[Place, ...]
    """Where its first block is ..."""
    across: tuple[Place, ...]
    """... and those that must be on the other side."""
    gain: int
    opens: bool
    """The first of its family."""
    free: bool
    """Its family is on both sides whatever is chosen."""
    held_back: bool
    """It may only be on the second side."""


def halve(anatomy: Anatomy, second: Collection[Place] = ()) -> Halves | None:
    """Divide a unit: both sides have a member of each family, and one constituent each at most.

    Blocks in ``second`` are on the second side. ``None`` if there is no such division.
    """
    pieces = _pieces(anatomy, second)
    if pieces is None:
        return None
    total = sum(len(block) for block in anatomy.blocks)
    widest = max(abs(piece.gain) for piece in pieces)
    narrow = min(total, 4 * widest + _SLACK)
    found = _chosen(pieces, narrow)
    if narrow < total and (found is None or abs(found[0]) > total % 2):
        found = _chosen(pieces, total)
    if found is None:
        return None
    difference, turned = found
    first = [one for piece, other in zip(pieces, turned, strict=True)
             for one in (piece.across if other else piece.ahead)]  # fmt: skip
    there = set(first)
    rest = tuple(place for place in range(len(anatomy.blocks)) if place not in there)
    return Halves(tuple(sorted(first)), rest, difference)


def _pieces(anatomy: Anatomy, second: Collection[Place]) -> list[_Piece] | None:
    layers = anatomy.layers()
    apart: dict[Place, list[Place]] = {}
    for pair in anatomy.constituents:
        if len(pair) == 2:  # noqa: PLR2004  (more than two are not kept apart by halves)
            apart.setdefault(pair[0], []).append(pair[1])
            apart.setdefault(pair[1], []).append(pair[0])
    sizes = [len(block) for block in anatomy.blocks]
    pieces = []
    for family in sorted(anatomy.families, key=lambda one: (layers[one[0]], one[0])):
        coloured = list(_coloured(family, apart))
        if None in coloured:
            return None
        free = len(family) == 1 or any(len(one) > 1 for one in coloured if one)
        for number, side_of in enumerate(coloured):
            assert side_of is not None
            ahead = tuple(place for place, side in side_of.items() if not side)
            across = tuple(place for place, side in side_of.items() if side)
            if any(place in second for place in across):
                if any(place in second for place in ahead):
                    return None
                ahead, across = across, ahead
            pieces.append(
                _Piece(
                    ahead,
                    across,
                    gain=sum(sizes[one] for one in ahead) - sum(sizes[one] for one in across),
                    opens=not number,
                    free=free,
                    held_back=any(place in second for place in ahead),
                )
            )
    return pieces


def _coloured(
    family: Sequence[Place], apart: dict[Place, list[Place]]
) -> Iterator[dict[Place, bool] | None]:
    """The parts of a family that hang together by pairs to be kept apart, each with its two sides;
    ``None`` for one in which that is impossible."""
    seen: set[Place] = set()
    for start in family:
        if start in seen:
            continue
        side_of = {start: False}
        ahead = [start]
        for one in ahead:
            for other in apart.get(one, ()):
                if other not in side_of:
                    side_of[other] = not side_of[one]
                    ahead.append(other)
                elif side_of[other] == side_of[one]:
                    yield None
        seen.update(side_of)
        yield side_of


def _chosen(pieces: Sequence[_Piece], widest: int) -> tuple[int, list[bool]] | None:
    """The least difference, and of each piece whether it is turned round."""
    mask = (1 << (2 * widest + 1)) - 1
    reached: list[dict[int, int]] = []
    now = {_BOTH: 1 << widest}
    for piece in pieces:
        if piece.opens:
            now = {_BOTH if piece.free else 0: now.get(_BOTH, 0)}
        reached.append(now)
        after: dict[int, int] = {}
        for seen, bits in now.items():
            for turned in (False, True):
                if turned or not piece.held_back:
                    step = -piece.gain if turned else piece.gain
                    moved = (bits << step if step >= 0 else bits >> -step) & mask
                    flag = seen | (2 if turned else 1)
                    after[flag] = after.get(flag, 0) | moved
        now = after
    ends = now.get(_BOTH, 0)
    if not ends:
        return None
    difference = min(_differences(ends, widest), key=lambda one: (abs(one), -one))
    return difference, _way_back(pieces, reached, difference, widest)


def _differences(bits: int, widest: int) -> Iterator[int]:
    return (place - widest for place in range(2 * widest + 1) if bits >> place & 1)


def _way_back(
    pieces: Sequence[_Piece], reached: Sequence[dict[int, int]], difference: int, widest: int
) -> list[bool]:
    """Choose of all ways that lead there the one that stays even all along: so each layer is."""
    turns: list[bool] = []
    seen = _BOTH
    for piece, before in zip(reversed(pieces), reversed(reached), strict=True):
        ways = [
            (abs(came), -came, -flag, turned)
            for flag, bits in before.items()
            for turned in (False, True)
            if (turned or not piece.held_back) and flag | (2 if turned else 1) == seen
            if abs(came := difference + (piece.gain if turned else -piece.gain)) <= widest
            and bits >> (came + widest) & 1
        ]
        _, minus, flag, turned = min(ways)
        difference, seen = -minus, -flag
        if piece.opens:
            seen = _BOTH
        turns.append(turned)
    return turns[::-1]
