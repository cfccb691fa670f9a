"""Consolidation: VMs move together so that a host is free, where nothing else would be possible."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from equipoise.model.quantity import GroupId, HostId, VmId
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.room import Seating
from equipoise.upgrade.rules.parallel import replacements, storing_hosts
from equipoise.upgrade.scene import Scene, scene_of
from equipoise.upgrade.select import select
from equipoise.upgrade.sides import Sides, used
from equipoise.upgrade.state import State


def clear_storage(scene: Scene) -> tuple[VmMove, ...]:
    """VMs leave hosts that a storage is built on, while its old and its new form need them."""
    state = scene.state
    storing: dict[HostId, None] = {}
    for pairs in replacements(state).values():
        for old, new in pairs:
            hosts = storing_hosts(state, old, new).values()
            storing |= {one: None for one in hosts if one is not None}
    leaving = [
        vm
        for host in scene.sides.old
        if host in storing
        for vm in state.residents.get(host, ())
        if vm not in state.unmovable
    ]
    if not leaving:
        return ()
    others = [one for one in scene.sides.old if one not in storing and state.free(one) > 0]
    return _first_round(state, _packed(state, leaving, others))


def _packed(state: State, vms: list[VmId], hosts: list[HostId]) -> list[VmMove]:
    """Pack VMs on as few of the last hosts as will do, in the order of the hosts."""
    for number in range(1, len(hosts) + 1):
        moves = _seated(state, vms, hosts[-number:])
        if len(moves) == len(vms):
            return moves
    return _seated(state, vms, hosts)


def _seated(state: State, vms: Iterable[VmId], hosts: list[HostId]) -> list[VmMove]:
    seating = Seating(state, hosts)
    moves: list[VmMove] = []
    for vm in vms:
        seat = state.seats[vm]
        target = next((one for one in hosts if seating.takes(one, seat.group)), None)
        if target is not None and seat.host is not None:
            seating.take(target, seat.group)
            moves.append(VmMove(vm=vm, source=seat.host, target=target))
    return moves


def _first_round(state: State, moves: list[VmMove]) -> tuple[VmMove, ...]:
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


def free_a_host(scene: Scene) -> tuple[VmMove, ...]:
    """Empty the host with the fewest VMs, if that lets a change begin that could not otherwise."""
    state, sides = scene.state, scene.sides
    hosts = _stay_apart(sides)
    for host in sorted(used(state, sides.old), key=lambda one: len(state.residents[one])):
        vms = [vm for vm in state.residents[host] if vm not in state.unmovable]
        others = [one for one in hosts if one != host and state.residents.get(one)]
        moves = _seated(state, vms, others)
        if len(moves) == len(state.residents[host]) and _helps(state, moves):
            return _first_round(state, moves)
    return ()


def _stay_apart(sides: Sides) -> list[HostId]:
    """Where VMs of the old side may go to."""
    return list(sides.old) if sides.divided else [*sides.old, *sides.new]


def _helps(state: State, moves: list[VmMove]) -> bool:
    """Whether a change could begin once VMs have moved."""
    residents = {host: dict(those) for host, those in state.residents.items()}
    seats = dict(state.seats)
    for move in moves:
        residents[move.source].pop(move.vm, None)
        residents.setdefault(move.target, {})[move.vm] = None
        seats[move.vm] = replace(seats[move.vm], host=move.target)
    imagined = replace(state, residents=residents, seats=seats)
    return bool(select(scene_of(imagined, with_vms=False)).batch)
