"""The state of an upgrade: the result of the events so far, and its initial value.

A private, writable value, like a draft of a snapshot. ``apply.py`` writes to it, and the functions
of ``tasks.py`` and ``requests`` that ``apply.py`` calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Inventory, Tenant
from equipoise.model.quantity import GroupId, HostId, ResourceId, ResourceName, TenantId, VmId
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSettings
from equipoise.model.upgrade.catalog import ComponentDescription, ComponentId
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.graph import Modification
from equipoise.model.upgrade.infrastructure import (
    Dependency,
    DependencyKind,
    DependencyPresence,
    Resource,
    ResourceGroupKind,
)
from equipoise.model.upgrade.request import (
    ChangeSet,
    CommandKind,
    SetId,
    UpgradeCommand,
    UpgradeRequest,
)
from equipoise.model.upgrade.work import (
    BatchId,
    ExecutionLevel,
    TaskBatch,
    UnitId,
    UpgradeUnit,
    VertexId,
    VmBatch,
    WorkItem,
)
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm, VmState
from equipoise.upgrade.reason import Reason


@dataclass(frozen=True, slots=True)
class ResourceState:
    """A resource in its current state, with its pending work."""

    resource: Resource
    components: FrozenMap[ComponentId, str]
    """The installed components. The own component is among them while the resource is present."""
    present: bool = True
    active: bool = True
    levels: tuple[ExecutionLevel, ...] = ()
    """Pending work in execution levels, the next one first."""
    applied: tuple[WorkItem, ...] = ()
    """Work done for sets that are not complete, oldest first."""
    sets: tuple[SetId, ...] = ()
    """The sets that change the resource or have changed it."""
    attempts: FrozenMap[SetId, int] = field(default_factory=FrozenMap)
    """Failed attempts by set."""
    related: ResourceId | None = None
    """The resource that replaces this one, or that this one replaces."""
    isolated: bool = False
    failed: bool = False

    @property
    def own_component(self) -> ComponentId:
        """Return the component that the resource is an installation of."""
        return main_component(self.resource)

    @property
    def operational(self) -> bool:
        """Return whether the resource can do its work."""
        return not (self.isolated or self.failed)

    @property
    def can_be_changed(self) -> bool:
        """Return whether tasks may run on it. An isolated resource accepts only undo work."""
        return not self.failed and (
            not self.isolated or (bool(self.levels) and self.levels[0].order == 0)
        )

    def has_work_for(self, set_: SetId) -> bool:
        """Return whether pending work belongs to a set."""
        return any(work.set == set_ for level in self.levels for work in level.works)

    @property
    def forward_works(self) -> tuple[WorkItem, ...]:
        """The pending and the applied works that are no undo."""
        pending = (work for level in self.levels for work in level.works if not work.undoing)
        return (*pending, *(work for work in self.applied if not work.undoing))

    @property
    def modification(self) -> Modification:
        """Return what the next level does to the resource itself."""
        if not self.levels:
            return Modification.NO_CHANGE
        for work in self.levels[0].works:
            if work.component == self.own_component and work.before is None:
                return Modification.ADD
            if work.component == self.own_component and work.after is None:
                return Modification.REMOVE
        return Modification.UPGRADE

    def but(self, **changes: Any) -> ResourceState:
        """Return a copy with some fields changed."""
        return replace(self, **changes)


def components_after(
    components: Mapping[ComponentId, str], works: Iterable[WorkItem]
) -> dict[ComponentId, str]:
    """Return the components after works are done in order."""
    after = dict(components)
    for work in works:
        if work.after is None:
            after.pop(work.component, None)
        else:
            after[work.component] = work.after
    return after


def main_component(resource: Resource) -> ComponentId:
    """Return the component that a resource is an installation of."""
    return ComponentId(resource.component or resource.kind.value)


class SetProgress(StrEnum):
    """The progress of a change set."""

    SCHEDULED = "scheduled"
    UNDOING = "undoing"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class ChangeSetStatus:
    """A change set with its complementary changes, and its progress."""

    set: ChangeSet
    order: int
    """The number of the request, counted from 1."""
    requested_ms: int
    targets: tuple[tuple[ResourceId, ...], ...]
    """The resources of each change."""
    progress: SetProgress = SetProgress.SCHEDULED
    outcome: SetOutcome | None = None
    reason: str = ""
    """Why the set is undone or has ended."""
    reason_code: str = ""
    paused: bool = False
    priority: int = 0
    checkpoints_approved: int = 0
    """The number of approved checkpoints."""
    partitions_hosts: bool = False
    """Whether hosts before and after the change cannot run each other's VMs."""

    @property
    def id(self) -> SetId:
        """The id of the set."""
        return self.set.id

    @property
    def resources(self) -> tuple[ResourceId, ...]:
        """All resources of the set, each once."""
        return tuple(dict.fromkeys(id_ for target in self.targets for id_ in target))


