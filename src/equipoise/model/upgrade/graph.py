"""The resource graph with remaining changes, and the control graph of joint changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

from equipoise.model.quantity import GroupId, HostId, ResourceId, VmId
from equipoise.model.upgrade.infrastructure import (
    DependencyKind,
    DependencyPresence,
    ResourceGroupKind,
    ResourceKind,
)
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import ExecutionLevel, VertexId
from equipoise.model.value import FrozenMap

K = TypeVar("K")
V = TypeVar("V")


class Modification(StrEnum):
    """What the next remaining change does with a resource."""

    NO_CHANGE = "no_change"
    UPGRADE = "upgrade"
    ADD = "add"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Vertex:
    """A resource, present or future, with its remaining work."""

    id: ResourceId
    kind: ResourceKind
    modification: Modification = Modification.NO_CHANGE
    active: bool = True
    """Whether it is in service. A resource stays out until its partners have its version."""
    undo_units: tuple[SetId, ...] = ()
    """The change sets that change the resource."""
    levels: tuple[ExecutionLevel, ...] = ()
    """The remaining work. The next iteration executes the first level."""
    failed_attempts: FrozenMap[SetId, int] = field(default_factory=FrozenMap)
    related: ResourceId | None = None
    """The other version of an infrastructure that supports VMs: the old of the new, or the new."""
    isolated: bool = False
    failed: bool = False
    present: bool = True
    """Whether the resource exists now; one that will be added does not."""
    host: HostId | None = None
    """The host of the resource."""
    vm: VmId | None = None
    """The VM that the resource is."""
    constituents_min: int = 0
    """For an aggregate: the fewest constituents for its configuration and its data."""


@dataclass(frozen=True, slots=True)
class Edge:
    """``dependent`` needs ``sponsor``; peers have an edge in each direction."""

    dependent: ResourceId
    sponsor: ResourceId
    kind: DependencyKind
    presence: DependencyPresence = DependencyPresence.CURRENT_FUTURE
    incompatible: bool = False
    """Whether the two resources are incompatible while only one of them is changed."""
    link: ResourceId | None = None
    """The link that realises the dependency; it is a vertex if it is changed itself."""


@dataclass(frozen=True, slots=True)
class ProtectionGroup:
    """Redundant resources of which a minimum stays in service."""

    id: GroupId
    kind: ResourceGroupKind
    within: GroupId | None
    holders: tuple[ResourceId, ...]
    """The resources that hold the assignment."""
    members: tuple[ResourceId, ...]
    """The present resources that hold the assignment or can take it over."""
    in_service: tuple[ResourceId, ...]
    in_service_min: int
    """Fewest members in service; 0 for no protection."""

    @property
    def spare(self) -> int:
        """The number of further members that may leave service now."""
        return max(0, len(self.in_service) - self.in_service_min)


@dataclass(frozen=True)
class ResourceGraph:
    """All present and future resources and dependencies, in the order of the cluster."""

    vertices: FrozenMap[ResourceId, Vertex]
    edges: tuple[Edge, ...]
    protections: tuple[ProtectionGroup, ...] = ()

    @cached_property
    def protection_groups_of(self) -> FrozenMap[ResourceId, tuple[GroupId, ...]]:
        """The protection groups of each member."""
        return _grouped(
            (member, group.id) for group in self.protections for member in group.members
        )

    @cached_property
    def sponsor_edges(self) -> FrozenMap[ResourceId, tuple[Edge, ...]]:
        """The edges from each resource to its sponsors, without peers."""
        return _grouped((edge.dependent, edge) for edge in self.edges if not _is_peer(edge))

    @cached_property
    def dependent_edges(self) -> FrozenMap[ResourceId, tuple[Edge, ...]]:
        """The edges to each resource from its dependents, without peers."""
        return _grouped((edge.sponsor, edge) for edge in self.edges if not _is_peer(edge))

    @cached_property
    def edges_by_link(self) -> FrozenMap[ResourceId, tuple[Edge, ...]]:
        """The dependencies that each link realises."""
        return _grouped((edge.link, edge) for edge in self.edges if edge.link is not None)

    @cached_property
    def peers(self) -> FrozenMap[ResourceId, tuple[ResourceId, ...]]:
        """The peers of each resource. In a protection group the neighbours are peers."""
        pairs = [(edge.dependent, edge.sponsor) for edge in self.edges if _is_peer(edge)]
        for group in self.protections:
            # Neighbours connect the group; all pairs would grow with the square of its size.
            pairs += pairwise(group.members) if group.in_service_min else ()
        return _symmetric(pairs)


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """A vertex of the control graph: resources that are changed in the same iteration."""

    id: VertexId
    members: tuple[ResourceId, ...]
    """The resources, in the order of the resource graph."""
    modification: Modification
    """The first of add, remove, upgrade and no change that a member has."""
    active: bool = True
    hosts: tuple[HostId, ...] = ()
    """The compute hosts that are out of service during the change."""
    isolated: bool = False
    failed: bool = False

    @property
    def changes(self) -> bool:
        """Whether work remains."""
        return self.modification is not Modification.NO_CHANGE


@dataclass(frozen=True, slots=True)
class ChangeGroupEdge:
    """A dependency between resources of two change groups."""

    dependent: VertexId
    sponsor: VertexId
    kind: DependencyKind
    presence: DependencyPresence
    incompatible: bool = False
    link: ResourceId | None = None


@dataclass(frozen=True)
class ControlGraph:
    """The resource graph, with resources that change at the same time contracted to one vertex."""

    groups: FrozenMap[VertexId, ChangeGroup]
    edges: tuple[ChangeGroupEdge, ...]
    group_of: FrozenMap[ResourceId, VertexId]

    @cached_property
    def sponsor_edges(self) -> FrozenMap[VertexId, tuple[ChangeGroupEdge, ...]]:
        """The edges from each group to its sponsors, without peers."""
        return _grouped((edge.dependent, edge) for edge in self.edges if not _is_peer(edge))

    @cached_property
    def dependent_edges(self) -> FrozenMap[VertexId, tuple[ChangeGroupEdge, ...]]:
        """The edges to each group from its dependents, without peers."""
        return _grouped((edge.sponsor, edge) for edge in self.edges if not _is_peer(edge))

    @cached_property
    def peers(self) -> FrozenMap[VertexId, tuple[VertexId, ...]]:
        """The present peers of each group."""
        return _symmetric(
            (edge.dependent, edge.sponsor)
            for edge in self.edges
            if _is_peer(edge) and edge.presence is not DependencyPresence.FUTURE
        )


def _is_peer(edge: Edge | ChangeGroupEdge) -> bool:
    return edge.kind.is_symmetrical


def _grouped(pairs: Iterable[tuple[K, V]]) -> FrozenMap[K, tuple[V, ...]]:
    """Return the values of each key, in the order of the pairs."""
    values_of: dict[K, list[V]] = {}
    for key, value in pairs:
        values_of.setdefault(key, []).append(value)
    return FrozenMap({key: tuple(values) for key, values in values_of.items()})


def _symmetric(pairs: Iterable[tuple[K, K]]) -> FrozenMap[K, tuple[K, ...]]:
    """Return the partners of each key, in both directions, each once."""
    partners_of: dict[K, dict[K, None]] = {}
    for first, second in pairs:
        partners_of.setdefault(first, {})[second] = None
        partners_of.setdefault(second, {})[first] = None
    return FrozenMap({key: tuple(partners) for key, partners in partners_of.items()})
