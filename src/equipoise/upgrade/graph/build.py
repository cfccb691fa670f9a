"""Step 1: the resource graph, made of the state. Step 2: the control graph, made of that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.resource import DependencyKind, Presence, ResourceKind
from equipoise.model.upgrade.graph import (
    ControlGraph,
    Edge,
    Group,
    GroupEdge,
    Modification,
    ResourceGraph,
    Vertex,
)
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import VertexId
from equipoise.model.value import FrozenMap
from equipoise.upgrade.graph.bonds import PRESENT, presence
from equipoise.upgrade.graph.demands import least_constituents
from equipoise.upgrade.graph.protections import protections
from equipoise.upgrade.sides import Sides
from equipoise.upgrade.state import Bond, Part, State

NO_ATTEMPTS: Final[FrozenMap[SetId, int]] = FrozenMap()
TOGETHER = (DependencyKind.CONTAINER, DependencyKind.COMPOSITION)
"""Who is bound by these is changed in one iteration: it would be out of service twice otherwise."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which resources are one vertex of the control graph."""

    members: dict[VertexId, tuple[ResourceId, ...]]
    group_of: dict[ResourceId, VertexId]
    hosts_of: dict[VertexId, tuple[HostId, ...]]
    by_host: dict[HostId, tuple[ResourceId, ...]]
    """The resources that go with each compute host."""


def grouping(state: State) -> Grouping:
    """Contract what must be changed together: containers, composites, partitions of a split."""
    if state.grouping is None:
        state.grouping = _contract(state)
    kept: Grouping = state.grouping
    return kept


def _contract(state: State) -> Grouping:
    root: dict[ResourceId, ResourceId] = {one: one for one in state.parts}
    rank = {one: place for place, one in enumerate(state.parts)}

    def find(one: ResourceId) -> ResourceId:
        while root[one] != one:
            root[one] = root[root[one]]
            one = root[one]
        return one

    for one, other in _pairs(state):
        first, second = find(one), find(other)
        if first != second:
            early, late = sorted((first, second), key=rank.__getitem__)
            root[late] = early
    lists: dict[ResourceId, list[ResourceId]] = {}
    for one in state.parts:
        lists.setdefault(find(one), []).append(one)
    members = {
        VertexId(f"G{first}" if len(those) > 1 else first): tuple(those)
        for first, those in lists.items()
    }
    group_of = {one: vertex for vertex, those in members.items() for one in those}
    hosts_of = {
        vertex: hosts for vertex, those in members.items() if (hosts := _hosts(state, those))
    }
    by_host = {host: members[vertex] for vertex, hosts in hosts_of.items() for host in hosts}
    return Grouping(members, group_of, hosts_of, by_host)


def _hosts(state: State, members: tuple[ResourceId, ...]) -> tuple[HostId, ...]:
    """The compute hosts among resources."""
    named = (state.parts[one].resource.host for one in members)
    return tuple(
        dict.fromkeys(
            host
            for host in named
            if host is not None and host in state.places and state.places[host].places
        )
    )


def _pairs(state: State) -> Iterator[tuple[ResourceId, ResourceId]]:
    for bond in state.bonds:
        one = bond.dependency
        if one.kind in TOGETHER and one.dependent in state.parts and one.sponsor in state.parts:
            yield one.dependent, one.sponsor
    for unit in state.units.values():
        for partition in unit.partitions:
            waiting = [id_ for id_ in partition if _is_next(state.parts.get(id_), unit.id)]
            yield from pairwise(waiting)


def _is_next(part: Part | None, unit: str) -> bool:
    return part is not None and bool(part.levels) and part.levels[0].unit == unit


