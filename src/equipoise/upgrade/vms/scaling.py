"""Hosts for new VMs of tenants, VMs to remove, and restarts of VMs of failed hosts."""

from __future__ import annotations

from equipoise.model.quantity import HostId, TenantId, VmId
from equipoise.model.upgrade.event import ScalingAnswered, VmsRestarted
from equipoise.upgrade.graph.host_partitions import HostPartitions, unused_hosts, used_hosts
from equipoise.upgrade.graph.iteration_view import partition_hosts
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.iteration import IterationPhase
from equipoise.upgrade.vms.reserves import FreeCapacity, scaling_groups, vms_left_to_scale


def answer_scaling(state: UpgradeState, tenant: TenantId, vms: int) -> ScalingAnswered:
    """Start new VMs, or remove some: in the partition in which the tenant will stay."""
    host_partitions = partition_hosts(state)
    if vms < 0:
        removed = _vms_to_remove(state, host_partitions, tenant, -vms)
        return ScalingAnswered(at_ms=state.at_ms, tenant=tenant, removed=removed)
    # Beyond the limit of the SLA a refusal is no violation, so it does not count as refused.
    number = min(vms, vms_left_to_scale(state, tenant))
    groups = scaling_groups(state, tenant)
    hosts = _start_hosts(state, host_partitions, tenant)
    capacity = FreeCapacity(state, hosts)
    added: dict[VmId, HostId] = {}
    for count in range(number):
        name = VmId(f"{tenant}-new-{state.cluster.vms_added + count + 1}")
        vm = state.cluster.vm_like_first(tenant, name)
        target = next((host for host in hosts if capacity.fits(host, groups, vm)), None)
        if target is None:
            break
        capacity.commit(target, groups, vm)
        added[name] = target
    return ScalingAnswered(
        at_ms=state.at_ms, tenant=tenant, added=added, refused=number - len(added)
    )


def _start_hosts(
    state: UpgradeState, host_partitions: HostPartitions, tenant: TenantId | None
) -> list[HostId]:
    """Return the hosts for new VMs, best first: used hosts, then empty hosts from the end."""
    in_work = hosts_in_work(state)
    if not host_partitions.divided:
        hosts = [*host_partitions.new, *host_partitions.old]
        return _best_first(state, [host for host in hosts if host not in in_work])
    new = [host for host in host_partitions.new if host not in in_work]
    old = [host for host in host_partitions.old if host not in in_work]
    on_new = (vm for host in host_partitions.new for vm in state.cluster.residents.get(host, ()))
    # A tenant stays in its partition; a tenant without VMs starts in the new one.
    has_new = any(state.cluster.placements[vm].tenant == tenant for vm in on_new)
    is_new = tenant is not None and not state.cluster.vm_counts.get(tenant)
    first, second = (new, old) if has_new or (is_new and new) else (old, new)
    return [*_best_first(state, first), *_best_first(state, second)]


def _best_first(state: UpgradeState, hosts: list[HostId]) -> list[HostId]:
    return [*used_hosts(state, hosts), *reversed(unused_hosts(state, hosts))]


def hosts_in_work(state: UpgradeState) -> dict[HostId, None]:
    """Return compute hosts of the current batch: selected, changing, reverting or baking."""
    under_way = state.iteration.phase in (
        IterationPhase.CHANGING,
        IterationPhase.REVERTING,
        IterationPhase.BAKING,
        IterationPhase.RETRYING,
    )
    return state.iteration.hosts_out if under_way else {}


def _vms_to_remove(
    state: UpgradeState, host_partitions: HostPartitions, tenant: TenantId, count: int
) -> tuple[VmId, ...]:
    """Return the VMs to remove: those of the old partition first, then the latest."""
    vms_min = state.cluster.tenants[tenant].sla.vms_min
    count = min(count, max(0, state.cluster.vm_counts[tenant] - vms_min))
    own = [
        placement for placement in state.cluster.placements.values() if placement.tenant == tenant
    ]
    # The sort is stable: within a partition the latest VMs come first.
    own.reverse()
    own.sort(
        key=lambda placement: placement.host is None or placement.host not in host_partitions.old
    )
    return tuple(placement.vm for placement in own[:count])


def restart_vms(state: UpgradeState, host: HostId) -> VmsRestarted:
    """Restart the VMs of a failed host on other hosts, in their own partition if divided."""
    host_partitions = partition_hosts(state)
    placed: dict[VmId, HostId] = {}
    unplaced: list[VmId] = []
    taken: dict[HostId, list[VmId]] = {}
    waiting = dict.fromkeys(state.cluster.vms_to_restart[host])
    for vm in waiting:
        if vm not in state.cluster.placements or vm in placed:
            continue
        block = [mate for mate in state.cluster.block_of(vm) if mate in waiting]
        hosts = _start_hosts(state, host_partitions, state.cluster.placements[vm].tenant)
        capacity = FreeCapacity(state, hosts)
        # The candidate hosts depend on the tenant, so capacity is read again for each VM and
        # earlier restarts are committed again.
        for other, restarted in taken.items():
            for name in restarted if other in capacity else ():
                capacity.commit_vm(other, name)
        # VMs of an affinity group restart together if a host has room, otherwise one by one.
        for together in dict.fromkeys((tuple(block), (vm,))):
            fitting = (host for host in hosts if capacity.fits_block(host, together))
            target = next(fitting, None)
            if target is not None:
                taken.setdefault(target, []).extend(together)
                placed |= dict.fromkeys(together, target)
                break
        else:
            unplaced.append(vm)
    return VmsRestarted(at_ms=state.at_ms, host=host, placed=placed, unplaced=tuple(unplaced))
