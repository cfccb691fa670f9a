"""Work of an upgrade: operations, upgrade units and methods, tasks, batches of VM moves."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, NewType

from msgspec import Meta, field

from equipoise.model.quantity import (
    ID_PATTERN,
    Attempt,
    Count,
    HostKey,
    PositiveCount,
    ResourceKey,
    VmKey,
)
from equipoise.model.upgrade.catalog import ComponentKey, ComponentOperation, Recipe
from equipoise.model.upgrade.request import SetKey
from equipoise.model.value import Value

UnitId = NewType("UnitId", str)
BatchId = NewType("BatchId", str)
VertexId = NewType("VertexId", str)
"""A vertex of the control graph: the resource's own id, or ``G`` and the id of its first member."""
UnitKey = Annotated[UnitId, Meta(pattern=ID_PATTERN)]
BatchKey = Annotated[BatchId, Meta(pattern=ID_PATTERN)]
VertexKey = Annotated[VertexId, Meta(pattern=ID_PATTERN)]


class WorkItem(Value):
    """One atomic action on a component of a resource, for one change set."""

    set: SetKey
    component: ComponentKey
    does: ComponentOperation
    before: str | None = None
    """The present version; ``None`` if the component is not installed."""
    after: str | None = None
    """The version after the action; ``None`` if the component is removed."""
    recipe: Recipe = Recipe()
    undoing: bool = False
    """Whether the action undoes a change set: the engine then runs the undo of the recipe."""

    @property
    def duration_s(self) -> int:
        """The expected duration."""
        return self.recipe.undo_s if self.undoing else self.recipe.duration_s

    @property
    def risk_s(self) -> int:
        """The expected duration with the recovery from a failure."""
        return self.recipe.duration_s + self.recipe.undo_s


class ExecutionLevel(Value):
    """The work items of a resource within one iteration (an execution level of the thesis)."""

    unit: UnitKey
    order: Count = 1
    """The number of its request in the order of arrival; 0 for an undo."""
    works: Annotated[tuple[WorkItem, ...], Meta(min_length=1)]


class UpgradeMethod(StrEnum):
    """The method by which the resources of an upgrade unit are changed."""

    ROLLING = "rolling"
    SPLIT = "split"
    MODIFIED_SPLIT = "modified_split"
    MODIFIED_SPLIT_LINKS = "modified_split_links"
    """Resources stay in service; links between mixed versions are switched off remotely."""
    MODIFIED_SPLIT_CONSTITUENTS = "modified_split_constituents"
    """For an aggregate of more than two constituents: each constituent is a partition."""


class UpgradeUnit(Value):
    """Resources that are changed together because their versions are temporarily incompatible."""

    id: UnitKey
    method: UpgradeMethod = UpgradeMethod.ROLLING
    partitions: Annotated[tuple[tuple[ResourceKey, ...], ...], Meta(min_length=1)]
    """The partitions in the order of their change. A rolling unit has one of one resource."""
    degraded_hosts: PositiveCount | None = None
    """Most compute hosts that are out of service at a time, if the unit deactivates hosts."""

    @property
    def resources(self) -> tuple[str, ...]:
        """All resources, in the order of the partitions."""
        return tuple(resource for partition in self.partitions for resource in partition)


class TaskKind(StrEnum):
    """What a task does with a resource."""

    APPLY = "apply"
    """Execute the work items in their order."""
    REVERT = "revert"
    """Revert the work items of a failed attempt."""
    ACTIVATE = "activate"
    DEACTIVATE = "deactivate"
    ISOLATE = "isolate"
    RELEASE = "release"
    CHECK = "check"
    """Check the health of the resource."""
    LINK_ON = "link_on"
    LINK_OFF = "link_off"


TASK_KIND_KEY: Final = "errand"
"""The key of the kind in journals and JSON. It stays, so that all versions read all journals."""


class UpgradeTask(Value):
    """A task of an engine on one resource."""

    resource: ResourceKey
    vertex: VertexKey
    """Tasks of one vertex run one after the other; different vertices run concurrently."""
    kind: TaskKind = field(default=TaskKind.APPLY, name=TASK_KIND_KEY)
    attempt: Attempt = 1
    works: tuple[WorkItem, ...] = ()
    host: HostKey | None = None
    """The host of the resource, if it has one."""
    link_to: ResourceKey | None = None
    """For links: the resource at the other end."""

    @property
    def duration_s(self) -> int:
        """The expected duration."""
        if self.kind is TaskKind.REVERT:
            return sum(work.recipe.undo_s for work in self.works)
        if self.kind is TaskKind.CHECK:
            return 0  # recipes have no duration of a check; it is short beside the work
        return sum(work.duration_s for work in self.works)


class TaskBatch(Value):
    """A schedule of tasks in stages, which run one after the other.

    Deactivations before the work and activations after it are separate stages. When a task fails,
    the later tasks of its vertex do not run; all others do.
    """

    id: BatchKey
    stages: tuple[tuple[UpgradeTask, ...], ...]

    @property
    def tasks(self) -> tuple[UpgradeTask, ...]:
        """All tasks, in the order of the stages."""
        return tuple(task for stage in self.stages for task in stage)


class VmMove(Value):
    """The move of a VM to another host."""

    vm: VmKey
    source: HostKey
    target: HostKey
    converted: bool = False
    """Whether the image of the VM is converted for the hypervisor of the target."""


class VmBatch(Value):
    """VMs that move concurrently."""

    id: BatchKey
    moves: tuple[VmMove, ...]
