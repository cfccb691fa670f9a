"""Upgrade requests: sets of changes that succeed or fail together; commands to a campaign."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NewType

from msgspec import Meta

from equipoise.model.host import Host
from equipoise.model.quantity import (
    ID_PATTERN,
    Attempt,
    Count,
    PositiveCount,
    PositiveSeconds,
    ResourceKey,
    Seconds,
)
from equipoise.model.upgrade.catalog import Catalog, ComponentKey, VersionName
from equipoise.model.upgrade.infrastructure import Dependency, Resource
from equipoise.model.value import Value

RequestId = NewType("RequestId", str)
SetId = NewType("SetId", str)
RequestKey = Annotated[RequestId, Meta(pattern=ID_PATTERN)]
SetKey = Annotated[SetId, Meta(pattern=ID_PATTERN)]
Percent = Annotated[int, Meta(ge=1, le=100)]
Priority = Annotated[int, Meta(ge=-1000, le=1000)]


class ChangeKind(StrEnum):
    """What a change does with a component, a resource or a dependency."""

    ADD = "add"
    REMOVE = "remove"
    UPGRADE = "upgrade"


class RequestedChange(Value):
    """One change of a set: to a component of resources, to resources, or to dependencies."""

    does: ChangeKind
    resources: tuple[ResourceKey, ...] = ()
    """The resources to change. ``new`` describes those that are added."""
    component: ComponentKey | None = None
    """The component to change; ``None`` for the resources themselves."""
    version: VersionName | None = None
    """The new version."""
    new: tuple[Resource, ...] = ()
    """The resources to add."""
    replaces: ResourceKey | None = None
    """The resource that the added one replaces; it is removed at the end."""
    dependencies: tuple[Dependency, ...] = ()
    """The dependencies to add, remove or change."""
    undo_threshold: Count | None = None
    """Fewest resources that must be operational at the end, else the set is undone; by default all.
    """
    undo_version: VersionName | None = None
    """The version after an undo; by default the version before the change."""
    complements: str = ""
    """Why the change was added to the request; empty for a requested change."""


class MaintenanceWindow(Value):
    """A time for work: from ``opens_s`` to ``closes_s`` of every period, counted from the start."""

    opens_s: Seconds
    closes_s: PositiveSeconds
    every_s: PositiveSeconds = 86_400


WindowText = Annotated[str, Meta(min_length=1, max_length=120)]
"""A window on the wall clock, such as ``weekdays 22:00-06:00 Europe/Berlin``."""
InstantText = Annotated[str, Meta(min_length=1, max_length=120)]
"""A date and time, such as ``2026-11-20 22:00 Europe/Berlin``."""


class ChangeSet(Value):
    """Changes that are applied together or undone together."""

    id: SetKey
    changes: Annotated[tuple[RequestedChange, ...], Meta(min_length=1)]
    attempts_max: Attempt = 1
    """Attempts per resource (max-retry of the thesis)."""
    completion_s_max: PositiveSeconds | None = None
    """Time after the request by which the set must be complete, else it is undone."""
    priority: Priority = 0
    """Of sets that compete for the same spare hosts, the one with the higher number is first."""
    bake_s: Seconds = 0
    """Time to watch the changed resources before the next iteration."""
    complete_by: InstantText | None = None
    """Date and time by which the set must be complete, else it is undone."""
    windows: tuple[MaintenanceWindow | WindowText, ...] = ()
    """The times for work on the set; none for any time. ``weekdays 22:00-06:00 Europe/Berlin`` or
    ``2026-11-20 22:00 to 2026-11-21 06:00 Europe/Berlin``, or seconds from the start."""
    checkpoints_pct: tuple[Percent, ...] = ()
    """Percentages of changed hosts (or resources without a host) at which the administrator must
    approve the next ones. A batch never goes beyond the next checkpoint."""
    canary: PositiveCount | None = None
    """So many hosts (or resources without a host) change first; when they are healthy, the
    administrator must approve the others."""
    batch_max: PositiveCount | None = None
    """The most hosts (or resources without a host) that one batch changes for the set."""
    failures_max: PositiveCount | None = None
    """After so many failed attempts in total the set stops, until ``resume`` continues it."""


class NewInfrastructure(Value):
    """Hosts and resources that have joined the cluster since the campaign started."""

    hosts: tuple[Host, ...] = ()
    resources: tuple[Resource, ...] = ()
    dependencies: tuple[Dependency, ...] = ()


class UpgradeRequest(Value):
    """A request of an administrator: change sets that are independent of each other."""

    id: RequestKey
    sets: Annotated[tuple[ChangeSet, ...], Meta(min_length=1)]
    catalog: Catalog = Catalog()
    """Descriptions of versions that the catalog of the campaign does not have."""
    new: NewInfrastructure = NewInfrastructure()
    """Hosts and resources that the campaign does not know yet. They exist already; a change with
    ``does: add`` is for those that do not."""


class CommandKind(StrEnum):
    """A command of the administrator to a running campaign."""

    UNDO = "undo"
    """Undo a set that is not complete."""
    CANCEL = "cancel"
    """Keep the finished changes of a set, and start no further ones."""
    PAUSE = "pause"
    """Start no further work, of one set or of all."""
    RESUME = "resume"
    APPROVE = "approve"
    """Continue after the checkpoint at which a set waits."""
    PRIORITY = "priority"
    REPAIRED = "repaired"
    """A failed or isolated resource works again, in the version that the status shows."""


class UpgradeCommand(Value):
    """A command to one change set, or to all."""

    order: CommandKind
    set: SetKey | None = None
    """The change set; ``None`` for all."""
    resource: ResourceKey | None = None
    """The repaired resource."""
    priority: Priority = 0
