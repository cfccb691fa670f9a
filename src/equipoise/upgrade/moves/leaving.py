"""Who leaves: the order in which VMs should move to hosts that are changed already."""

from __future__ import annotations

import sys
from collections import Counter

from equipoise.model.quantity import GroupId, VmId
from equipoise.upgrade.room import up_to
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
        residents = _on_whole_hosts(state, residents, number)
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
    state: State, residents: list[tuple[int, int, VmId]], number: int
) -> list[tuple[int, int, VmId]]:
    """VMs of hosts on which no more run together than a number, but of one host at least.

    Those hosts first on which no group has more than its share: VMs of a group move one after the
    other, so the group with the most decides how many rounds it takes.
    """
    by_host: dict[int, list[tuple[int, int, VmId]]] = {}
    for one in residents:
        by_host.setdefault(one[1], []).append(one)
    groups = {group for *_, vm in residents if (group := state.seats[vm].group) is not None}
    share = up_to(number, max(1, len(groups)))
    taken: Counter[GroupId | None] = Counter()
    fair: list[list[tuple[int, int, VmId]]] = []
    others: list[list[tuple[int, int, VmId]]] = []
    for those in by_host.values():
        own = [state.seats[vm].group for *_, vm in those]
        if all(group is None or taken[group] < share for group in own):
            taken.update(own)
            fair.append(those)
        else:
            others.append(those)
    found: list[tuple[int, int, VmId]] = []
    for those in (*fair, *others):
        if found and len(found) + len(those) > number:
            break
        found += those
    return sorted(found, key=lambda one: one[:2])


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
