"""Step 1: the resource graph of the state. Step 2: the control graph, a contraction of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.upgrade.graph import (
    ChangeGroup,
    ChangeGroupEdge,
    ControlGraph,
    Edge,
    Modification,
    ResourceGraph,
    Vertex,
)
from equipoise.model.upgrade.infrastructure import DependencyKind, DependencyPresence, ResourceKind
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import VertexId
from equipoise.model.value import DisjointSets, FrozenMap
from equipoise.upgrade.graph.dependencies import (
    CHANGED_TOGETHER,
    PRESENT_NOW,
    constituents_needed,
    presence,
)
from equipoise.upgrade.graph.host_partitions import HostPartitions
from equipoise.upgrade.graph.protection import protection_groups
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.resources import ResourceState, TrackedDependency

NO_ATTEMPTS: Final[FrozenMap[SetId, int]] = FrozenMap()


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which resources form one vertex of the control graph."""

    members: dict[VertexId, tuple[ResourceId, ...]]
    group_of: dict[ResourceId, VertexId]
    hosts_of: dict[VertexId, tuple[HostId, ...]]
    by_host: dict[HostId, tuple[ResourceId, ...]]
    """The resources that change with each compute host."""


def grouping(state: UpgradeState) -> Grouping:
    """Return the groups of resources that change together, from the cache of the state.

    These are containers, composites and partitions of a split.
    """
    if state.resources.grouping is None:
        state.resources.cache_grouping(_contract_groups(state))
    groups: Grouping = state.resources.grouping
    return groups


def _contract_groups(state: UpgradeState) -> Grouping:
    groups = DisjointSets(state.resources.states)
    for resource, other in _contracted_pairs(state):
        groups.join(resource, other)
    members = {
        # A group of several resources is named after its first one.
        VertexId(f"G{resources[0]}" if len(resources) > 1 else resources[0]): tuple(resources)
        for resources in groups.classes().values()
    }
    group_of = {resource: vertex for vertex, group in members.items() for resource in group}
    hosts_of = {
        vertex: hosts for vertex, group in members.items() if (hosts := _hosts(state, group))
    }
    by_host = {host: members[vertex] for vertex, hosts in hosts_of.items() for host in hosts}
    return Grouping(members, group_of, hosts_of, by_host)


def _hosts(state: UpgradeState, members: tuple[ResourceId, ...]) -> tuple[HostId, ...]:
    """Return the compute hosts of resources."""
    named = (state.resources.states[id_].resource.host for id_ in members)
    return tuple(
        dict.fromkeys(
            host
            for host in named
            if host is not None
            and host in state.cluster.compute_hosts
            # A host without VM capacity, such as a storage node, takes no compute capacity out of
            # service.
            and state.cluster.compute_hosts[host].vms_max
        )
    )


def _contracted_pairs(state: UpgradeState) -> Iterator[tuple[ResourceId, ResourceId]]:
    for tracked in state.resources.dependencies:
        dependency = tracked.dependency
        if (
            dependency.kind in CHANGED_TOGETHER
            and dependency.dependent in state.resources.states
            and dependency.sponsor in state.resources.states
        ):
            yield dependency.dependent, dependency.sponsor
    for unit in state.resources.units.values():
        for partition in unit.partitions:
            waiting = [
                id_
                for id_ in partition
                if _is_next_in_unit(state.resources.states.get(id_), unit.id)
            ]
            yield from pairwise(waiting)


def _is_next_in_unit(resource_state: ResourceState | None, unit: str) -> bool:
    return (
        resource_state is not None
        and bool(resource_state.levels)
        and resource_state.levels[0].unit == unit
    )


def resource_graph(
    state: UpgradeState, host_partitions: HostPartitions, *, with_vms: bool = True
) -> ResourceGraph:
    """Return every resource and dependency as a graph, with VMs and their hosts if wanted."""
    vertices = {
        resource_id: _vertex(state, resource_state)
        for resource_id, resource_state in state.resources.states.items()
        if _is_relevant(resource_state)
    }
    edges = list(_edges(state))
    if with_vms:
        vm_resource = _vm_resources(state)
        for placement in state.cluster.placements.values():
            moves = placement.host is not None and placement.host in host_partitions.old
            id_ = ResourceId(placement.vm)
            vertices[id_] = Vertex(
                id_,
                ResourceKind.VIRTUAL_SERVER,
                Modification.UPGRADE if moves else Modification.NO_CHANGE,
                failed_attempts=NO_ATTEMPTS,
                vm=placement.vm,
                host=placement.host,
            )
            if placement.host is not None and placement.host in vm_resource:
                edges.append(Edge(id_, vm_resource[placement.host], DependencyKind.MIGRATION))
    return ResourceGraph(FrozenMap(vertices), tuple(edges), protection_groups(state))


