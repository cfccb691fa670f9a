"""The old and the new partition of the compute hosts: hosts still to be changed, and the others.

While a change divides the cluster, VMs of one partition cannot run on the other. When a set is
undone, the partitions swap by themselves: what is to be changed is what was changed before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from equipoise.model.quantity import HostId, ResourceId, TenantId
from equipoise.model.upgrade.request import SetId
from equipoise.upgrade.graph.in_service import outages
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import SetProgress


@dataclass(frozen=True, slots=True)
class HostPartitions:
    """The compute hosts in service in each partition."""

    divided: bool
    """Whether VMs of one partition cannot run in the other."""
    old: dict[HostId, None]
    """Hosts that are up, in service, and still to be changed: VMs must leave them first."""
    new: dict[HostId, None]
    """Hosts that are up, in service, and need no further change."""
    undoing: bool
    """Whether the dividing set is being undone."""


def divide_hosts(
    state: UpgradeState, members: dict[HostId, tuple[ResourceId, ...]]
) -> HostPartitions:
    """Return the partitions; ``members`` lists the resources that change with each compute host."""
    dividing = {
        status.id
        for status in state.requests.set_status.values()
        if status.partitions_hosts
        and status.progress is not SetProgress.ENDED
        and _has_work_left(state, status.id)
    }
    old: dict[HostId, None] = {}
    out = outages(state)
    new: dict[HostId, None] = {}
    for host, compute_host in state.cluster.compute_hosts.items():
        if compute_host.vms_max == 0 or not compute_host.up:
            continue
        resources = members.get(host, ())
        # A host that is out of service belongs to neither partition: no VM may be planned on it.
        if any(resource in out for resource in resources):
            continue
        # A host with pending work of a dividing set is old; without a division any work counts.
        (old if _has_changes_left(state, resources, dividing) else new)[host] = None
    undoing = any(
        state.requests.set_status[set_].progress is SetProgress.UNDOING for set_ in dividing
    )
    return HostPartitions(bool(dividing), old, new, undoing)


def _has_work_left(state: UpgradeState, set_: SetId) -> bool:
    """Return whether a dividing set has pending work."""
    return next(iter(state.resources.pending_for(set_)), None) is not None


def _has_changes_left(
    state: UpgradeState, resources: Iterable[ResourceId], dividing: set[SetId]
) -> bool:
    works = (
        work for resource in resources for work in state.resources.states[resource].pending_works
    )
    return any(not dividing or work.set in dividing for work in works)


def tenants_on_old_only(
    state: UpgradeState, host_partitions: HostPartitions
) -> tuple[TenantId, ...]:
    """Return A of equation 5: tenants that may scale and have no VM in the new partition.

    A tenant without any VM starts in the new partition as soon as that has capacity for it.
    """
    on_new = _tenants_on(state, host_partitions.new)
    return tuple(
        tenant
        for tenant in state.cluster.tenants
        if tenant not in on_new
        and _may_grow(state, tenant)
        and (
            state.cluster.vm_counts[tenant] or not _can_start_on_new(state, host_partitions, tenant)
        )
    )


def _can_start_on_new(
    state: UpgradeState, host_partitions: HostPartitions, tenant: TenantId
) -> bool:
    """Return whether a tenant without VMs can start in the new partition.

    It can if capacity remains after one scaling step of every other tenant there and after
    failures.
    """
    free = sum(state.cluster.vms_free(host) for host in host_partitions.new)
    largest = sorted(
        (state.cluster.compute_hosts[host].vms_max for host in host_partitions.new), reverse=True
    )
    growing = tenants_with_new(state, host_partitions)
    requested = sum(state.cluster.tenants[other].sla.scaling_vms for other in growing)
    # A count of hosts, not of places: the VMs of one scaling step go to different hosts.
    with_capacity = sum(state.cluster.vms_free(host) > 0 for host in host_partitions.new)
    # Without VMs in the partition a failure there costs nothing, so no reserve is needed.
    failover = state.settings.failover_hosts if used_hosts(state, host_partitions.new) else 0
    spare = free - sum(largest[:failover])
    return spare >= requested and with_capacity >= state.cluster.tenants[tenant].sla.scaling_vms


def tenants_with_new(state: UpgradeState, host_partitions: HostPartitions) -> tuple[TenantId, ...]:
    """Return B of equation 6: tenants that may scale and have a VM in the new partition.

    A tenant without any VM may start in either partition, and counts in both.
    """
    on_new = _tenants_on(state, host_partitions.new)
    return tuple(
        tenant
        for tenant in state.cluster.tenants
        if (tenant in on_new or not state.cluster.vm_counts[tenant]) and _may_grow(state, tenant)
    )


def growing_tenants(state: UpgradeState) -> tuple[TenantId, ...]:
    """Return all tenants that may still scale."""
    return tuple(tenant for tenant in state.cluster.tenants if _may_grow(state, tenant))


def scaling_areas(
    state: UpgradeState, host_partitions: HostPartitions
) -> list[tuple[list[HostId], tuple[TenantId, ...]]]:
    """Return the hosts of the old and of the new partition, with the tenants that scale there.

    Without a division all hosts are one area.
    """
    old, new = list(host_partitions.old), list(host_partitions.new)
    if not host_partitions.divided:
        return [([*old, *new], growing_tenants(state))]
    return [
        (old, tenants_on_old_only(state, host_partitions)),
        (new, tenants_with_new(state, host_partitions)),
    ]


def _may_grow(state: UpgradeState, tenant: TenantId) -> bool:
    return state.cluster.vm_counts[tenant] < state.cluster.tenants[tenant].sla.vms_max


def _tenants_on(state: UpgradeState, hosts: Iterable[HostId]) -> set[TenantId]:
    # Called many times for all hosts: the lookups of the part stay outside the loop.
    residents, placements = state.cluster.residents, state.cluster.placements
    tenants = {placements[vm].tenant for host in hosts for vm in residents.get(host, ())}
    return {tenant for tenant in tenants if tenant is not None}


def used_hosts(state: UpgradeState, hosts: Iterable[HostId]) -> list[HostId]:
    """Return the hosts with VMs."""
    return [host for host in hosts if state.cluster.residents.get(host)]


def unused_hosts(state: UpgradeState, hosts: Iterable[HostId]) -> list[HostId]:
    """Return the hosts without VMs."""
    return [host for host in hosts if not state.cluster.residents.get(host)]
