"""The two graphs: resources with what is left to do, and those that must go together as one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from equipoise.model.quantity import GroupId, HostId, ResourceId, VmId
from equipoise.model.resource import DependencyKind, Presence, ResourceGroupKind, ResourceKind
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import Level, VertexId
from equipoise.model.value import FrozenMap


class Modification(StrEnum):
    """What the next of the remaining changes does to a resource."""

    NO_CHANGE = "no_change"
    UPGRADE = "upgrade"
    ADD = "add"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Vertex:
    """A resource, existing or to come, with all that is left to do with it."""

    id: ResourceId
    kind: ResourceKind
    modification: Modification = Modification.NO_CHANGE
    active: bool = True
    """In service; a resource may be kept out of it until its partners speak its version."""
    undo_units: tuple[SetId, ...] = ()
    """The sets that are undone or completed with it."""
    levels: tuple[Level, ...] = ()
    """Actions to execute: the first level is what the next iteration would carry out."""
    failed_attempts: FrozenMap[SetId, int] = field(default_factory=FrozenMap)
    related: ResourceId | None = None
    """Of the old and the new version of an infrastructure that supports VMs: the other one."""
    isolated: bool = False
    failed: bool = False
    present: bool = True
    """Whether it is there now: one that is to be added is not yet."""
    host: HostId | None = None
    """The host it is part of."""
    vm: VmId | None = None
    """The VM it is."""
    constituents_min: int = 0
    """Of an aggregate: how many constituents its configuration and its data take."""

    @property
    def changes(self) -> bool:
        """Whether anything is left to do with it."""
        return self.modification is not Modification.NO_CHANGE


@dataclass(frozen=True, slots=True)
class Edge:
    """``dependent`` needs ``sponsor``; peers have an edge in each direction."""

    dependent: ResourceId
    sponsor: ResourceId
    kind: DependencyKind
    presence: Presence = Presence.CURRENT_FUTURE
    incompatible: bool = False
    """The versions on the way do not understand each other."""
    link: ResourceId | None = None
    """The link that realises it, a vertex of its own if it is to be changed."""


@dataclass(frozen=True, slots=True)
class Protection:
    """Resources that stand in for one another: so many of them are in service at any time."""

    id: GroupId
    kind: ResourceGroupKind
    within: GroupId | None
    holders: tuple[ResourceId, ...]
    """Those that hold the assignment."""
    members: tuple[ResourceId, ...]
    """Those that hold it or could take it over, as far as they are there."""
    in_service: tuple[ResourceId, ...]
    in_service_min: int
    """How many have to be; 0: nobody is protected."""

    @property
    def spare(self) -> int:
        """How many more may be out of service now."""
        return max(0, len(self.in_service) - self.in_service_min)


@dataclass(frozen=True)
class ResourceGraph:
    """Every resource and every dependency, now and in future, in the order of the cluster."""

    vertices: FrozenMap[ResourceId, Vertex]
    edges: tuple[Edge, ...]
    protections: tuple[Protection, ...] = ()

    @cached_property
    def guards(self) -> FrozenMap[ResourceId, tuple[GroupId, ...]]:
        """The protection groups of each resource, whether it holds their assignment or could."""
        lists: dict[ResourceId, list[GroupId]] = {}
        for group in self.protections:
            for one in group.members:
                lists.setdefault(one, []).append(group.id)
        return FrozenMap({one: tuple(found) for one, found in lists.items()})

    @cached_property
    def sponsorships(self) -> FrozenMap[ResourceId, tuple[Edge, ...]]:
        """The edges from each resource to what it needs; peers are not among them."""
        lists: dict[ResourceId, list[Edge]] = {}
        for edge in self.edges:
            if not edge.kind.is_symmetrical:
                lists.setdefault(edge.dependent, []).append(edge)
        return FrozenMap({one: tuple(found) for one, found in lists.items()})

    @cached_property
    def dependants(self) -> FrozenMap[ResourceId, tuple[Edge, ...]]:
        """The edges to each resource from those that need it; peers are not among them."""
        lists: dict[ResourceId, list[Edge]] = {}
        for edge in self.edges:
            if not edge.kind.is_symmetrical:
                lists.setdefault(edge.sponsor, []).append(edge)
        return FrozenMap({one: tuple(found) for one, found in lists.items()})

    @cached_property
    def linked_by(self) -> FrozenMap[ResourceId, tuple[Edge, ...]]:
        """The dependencies that each link realises."""
        lists: dict[ResourceId, list[Edge]] = {}
        for edge in self.edges:
            if edge.link is not None:
                lists.setdefault(edge.link, []).append(edge)
        return FrozenMap({one: tuple(found) for one, found in lists.items()})

    @cached_property
    def peers(self) -> FrozenMap[ResourceId, tuple[ResourceId, ...]]:
        """Who stands in for each resource; of a protection group, the next to it does."""
        pairs = [(edge.dependent, edge.sponsor) for edge in self.edges if edge.kind.is_symmetrical]
        for one in self.protections:
            pairs += pairwise(one.members) if one.in_service_min else ()
        found: dict[ResourceId, dict[ResourceId, None]] = {}
        for first, second in pairs:
            found.setdefault(first, {})[second] = None
            found.setdefault(second, {})[first] = None
        return FrozenMap({one: tuple(others) for one, others in found.items()})


@dataclass(frozen=True, slots=True)
class Group:
    """A vertex of the control graph: resources that are changed in one and the same iteration."""

    id: VertexId
    members: tuple[ResourceId, ...]
    """In the order of the resource graph."""
    modification: Modification
    """What the most demanding of them goes through: add, remove, upgrade, nothing."""
    active: bool = True
    hosts: tuple[HostId, ...] = ()
    """The compute hosts that are out of service while it is changed."""
    isolated: bool = False
    failed: bool = False

    @property
    def changes(self) -> bool:
        """Whether anything is left to do with it."""
        return self.modification is not Modification.NO_CHANGE


@dataclass(frozen=True, slots=True)
class GroupEdge:
    """A dependency between two groups, as its resources have it."""

    dependent: VertexId
    sponsor: VertexId
    kind: DependencyKind
    presence: Presence
    incompatible: bool = False
    link: ResourceId | None = None


@dataclass(frozen=True)
class ControlGraph:
    """The resource graph with everything contracted that must be changed at the same time."""

    groups: FrozenMap[VertexId, Group]
    edges: tuple[GroupEdge, ...]
    group_of: FrozenMap[ResourceId, VertexId]

    @cached_property
    def sponsorships(self) -> FrozenMap[VertexId, tuple[GroupEdge, ...]]:
        """The edges from each group to what it needs; peers are not among them."""
        lists: dict[VertexId, list[GroupEdge]] = {}
        for edge in self.edges:
            if not edge.kind.is_symmetrical:
                lists.setdefault(edge.dependent, []).append(edge)
        return FrozenMap({one: tuple(found) for one, found in lists.items()})

    @cached_property
    def dependants(self) -> FrozenMap[VertexId, tuple[GroupEdge, ...]]:
        """The edges to each group from those that need it; peers are not among them."""
        lists: dict[VertexId, list[GroupEdge]] = {}
        for edge in self.edges:
            if not edge.kind.is_symmetrical:
                lists.setdefault(edge.sponsor, []).append(edge)
        return FrozenMap({one: tuple(found) for one, found in lists.items()})

    @cached_property
    def peers(self) -> FrozenMap[VertexId, tuple[VertexId, ...]]:
        """Which groups stand in for each group now."""
        found: dict[VertexId, dict[VertexId, None]] = {}
        for edge in self.edges:
            if edge.kind.is_symmetrical and edge.presence is not Presence.FUTURE:
                found.setdefault(edge.dependent, {})[edge.sponsor] = None
                found.setdefault(edge.sponsor, {})[edge.dependent] = None
        return FrozenMap({one: tuple(others) for one, others in found.items()})