@dataclass(frozen=True, slots=True)
class ComputeHost:
    """A compute host: its capacity in VMs, and whether it is up."""

    host: HostId
    vms_max: int
    up: bool = True


@dataclass(frozen=True, slots=True)
class VmPlacement:
    """A VM: its tenant, its anti-affinity group and its host."""

    vm: VmId
    tenant: TenantId | None
    group: GroupId | None
    host: HostId | None
    moves: int = 0


@dataclass(frozen=True, slots=True)
class TrackedDependency:
    """A dependency, and the set with which it appears or disappears.

    The change happens when the set changes the owner.
    """

    dependency: Dependency
    set: SetId | None = None
    owner: ResourceId | None = None
    appears: bool = True
    incompatible: bool = False
    """Whether mixed versions were incompatible in the last request on both ends."""
    incompatible_requests: tuple[int, ...] = ()
    """The numbers of the requests in which they were."""


class IterationPhase(StrEnum):
    """The phase of an iteration."""

    IDLE = "idle"
    TAKING_UP = "taking_up"
    CHANGING = "changing"
    REVERTING = "reverting"
    BAKING = "baking"
    MOVING = "moving"


@dataclass
class OpenBatch:
    """A schedule that the engine has received and not finished."""

    schedule: TaskBatch | VmBatch
    answered_tasks: set[str] = field(default_factory=set)
    failed: set[VertexId] = field(default_factory=set)
    """Vertices with a failed task. The engine skips their later tasks."""


@dataclass(frozen=True, slots=True)
class RejectedCommand:
    """A command or request that is not valid, with the reason."""

    order: str
    reason: Reason
    number: int


