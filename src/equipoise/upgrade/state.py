"""What is known of an upgrade: what the events so far add up to.

A private, writable value, like a draft of a snapshot: only ``change.py`` writes to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from equipoise.model.host import Host
from equipoise.model.quantity import GroupId, HostId, ResourceId, TenantId, VmId
from equipoise.model.resource import Dependency, Resource
from equipoise.model.tenant import Tenant
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.catalog import ComponentId, Description
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.graph import Modification
from equipoise.model.upgrade.request import ChangeSet, Command, Order, Request, SetId
from equipoise.model.upgrade.settings import UpgradeSettings
from equipoise.model.upgrade.work import (
    Batch,
    BatchId,
    Level,
    UnitId,
    UpgradeUnit,
    VertexId,
    VmBatch,
    Work,
)
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm


@dataclass(frozen=True, slots=True)
class Part:
    """A resource as it is now, and what is left to do with it."""

    resource: Resource
    components: FrozenMap[ComponentId, str]
    """What is installed on it, its main component among them while it is present."""
    present: bool = True
    active: bool = True
    levels: tuple[Level, ...] = ()
    applied: tuple[Work, ...] = ()
    """What was done to it on behalf of sets that are not complete, oldest first."""
    sets: tuple[SetId, ...] = ()
    attempts: FrozenMap[SetId, int] = field(default_factory=FrozenMap)
    related: ResourceId | None = None
    isolated: bool = False
    failed: bool = False

    @property
    def main(self) -> ComponentId:
        """The component that the resource itself is an installation of."""
        return main_component(self.resource)

    @property
    def operational(self) -> bool:
        """Whether it can do its work."""
        return not (self.isolated or self.failed)

    @property
    def can_be_changed(self) -> bool:
        """Whether an engine may be sent to it: an isolated one only to take it back."""
        return not self.failed and (
            not self.isolated or (bool(self.levels) and self.levels[0].order == 0)
        )

    def awaits(self, set_: SetId) -> bool:
        """Whether something is left to do with it for a set."""
        return any(work.set == set_ for level in self.levels for work in level.works)

    @property
    def modification(self) -> Modification:
        """What the next level does to the resource itself."""
        if not self.levels:
            return Modification.NO_CHANGE
        for work in self.levels[0].works:
            if work.component == self.main and work.before is None:
                return Modification.ADD
            if work.component == self.main and work.after is None:
                return Modification.REMOVE
        return Modification.UPGRADE

    def but(self, **changes: Any) -> Part:
        """A copy in which something is different."""
        return replace(self, **changes)


def main_component(resource: Resource) -> ComponentId:
    """The component that a resource is an installation of."""
    return ComponentId(resource.component or resource.kind.value)


class Progress(StrEnum):
    """How far a set is."""

    SCHEDULED = "scheduled"
    UNDOING = "undoing"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Standing:
    """A change set with its complementary changes, and how it stands."""

    set: ChangeSet
    order: int
    requested_ms: int
    targets: tuple[tuple[ResourceId, ...], ...]
    """Of each change: the resources it is about."""
    progress: Progress = Progress.SCHEDULED
    outcome: SetOutcome | None = None
    reason: str = ""
    paused: bool = False
    priority: int = 0
    approved: int = 0
    """How many of its checkpoints were passed."""
    divides: bool = False
    """Whether hosts before and after it cannot take each other's VMs."""

    @property
    def id(self) -> SetId:
        """The name of the set."""
        return self.set.id

    @property
    def resources(self) -> tuple[ResourceId, ...]:
        """All resources it is about, each once."""
        return tuple(dict.fromkeys(one for those in self.targets for one in those))


@dataclass(frozen=True, slots=True)
class Place:
    """A compute host: how many VMs it takes, and whether it is up."""

    host: HostId
    places: int
    up: bool = True


@dataclass(frozen=True, slots=True)
class Seat:
    """A VM: whose it is, whom it protects, and where it runs."""

    vm: VmId
    tenant: TenantId | None
    group: GroupId | None
    host: HostId | None
    moves: int = 0


@dataclass(frozen=True, slots=True)
class Bond:
    """A dependency, and the set that makes it come or go, when its owner is changed."""

    dependency: Dependency
    set: SetId | None = None
    owner: ResourceId | None = None
    comes: bool = True
    clashes: bool = False
    """Whether, in the last request about both ends, mixed versions would not understand."""
    orders: tuple[int, ...] = ()
    """The requests in which they would not."""


class Phase(StrEnum):
    """What an iteration has come to."""

    IDLE = "idle"
    TAKING_UP = "taking_up"
    SELECTING = "selecting"
    CHANGING = "changing"
    REVERTING = "reverting"
    BAKING = "baking"
    MOVING = "moving"


@dataclass
class Open:
    """A schedule that the engine was given and has not ended."""

    schedule: Batch | VmBatch
    answered: set[str] = field(default_factory=set)
    failed: set[VertexId] = field(default_factory=set)
    """Vertices of which a task failed, so that later ones of them are not carried out."""


@dataclass(frozen=True, slots=True)
class Unheeded:
    """An order that cannot be heeded, and why."""

    order: str
    reason: str
    number: int


