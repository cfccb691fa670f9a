"""Storage first: VMs leave the hosts that a storage under replacement is built on."""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.model.quantity import HostId, VmId
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.moves.rounds import first_round
from equipoise.upgrade.room import Seating
from equipoise.upgrade.rules.parallel import replacements, storing_hosts
from equipoise.upgrade.scene import Scene
from equipoise.upgrade.state import State


def clear_storage(scene: Scene) -> tuple[VmMove, ...]:
    """VMs leave hosts that a storage is built on, while its old and its new form need them."""
    state = scene.state
    built_on = storing(state)
    leaving = [
        vm
        for host in scene.sides.old
        if host in built_on
        for vm in state.residents.get(host, ())
        if vm not in state.unmovable and vm not in state.settled
    ]
    if not leaving:
        return ()
    others = [one for one in scene.sides.old if one not in built_on and state.free(one) > 0]
    return first_round(state, _packed(state, leaving, others))


def storing(state: State) -> dict[HostId, None]:
    """The hosts that a storage under replacement is built on."""
    return {
        host: None
        for pairs in replacements(state).values()
        for old, new in pairs
        for host in storing_hosts(state, old, new).values()
        if host is not None
    }


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
