"""Rounds: which of the moves of a plan can be made side by side now, without a risk for anybody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from equipoise.model.quantity import GroupId, HostId, TenantId
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.moves.vms import failover, lasting_s
from equipoise.upgrade.room import Seating, growth, reserve, up_to
from equipoise.upgrade.sides import Sides, growing, old_only, with_new
from equipoise.upgrade.state import State


def first_round(state: State, moves: list[VmMove]) -> tuple[VmMove, ...]:
    """As many of the moves as may disturb their groups at the same time."""
    disturbed: dict[GroupId, int] = {}
    now: list[VmMove] = []
    for move in moves:
        group = state.seats[move.vm].group
        if group is not None:
            if disturbed.get(group, 0) >= state.disturbed_max[group]:
                continue
            disturbed[group] = disturbed.get(group, 0) + 1
        now.append(move)
    return tuple(now)


def possible_now(state: State, moves: Sequence[VmMove]) -> list[VmMove]:
    """The moves for which there is a place already; the others wait until somebody has left it."""
    seating = Seating(state, dict.fromkeys(move.target for move in moves))
    now: list[VmMove] = []
    for move in moves:
        group = state.seats[move.vm].group
        if seating.takes(move.target, group):
            seating.take(move.target, group)
            now.append(move)
    return now


def within_reserves(state: State, sides: Sides, moves: tuple[VmMove, ...]) -> tuple[VmMove, ...]:
    """As many moves, from the first, as leave room for tenants that grow and hosts that fail.

    A VM on its way takes two places, but is lost only with the host that it still runs on; so what
    hosts that fail need is asked for where VMs will be.
    """
    missing, short = _shortage(state, sides, ())

    def is_safe(some: tuple[VmMove, ...]) -> bool:
        on_their_way, _ = _shortage(state, sides, some)
        arrived, then_short = _shortage(imagined(state, some), sides, ())
        return max(on_their_way, arrived) <= missing and then_short <= short

    if is_safe(moves):  # as is usual
        return moves
    low, high = 0, len(moves) - 1
    while low < high:
        middle = up_to(low + high, 2)
        low, high = (middle, high) if is_safe(moves[:middle]) else (low, middle - 1)
    return moves[:low]


def next_round(state: State, sides: Sides, moves: Sequence[VmMove]) -> tuple[VmMove, ...]:
    """The moves of a plan that can be made side by side now."""
    return within_reserves(state, sides, first_round(state, possible_now(state, moves)))


def comes_to_an_end(state: State, sides: Sides, moves: Sequence[VmMove]) -> bool:
    """Whether a plan can be carried out round by round, if nothing else happens meanwhile."""
    left = list(moves)
    while left:
        now = next_round(state, sides, left)
        if not now:
            return False
        state = imagined(state, now)
        left = [one for one in left if one not in set(now)]
    return True


def _shortage(state: State, sides: Sides, moves: tuple[VmMove, ...]) -> tuple[int, bool]:
    """How many VMs that tenants may ask for find no place, and whether anything is missing."""
    missing, short = 0, False
    areas: list[tuple[list[HostId], tuple[TenantId, ...]]] = (
        [(list(sides.old), old_only(state, sides)), (list(sides.new), with_new(state, sides))]
        if sides.divided
        else [([*sides.old, *sides.new], growing(state))]
    )
    for hosts, tenants in areas:
        seating = Seating(state, hosts)
        for move in moves:
            if move.target in seating.free:
                seating.take(move.target, state.seats[move.vm].group)
        empty = [one for one in hosts if seating.free[one] == state.places[one].places]
        made = reserve(
            state,
            seating,
            growth(state, tenants, lasting_s(state, sides)),
            busy=[one for one in hosts if seating.free[one] < state.places[one].places],
            empty=empty,
            failover=failover(state, sides),
        )
        missing += sum(made.missing.values())
        short = short or made.short
    return missing, short


def imagined(state: State, moves: Iterable[VmMove]) -> State:
    """What would be if VMs had moved."""
    residents = {host: dict(those) for host, those in state.residents.items()}
    seats = dict(state.seats)
    for move in moves:
        residents[move.source].pop(move.vm, None)
        residents.setdefault(move.target, {})[move.vm] = None
        seats[move.vm] = replace(seats[move.vm], host=move.target)
    return replace(state, residents=residents, seats=seats)
