"""Events of an upgrade: facts of engine and administrator, decisions of the coordinator.

The events alone are enough to continue after a crash. ``UpgradeStatus`` is the state that they lead
to, for files and pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, field

from equipoise.model.inventory import Inventory
from equipoise.model.quantity import (  # fmt: skip
    Count,
    HostKey,
    Milliseconds,
    ResourceKey,
    TenantKey,
    VmKey,
)
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.request import RequestKey, SetKey, UpgradeCommand, UpgradeRequest
from equipoise.model.upgrade.work import (
    TASK_KIND_KEY,
    BatchKey,
    TaskBatch,
    TaskKind,
    VertexKey,
    VmBatch,
)
from equipoise.model.value import Value

Iteration = Annotated[int, Meta(ge=1, le=10**7)]
VmCountChange = Annotated[int, Meta(ge=-(10**6), le=10**6)]
RuleNumber = Annotated[int, Meta(ge=0, le=7)]
SIMULATED_ENGINE: Final = "sim"
"""The name of the engine that only simulates."""


# A base of its own: ``model.event`` imports this module.
class _UpgradeEventBase(Value, tag_field="event"):
    at_ms: Milliseconds
    """The time of the event, counted from the start of the campaign."""


# Facts of the engine, the tenants and the administrator


class CampaignStarted(_UpgradeEventBase, tag="campaign_started"):
    """A campaign started with this cluster, catalog and settings."""

    campaign: UpgradeCampaign
    engine: str = ""
    """The name of the engine; empty in journals that do not record it."""
    began_unix_ms: Milliseconds | None = None
    """The date of time 0 in milliseconds since 1970; None if the run has no date."""


class CampaignContinued(_UpgradeEventBase, tag="campaign_continued"):
    """Another run continues the campaign on real hosts. Its time includes the time in between."""


class UpgradeRequested(_UpgradeEventBase, tag="upgrade_requested"):
    """An administrator requested changes. The next iteration starts them."""

    request: UpgradeRequest
    number: Count = 0
    """The number of the posted command, counted from 1; 0 for a request of the campaign file."""


class UpgradeCommanded(_UpgradeEventBase, tag="upgrade_commanded"):
    """An administrator sent a command."""

    command: UpgradeCommand
    number: Count = 0
    """The number of the posted command, counted from 1; 0 for a command of the campaign file."""


class ScalingRequested(_UpgradeEventBase, tag="scaling_requested"):
    """A tenant requested more VMs, or fewer."""

    tenant: TenantKey
    vms: VmCountChange


class TaskFinished(_UpgradeEventBase, tag="task_finished"):
    """The engine finished a task."""

    batch: BatchKey
    resource: ResourceKey
    kind: TaskKind = field(name=TASK_KIND_KEY)


class TaskFailed(_UpgradeEventBase, tag="task_failed"):
    """The engine failed to finish a task, or cannot tell whether the task finished."""

    batch: BatchKey
    resource: ResourceKey
    kind: TaskKind = field(name=TASK_KIND_KEY)
    done: Count = 0
    """The number of work items that finished before the failure."""
    begun: bool = False
    """Whether the next work item had started: a revert then undoes that item too."""
    unreachable: bool = False
    """Whether the resource did not answer: the coordinator does not try to revert it."""
    reason: str = ""
    code: str = ""
    """A key of ``errors.CODES``; empty in journals that older versions wrote."""


class VmMoved(_UpgradeEventBase, tag="vm_moved"):
    """A VM runs on its new host."""

    batch: BatchKey
    vm: VmKey


class VmMoveFailed(_UpgradeEventBase, tag="vm_move_failed"):
    """A VM stayed on its old host."""

    batch: BatchKey
    vm: VmKey
    reason: str = ""
    code: str = ""
    """A key of ``errors.CODES``; empty in journals that older versions wrote."""


class BatchEnded(_UpgradeEventBase, tag="batch_ended"):
    """The engine has reported every task or move of a schedule that it will report."""

    batch: BatchKey


# Decisions of the coordinator


class Elimination(Value):
    """Resources that a rule keeps out of a batch, with the reason."""

    rule: RuleNumber
    """The elimination rule of the thesis; 0 for equation 4 and for commands and windows."""
    reason: str
    vertices: tuple[VertexKey, ...]
    code: str = ""
    """A key of ``errors.CODES``; empty in journals of earlier versions."""


class CommandRejected(_UpgradeEventBase, tag="command_rejected"):
    """A command cannot be executed: its change set is unknown, or has already ended."""

    command: str
    """The command as text."""
    reason: str
    number: Count = 0
    code: str = ""
    """A key of ``errors.CODES``; empty in journals of earlier versions."""


class IterationStarted(_UpgradeEventBase, tag="iteration_started"):
    """An iteration started. It includes all requests recorded so far."""

    iteration: Iteration


class BatchDecided(_UpgradeEventBase, tag="batch_decided"):
    """The coordinator selected the resources that this iteration changes."""

    iteration: Iteration
    z: Count
    batch: tuple[VertexKey, ...]
    eliminated: tuple[Elimination, ...] = ()


class BatchStarted(_UpgradeEventBase, tag="batch_started"):
    """The loop sends a schedule to the engine. The event is recorded before that."""

    batch: TaskBatch


class VmBatchDecided(_UpgradeEventBase, tag="vm_batch_decided"):
    """The number of VMs that may move in this iteration (V), and the size of the next batch (W)."""

    iteration: Iteration
    v: Count
    wanted: Count
    size: Count
    reason: str = ""
    code: str = ""
    """A key of ``errors.CODES``; empty in journals of earlier versions."""


class VmBatchStarted(_UpgradeEventBase, tag="vm_batch_started"):
    """The loop sends moves of VMs to the engine. The event is recorded before that."""

    batch: VmBatch
    why: str = ""


class ScalingAnswered(_UpgradeEventBase, tag="scaling_answered"):
    """The coordinator placed the new VMs of a tenant, or removed VMs of it."""

    tenant: TenantKey
    added: Mapping[VmKey, HostKey] = {}
    removed: tuple[VmKey, ...] = ()
    refused: Count = 0
    """The number of VMs within the SLA that fit on no host: each violates the SLA."""


class VmsRestarted(_UpgradeEventBase, tag="vms_restarted"):
    """The coordinator restarted VMs of a failed host on other hosts."""

    host: HostKey
    placed: Mapping[VmKey, HostKey] = {}
    unplaced: tuple[VmKey, ...] = ()


class HostReturned(_UpgradeEventBase, tag="host_returned"):
    """An extra host is empty and no longer part of the cluster."""

    host: HostKey


class ResourceIsolated(_UpgradeEventBase, tag="resource_isolated"):
    """A resource was taken out of the system."""

    resource: ResourceKey
    failed: bool
    """Whether the state of the resource is unknown."""
    reason: str
    code: str = ""
    """A key of ``errors.CODES``; empty in journals of earlier versions."""


class ResourceReleased(_UpgradeEventBase, tag="resource_released"):
    """An isolated resource is part of the system again."""

    resource: ResourceKey


class ResourceGivenUp(_UpgradeEventBase, tag="resource_given_up"):
    """A resource gets no further work of some sets. It stays in service as it is."""

    resource: ResourceKey
    sets: tuple[SetKey, ...]
    reason: str
    code: str


class SetUndoStarted(_UpgradeEventBase, tag="set_undo_started"):
    """A change set failed. The coordinator undoes its changes."""

    set: SetKey
    reason: str
    code: str = ""
    """A key of ``errors.CODES``; empty in journals of earlier versions."""


class SetOutcome(StrEnum):
    """How a change set ended."""

    APPLIED = "applied"
    UNDONE = "undone"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    """The set cannot succeed; none of its changes started."""


class SetEnded(_UpgradeEventBase, tag="set_ended"):
    """A change set ended: no work remains for it."""

    set: SetKey
    outcome: SetOutcome
    reason: str = ""
    code: str = ""
    """A key of ``errors.CODES``; empty in journals of earlier versions."""


class IterationEnded(_UpgradeEventBase, tag="iteration_ended"):
    """An iteration ended."""

    iteration: Iteration
    paused: str = ""
    codes: tuple[str, ...] = ()
    """The codes of the reasons in ``paused``."""


class CampaignStatus(StrEnum):
    """The state of a campaign as a whole."""

    RUNNING = "running"
    PAUSED = "paused"
    """The campaign waits: for an approval, a window, a recovered resource or a command."""
    COMPLETED = "completed"
    """Every set is applied, undone, cancelled or refused."""


class CampaignEnded(_UpgradeEventBase, tag="campaign_ended"):
    """The run ended. No event follows."""

    status: CampaignStatus
    reason: str = ""
    code: str = ""
    """A key of ``errors.CODES``; empty in journals of earlier versions."""


UpgradeEvent = (
    CampaignStarted
    | CampaignContinued
    | UpgradeRequested
    | UpgradeCommanded
    | ScalingRequested
    | TaskFinished
    | TaskFailed
    | VmMoved
    | VmMoveFailed
    | BatchEnded
    | CommandRejected
    | IterationStarted
    | BatchDecided
    | BatchStarted
    | VmBatchDecided
    | VmBatchStarted
    | ScalingAnswered
    | VmsRestarted
    | HostReturned
    | ResourceIsolated
    | ResourceReleased
    | ResourceGivenUp
    | SetUndoStarted
    | SetEnded
    | IterationEnded
    | CampaignEnded
)


class ChangeSetSummary(Value):
    """The progress of a change set, and its remaining work."""

    id: SetKey
    progress: str
    """``scheduled`` or ``undoing`` while the set is open, then its outcome."""
    reason: str = ""
    left: tuple[ResourceKey, ...] = ()
    """The resources with remaining work."""
    paused: bool = False
    priority: int = 0
    checkpoints_approved: Count = 0


class ResourceOutage(Value):
    """A resource that is out of service."""

    id: ResourceKey
    how: str
    """``off``, ``isolated``, or ``failed`` if its state is unknown."""


class BatchSummary(Value):
    """A schedule that the engine executes, and its unanswered tasks."""

    batch: BatchKey
    unanswered: tuple[str, ...] = ()


class UpgradeStatus(Value):
    """The status of a campaign, with the present cluster and the versions of its resources."""

    campaign: str
    at_ms: Milliseconds
    status: CampaignStatus
    iteration: Count
    phase: str
    paused: str = ""
    """Why the last iteration could do nothing."""
    paused_by_command: bool = False
    sets: tuple[ChangeSetSummary, ...] = ()
    requests: tuple[RequestKey, ...] = ()
    """Requests that the next iteration starts."""
    batch: tuple[VertexKey, ...] = ()
    """The resources that the present iteration changes."""
    under_way: BatchSummary | None = None
    out_of_service: tuple[ResourceOutage, ...] = ()
    stranded: tuple[VmKey, ...] = ()
    """VMs of failed hosts that fit on no host."""
    cluster: Inventory
