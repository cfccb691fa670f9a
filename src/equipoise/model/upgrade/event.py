"""What has happened in an upgrade. Facts come from the engine and the administrator, decisions from
the coordinator; all of them together are enough to go on after a crash."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from equipoise.model.quantity import (
    Count,
    HostKey,
    Milliseconds,
    ResourceKey,
    TenantKey,
    VmKey,
)  # fmt: skip
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.request import Command, Request, SetKey
from equipoise.model.upgrade.work import Batch, BatchKey, Errand, VertexKey, VmBatch
from equipoise.model.value import Value

Iteration = Annotated[int, Meta(ge=1, le=10**7)]
Scaling = Annotated[int, Meta(ge=-(10**6), le=10**6)]
RuleNumber = Annotated[int, Meta(ge=0, le=7)]
SIMULATED: Final = "sim"
"""The name of the engine that only simulates."""


class _Past(Value, tag_field="event"):
    at_ms: Milliseconds


# Facts


class CampaignBegan(_Past, tag="campaign_began"):
    """An upgrade was set up: its cluster, its catalog and its settings."""

    campaign: Campaign
    engine: str = ""
    """Who carries it out; empty: nobody wrote it down."""


class UpgradeRequested(_Past, tag="upgrade_requested"):
    """An administrator asked for changes; they are taken up with the next iteration."""

    request: Request
    number: Count = 0
    """Which of the orders posted to the run it is, counted from 1; 0: it came with the campaign."""


class UpgradeCommanded(_Past, tag="upgrade_commanded"):
    """An administrator gave an order."""

    command: Command
    number: Count = 0
    """Which of the orders posted to the run it is, counted from 1; 0: it came with the campaign."""


class ScalingAsked(_Past, tag="scaling_asked"):
    """A tenant wants more VMs, or fewer."""

    tenant: TenantKey
    vms: Scaling


class TaskFinished(_Past, tag="task_finished"):
    """The engine did what it was sent to do."""

    batch: BatchKey
    resource: ResourceKey
    errand: Errand


class TaskFailed(_Past, tag="task_failed"):
    """The engine could not do it, or does not know whether it did."""

    batch: BatchKey
    resource: ResourceKey
    errand: Errand
    done: Count = 0
    """How many of the works had been carried out before."""
    begun: bool = False
    """Whether the next of them had been begun: what it has done is to be taken back with them."""
    unreachable: bool = False
    """The resource did not even answer: reverting it is not tried."""
    reason: str = ""


class VmMoved(_Past, tag="vm_moved"):
    """A VM runs on its new host."""

    batch: BatchKey
    vm: VmKey


class VmMoveFailed(_Past, tag="vm_move_failed"):
    """A VM stayed where it was."""

    batch: BatchKey
    vm: VmKey
    reason: str = ""


class BatchEnded(_Past, tag="batch_ended"):
    """Every task or move of a schedule that will be answered has been."""

    batch: BatchKey


# Decisions


class Eliminated(Value):
    """Resources that are not in a batch, by which rule, and why. Rule 0: equation 4 or a brake."""

    rule: RuleNumber
    reason: str
    vertices: tuple[VertexKey, ...]


class OrderRefused(_Past, tag="order_refused"):
    """What an administrator wanted cannot be heeded: there is no such set, or it comes too late."""

    order: str
    """What was wanted, in words."""
    reason: str
    number: Count = 0


class IterationBegan(_Past, tag="iteration_began"):
    """Requests up to here are taken up."""

    iteration: Iteration


class BatchDecided(_Past, tag="batch_decided"):
    """Which resources are changed in this iteration, which are not, and why."""

    iteration: Iteration
    z: Count
    batch: tuple[VertexKey, ...]
    eliminated: tuple[Eliminated, ...] = ()


class BatchStarted(_Past, tag="batch_started"):
    """The engine is being asked to carry out a schedule. Written down before it is asked."""

    batch: Batch


class VmBatchDecided(_Past, tag="vm_batch_decided"):
    """How many VMs may move in this iteration (V), and how large the next batch of them is (W)."""

    iteration: Iteration
    v: Count
    wanted: Count
    size: Count
    reason: str = ""


class VmBatchStarted(_Past, tag="vm_batch_started"):
    """The engine is being asked to move VMs. Written down before it is asked."""

    batch: VmBatch
    why: str = ""


class ScalingAnswered(_Past, tag="scaling_answered"):
    """Where a tenant's new VMs start, or which of its VMs go."""

    tenant: TenantKey
    added: Mapping[VmKey, HostKey] = {}
    removed: tuple[VmKey, ...] = ()
    refused: Count = 0
    """How many VMs within the SLA found no place: a broken promise."""


class VmsRestarted(_Past, tag="vms_restarted"):
    """Where VMs of a failed host start again."""

    host: HostKey
    placed: Mapping[VmKey, HostKey] = {}
    unplaced: tuple[VmKey, ...] = ()


class ResourceIsolated(_Past, tag="resource_isolated"):
    """A resource was taken out of the system; ``failed`` if nobody knows what state it is in."""

    resource: ResourceKey
    failed: bool
    reason: str


class ResourceReleased(_Past, tag="resource_released"):
    """An isolated resource is back."""

    resource: ResourceKey


class SetUndoBegan(_Past, tag="set_undo_began"):
    """A set has failed: what was done of it is taken back."""

    set: SetKey
    reason: str


class SetOutcome(StrEnum):
    """How a set ended."""

    APPLIED = "applied"
    UNDONE = "undone"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    """It could never have succeeded; nothing was done."""


class SetEnded(_Past, tag="set_ended"):
    """Nothing is left to do for a set."""

    set: SetKey
    outcome: SetOutcome
    reason: str = ""


class IterationEnded(_Past, tag="iteration_ended"):
    """An iteration is over; ``paused`` if nothing could be done in it, and why."""

    iteration: Iteration
    paused: str = ""


class CampaignStatus(StrEnum):
    """How a campaign stands."""

    RUNNING = "running"
    PAUSED = "paused"
    """It waits for something that has not come."""
    COMPLETED = "completed"
    """Every set is applied, undone, cancelled or refused."""


class CampaignEnded(_Past, tag="campaign_ended"):
    """Nothing more will happen in this run."""

    status: CampaignStatus
    reason: str = ""


UpgradeEvent = (
    CampaignBegan
    | UpgradeRequested
    | UpgradeCommanded
    | ScalingAsked
    | TaskFinished
    | TaskFailed
    | VmMoved
    | VmMoveFailed
    | BatchEnded
    | OrderRefused
    | IterationBegan
    | BatchDecided
    | BatchStarted
    | VmBatchDecided
    | VmBatchStarted
    | ScalingAnswered
    | VmsRestarted
    | ResourceIsolated
    | ResourceReleased
    | SetUndoBegan
    | SetEnded
    | IterationEnded
    | CampaignEnded
)
