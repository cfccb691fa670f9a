"""How a campaign stands at one moment: what the journal of an upgrade is replayed to."""

from __future__ import annotations

from equipoise.model.inventory import Inventory
from equipoise.model.quantity import Count, Milliseconds, ResourceKey, VmKey
from equipoise.model.upgrade.event import CampaignStatus
from equipoise.model.upgrade.request import RequestKey, SetKey
from equipoise.model.upgrade.work import BatchKey, VertexKey
from equipoise.model.value import Value


class SetStanding(Value):
    """A change set: how far it is, and what is left to do for it."""

    id: SetKey
    progress: str
    """``scheduled`` or ``undoing`` while it goes on, then how it ended."""
    reason: str = ""
    left: tuple[ResourceKey, ...] = ()
    """The resources on which something is left to do for it."""
    paused: bool = False
    priority: int = 0
    checkpoints_approved: Count = 0


class OutOfService(Value):
    """A resource that does not do its work."""

    id: ResourceKey
    how: str
    """``off``, ``isolated``, or ``failed`` if nobody knows what state it is in."""


class UnderWay(Value):
    """A schedule that the engine has, and what of it is not answered."""

    batch: BatchKey
    unanswered: tuple[str, ...] = ()


class CampaignStanding(Value):
    """A campaign, its cluster as it is, and the versions that its resources have."""

    campaign: str
    at_ms: Milliseconds
    status: CampaignStatus
    iteration: Count
    phase: str
    paused: str = ""
    """Why nothing could be done in the last iteration."""
    paused_by_command: bool = False
    sets: tuple[SetStanding, ...] = ()
    requests: tuple[RequestKey, ...] = ()
    """Asked for, and taken up with the next iteration."""
    batch: tuple[VertexKey, ...] = ()
    """What the present iteration changes."""
    under_way: UnderWay | None = None
    out_of_service: tuple[OutOfService, ...] = ()
    stranded: tuple[VmKey, ...] = ()
    """VMs of failed hosts for which there is no place."""
    cluster: Inventory
