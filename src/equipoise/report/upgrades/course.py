"""The course of a campaign, as its events tell it: iterations with their batches, tenants, VMs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from equipoise.model.event import Event, HostFailed
from equipoise.model.quantity import GroupId, HostId, TenantId, VmId
from equipoise.model.tenant import Tenant
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.work import Batch, VmBatch


@dataclass(frozen=True, slots=True)
class Stay:
    """A schedule from its start to its end."""

    schedule: Batch | VmBatch
    start_ms: int
    end_ms: int
    why: str = ""


@dataclass(slots=True)
class Round:
    """One iteration."""

    number: int
    start_ms: int
    end_ms: int
    z: int | None = None
    v: int | None = None
    batch: tuple[str, ...] = ()
    eliminated: tuple[past.Eliminated, ...] = ()
    vm_batches: list[past.VmBatchDecided] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)
    paused: str = ""


@dataclass(frozen=True, slots=True)
class Outage:
    """A VM did not answer from one moment to another."""

    vm: VmId
    tenant: TenantId
    group: GroupId | None
    start_ms: int
    end_ms: int
    why: str


@dataclass(slots=True)
class Course:
    """Everything a report tells of a campaign."""

    campaign: Campaign
    tenants: dict[TenantId, Tenant]
    rounds: list[Round] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    sizes: dict[TenantId, list[tuple[int, int]]] = field(default_factory=dict)
    """How many VMs a tenant has, from when on."""
    refused: list[tuple[int, TenantId, int]] = field(default_factory=list)
    """When a tenant was refused how many VMs that it was promised."""
    notes: list[tuple[int, str]] = field(default_factory=list)
    """Sets that ended or are undone, resources that were isolated, hosts that failed."""
    end_ms: int = 0
    status: past.CampaignStatus = past.CampaignStatus.RUNNING
    moves: int = 0


def course_of(events: Iterable[Event]) -> Course:
    """Follow the events of a campaign, the first of which sets it up."""
    reader: _Reader | None = None
    for event in events:
        if isinstance(event, past.CampaignBegan):
            reader = _Reader(event)
        elif reader is not None:
            reader.take(event)
    assert reader is not None, "the first event is CampaignBegan"
    return reader.finished()


class _Reader:
    """Takes in one event after the other."""

    def __init__(self, began: past.CampaignBegan) -> None:
        cluster = began.campaign.cluster
        self.course = Course(began.campaign, {one.id: one for one in cluster.tenants})
        self.tenant_of = {vm.id: vm.tenant for vm in cluster.vms if vm.tenant is not None}
        self.host_of = {vm.id: vm.host for vm in cluster.vms}
        self.group_of = {
            vm: group.id
            for one in cluster.tenants
            for group in one.anti_affinity
            for vm in group.vms
        }
        self.target_of: dict[VmId, HostId] = {}
        self.down: dict[VmId, tuple[int, str]] = {}
        self.open: dict[str, tuple[int, Batch | VmBatch, str]] = {}
        self.outage_ms = began.campaign.settings.vm_outage_ms
        for tenant in self.course.tenants:
            size = sum(one == tenant for one in self.tenant_of.values())
            self.course.sizes[tenant] = [(began.at_ms, size)]

    def take(self, event: Event) -> None:
        course = self.course
        course.end_ms = max(course.end_ms, event.at_ms)
        match event:
            case past.IterationBegan():
                course.rounds.append(Round(event.iteration, event.at_ms, event.at_ms))
            case past.BatchDecided() if course.rounds:
                now = course.rounds[-1]
                now.z, now.batch, now.eliminated = event.z, event.batch, event.eliminated
            case past.VmBatchDecided() if course.rounds:
                course.rounds[-1].v = event.v
                course.rounds[-1].vm_batches.append(event)
            case past.IterationEnded() if course.rounds:
                course.rounds[-1].paused = event.paused
            case past.BatchStarted():
                self.open[event.batch.id] = event.at_ms, event.batch, ""
            case past.VmBatchStarted():
                self.open[event.batch.id] = event.at_ms, event.batch, event.why
                self.target_of = {move.vm: move.target for move in event.batch.moves}
            case past.BatchEnded():
                self._ended(event)
            case past.CampaignEnded():
                course.status = event.status
            case _:
                self._of_vms(event)
        if course.rounds and not isinstance(event, past.CampaignEnded):
            course.rounds[-1].end_ms = max(course.rounds[-1].end_ms, event.at_ms)

    def _ended(self, event: past.BatchEnded) -> None:
        started = self.open.pop(event.batch, None)
        if started is not None and self.course.rounds:
            start_ms, schedule, why = started
            self.course.rounds[-1].stays.append(Stay(schedule, start_ms, event.at_ms, why))

    def _of_vms(self, event: Event) -> None:
        match event:
            case past.VmMoved():
                self._moved(event)
            case past.ScalingAnswered():
                self._scaled(event)
            case past.VmsRestarted():
                for vm, host in event.placed.items():
                    self.host_of[vm] = host
                    self._up(vm, event.at_ms)
                for vm in event.unplaced:
                    self.down.setdefault(vm, (event.at_ms, "there is no host for it"))
            case HostFailed():
                self._lost(event.host, event.at_ms)
                self._note(event.at_ms, f"host {event.host} failed")
            case _:
                self._besides(event)

    def _besides(self, event: Event) -> None:
        match event:
            case past.SetEnded():
                why = f": {event.reason}" if event.reason else ""
                self._note(event.at_ms, f"set {event.set} {event.outcome}{why}")
            case past.SetUndoBegan():
                self._note(event.at_ms, f"set {event.set} is undone: {event.reason}")
            case past.ResourceIsolated():
                self._note(event.at_ms, f"{event.resource} isolated: {event.reason}")
            case past.TaskFailed():
                words = f"{event.errand} of {event.resource} failed: {event.reason}"
                self._note(event.at_ms, words)
            case _:
                pass

    def _note(self, at_ms: int, words: str) -> None:
        self.course.notes.append((at_ms, words))

    def _moved(self, event: past.VmMoved) -> None:
        self.host_of[event.vm] = self.target_of.get(event.vm) or self.host_of.get(event.vm)
        self.course.moves += 1
        if self.outage_ms:
            start_ms = max(0, event.at_ms - self.outage_ms)
            self._out(event.vm, start_ms, event.at_ms, "while it moved")

    def _scaled(self, event: past.ScalingAnswered) -> None:
        course, tenant = self.course, event.tenant
        groups = course.tenants[tenant].anti_affinity
        for vm, host in event.added.items():
            self.tenant_of[vm] = tenant
            self.host_of[vm] = host
            if groups:
                self.group_of[vm] = groups[0].id
        for vm in event.removed:
            self._up(vm, event.at_ms)
            self.host_of.pop(vm, None)
        size = course.sizes[tenant][-1][1] + len(event.added) - len(event.removed)
        course.sizes[tenant].append((event.at_ms, size))
        if event.refused:
            course.refused.append((event.at_ms, tenant, event.refused))

    def _lost(self, host: HostId, at_ms: int) -> None:
        for vm, where in self.host_of.items():
            if where == host:
                self.down.setdefault(vm, (at_ms, f"host {host} failed"))

    def _up(self, vm: VmId, at_ms: int) -> None:
        since = self.down.pop(vm, None)
        if since is not None:
            self._out(vm, since[0], at_ms, since[1])

    def _out(self, vm: VmId, start_ms: int, end_ms: int, why: str) -> None:
        tenant = self.tenant_of.get(vm)
        if tenant is not None and end_ms > start_ms:
            group = self.group_of.get(vm)
            self.course.outages.append(Outage(vm, tenant, group, start_ms, end_ms, why))

    def finished(self) -> Course:
        for vm in list(self.down):
            self._up(vm, self.course.end_ms)
        return self.course
