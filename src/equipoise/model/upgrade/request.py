"""Requests: sets of changes that succeed or fail together, and what may be commanded meanwhile."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NewType

from msgspec import Meta

from equipoise.model.quantity import (
    ID_PATTERN,
    Attempt,
    Count,
    ResourceKey,
    Seconds,
    SecondsPresent,
)
from equipoise.model.resource import Dependency, Resource
from equipoise.model.upgrade.catalog import ComponentKey, VersionName
from equipoise.model.value import Value

RequestId = NewType("RequestId", str)
SetId = NewType("SetId", str)
RequestKey = Annotated[RequestId, Meta(pattern=ID_PATTERN)]
SetKey = Annotated[SetId, Meta(pattern=ID_PATTERN)]
Percent = Annotated[int, Meta(ge=1, le=100)]
Priority = Annotated[int, Meta(ge=-1000, le=1000)]


class ChangeKind(StrEnum):
    """What becomes of a component, a resource or a dependency."""

    ADD = "add"
    REMOVE = "remove"
    UPGRADE = "upgrade"


class Change(Value):
    """One change of a set: to a component of resources, to resources, or to dependencies."""

    does: ChangeKind
    resources: tuple[ResourceKey, ...] = ()
    """The resources it is about; of those that are to be added, ``new`` tells more."""
    component: ComponentKey | None = None
    """The component on them; nothing: the resources themselves."""
    version: VersionName | None = None
    """What it leads to."""
    new: tuple[Resource, ...] = ()
    """The resources to add."""
    replaces: ResourceKey | None = None
    """Which resource the added one takes over from; the old one is removed in the end."""
    dependencies: tuple[Dependency, ...] = ()
    """The dependencies to add, remove or change, with the resources or by themselves."""
    undo_threshold: Count | None = None
    """How many of the resources must be operational in the end, or it is undone; nothing: all."""
    undo_version: VersionName | None = None
    """Where undoing leads to; nothing: the version at which the change met the resource."""
    complements: str = ""
    """Why it was added to what the administrator asked for; empty: it was asked for."""


class Window(Value):
    """When work may be under way: from ``opens_s`` to ``closes_s`` of every period."""

    opens_s: Seconds
    closes_s: SecondsPresent
    every_s: SecondsPresent = 86_400


class ChangeSet(Value):
    """Changes that are applied all together or undone all together."""

    id: SetKey
    changes: Annotated[tuple[Change, ...], Meta(min_length=1)]
    attempts_max: Attempt = 1
    """How often it is tried on one resource (max-retry)."""
    completion_s_max: SecondsPresent | None = None
    """How long after the request it must be complete, or it is undone."""
    priority: Priority = 0
    """Where sets compete for the same spare hosts, the higher one comes first."""
    bake_s: Seconds = 0
    """How long changed resources are watched before the next iteration."""
    windows: tuple[Window, ...] = ()
    """When it may be worked on; none: always."""
    checkpoints_pct: tuple[Percent, ...] = ()
    """At which shares of its resources somebody has to approve before it goes on."""


class Request(Value):
    """What an administrator asks for at one moment: sets that are independent of each other."""

    id: RequestKey
    sets: Annotated[tuple[ChangeSet, ...], Meta(min_length=1)]


class Order(StrEnum):
    """What an administrator may command while an upgrade runs."""

    UNDO = "undo"
    """Take a set back that is not complete."""
    CANCEL = "cancel"
    """Leave what is done of a set as it is, and do no more of it."""
    PAUSE = "pause"
    """Begin nothing new, of one set or of all."""
    RESUME = "resume"
    APPROVE = "approve"
    """Go on behind the checkpoint at which a set waits."""
    PRIORITY = "priority"


class Command(Value):
    """An order, and to which set it applies; nothing: to all."""

    order: Order
    set: SetKey | None = None
    priority: Priority = 0
