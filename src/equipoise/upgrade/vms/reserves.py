"""Reserves: capacity kept for tenants that scale out and hosts that fail (equations 3 to 6).

Two readings: whole empty hosts, as in the equations, or capacity for every VM that a tenant may
still request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from equipoise.model.quantity import GroupId, HostId, TenantId, VmId
from equipoise.model.vm import Vm
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.cluster import ONE_VM, VM_CAPACITY, claim_of_size


def ceil_div(amount: int, part: int) -> int:
    """Divide and round up."""
    return -(-amount // part)


def scaling_in(state: UpgradeState, tenant: TenantId, duration_s: int) -> int:
    """Return by how many VMs a tenant may scale within a duration, ignoring its limit."""
    sla = state.cluster.tenants[tenant].sla
    # Without a cooldown period one scaling step is assumed.
    return sla.scaling_vms * (ceil_div(duration_s, sla.cooldown_s) if sla.cooldown_s else 1)


def largest_scaling(state: UpgradeState, duration_s: int) -> int:
    """Return S of equation 3: the largest scaling of any tenant within a duration."""
    return max(
        (scaling_in(state, tenant, duration_s) for tenant in state.cluster.tenants), default=0
    )


def expected_growth(
    state: UpgradeState, tenants: Iterable[TenantId], duration_s: int | None
) -> dict[TenantId, int]:
    """Return by how many VMs each tenant may scale within a duration and its SLA.

    Without a duration, up to the limit of its SLA.
    """
    growth = {tenant: vms_left_to_scale(state, tenant) for tenant in tenants}
    if duration_s is not None:
        growth = {
            tenant: min(scaling_in(state, tenant, duration_s), more)
            for tenant, more in growth.items()
        }
    return {tenant: more for tenant, more in growth.items() if more > 0}


def vms_left_to_scale(state: UpgradeState, tenant: TenantId) -> int:
    """Return how many VMs a tenant may still request."""
    return max(0, state.cluster.tenants[tenant].sla.vms_max - state.cluster.vm_counts[tenant])


def scaling_reservation(
    state: UpgradeState, hosts: Sequence[HostId], tenants: int, duration_s: int
) -> int:
    """Return the hosts that stay empty for tenants that scale (equation 5)."""
    if not tenants or not hosts:
        return 0
    smallest = min(state.cluster.compute_hosts[host].vms_max for host in hosts)
    return largest_scaling(state, duration_s) * ceil_div(tenants, smallest)


def scaling_group(state: UpgradeState, tenant: TenantId) -> GroupId | None:
    """Return the anti-affinity group that new VMs of a tenant join, or None."""
    groups = state.cluster.tenants[tenant].anti_affinity
    return groups[0].id if groups else None


def scaling_groups(state: UpgradeState, tenant: TenantId) -> tuple[GroupId, ...]:
    """Return the anti-affinity groups of a new VM of a tenant: the first one, if there is one."""
    group = scaling_group(state, tenant)
    return () if group is None else (group,)


class FreeCapacity:
    """An excerpt of the capacity ledger, with the anti-affinity groups on each host."""

    def __init__(self, state: UpgradeState, hosts: Iterable[HostId]) -> None:
        """Start with the current VMs. Moving VMs count on their targets as well."""
        self._cluster = state.cluster
        self._ledger = state.cluster.capacity.excerpt(hosts)
        self._groups: dict[HostId, set[GroupId]] = {}
        for vm, target in state.moving_vms():
            if target in self:
                self.commit(target, state.cluster.placements[vm].groups, state.cluster.vms[vm])

    def __contains__(self, host: HostId) -> bool:
        return host in self._ledger.limits

    def add(self, hosts: Iterable[HostId]) -> None:
        """Add further hosts with their current VMs."""
        self._ledger.add(self._cluster.capacity.excerpt(hosts))

    def _on(self, host: HostId) -> set[GroupId]:
        """Return the groups on a host, computed on first use."""
        groups = self._groups.get(host)
        if groups is None:
            placements = (
                self._cluster.placements[vm] for vm in self._cluster.residents.get(host, ())
            )
            groups = {group for placement in placements for group in placement.groups}
            self._groups[host] = groups
        return groups

    def free(self, host: HostId) -> int:
        """Return how many more VMs a host can run."""
        return self._ledger.free(host, VM_CAPACITY)

    def used(self, host: HostId) -> int:
        """Return how many VMs take capacity of a host."""
        return self._ledger.committed(host, VM_CAPACITY)

    def by_use(self, hosts: Iterable[HostId]) -> tuple[list[HostId], list[HostId]]:
        """Return the hosts with VMs and those without, each in the given order."""
        busy: list[HostId] = []
        empty: list[HostId] = []
        committed = self._ledger.committed
        for host in hosts:
            (busy if committed(host, VM_CAPACITY) else empty).append(host)
        return busy, empty

    def fits(self, host: HostId, groups: Collection[GroupId], vm: Vm | None = None) -> bool:
        """Return whether a VM of some groups can run on a host; known memory counts."""
        claim = ONE_VM if vm is None else claim_of_size(vm)
        return self._ledger.fits(claim, host) and (not groups or self._on(host).isdisjoint(groups))

    def fits_block(self, host: HostId, vms: Sequence[VmId]) -> bool:
        """Return whether some VMs of the cluster can run on a host together."""
        groups = [group for vm in vms for group in self._cluster.placements[vm].groups]
        claims = [claim_of_size(self._cluster.vms[vm]) for vm in vms]
        claim = {name: sum(part[name] for part in claims) for name in claims[0]}
        return (
            self._ledger.fits(claim, host)
            and len(set(groups)) == len(groups)
            and self._on(host).isdisjoint(groups)
        )

    def commit_vm(self, host: HostId, vm: VmId) -> None:
        """Take capacity for a VM of the cluster on a host."""
        self.commit(host, self._cluster.placements[vm].groups, self._cluster.vms[vm])

    def commit(self, host: HostId, groups: Collection[GroupId], vm: Vm | None = None) -> None:
        """Take capacity for a VM of some groups on a host."""
        self._ledger.commit(ONE_VM if vm is None else claim_of_size(vm), host)
        if groups:
            self._on(host).update(groups)

    def limit(self, host: HostId, vms: int) -> None:
        """Let a host take at most a number of further VMs."""
        further = min(vms, self.free(host))
        limits = self._ledger.limits[host]
        self._ledger.limits[host] = {**limits, VM_CAPACITY: self.used(host) + further}


@dataclass(frozen=True, slots=True)
class HostReservation:
    """The hosts reserved for scaling and failures; ``short`` if they are not enough."""

    kept: dict[HostId, None]
    short: bool
    missing: dict[TenantId, int]
    """How many VMs that a tenant may request found no host."""


def reserve_hosts(
    state: UpgradeState,
    capacity: FreeCapacity,
    wanted: dict[TenantId, int],
    *,
    busy: Sequence[HostId],
    empty: Sequence[HostId],
    failover: int,
) -> HostReservation:
    """Reserve capacity for expected VMs on used hosts, then on as few empty hosts as possible.

    ``empty`` hosts are taken from the end, so that those at the beginning stay free for a change.
    ``failover`` of them are reserved for failures: each can take all VMs that one host may run
    then.
    """
    kept: dict[HostId, None] = {}
    unplaced: dict[TenantId, int] = {}
    more_vms = sum(wanted.values())
    # A failing host may by then run the expected VMs as well, up to its capacity.
    fullest = max(
        (
            min(state.cluster.compute_hosts[host].vms_max, capacity.used(host) + more_vms)
            for host in busy
        ),
        default=0,
    )
    spare = [
        host for host in reversed(empty) if state.cluster.compute_hosts[host].vms_max >= fullest
    ]
    for host in spare[:failover]:
        kept[host] = None
    short = len(kept) < failover and bool(busy)
    if short:  # no host is large enough: reserve the last ones all the same
        kept |= dict.fromkeys([*reversed(empty)][:failover])
    # A host reserved for scaling may fail too: it gets no more VMs than a reserved host can take.
    failover_capacity = min(
        (state.cluster.compute_hosts[host].vms_max for host in kept), default=None
    )
    with_capacity = deque(host for host in busy if capacity.free(host) > 0)
    rest = [host for host in reversed(empty) if host not in kept]
    # The largest growth first: anti-affinity spreads it over the most hosts.
    for tenant, more in sorted(wanted.items(), key=lambda item: -item[1]):
        missing = more - _place_some(capacity, with_capacity, scaling_groups(state, tenant), more)
        # Every further empty host takes at least one VM, also if anti-affinity keeps the rest away.
        while missing > 0 and rest:
            host = rest.pop(0)
            kept[host] = None
            if failover_capacity is not None:
                capacity.limit(host, failover_capacity)
            with_capacity.append(host)
            missing -= _place_some(capacity, [host], scaling_groups(state, tenant), 1)
        if missing > 0:
            short, unplaced[tenant] = True, missing
        # Full hosts at the front are dropped, so that the next tenants do not visit them again.
        while with_capacity and capacity.free(with_capacity[0]) <= 0:
            with_capacity.popleft()
    return HostReservation(kept, short, unplaced)


def _place_some(
    capacity: FreeCapacity, hosts: Iterable[HostId], groups: Collection[GroupId], number: int
) -> int:
    """Place up to a number of VMs of a group; VMs of one group need different hosts."""
    placed = 0
    for host in hosts:
        while placed < number and capacity.fits(host, groups):
            capacity.commit(host, groups)
            placed += 1
        if placed == number:
            break
    return placed