@dataclass
class UpgradeState:
    """The whole state of the coordinator."""

    campaign: UpgradeCampaign
    settings: UpgradeSettings
    catalog: Mapping[tuple[ComponentId, str], ComponentDescription]
    resource_states: dict[ResourceId, ResourceState]
    dependencies: list[TrackedDependency]
    tenants: dict[TenantId, Tenant]
    compute_hosts: dict[HostId, ComputeHost]
    placements: dict[VmId, VmPlacement]
    hosts: dict[HostId, Host] = field(default_factory=dict)
    """The compute hosts as described. ``compute_hosts`` has their current state."""
    vms: dict[VmId, Vm] = field(default_factory=dict)
    """The VMs as described. ``placements`` has their current hosts."""
    at_ms: int = 0
    residents: dict[HostId, dict[VmId, None]] = field(default_factory=dict)
    """The VMs on each host: an index of ``placements``."""
    vm_counts: dict[TenantId, int] = field(default_factory=dict)
    """The VMs of each tenant: an index of ``placements``."""
    set_status: dict[SetId, ChangeSetStatus] = field(default_factory=dict)
    units: dict[UnitId, UpgradeUnit] = field(default_factory=dict)
    disturbed_max: dict[GroupId, int] = field(default_factory=dict)
    """How many VMs of each anti-affinity group may move at once."""
    pending_requests: list[tuple[int, UpgradeRequest]] = field(default_factory=list)
    """Requests that are not scheduled yet, each with its time."""
    requests_scheduled: int = 0
    deferred_commands: list[tuple[UpgradeCommand, int]] = field(default_factory=list)
    """Commands about sets that are not scheduled yet, each with its number."""
    rejected_commands: list[RejectedCommand] = field(default_factory=list)
    """Rejected commands that are not reported yet."""
    pending_scaling: list[tuple[TenantId, int]] = field(default_factory=list)
    """Scaling requests without an answer."""
    vms_to_restart: dict[HostId, tuple[VmId, ...]] = field(default_factory=dict)
    """VMs of failed hosts that wait for a restart."""
    iteration: int = 0
    phase: IterationPhase = IterationPhase.IDLE
    ready_ms: int = 0
    """The next decision waits until this time: for a calculation or the bake time."""
    open_batch: OpenBatch | None = None
    batch: tuple[VertexId, ...] = ()
    """The groups in the batch of this iteration."""
    hosts_out: dict[HostId, None] = field(default_factory=dict)
    """The compute hosts that the batch takes out of service."""
    applied_levels: dict[ResourceId, ExecutionLevel] = field(default_factory=dict)
    """The levels that this iteration has applied."""
    to_isolate: dict[ResourceId, Reason] = field(default_factory=dict)
    """Resources in an unknown state. The next review isolates them."""
    refused_sets: dict[SetId, Reason] = field(default_factory=dict)
    """Scheduled sets that can never succeed."""
    pending_orders: dict[SetId, CommandKind] = field(default_factory=dict)
    """Sets that an administrator wants to undo or cancel."""
    to_revert: dict[ResourceId, tuple[WorkItem, ...]] = field(default_factory=dict)
    """Resources with works of a failed attempt that must be reverted."""
    to_check: tuple[ResourceId, ...] = ()
    """Resources that were changed and wait for their health check."""
    health_checked: bool = False
    """Whether the health check of this iteration is done. It runs once."""
    unmovable: dict[VmId, str] = field(default_factory=dict)
    """VMs whose move failed in this iteration."""
    consolidated_from: dict[VmId, HostId] = field(default_factory=dict)
    """VMs that consolidation has moved in this iteration, with their former host. A VM moves once.
    """
    vm_limit: int | None = None
    """V of this iteration, once it is known."""
    vms_moved: int = 0
    vm_batch_due: bool = False
    """A VM batch is decided and not started."""
    vm_batches_done: bool = False
    """No further VM batch follows in this iteration."""
    sub_iteration: int = 0
    changed_since_pause: bool = True
    """Whether an event since the last pause may make progress possible."""
    made_progress: bool = False
    """Whether this iteration has changed anything."""
    wait_reasons: tuple[Reason, ...] = ()
    """Why groups were left out of the batch of this iteration."""
    unplaced_vms: dict[HostId, tuple[VmId, ...]] = field(default_factory=dict)
    """VMs of failed hosts that found no host."""
    paused_ms: int = 0
    paused_by_command: bool = False
    pause_reason: str = ""
    """Why the last iteration made no progress; empty if it did."""
    vms_added: int = 0
    """How many VMs scaling has added. The number is part of their ids."""
    ended: bool = False
    links_off: dict[tuple[ResourceId, ResourceId], None] = field(default_factory=dict)
    """Links that are switched off: pairs of ends, sorted."""
    degraded_hosts: dict[int, int] = field(default_factory=dict)
    """The most hosts that a unit of each request deactivates, refused units included."""
    declared_constituents_min: dict[ResourceId, int] = field(default_factory=dict)
    """The minimum of constituents that dependencies declare, by aggregate."""
    check_removal: Any = field(default=None, compare=False)
    """The check of host roles (``RemovalChecker``); None if roles are not checked."""
    grouping: Any = None
    """A cache: which resources change together. None after resources, dependencies or units
    changed.
    """

    def add_dependency(self, tracked: TrackedDependency) -> None:
        """Add a dependency and update the declared minimum of its aggregate."""
        self.dependencies.append(tracked)
        self.grouping = None
        declared = tracked.dependency.constituents_min
        if declared is not None:
            aggregate = tracked.dependency.dependent
            self.declared_constituents_min[aggregate] = max(
                declared, self.declared_constituents_min.get(aggregate, 0)
            )

    def pending_resources(self, set_: SetId) -> Iterator[ResourceId]:
        """Yield the resources with pending work for a set."""
        for id_, resource_state in self.resource_states.items():
            if resource_state.can_be_changed and resource_state.has_work_for(set_):
                yield id_

    def moving_vms(self) -> Iterator[tuple[VmId, HostId]]:
        """Yield VMs of the open VM batch that have not arrived, with their target."""
        if self.open_batch is not None and isinstance(self.open_batch.schedule, VmBatch):
            for move in self.open_batch.schedule.moves:
                placement = self.placements.get(move.vm)
                if placement is not None and placement.host == move.source:
                    yield move.vm, move.target

    def vms_free(self, host: HostId) -> int:
        """Return how many more VMs a host can run."""
        return self.compute_hosts[host].vms_max - len(self.residents.get(host, ()))


