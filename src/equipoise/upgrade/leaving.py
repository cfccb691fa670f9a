"""Who leaves: the order in which VMs should move to hosts that are changed already."""

from __future__ import annotations

import sys
from collections import Counter

from equipoise.model.quantity import GroupId, VmId
from equipoise.upgrade.sides import Sides
from equipoise.upgrade.state import State


def candidates(state: State, sides: Sides, number: int | None = None) -> list[VmId]:
    """As many VMs of each group as may be disturbed, those first that should move first.

    By default hosts with the fewest VMs left are emptied one after the other, so that they can be
    changed and no VM has to make room for another; with a number, only those on which no more VMs
    run together. The thesis takes tenants with the most VMs still to move, on hosts with the most
    of the groups in question.
    """
    literal = state.settings.readings.drop_last_only
    residents: list[tuple[int, int, VmId]] = []
    for rank, host in enumerate(sides.old):
        those = [one for one in state.residents.get(host, ()) if one not in state.unmovable]
        order = -len({state.seats[one].group or one for one in those})
        if not literal:  # one with a VM that stays cannot be emptied
            order = len(those) if len(those) == len(state.residents.get(host, ())) else sys.maxsize
        residents += [(order, rank, vm) for vm in those]
    residents.sort(key=lambda one: one[:2])
    if number is not None:
        residents = _on_whole_hosts(residents, number)
    taken: dict[GroupId, int] = {}
    picked: list[tuple[int, VmId]] = []
    for _, rank, vm in residents:
        group = state.seats[vm].group
        if group is not None:
            if taken.get(group, 0) >= state.disturbed_max[group]:
                continue
            taken[group] = taken.get(group, 0) + 1
        picked.append((rank, vm))
    return _by_tenant(state, picked, residents) if literal else [vm for _, vm in picked]


def _on_whole_hosts(
    residents: list[tuple[int, int, VmId]], number: int
) -> list[tuple[int, int, VmId]]:
    """VMs of the first hosts on which no more run together than a number, but of one at least."""
    end = 0
    for count in range(1, len(residents) + 1):
        if count == len(residents) or residents[count][1] != residents[count - 1][1]:
            if count > number and end:
                break
            end = count
    return residents[:end]


def _by_tenant(
    state: State, picked: list[tuple[int, VmId]], residents: list[tuple[int, int, VmId]]
) -> list[VmId]:
    """VMs of tenants with the most VMs still to move first, in the order of hosts and tenants."""
    waiting = Counter(state.seats[vm].tenant for _, _, vm in residents)
    places = {one: place for place, one in enumerate(state.tenants)}

    def order(one: tuple[int, VmId]) -> tuple[int, int, int]:
        tenant = state.seats[one[1]].tenant
        return -waiting[tenant], one[0], -1 if tenant is None else places[tenant]

    return [vm for _, vm in sorted(picked, key=order)]
