"""The summary of a campaign, computed from its journal: iterations, sets, SLA violations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId, TenantId, VmId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.event import CampaignStatus, Elimination
from equipoise.model.upgrade.request import RequestedChange, RequestId, SetId
from equipoise.model.upgrade.work import TaskKind, VmBatch
from equipoise.upgrade.coordinator import Coordinator
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.graph.iteration_view import build_view, partition_hosts
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.select_batch import spareable_hosts
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import ChangeSetStatus, SetProgress
from equipoise.upgrade.state.resources import main_component


@dataclass(frozen=True, slots=True)
class SpareHostNeed:
    """The spare hosts that the units of a request need."""

    request: RequestId
    needed: int
    """For the unit that deactivates the most hosts, and for failures in the new partition."""
    available: int
    """Hosts that no tenant needs, even if all tenants scale to the limit of their SLA."""
    is_waiting: bool = False
    """Whether the campaign waits for capacity: then the hosts are not enough, whatever is needed.
    """

    @property
    def is_enough(self) -> bool:
        """Whether enough hosts are available."""
        return self.available >= self.needed and not self.is_waiting


CAPACITY_CODES: Final = frozenset(
    {"no-spare-host", "vms-running", "vms-depend", "replacement-hosts-short"}
)
"""Codes of waits that more hosts may end."""


def spare_host_need(state: UpgradeState, request: RequestId, order: int) -> SpareHostNeed:
    """Compute the spare hosts of a request that was just scheduled as number ``order``."""
    sets = [
        status
        for status in state.requests.set_status.values()
        if status.order == order and status.progress is SetProgress.SCHEDULED
    ]
    divides = any(
        status.partitions_hosts and status.id not in state.requests.refused_sets for status in sets
    )
    # While hosts are divided, each partition needs its own reserve for failures.
    failover = state.settings.failover_hosts if divides else 0
    available = len(spareable_hosts(build_view(state, with_vms=False), (), None))
    # One unit changes at a time, so the largest counts.
    return SpareHostNeed(request, state.requests.degraded_hosts.get(order, 0) + failover, available)


@dataclass
class SubIterationSummary:
    """One sub-iteration: how many VMs were candidates, and how many moved."""

    wanted: int
    size: int
    reason: str
    code: str = ""


@dataclass
class IterationSummary:
    """One iteration."""

    i: int
    began_ms: int
    ended_ms: int = 0
    z: int = 0
    v: int | None = None
    """None if the hosts were not divided: then step 4 of the thesis does not apply."""
    batch: tuple[str, ...] = ()
    eliminated: tuple[Elimination, ...] = ()
    vm_batches: list[tuple[VmId, ...]] = field(default_factory=list)
    consolidation: list[tuple[VmId, ...]] = field(default_factory=list)
    rounds: list[SubIterationSummary] = field(default_factory=list)
    works: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What was done with each group of the batch, in words."""
    failed: dict[ResourceId, str] = field(default_factory=dict)
    paused: str = ""
    pause_codes: tuple[str, ...] = ()
    sizes: dict[TenantId, int] = field(default_factory=dict)
    """How many VMs each tenant had at the end."""
    headroom: int | None = None
    """How many more compute hosts could have been spared."""


@dataclass
class SlaViolation:
    """A violation of an SLA."""

    at_ms: int
    tenant: TenantId | None
    what: str
    code: str


class SetResult(NamedTuple):
    """How a change set ended, and why."""

    outcome: str
    reason: str
    code: str


