"""Which moves must wait for which: those that take a place which another one leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from equipoise.balance.advice import Advised
from equipoise.balance.mending.standing import Standing
from equipoise.model.quantity import HostId, VmId


def dependencies(standing: Standing, moves: Sequence[Advised]) -> tuple[Advised, ...]:
    """Note for each move the earlier ones without which it would have no room, or would clash.

    ``standing`` is how things stand before any of them. Whoever comes counts from the start of the
    move on, and whoever goes until its end.
    """
    leaving: dict[HostId, list[VmId]] = defaultdict(list)
    found = []
    for move in moves:
        needed = _needed(standing, move, leaving[move.target])
        standing.hold(move.vm, move.target)
        leaving[move.source].append(move.vm)
        found.append(replace(move, after=tuple(needed)) if needed else move)
    return tuple(found)


def _needed(standing: Standing, move: Advised, leaving: Sequence[VmId]) -> list[VmId]:
    """Of those that leave, the few that must have left for a VM to come."""
    gone: list[VmId] = []
    for other in leaving:
        if _fits(standing, move):
            break
        standing.release(other, move.target)
        gone.append(other)
    needed = []
    for other in gone:
        standing.hold(other, move.target)
        if not _fits(standing, move):
            standing.release(other, move.target)
            needed.append(other)
    for other in needed:
        standing.hold(other, move.target)
    return needed


def _fits(standing: Standing, move: Advised) -> bool:
    return not standing.lacks(move.vm, move.target) and not standing.clashes(move.vm, move.target)