def resource_graph(state: State, sides: Sides, *, with_vms: bool = True) -> ResourceGraph:
    """Every resource with its attributes and every dependency; VMs and where they run as well."""
    vertices = {one: _vertex(state, part) for one, part in state.parts.items() if _matters(part)}
    edges = list(_edges(state))
    if with_vms:
        kernel = _kernels(state)
        for seat in state.seats.values():
            moves = seat.host is not None and sides.must_leave(seat.host)
            id_ = ResourceId(seat.vm)
            vertices[id_] = Vertex(
                id_,
                ResourceKind.VIRTUAL_SERVER,
                Modification.UPGRADE if moves else Modification.NO_CHANGE,
                failed_attempts=NO_ATTEMPTS,
                vm=seat.vm,
                host=seat.host,
            )
            if seat.host is not None and seat.host in kernel:
                edges.append(Edge(id_, kernel[seat.host], DependencyKind.MIGRATION))
    return ResourceGraph(FrozenMap(vertices), tuple(edges), protections(state))


def _matters(part: Part) -> bool:
    return part.present or bool(part.levels)


def _kernels(state: State) -> dict[HostId, ResourceId]:
    """On each host, the resource that VMs run on: its hypervisor, or the first one there is."""
    found: dict[HostId, ResourceId] = {}
    for one, part in state.parts.items():
        host = part.resource.host
        if host is not None and part.present:
            is_hypervisor = part.resource.kind is ResourceKind.HYPERVISOR
            found[host] = one if is_hypervisor else found.get(host, one)
    return found


def _vertex(state: State, part: Part) -> Vertex:
    return Vertex(
        part.resource.id,
        part.resource.kind,
        part.modification,
        active=part.active,
        undo_units=part.sets,
        levels=part.levels,
        failed_attempts=part.attempts,
        related=part.related,
        isolated=part.isolated,
        failed=part.failed,
        present=part.present,
        host=part.resource.host,
        vm=part.resource.vm,
        constituents_min=least_constituents(state, part),
    )


def _edges(state: State) -> Iterator[Edge]:
    for bond in state.bonds:
        holds = presence(state, bond)
        if holds is not None:
            yield _edge(bond, holds)


def _edge(bond: Bond, holds: Presence) -> Edge:
    one = bond.dependency
    clash = bond.clashes and holds is Presence.CURRENT_FUTURE
    return Edge(one.dependent, one.sponsor, one.kind, holds, incompatible=clash, link=one.link)


def control_graph(state: State, graph: ResourceGraph) -> ControlGraph:
    """Contract the resource graph. VMs are left out: step 4 is about them."""
    made = grouping(state)
    groups = {
        vertex: _group(state, vertex, those, made.hosts_of.get(vertex, ()))
        for vertex, those in made.members.items()
        if any(one in graph.vertices for one in those)
    }
    edges = []
    for edge in graph.edges:
        if edge.kind is DependencyKind.MIGRATION:
            continue
        dependent, sponsor = made.group_of[edge.dependent], made.group_of[edge.sponsor]
        if dependent != sponsor:
            edges.append(
                GroupEdge(
                    dependent, sponsor, edge.kind, edge.presence, edge.incompatible, edge.link
                )
            )
    return ControlGraph(FrozenMap(groups), tuple(edges), FrozenMap(made.group_of))


def _group(
    state: State, vertex: VertexId, members: tuple[ResourceId, ...], hosts: tuple[HostId, ...]
) -> Group:
    parts = [state.parts[one] for one in members]
    return Group(
        vertex,
        members,
        _merged([part.modification for part in parts if part.can_be_changed]),
        active=all(part.active for part in parts if part.present),
        hosts=hosts,
        isolated=any(part.isolated for part in parts),
        failed=any(part.failed for part in parts),
    )


def _merged(those: list[Modification]) -> Modification:
    """What happens to a whole, of what happens to its parts."""
    changes = {one for one in those if one is not Modification.NO_CHANGE}
    if not changes:
        return Modification.NO_CHANGE
    same_for_all = len(changes) == 1 and (len(those) == 1 or Modification.UPGRADE in changes)
    return changes.pop() if same_for_all or len(set(those)) == 1 else Modification.UPGRADE


def is_present(edge: GroupEdge | Edge) -> bool:
    """Whether a dependency holds now."""
    return edge.presence in PRESENT