@dataclass
class CampaignSummary:
    """The summary of a whole campaign."""

    status: CampaignStatus = CampaignStatus.RUNNING
    reason: str = ""
    code: str = ""
    iterations: list[IterationSummary] = field(default_factory=list)
    sets: dict[SetId, SetResult] = field(default_factory=dict)
    """The result of each set."""
    complements: dict[SetId, list[str]] = field(default_factory=dict)
    """The complementary changes of each set, in words."""
    violations: list[SlaViolation] = field(default_factory=list)
    tenants: tuple[TenantId, ...] = ()
    """The tenants of the cluster, in its order."""
    failover_hosts: int = 0
    """F: how many hosts may fail at a time."""
    outage_ms: dict[TenantId, int] = field(default_factory=dict)
    """How long no VM of a tenant answered."""
    isolated: dict[ResourceId, Reason] = field(default_factory=dict)
    given_up: dict[ResourceId, Reason] = field(default_factory=dict)
    """Resources in service without the change of a set, with the reason."""
    moves: dict[VmId, int] = field(default_factory=dict)
    returned_hosts: list[HostId] = field(default_factory=list)
    """Extra hosts that were emptied and returned at the end."""
    spare: list[SpareHostNeed] = field(default_factory=list)
    """The spare hosts that each request needs, at the time of its scheduling."""
    duration_ms: int = 0
    groups: dict[str, tuple[ResourceId, ...]] = field(default_factory=dict)
    """The members of each group of several resources in the iterations."""
    names: dict[str, str] = field(default_factory=dict)
    """The name of each group for an operator: its host, or its resource with the component."""
    already_matching: dict[SetId, list[ResourceId]] = field(default_factory=dict)
    """The resources of each set that matched from the start."""
    refused_orders: list[tuple[str, Reason]] = field(default_factory=list)
    """Rejected commands, with the reason."""

    @property
    def service_availability(self) -> dict[TenantId, float]:
        """The share of time in which a VM of each tenant answered: equation 2 of the thesis."""
        return {
            tenant: 1 - self.outage_ms.get(tenant, 0) / self.duration_ms
            if self.duration_ms
            else 1.0
            for tenant in self.tenants
        }

    @property
    def waits_for_capacity(self) -> bool:
        """Whether the campaign is paused and more hosts may let it continue."""
        codes = self.iterations[-1].pause_codes if self.iterations else ()
        return self.status is CampaignStatus.PAUSED and not CAPACITY_CODES.isdisjoint(codes)


def summarise_campaign(events: Iterable[Event]) -> CampaignSummary:
    """Summarise a campaign from its journal."""
    summariser = _Summariser()
    for event in events:
        summariser.apply(event)
    return summariser.summary