def _is_relevant(resource_state: ResourceState) -> bool:
    return resource_state.present or bool(resource_state.levels)


def _vm_resources(state: UpgradeState) -> dict[HostId, ResourceId]:
    """Return the resource of each host on which VMs run: its hypervisor, or the first one."""
    by_host: dict[HostId, ResourceId] = {}
    for id_, resource_state in state.resources.states.items():
        host = resource_state.resource.host
        if host is not None and resource_state.present:
            is_hypervisor = resource_state.resource.kind is ResourceKind.HYPERVISOR
            by_host[host] = id_ if is_hypervisor else by_host.get(host, id_)
    return by_host


def _vertex(state: UpgradeState, resource_state: ResourceState) -> Vertex:
    return Vertex(
        resource_state.resource.id,
        resource_state.resource.kind,
        resource_state.modification,
        active=resource_state.active,
        undo_units=resource_state.sets,
        levels=resource_state.levels,
        failed_attempts=resource_state.attempts,
        related=resource_state.related,
        isolated=resource_state.isolated,
        failed=resource_state.failed,
        present=resource_state.present,
        host=resource_state.resource.host,
        vm=resource_state.resource.vm,
        constituents_min=constituents_needed(state, resource_state),
    )


def _edges(state: UpgradeState) -> Iterator[Edge]:
    for tracked in state.resources.dependencies:
        holds = presence(state, tracked)
        if holds is not None:
            yield _edge(tracked, holds)


def _edge(tracked: TrackedDependency, holds: DependencyPresence) -> Edge:
    dependency = tracked.dependency
    is_mixed = tracked.incompatible and holds is DependencyPresence.CURRENT_FUTURE
    return Edge(
        dependency.dependent,
        dependency.sponsor,
        dependency.kind,
        holds,
        incompatible=is_mixed,
        link=dependency.link,
    )


def control_graph(state: UpgradeState, graph: ResourceGraph) -> ControlGraph:
    """Contract the resource graph. VMs are left out: step 4 moves them."""
    grouped = grouping(state)
    groups = {
        vertex: _group(state, vertex, members, grouped.hosts_of.get(vertex, ()))
        for vertex, members in grouped.members.items()
        if any(member in graph.vertices for member in members)
    }
    edges = []
    for edge in graph.edges:
        if edge.kind is DependencyKind.MIGRATION:
            continue
        dependent, sponsor = grouped.group_of[edge.dependent], grouped.group_of[edge.sponsor]
        if dependent != sponsor:
            edges.append(
                ChangeGroupEdge(
                    dependent, sponsor, edge.kind, edge.presence, edge.incompatible, edge.link
                )
            )
    return ControlGraph(FrozenMap(groups), tuple(edges), FrozenMap(grouped.group_of))


def _group(
    state: UpgradeState,
    vertex: VertexId,
    members: tuple[ResourceId, ...],
    hosts: tuple[HostId, ...],
) -> ChangeGroup:
    resource_states = [state.resources.states[member] for member in members]
    return ChangeGroup(
        vertex,
        members,
        _merged_modification(
            [
                resource_state.modification
                for resource_state in resource_states
                if resource_state.can_be_changed
            ]
        ),
        active=all(
            resource_state.active for resource_state in resource_states if resource_state.present
        ),
        hosts=hosts,
        isolated=any(resource_state.isolated for resource_state in resource_states),
        failed=any(resource_state.failed for resource_state in resource_states),
    )


def _merged_modification(modifications: list[Modification]) -> Modification:
    """Return the modification of a group, given those of its members."""
    distinct = set(modifications) or {Modification.NO_CHANGE}
    # A group with mixed works is upgraded: part of it is in service before and after, which is what
    # the rules must protect.
    return distinct.pop() if len(distinct) == 1 else Modification.UPGRADE


def holds_now(edge: ChangeGroupEdge | Edge) -> bool:
    """Return whether a dependency holds now."""
    return edge.presence in PRESENT_NOW
