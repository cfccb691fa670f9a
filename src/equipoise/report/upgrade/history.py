"""The history of a campaign from its events: iterations, batches, tenants and VM outages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from equipoise.model.event import Event, HostFailed
from equipoise.model.inventory import Tenant
from equipoise.model.quantity import GroupId, HostId, TenantId, VmId
from equipoise.model.upgrade import event as upgrade_events
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.work import TaskBatch, VmBatch


@dataclass(frozen=True, slots=True)
class ExecutedBatch:
    """A batch from its start to its end."""

    schedule: TaskBatch | VmBatch
    start_ms: int
    end_ms: int
    why: str = ""


@dataclass(slots=True)
class IterationHistory:
    """One iteration."""

    number: int
    start_ms: int
    end_ms: int
    z: int | None = None
    v: int | None = None
    batch: tuple[str, ...] = ()
    eliminated: tuple[upgrade_events.Elimination, ...] = ()
    vm_batches: list[upgrade_events.VmBatchDecided] = field(default_factory=list)
    executed: list[ExecutedBatch] = field(default_factory=list)
    paused: str = ""


@dataclass(frozen=True, slots=True)
class VmOutage:
    """A period in which a VM does not answer."""

    vm: VmId
    tenant: TenantId
    group: GroupId | None
    start_ms: int
    end_ms: int
    why: str


@dataclass(slots=True)
class CampaignHistory:
    """All data that the page of a campaign shows."""

    campaign: UpgradeCampaign
    tenants: dict[TenantId, Tenant]
    iterations: list[IterationHistory] = field(default_factory=list)
    outages: list[VmOutage] = field(default_factory=list)
    sizes: dict[TenantId, list[tuple[int, int]]] = field(default_factory=dict)
    """Number of VMs of a tenant, each with the time from which it holds."""
    refused: list[tuple[int, TenantId, int]] = field(default_factory=list)
    """Refused VMs within the SLA: time, tenant and number."""
    notes: list[tuple[int, str]] = field(default_factory=list)
    """Ends and undos of sets, isolated resources and failed hosts."""
    end_ms: int = 0
    status: upgrade_events.CampaignStatus = upgrade_events.CampaignStatus.RUNNING
    moves: int = 0


def campaign_history(events: Iterable[Event]) -> CampaignHistory:
    """Return the history of the events of a campaign; the first event is its start."""
    reader: _HistoryReader | None = None
    for event in events:
        if isinstance(event, upgrade_events.CampaignStarted):
            reader = _HistoryReader(event)
        elif reader is not None:
            reader.add(event)
    assert reader is not None, "the first event is CampaignStarted"
    return reader.finished()


class _HistoryReader:
    """Builds the history from one event after the other."""

    def __init__(self, began: upgrade_events.CampaignStarted) -> None:
        cluster = began.campaign.cluster
        self.history = CampaignHistory(
            began.campaign, {tenant.id: tenant for tenant in cluster.tenants}
        )
        self.tenant_of = {vm.id: vm.tenant for vm in cluster.vms if vm.tenant is not None}
        self.host_of = {vm.id: vm.host for vm in cluster.vms}
        self.group_of = {
            vm: group.id
            for tenant in cluster.tenants
            for group in tenant.anti_affinity
            for vm in group.vms
        }
        self.target_of: dict[VmId, HostId] = {}
        self.down: dict[VmId, tuple[int, str]] = {}
        self.open: dict[str, tuple[int, TaskBatch | VmBatch, str]] = {}
        self.outage_ms = began.campaign.settings.vm_outage_ms
        for tenant in self.history.tenants:
            size = sum(owner == tenant for owner in self.tenant_of.values())
            self.history.sizes[tenant] = [(began.at_ms, size)]

    def add(self, event: Event) -> None:
        history = self.history
        history.end_ms = max(history.end_ms, event.at_ms)
        match event:
            case upgrade_events.IterationStarted():
                history.iterations.append(
                    IterationHistory(event.iteration, event.at_ms, event.at_ms)
                )
            case upgrade_events.BatchDecided() if history.iterations:
                now = history.iterations[-1]
                now.z, now.batch, now.eliminated = event.z, event.batch, event.eliminated
            case upgrade_events.VmBatchDecided() if history.iterations:
                history.iterations[-1].v = event.v
                history.iterations[-1].vm_batches.append(event)
            case upgrade_events.IterationEnded() if history.iterations:
                history.iterations[-1].paused = event.paused
            case upgrade_events.BatchStarted():
                self.open[event.batch.id] = event.at_ms, event.batch, ""
            case upgrade_events.VmBatchStarted():
                self.open[event.batch.id] = event.at_ms, event.batch, event.why
                self.target_of = {move.vm: move.target for move in event.batch.moves}
            case upgrade_events.BatchEnded():
                self._ended(event)
            case upgrade_events.CampaignEnded():
                history.status = event.status
            case _:
                self._of_vms(event)
        if history.iterations and not isinstance(event, upgrade_events.CampaignEnded):
            history.iterations[-1].end_ms = max(history.iterations[-1].end_ms, event.at_ms)

    def _ended(self, event: upgrade_events.BatchEnded) -> None:
        started = self.open.pop(event.batch, None)
        if started is not None and self.history.iterations:
            start_ms, schedule, why = started
            self.history.iterations[-1].executed.append(
                ExecutedBatch(schedule, start_ms, event.at_ms, why)
            )

    def _of_vms(self, event: Event) -> None:
        match event:
            case upgrade_events.VmMoved():
                self._moved(event)
            case upgrade_events.ScalingAnswered():
                self._scaled(event)
            case upgrade_events.VmsRestarted():
                for vm, host in event.placed.items():
                    self.host_of[vm] = host
                    self._up(vm, event.at_ms)
                for vm in event.unplaced:
                    self.down.setdefault(vm, (event.at_ms, "no host has capacity"))
            case HostFailed():
                self._lost(event.host, event.at_ms)
                self._note(event.at_ms, f"host {event.host} failed")
            case _:
                self._besides(event)

    def _besides(self, event: Event) -> None:
        match event:
            case upgrade_events.SetEnded():
                why = f": {event.reason}" if event.reason else ""
                self._note(event.at_ms, f"set {event.set} {event.outcome}{why}")
            case upgrade_events.SetUndoStarted():
                self._note(event.at_ms, f"set {event.set} is undone: {event.reason}")
            case upgrade_events.ResourceIsolated():
                self._note(event.at_ms, f"{event.resource} isolated: {event.reason}")
            case upgrade_events.TaskFailed():
                words = f"{event.kind} of {event.resource} failed: {event.reason}"
                self._note(event.at_ms, words)
            case _:
                pass

    def _note(self, at_ms: int, words: str) -> None:
        self.history.notes.append((at_ms, words))

    def _moved(self, event: upgrade_events.VmMoved) -> None:
        self.host_of[event.vm] = self.target_of.get(event.vm) or self.host_of.get(event.vm)
        self.history.moves += 1
        if self.outage_ms:
            # A VM answers while its memory is copied; the outage is the end of the move.
            start_ms = max(0, event.at_ms - self.outage_ms)
            self._out(event.vm, start_ms, event.at_ms, "during its move")

    def _scaled(self, event: upgrade_events.ScalingAnswered) -> None:
        history, tenant = self.history, event.tenant
        groups = history.tenants[tenant].anti_affinity
        for vm, host in event.added.items():
            self.tenant_of[vm] = tenant
            self.host_of[vm] = host
            if groups:
                self.group_of[vm] = groups[0].id
        for vm in event.removed:
            self._up(vm, event.at_ms)
            self.host_of.pop(vm, None)
        size = history.sizes[tenant][-1][1] + len(event.added) - len(event.removed)
        history.sizes[tenant].append((event.at_ms, size))
        if event.refused:
            history.refused.append((event.at_ms, tenant, event.refused))

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
            self.history.outages.append(VmOutage(vm, tenant, group, start_ms, end_ms, why))

    def finished(self) -> CampaignHistory:
        for vm in list(self.down):
            self._up(vm, self.history.end_ms)
        return self.history