class _Summariser:
    def __init__(self) -> None:
        self.summary = CampaignSummary()
        self._coordinator = Coordinator()
        self._moving: set[VmId] = set()
        self._asked: list[RequestId] = []

    @property
    def _now(self) -> IterationSummary:
        return self.summary.iterations[-1]

    def apply(self, event: Event) -> None:
        """Record an event together with the state in which it happened."""
        note = getattr(self, f"_{type(event).__name__}", None)
        # Most notes need the state before the event. The start of an iteration is noted after it,
        # because it schedules the requests; before the start of the campaign there is no state.
        before = not isinstance(event, past.IterationStarted | past.CampaignStarted)
        if before and note is not None:
            note(event)
        self._coordinator.handle(event)
        if not before and note is not None:
            note(event)
        self.summary.duration_ms = max(self.summary.duration_ms, event.at_ms)

    @property
    def _state(self) -> UpgradeState:
        return self._coordinator.state

    def _CampaignStarted(self, _event: past.CampaignStarted) -> None:  # noqa: N802
        self.summary.tenants = tuple(self._state.cluster.tenants)
        self.summary.failover_hosts = self._state.settings.failover_hosts

    def _UpgradeRequested(self, event: past.UpgradeRequested) -> None:  # noqa: N802
        self._asked.append(event.request.id)

    def _IterationStarted(self, event: past.IterationStarted) -> None:  # noqa: N802
        self.summary.iterations.append(IterationSummary(event.iteration, event.at_ms))
        first = self._state.requests.scheduled - len(self._asked) + 1
        for order, request in enumerate(self._asked, first):
            self.summary.spare.append(spare_host_need(self._state, request, order))
        self._asked = []
        for status in self._state.requests.set_status.values():
            complements = [
                _complement_text(change) for change in status.set.changes if change.complements
            ]
            if complements:
                self.summary.complements[status.id] = complements
            if status.id not in self.summary.already_matching:
                self.summary.already_matching[status.id] = _matching(self._state, status)

    def _CommandRejected(self, event: past.CommandRejected) -> None:  # noqa: N802
        self.summary.refused_orders.append((event.command, Reason(event.code, event.reason)))

    def _BatchDecided(self, event: past.BatchDecided) -> None:  # noqa: N802
        now = self._now
        now.z, now.batch, now.eliminated = event.z, event.batch, event.eliminated
        grouped = grouping(self._state)
        eliminated = (vertex for group in event.eliminated for vertex in group.vertices)
        for vertex in (*event.batch, *eliminated):
            members = grouped.members.get(vertex, ())
            if len(members) > 1:
                self.summary.groups[vertex] = members
            for name in (vertex, *members) if members else ():
                if name not in self.summary.names:
                    self.summary.names[name] = _readable_name(self._state, name, members)
        # Groups that only return into service take no host out of it.
        out = [
            vertex
            for vertex in event.batch
            if any(
                self._state.resources.states[member].levels for member in grouped.members[vertex]
            )
        ]
        taken = {host for vertex in out for host in grouped.hosts_of.get(vertex, ())}
        now.headroom = event.z - len(taken)

    def _BatchStarted(self, event: past.BatchStarted) -> None:  # noqa: N802
        groups = grouping(self._state).group_of
        for task in event.batch.tasks:
            if task.kind is TaskKind.APPLY:
                texts = tuple(
                    _work_text(work.component, work.before, work.after) for work in task.works
                )
                group = groups[task.resource]
                self._now.works[group] = (*self._now.works.get(group, ()), *texts)

    def _VmBatchDecided(self, event: past.VmBatchDecided) -> None:  # noqa: N802
        if partition_hosts(self._state).divided:
            self._now.v = event.v
        self._now.rounds.append(
            SubIterationSummary(event.wanted, event.size, event.reason, event.code)
        )

    def _VmBatchStarted(self, event: past.VmBatchStarted) -> None:  # noqa: N802
        moved = tuple(move.vm for move in event.batch.moves)
        self._moving = set(moved)
        (self._now.consolidation if event.why else self._now.vm_batches).append(moved)
        self._count_disturbed(event.batch, event.at_ms)

    def _count_disturbed(self, batch: VmBatch, at_ms: int) -> None:
        """Count VMs that move at once, and violations of the limit of their group."""
        tenants: dict[TenantId, int] = {}
        groups: dict[str, int] = {}
        for move in batch.moves:
            placement = self._state.cluster.placements[move.vm]
            if placement.tenant is not None:
                tenants[placement.tenant] = tenants.get(placement.tenant, 0) + 1
            for group in placement.groups:
                count = groups[group] = groups.get(group, 0) + 1
                if count > self._state.cluster.disturbed_max[group]:
                    what = f"{count} VMs of group {group} are disturbed at once"
                    self.summary.violations.append(
                        SlaViolation(at_ms, placement.tenant, what, "too-many-disturbed")
                    )
        for tenant, moving in tenants.items():
            # A tenant is out only while all its VMs move at once.
            if moving == self._state.cluster.vm_counts[tenant]:
                had = self.summary.outage_ms.get(tenant, 0)
                self.summary.outage_ms[tenant] = had + self._state.settings.vm_outage_ms

    def _VmMoved(self, event: past.VmMoved) -> None:  # noqa: N802
        if event.vm in self._moving:  # the engine may report a move twice
            self._moving.discard(event.vm)
            self.summary.moves[event.vm] = self.summary.moves.get(event.vm, 0) + 1

    def _TaskFailed(self, event: past.TaskFailed) -> None:  # noqa: N802
        self._now.failed[event.resource] = f"{event.kind}: {event.reason or 'failed'}"

    def _ScalingAnswered(self, event: past.ScalingAnswered) -> None:  # noqa: N802
        if event.refused:
            what = f"{event.refused} VMs within the SLA found no host"
            self.summary.violations.append(
                SlaViolation(event.at_ms, event.tenant, what, "vm-unplaced")
            )

    def _VmsRestarted(self, event: past.VmsRestarted) -> None:  # noqa: N802
        for vm in event.unplaced:
            placement = self._state.cluster.placements.get(vm)
            what = f"VM {vm} of the failed host {event.host} found no host"
            tenant = None if placement is None else placement.tenant
            self.summary.violations.append(SlaViolation(event.at_ms, tenant, what, "vm-unplaced"))

    def _ResourceIsolated(self, event: past.ResourceIsolated) -> None:  # noqa: N802
        self.summary.isolated[event.resource] = Reason(event.code, event.reason)

    def _ResourceReleased(self, event: past.ResourceReleased) -> None:  # noqa: N802
        self.summary.isolated.pop(event.resource, None)

    def _ResourceGivenUp(self, event: past.ResourceGivenUp) -> None:  # noqa: N802
        grouped = grouping(self._state)
        for member in grouped.members[grouped.group_of[event.resource]]:
            self.summary.isolated.pop(member, None)
        self.summary.given_up[event.resource] = Reason(event.code, event.reason)

    def _HostReturned(self, event: past.HostReturned) -> None:  # noqa: N802
        self.summary.returned_hosts.append(event.host)

    def _SetEnded(self, event: past.SetEnded) -> None:  # noqa: N802
        self.summary.sets[event.set] = SetResult(event.outcome.value, event.reason, event.code)

    def _IterationEnded(self, event: past.IterationEnded) -> None:  # noqa: N802
        self._now.ended_ms, self._now.paused = event.at_ms, event.paused
        self._now.pause_codes = event.codes
        self._now.sizes = dict(self._state.cluster.vm_counts)

    def _CampaignEnded(self, event: past.CampaignEnded) -> None:  # noqa: N802
        summary = self.summary
        summary.status, summary.reason, summary.code = event.status, event.reason, event.code
        if summary.waits_for_capacity:
            summary.spare = [replace(need, is_waiting=True) for need in summary.spare]


