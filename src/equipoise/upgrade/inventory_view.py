"""The inventory as the events of an upgrade leave it, and the status of the campaign.

The gate judges VM moves by it, and a journal of an upgrade is replayed to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Inventory, Tenant
from equipoise.model.quantity import GroupId, HostId, ResourceId, VmId
from equipoise.model.rule import Rule
from equipoise.model.upgrade.event import (
    BatchSummary,
    CampaignStatus,
    ChangeSetSummary,
    ResourceOutage,
    UpgradeStatus,
)
from equipoise.model.upgrade.infrastructure import DependencyPresence, Resource
from equipoise.model.upgrade.work import VmBatch
from equipoise.model.vm import Vm, VmState
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.graph.dependencies import PRESENT_NOW, presence
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.cluster import VM_CAPACITY
from equipoise.upgrade.state.iteration import IterationPhase, OpenBatch
from equipoise.upgrade.state.requests import ChangeSetStatus, SetProgress
from equipoise.upgrade.state.resources import ResourceState


def current_inventory(state: UpgradeState) -> Inventory:
    """Return the cluster: hosts, VMs on their hosts, resources with their current versions."""
    cluster = state.campaign.cluster
    resources = {
        id_: _resource(resource_state)
        for id_, resource_state in state.resources.states.items()
        if _is_present(state, id_)
    }
    dependencies = (
        tracked.dependency
        for tracked in state.resources.dependencies
        if presence(state, tracked) in PRESENT_NOW
    )
    groups = (
        group.but(resources=tuple(id_ for id_ in group.resources if id_ in resources))
        for group in cluster.groups
    )
    return cluster.but(
        hosts=tuple(_host(state, host) for host in state.cluster.compute_hosts),
        vms=tuple(_vm(state, vm) for vm in state.cluster.placements),
        tenants=_tenants(state),
        resources=tuple(resources.values()),
        dependencies=tuple(
            # The inventory is a picture of now, so no future presence may remain in it.
            dependency.but(presence=DependencyPresence.CURRENT)
            for dependency in dependencies
            if dependency.dependent in resources and dependency.sponsor in resources
        ),
        groups=tuple(group for group in groups if group.resources),
    )


def partial_inventory(
    state: UpgradeState, hosts: Iterable[HostId], other_vms: Iterable[VmId], rules: Sequence[Rule]
) -> Inventory:
    """Return some hosts with all their VMs, and further VMs alone.

    Capacity is counted in VMs: each host has the capacity of the upgrade, each VM takes one. The
    cost depends on the size of the part, not on the size of the cluster.
    """
    residents = [vm for host in hosts for vm in state.cluster.residents.get(host, ())]
    vms = [_vm(state, vm) for vm in dict.fromkeys((*residents, *other_vms))]
    all_hosts = dict.fromkeys((*hosts, *(vm.host for vm in vms if vm.host is not None)))
    return Inventory(
        name=state.campaign.cluster.name,
        hosts=tuple(_with_vm_capacity(state, _host(state, host)) for host in all_hosts),
        vms=tuple(vm.but(consumption={**vm.consumption, VM_CAPACITY: 1}) for vm in vms),
        rules=tuple(rules),
        specification=state.campaign.cluster.specification,
    )


def _is_present(state: UpgradeState, id_: ResourceId) -> bool:
    """Return whether a resource is present. A resource that is a VM exists with the VM."""
    resource_state = state.resources.states[id_]
    return resource_state.present and (
        resource_state.resource.vm is None or resource_state.resource.vm in state.cluster.placements
    )


def _tenants(state: UpgradeState) -> tuple[Tenant, ...]:
    """Return the tenants with the current VMs of their anti-affinity groups."""
    # Scaling adds and removes members, so the groups are computed from the placements.
    members: dict[GroupId, list[VmId]] = {}
    for placement in state.cluster.placements.values():
        for group in placement.groups:
            members.setdefault(group, []).append(placement.vm)
    return tuple(
        tenant.but(
            anti_affinity=tuple(
                group.but(vms=tuple(members[group.id]))
                for group in tenant.anti_affinity
                if group.id in members
            )
        )
        for tenant in state.cluster.tenants.values()
    )


def _with_vm_capacity(state: UpgradeState, host: Host) -> Host:
    return host.but(
        capacity={**host.capacity, VM_CAPACITY: state.cluster.compute_hosts[host.id].vms_max}
    )


def _host(state: UpgradeState, id_: HostId) -> Host:
    host = state.cluster.hosts[id_]
    if not state.cluster.compute_hosts[id_].up:
        # A host that was never on keeps its described state; any other has failed.
        return host.but(state=HostState.FAILED) if host.state is HostState.ON else host
    resource_states = (
        state.resources.states[member] for member in grouping(state).by_host.get(id_, ())
    )
    out = any(
        not resource_state.operational or (resource_state.present and not resource_state.active)
        for resource_state in resource_states
    )
    return host.but(state=HostState.MAINTENANCE if out else HostState.ON)


def _vm(state: UpgradeState, id_: VmId) -> Vm:
    host = state.cluster.placements[id_].host
    vm = state.cluster.vms[id_]
    if host is not None:
        return vm.but(host=host, state=VmState.RUNNING)
    # A running VM whose host failed is ready to restart. Any other keeps its described state.
    return vm.but(host=None, state=VmState.READY) if vm.state is VmState.RUNNING else vm


def _resource(resource_state: ResourceState) -> Resource:
    version = resource_state.components.get(
        resource_state.own_component, resource_state.resource.version
    )
    others = {
        name: installed
        for name, installed in resource_state.components.items()
        if name != resource_state.own_component
    }
    return resource_state.resource.but(version=version, components=others)


def campaign_status(state: UpgradeState) -> UpgradeStatus:
    """Return the status of the campaign with the current cluster."""
    return UpgradeStatus(
        campaign=state.campaign.name,
        at_ms=state.at_ms,
        status=_status(state),
        iteration=state.iteration.number,
        phase=state.iteration.phase.value,
        paused=state.iteration.pause_reason,
        paused_by_command=state.requests.paused_by_command,
        sets=tuple(_set(state, status) for status in state.requests.set_status.values()),
        requests=tuple(request.id for _, request in state.requests.pending),
        batch=() if state.iteration.phase is IterationPhase.IDLE else state.iteration.batch,
        under_way=None
        if state.iteration.open_batch is None
        else _under_way(state, state.iteration.open_batch),
        out_of_service=tuple(
            ResourceOutage(id=id_, how=how)
            for id_, resource_state in state.resources.states.items()
            if (how := _out_of_service_state(resource_state))
        ),
        stranded=tuple(vm for vms in state.cluster.unplaced_vms.values() for vm in vms),
        cluster=current_inventory(state),
    )


def _status(state: UpgradeState) -> CampaignStatus:
    if not state.iteration.ended:
        return CampaignStatus.RUNNING
    return CampaignStatus.COMPLETED if is_complete(state) else CampaignStatus.PAUSED


def is_complete(state: UpgradeState) -> bool:
    """Return whether a campaign has ended and every set with it."""
    return (
        state.iteration.ended
        and not state.requests.pending
        and all(
            status.progress is SetProgress.ENDED for status in state.requests.set_status.values()
        )
    )


def _set(state: UpgradeState, status: ChangeSetStatus) -> ChangeSetSummary:
    return ChangeSetSummary(
        id=status.id,
        progress=status.progress.value if status.outcome is None else status.outcome.value,
        reason=status.reason.text,
        left=tuple(state.resources.pending_for(status.id)),
        paused=status.paused,
        priority=status.priority,
        checkpoints_approved=status.checkpoints_approved,
    )


def _under_way(state: UpgradeState, open_: OpenBatch) -> BatchSummary:
    schedule = open_.schedule
    if isinstance(schedule, VmBatch):
        unanswered = [
            f"move {vm}" for vm, _ in state.moving_vms() if vm not in state.iteration.unmovable
        ]
    else:
        named = (f"{task.kind} {task.resource}" for task in schedule.tasks)
        unanswered = [name for name in named if name not in open_.answered_tasks]
    return BatchSummary(batch=schedule.id, unanswered=tuple(unanswered))


def _out_of_service_state(resource_state: ResourceState) -> str:
    if resource_state.operational:
        return "off" if resource_state.present and not resource_state.active else ""
    return "failed" if resource_state.failed else "isolated"