@dataclass
class State:
    """Everything the coordinator knows."""

    campaign: Campaign
    settings: UpgradeSettings
    catalog: Mapping[tuple[ComponentId, str], Description]
    parts: dict[ResourceId, Part]
    bonds: list[Bond]
    tenants: dict[TenantId, Tenant]
    places: dict[HostId, Place]
    seats: dict[VmId, Seat]
    hosts: dict[HostId, Host] = field(default_factory=dict)
    """The compute hosts as they were described; ``places`` says what has become of them."""
    vms: dict[VmId, Vm] = field(default_factory=dict)
    """The VMs as they were described; ``seats`` says where they are."""
    at_ms: int = 0
    residents: dict[HostId, dict[VmId, None]] = field(default_factory=dict)
    sizes: dict[TenantId, int] = field(default_factory=dict)
    standings: dict[SetId, Standing] = field(default_factory=dict)
    units: dict[UnitId, UpgradeUnit] = field(default_factory=dict)
    disturbed_max: dict[GroupId, int] = field(default_factory=dict)
    requests: list[tuple[int, Request]] = field(default_factory=list)
    """Asked for, and not taken up yet, each with the time of asking."""
    taken_up: int = 0
    early: list[tuple[Command, int]] = field(default_factory=list)
    """Commands about sets that are not taken up yet, each with its number."""
    unheeded: list[Unheeded] = field(default_factory=list)
    """Orders that make no sense, of which nobody was told yet."""
    asked: list[tuple[TenantId, int]] = field(default_factory=list)
    """Scaling that is not answered yet."""
    lost: dict[HostId, tuple[VmId, ...]] = field(default_factory=dict)
    """VMs of failed hosts that nobody has restarted yet."""
    iteration: int = 0
    phase: Phase = Phase.IDLE
    ready_ms: int = 0
    """Nothing is decided before: something is being calculated or watched."""
    open: Open | None = None
    batch: tuple[VertexId, ...] = ()
    """The groups of this iteration's batch."""
    out: dict[HostId, None] = field(default_factory=dict)
    """The compute hosts that are out of service for it."""
    last_done: dict[ResourceId, Level] = field(default_factory=dict)
    """What was carried out in this iteration."""
    broken: dict[ResourceId, str] = field(default_factory=dict)
    """Resources of which nobody knows what state they are in, to be isolated."""
    refused: dict[SetId, str] = field(default_factory=dict)
    """Sets that were taken up and can never succeed."""
    orders: dict[SetId, Order] = field(default_factory=dict)
    """What an administrator wants to become of a set: undo or cancel."""
    to_revert: dict[ResourceId, tuple[Work, ...]] = field(default_factory=dict)
    to_check: tuple[ResourceId, ...] = ()
    checked: bool = False
    """Whether they were looked at in this iteration, which is done once."""
    unmovable: dict[VmId, str] = field(default_factory=dict)
    """VMs whose move failed in this iteration."""
    settled: dict[VmId, HostId] = field(default_factory=dict)
    """VMs that moved in this iteration to make room, which they do once, and from where."""
    vm_limit: int | None = None
    """V of this iteration, once it is known."""
    vm_moved: int = 0
    vm_due: bool = False
    """A VM batch was decided and not started yet."""
    vm_done: bool = False
    """No further VM batch in this iteration."""
    sub_iteration: int = 0
    changed: bool = True
    """Whether something has happened since the last pause that may make progress possible."""
    progressed: bool = False
    """Whether this iteration has come to anything."""
    told: tuple[str, ...] = ()
    """Why resources were left out of this iteration's batch."""
    stranded: dict[HostId, tuple[VmId, ...]] = field(default_factory=dict)
    """VMs of failed hosts for which there was no place."""
    paused_ms: int = 0
    paused_all: bool = False
    paused: str = ""
    """Why nothing was possible in the last iteration; empty: something was."""
    new_vms: int = 0
    """How many VMs scaling has added, which numbers them."""
    ended: bool = False
    cut: dict[tuple[ResourceId, ResourceId], None] = field(default_factory=dict)
    """Links that are switched off, by their ends in the order of their names."""
    declared_min: dict[ResourceId, int] = field(default_factory=dict)
    """Of aggregates: how many constituents their dependencies say they need."""
    may_leave: Any = field(default=None, compare=False)
    """How the roles of hosts are asked about (``cover.MayLeave``); nobody: they are not."""
    grouping: Any = None
    """Which resources go together, kept until resources, dependencies or units change."""

    def bind(self, bond: Bond) -> None:
        """Add a dependency."""
        self.bonds.append(bond)
        self.grouping = None
        least = bond.dependency.constituents_min
        if least is not None:
            aggregate = bond.dependency.dependent
            self.declared_min[aggregate] = max(least, self.declared_min.get(aggregate, 0))

    def pending(self, set_: SetId) -> Iterator[ResourceId]:
        """The resources on which something is left to do for a set."""
        for id_, part in self.parts.items():
            if part.can_be_changed and part.awaits(set_):
                yield id_

    def on_their_way(self) -> Iterator[tuple[VmId, HostId]]:
        """VMs that are moving, and where to."""
        if self.open is not None and isinstance(self.open.schedule, VmBatch):
            for move in self.open.schedule.moves:
                seat = self.seats.get(move.vm)
                if seat is not None and seat.host == move.source:
                    yield move.vm, move.target

    def free(self, host: HostId) -> int:
        """How many more VMs a host takes."""
        return self.places[host].places - len(self.residents.get(host, ()))


def next_batch_id(state: State, what: str) -> BatchId:
    """The name of a schedule of the present iteration."""
    return BatchId(f"{state.iteration}{what}")