def _matching(state: UpgradeState, status: ChangeSetStatus) -> list[ResourceId]:
    """Return the resources of a set that need no work when it is scheduled."""
    if status.id in state.requests.refused_sets:
        return []
    resource_states = {
        id_: state.resources.states[id_]
        for id_ in status.resources
        if id_ in state.resources.states
    }
    return [
        id_
        for id_, resource_state in resource_states.items()
        if not resource_state.has_work_for(status.id)
    ]


def _readable_name(state: UpgradeState, name: str, members: Sequence[ResourceId]) -> str:
    """Return the host of a group or of one of its members, or the resource with its component."""
    resources = [state.resources.states[member].resource for member in members]
    own = [resource for resource in resources if resource.id == name]
    hosts = {resource.host for resource in resources if resource.host is not None}
    if len(hosts) == 1 and (not own or own[0].host is not None):
        return next(iter(hosts))
    if own and main_component(own[0]) not in name:
        return f"{name} ({main_component(own[0])})"
    return name


def _complement_text(change: RequestedChange) -> str:
    """Return a complementary change in words."""
    what = " ".join(word for word in (change.component, change.version) if word)
    resources = ", ".join(change.resources)
    return f"{change.does} {what + ' on ' if what else ''}{resources}: {change.complements}"


def _work_text(component: str, before: str | None, after: str | None) -> str:
    if before is None:
        return f"{component} {after} installed"
    return f"{component} {before} removed" if after is None else f"{component} {before} to {after}"