def next_batch_id(state: UpgradeState, suffix: str) -> BatchId:
    """Return the id of a schedule of this iteration."""
    return BatchId(f"{state.iteration}{suffix}")


VM_CAPACITY = ResourceName("vms")
"""The capacity of a host, in VMs: ``capacity: {vms: 3}``."""


def initial_state(campaign: UpgradeCampaign) -> UpgradeState:
    """Return the state before the first event."""
    cluster = campaign.cluster
    state = UpgradeState(
        campaign=campaign,
        settings=campaign.settings,
        catalog={
            (described.component, described.version): described
            for described in campaign.catalog.descriptions
        },
        resource_states={
            resource.id: initial_resource_state(resource) for resource in cluster.resources
        },
        dependencies=[],
        tenants={tenant.id: tenant for tenant in cluster.tenants},
        compute_hosts=_compute_hosts(cluster),
        placements={},
        hosts={host.id: host for host in cluster.hosts},
        vms={vm.id: vm for vm in cluster.vms},
    )
    for dependency in cluster.dependencies:
        if (
            dependency.kind is not DependencyKind.MIGRATION
            and dependency.presence is not DependencyPresence.FUTURE
        ):
            state.add_dependency(TrackedDependency(dependency))
    _place_vms(state, cluster)
    return state


def initial_resource_state(resource: Resource, *, present: bool = True) -> ResourceState:
    """Return a resource with its installed components."""
    installed = {ComponentId(name): version for name, version in resource.components.items()}
    own_component = {main_component(resource): resource.version} if present else {}
    return ResourceState(
        resource, FrozenMap(own_component | installed), present=present, active=present
    )


def _compute_hosts(cluster: Inventory) -> dict[HostId, ComputeHost]:
    largest_mib = max((vm.memory_mib for vm in cluster.vms), default=1)
    return {
        host.id: ComputeHost(host.id, _vms_max(host, largest_mib), host.state is HostState.ON)
        for host in cluster.hosts
    }


def _vms_max(host: Host, largest_mib: int) -> int:
    """Return the capacity of a host in VMs: declared, or its memory divided by the largest VM."""
    declared = host.capacity.get(VM_CAPACITY)
    return host.usable_memory_mib // largest_mib if declared is None else declared


def _anti_affinity_groups(state: UpgradeState, cluster: Inventory) -> dict[VmId, GroupId]:
    """Return the anti-affinity groups of VMs that are declared as resources."""
    vm_of = {resource.id: resource.vm for resource in cluster.resources if resource.vm is not None}
    groups: dict[VmId, GroupId] = {}
    for group in cluster.groups:
        if group.kind is ResourceGroupKind.ANTI_AFFINITY:
            vms = [vm_of[resource] for resource in group.resources if resource in vm_of]
            groups |= dict.fromkeys(vms, group.id)
            state.disturbed_max[group.id] = 1
    return groups


def _place_vms(state: UpgradeState, cluster: Inventory) -> None:
    """Fill placements, residents and counts from the inventory."""
    group_of = _anti_affinity_groups(state, cluster)
    for tenant in cluster.tenants:
        state.vm_counts[tenant.id] = 0
        for group in tenant.anti_affinity:
            state.disturbed_max[group.id] = group.disturbed_max
            group_of |= dict.fromkeys(group.vms, group.id)
    for vm in cluster.vms:
        host = vm.host if vm.state is VmState.RUNNING else None
        state.placements[vm.id] = VmPlacement(vm.id, vm.tenant, group_of.get(vm.id), host)
        if vm.tenant is not None:
            state.vm_counts[vm.tenant] += 1
        if host is not None:
            state.residents.setdefault(host, {})[vm.id] = None
