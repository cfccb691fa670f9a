"""Work: what is to be done with a resource, in which order, by which method; and VMs to move."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NewType

from msgspec import Meta

from equipoise.model.quantity import (
    ID_PATTERN,
    Attempt,
    Count,
    CountPresent,
    HostKey,
    ResourceKey,
    VmKey,
)
from equipoise.model.upgrade.catalog import ComponentKey, Doing, Recipe
from equipoise.model.upgrade.request import SetKey
from equipoise.model.value import Value

UnitId = NewType("UnitId", str)
BatchId = NewType("BatchId", str)
VertexId = NewType("VertexId", str)
"""A vertex of the control graph: the resource's own id, or ``G`` and the id of its first member."""
UnitKey = Annotated[UnitId, Meta(pattern=ID_PATTERN)]
BatchKey = Annotated[BatchId, Meta(pattern=ID_PATTERN)]
VertexKey = Annotated[VertexId, Meta(pattern=ID_PATTERN)]


class Work(Value):
    """One atomic action on a resource, on behalf of one change set."""

    set: SetKey
    component: ComponentKey
    does: Doing
    before: str | None = None
    """The version that is there; nothing: none is."""
    after: str | None = None
    """The version it leads to; nothing: the component is gone."""
    recipe: Recipe = Recipe()
    undoing: bool = False
    """Part of taking a set back: the recipe's undo is what is to be run."""

    @property
    def duration_s(self) -> int:
        """How long it takes."""
        return self.recipe.taking_back_s if self.undoing else self.recipe.duration_s

    @property
    def risk_s(self) -> int:
        """How long it takes with the recovery from a failure."""
        return self.recipe.duration_s + self.recipe.taking_back_s


class Level(Value):
    """Actions that are carried out on a resource within one iteration (an execution level)."""

    unit: UnitKey
    order: Count = 1
    """Which request it belongs to, in the order they came; 0: it takes back what was done."""
    works: Annotated[tuple[Work, ...], Meta(min_length=1)]


class Method(StrEnum):
    """How the resources of an upgrade unit are taken through the change."""

    ROLLING = "rolling"
    SPLIT = "split"
    MODIFIED_SPLIT = "modified_split"
    MODIFIED_SPLIT_LINKS = "modified_split_links"
    """Links are managed from afar: resources stay in service, links of mixed versions go off."""
    MODIFIED_SPLIT_CONSTITUENTS = "modified_split_constituents"
    """For an aggregate of more than two: each constituent is a partition of its own."""


class UpgradeUnit(Value):
    """Resources that must go together because versions on the way do not understand each other."""

    id: UnitKey
    method: Method = Method.ROLLING
    partitions: Annotated[tuple[tuple[ResourceKey, ...], ...], Meta(min_length=1)]
    """In the order in which they are changed; one of one resource where it rolls."""
    degraded_hosts: CountPresent | None = None
    """How many compute hosts are out of service at the worst moment, if the unit keeps them off."""

    @property
    def resources(self) -> tuple[str, ...]:
        """All its resources, in the order of the partitions."""
        return tuple(one for partition in self.partitions for one in partition)


class Errand(StrEnum):
    """Why an engine is sent to a resource."""

    APPLY = "apply"
    """Do the works, in order."""
    REVERT = "revert"
    """Take back what an attempt has done that failed."""
    ACTIVATE = "activate"
    DEACTIVATE = "deactivate"
    ISOLATE = "isolate"
    RELEASE = "release"
    CHECK = "check"
    """See whether the resource is well."""
    LINK_ON = "link_on"
    LINK_OFF = "link_off"


class Task(Value):
    """What an engine is to do with one resource."""

    resource: ResourceKey
    vertex: VertexKey
    """Tasks of one vertex come one after the other, those of different ones side by side."""
    errand: Errand = Errand.APPLY
    attempt: Attempt = 1
    works: tuple[Work, ...] = ()
    host: HostKey | None = None
    """The machine it is on, if it is on one."""
    link_to: ResourceKey | None = None
    """For links: the resource at the other end."""

    @property
    def duration_s(self) -> int:
        """How long it is expected to take."""
        if self.errand is Errand.REVERT:
            return sum(work.recipe.taking_back_s for work in self.works)
        return sum(work.duration_s for work in self.works)


class Batch(Value):
    """A schedule: stages one after the other.

    What must come before (deactivate) and after (activate) are stages of their own. When a task
    fails, later tasks of its vertex are not carried out; all others are.
    """

    id: BatchKey
    stages: tuple[tuple[Task, ...], ...]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks, in the order of the stages."""
        return tuple(task for stage in self.stages for task in stage)


class VmMove(Value):
    """A VM goes to another host; ``converted`` if its image must be made fit for the new side."""

    vm: VmKey
    source: HostKey
    target: HostKey
    converted: bool = False


class VmBatch(Value):
    """VMs that move side by side."""

    id: BatchKey
    moves: tuple[VmMove, ...]
