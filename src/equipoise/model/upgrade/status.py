"""The status of a campaign at one moment: the result of replaying its journal."""

from __future__ import annotations

from equipoise.model.inventory import Inventory
from equipoise.model.quantity import Count, Milliseconds, ResourceKey, VmKey
from equipoise.model.upgrade.event import CampaignStatus
from equipoise.model.upgrade.request import RequestKey, SetKey
from equipoise.model.upgrade.work import BatchKey, VertexKey
from equipoise.model.value import Value


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
