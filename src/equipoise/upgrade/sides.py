"""The two sides of a cluster on the way: hosts that are still to be changed, and the others.

While a change divides the cluster, the VMs of one side cannot run on the other. When a set is taken
back the sides change their meaning by themselves: what is to be changed is what was changed before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from equipoise.model.quantity import HostId, ResourceId, TenantId
from equipoise.model.upgrade.request import SetId
from equipoise.upgrade.state import Progress, State


@dataclass(frozen=True, slots=True)
class Sides:
    """Which compute hosts are in service on which side."""

    divided: bool
    """Whether VMs may not mix."""
    old: dict[HostId, None]
    """Up, in service, and still to be changed."""
    new: dict[HostId, None]
    """Up, in service, and not to be changed (any more)."""
    undoing: bool
    """Whether the set that divides is being taken back."""

    def must_leave(self, host: HostId) -> bool:
        """Whether VMs have to leave a host before it can be changed."""
        return host in self.old


def sides_of(state: State, members: dict[HostId, tuple[ResourceId, ...]]) -> Sides:
    """Tell the sides apart; ``members`` are the resources that go with each compute host."""
    dividing = {
        one.id
        for one in state.standings.values()
        if one.divides and one.progress is not Progress.ENDED and _is_under_way(state, one.id)
    }
    old: dict[HostId, None] = {}
    new: dict[HostId, None] = {}
    for host, place in state.places.items():
        if place.places == 0 or not place.up:
            continue
        those = members.get(host, ())
        if not all(_in_service(state, one) for one in those):
            continue
        (old if _is_old(state, those, dividing) else new)[host] = None
    undoing = any(state.standings[one].progress is Progress.UNDOING for one in dividing)
    return Sides(bool(dividing), old, new, undoing)


def _in_service(state: State, resource: ResourceId) -> bool:
    part = state.parts[resource]
    return part.operational and (part.active or not part.present)


def _is_under_way(state: State, set_: SetId) -> bool:
    """Whether something of a dividing set is left to do on a compute host, or its VMs mix not."""
    return next(iter(state.pending(set_)), None) is not None


def _is_old(state: State, those: Iterable[ResourceId], dividing: set[SetId]) -> bool:
    for one in those:
        for level in state.parts[one].levels:
            if not dividing or any(work.set in dividing for work in level.works):
                return True
    return False


def old_only(state: State, sides: Sides) -> tuple[TenantId, ...]:
    """Tenants of which no VM is on the new side, and who may still grow: A of equation 5.

    One without any VM begins on the new side as soon as there is room for it.
    """
    new = _tenants_on(state, sides.new)
    return tuple(
        one
        for one in state.tenants
        if one not in new
        and _may_grow(state, one)
        and (state.sizes[one] or not _can_begin(state, sides, one))
    )


def _can_begin(state: State, sides: Sides, tenant: TenantId) -> bool:
    """Whether the new side has places enough for a tenant without VMs to begin there, even if
    everybody else who may grow there takes one for each step, and hosts fail.
    """
    free = sum(state.free(one) for one in sides.new)
    largest = sorted((state.places[one].places for one in sides.new), reverse=True)
    growing_there = with_new(state, sides)
    asked = sum(state.tenants[one].sla.scaling_vms for one in growing_there)
    roomy = sum(state.free(one) > 0 for one in sides.new)
    failover = state.settings.failover_hosts if used(state, sides.new) else 0
    spare = free - sum(largest[:failover])
    return spare >= asked and roomy >= state.tenants[tenant].sla.scaling_vms


def with_new(state: State, sides: Sides) -> tuple[TenantId, ...]:
    """Tenants of which some VM is on the new side, and who may still grow: B of equation 6.

    One without any VM may begin on either side, and is counted on both.
    """
    new = _tenants_on(state, sides.new)
    return tuple(
        one
        for one in state.tenants
        if (one in new or not state.sizes[one]) and _may_grow(state, one)
    )


def growing(state: State) -> tuple[TenantId, ...]:
    """All tenants who may still grow."""
    return tuple(one for one in state.tenants if _may_grow(state, one))


def _may_grow(state: State, tenant: TenantId) -> bool:
    return state.sizes[tenant] < state.tenants[tenant].sla.vms_max


def _tenants_on(state: State, hosts: Iterable[HostId]) -> set[TenantId]:
    return {
        tenant
        for host in hosts
        for vm in state.residents.get(host, ())
        if (tenant := state.seats[vm].tenant) is not None
    }


def used(state: State, hosts: Iterable[HostId]) -> list[HostId]:
    """Those hosts on which VMs run."""
    return [one for one in hosts if state.residents.get(one)]


def unused(state: State, hosts: Iterable[HostId]) -> list[HostId]:
    """Those hosts on which no VM runs."""
    return [one for one in hosts if not state.residents.get(one)]
