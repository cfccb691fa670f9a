"""Answers to tenants that scale and to hosts that fail: where VMs start, and which ones go."""

from __future__ import annotations

from equipoise.model.quantity import GroupId, HostId, TenantId, VmId
from equipoise.model.upgrade.event import ScalingAnswered, VmsRestarted
from equipoise.upgrade.room import Seating, growing_group, left_of
from equipoise.upgrade.scene import look_at_sides
from equipoise.upgrade.sides import Sides, unused, used
from equipoise.upgrade.state import Phase, State


def answer_scaling(state: State, tenant: TenantId, vms: int) -> ScalingAnswered:
    """Start new VMs, or remove some: on the side where the tenant's future is."""
    sides = look_at_sides(state)
    if vms < 0:
        gone = _removed(state, sides, tenant, -vms)
        return ScalingAnswered(at_ms=state.at_ms, tenant=tenant, removed=gone)
    number = min(vms, left_of(state, tenant))
    group = growing_group(state, tenant)
    hosts = _hosts_for(state, sides, tenant)
    seating = Seating(state, hosts)
    added: dict[VmId, HostId] = {}
    for count in range(number):
        target = next((one for one in hosts if seating.takes(one, group)), None)
        if target is None:
            break
        seating.take(target, group)
        added[VmId(f"{tenant}-new-{state.new_vms + count + 1}")] = target
    return ScalingAnswered(
        at_ms=state.at_ms, tenant=tenant, added=added, refused=number - len(added)
    )


def _hosts_for(state: State, sides: Sides, tenant: TenantId | None) -> list[HostId]:
    """Where a tenant's VMs may start, best first: what is in use, then empty hosts from the end."""
    busy_out = out_for_work(state)
    if not sides.divided:
        hosts = [*sides.new, *sides.old]
        return _best_first(state, [one for one in hosts if one not in busy_out])
    new = [one for one in sides.new if one not in busy_out]
    old = [one for one in sides.old if one not in busy_out]
    beside = (vm for host in sides.new for vm in state.residents.get(host, ()))
    has_new = any(state.seats[vm].tenant == tenant for vm in beside)
    fresh = tenant is not None and not state.sizes.get(tenant)
    first, second = (new, old) if has_new or (fresh and new) else (old, new)
    return [*_best_first(state, first), *_best_first(state, second)]


def _best_first(state: State, hosts: list[HostId]) -> list[HostId]:
    return [*used(state, hosts), *reversed(unused(state, hosts))]


def out_for_work(state: State) -> dict[HostId, None]:
    """Compute hosts of the batch under way: chosen, worked on, taken back or watched."""
    under_way = state.phase in (Phase.CHANGING, Phase.REVERTING, Phase.BAKING)
    return state.out if under_way else {}


def _removed(state: State, sides: Sides, tenant: TenantId, number: int) -> tuple[VmId, ...]:
    """Which VMs go: those on the old side first, then the latest."""
    least = state.tenants[tenant].sla.vms_min
    number = min(number, max(0, state.sizes[tenant] - least))
    own = [seat for seat in state.seats.values() if seat.tenant == tenant]
    own.reverse()
    own.sort(key=lambda seat: seat.host is None or not sides.must_leave(seat.host))
    return tuple(seat.vm for seat in own[:number])


def restart(state: State, host: HostId) -> VmsRestarted:
    """Start the VMs of a failed host elsewhere, on their own side if it is divided."""
    sides = look_at_sides(state)
    placed: dict[VmId, HostId] = {}
    unplaced: list[VmId] = []
    taken: dict[HostId, list[GroupId | None]] = {}
    for vm in state.lost[host]:
        seat = state.seats.get(vm)
        if seat is None:
            continue
        hosts = _hosts_for(state, sides, seat.tenant)
        seating = Seating(state, hosts)
        for one, groups in taken.items():
            for group in groups:
                if one in seating.free:
                    seating.take(one, group)
        target = next((one for one in hosts if seating.takes(one, seat.group)), None)
        if target is None:
            unplaced.append(vm)
        else:
            taken.setdefault(target, []).append(seat.group)
            placed[vm] = target
    return VmsRestarted(at_ms=state.at_ms, host=host, placed=placed, unplaced=tuple(unplaced))
