"""Upgrade units: resources bound by incompatible dependencies, with those between (5.2.1)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.model.upgrade.graph import Edge, ResourceGraph, Vertex
from equipoise.model.upgrade.infrastructure import Dependency, DependencyKind
from equipoise.model.upgrade.work import UnitId, UpgradeUnit, WorkItem
from equipoise.model.value import DisjointSets, FrozenMap
from equipoise.upgrade.graph.dependencies import (
    CHANGED_TOGETHER,
    constituents_needed,
    presence,
)
from equipoise.upgrade.graph.in_service import service_needs
from equipoise.upgrade.graph.protection import protection_groups
from equipoise.upgrade.methods.degradation import aggregate_shortfall, protection_shortfall
from equipoise.upgrade.methods.partitioning import make_unit
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.requests.compatibility import are_compatible, projected_components
from equipoise.upgrade.requests.feasibility import unit_shortage
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.resources import ResourceState, TrackedDependency, components_after

T = TypeVar("T", bound=Hashable)


def group_units(
    changed: Sequence[ResourceId],
    dependencies: Sequence[Dependency],
    clashing: Sequence[Dependency],
    guarded: Sequence[Sequence[ResourceId]] = (),
) -> list[list[ResourceId]]:
    """Return the units of more than one resource among the changed resources.

    ``guarded`` lists the members of each protection group. They cover for each other as peers do.
    """
    units = DisjointSets(changed)
    for dependency in clashing:
        units.join(dependency.dependent, dependency.sponsor)
    inside = set(changed)
    between = [
        dependency
        for dependency in dependencies
        if dependency.dependent in inside and dependency.sponsor in inside
    ]
    peers = _peer_sets(dependencies, inside)
    peers += [[member for member in members if member in inside] for members in guarded]
    grows = bool(clashing)
    # Peers and cycles can add members that add further ones: repeat until nothing changes.
    while grows:
        grows = _join_peers(units, peers)
        grows = _join_cycles(units, changed, between) or grows
    return [members for members in units.classes().values() if len(members) > 1]


def _peer_sets(
    dependencies: Iterable[Dependency], inside: set[ResourceId]
) -> list[list[ResourceId]]:
    """Return the sets of resources that cover for each other: peers and constituents."""
    peers: list[list[ResourceId]] = []
    aggregates: dict[ResourceId, list[ResourceId]] = {}
    for dependency in dependencies:
        if dependency.kind.is_symmetrical:
            peers.append(
                [end for end in (dependency.dependent, dependency.sponsor) if end in inside]
            )
        elif dependency.kind is DependencyKind.AGGREGATION and dependency.sponsor in inside:
            aggregates.setdefault(dependency.dependent, []).append(dependency.sponsor)
    return [*peers, *aggregates.values()]


def _join_peers(units: DisjointSets[ResourceId], peers: Iterable[Sequence[ResourceId]]) -> bool:
    """Add the peers of members to the unit. Return whether a unit grew."""
    sizes = {member: len(peer_set) for member, peer_set in units.classes().items()}
    grew = False
    for peer_set in peers:
        if len(peer_set) > 1 and any(sizes.get(units.find(member), 2) > 1 for member in peer_set):
            for other in peer_set[1:]:
                grew = units.join(peer_set[0], other) or grew
    return grew


def _join_cycles(
    units: DisjointSets[ResourceId], changed: Sequence[ResourceId], between: Sequence[Dependency]
) -> bool:
    """Add resources that come both before and after a unit. Return whether a unit grew."""
    # Units and resources that change together are contracted to one node each.
    # A copy of the units: the contraction below must not become part of them.
    nodes = DisjointSets(changed)
    for unit_members in units.classes().values():
        for member in unit_members[1:]:
            nodes.join(unit_members[0], member)
    for dependency in between:
        if dependency.kind in CHANGED_TOGETHER:
            nodes.join(dependency.dependent, dependency.sponsor)
    sponsors: dict[ResourceId, list[ResourceId]] = {node: [] for node in nodes.classes()}
    for dependency in between:
        ends = nodes.find(dependency.dependent), nodes.find(dependency.sponsor)
        if not dependency.kind.is_symmetrical and ends[0] != ends[1]:
            sponsors[ends[0]].append(ends[1])
    members_of = nodes.classes()
    sizes = {root: len(unit_members) for root, unit_members in units.classes().items()}
    grew = False
    for cycle in strong_components(sponsors):
        members = [member for node in cycle for member in members_of[node]]
        # A cycle without a unit is no reason for a unit.
        if all(sizes[root] == 1 for root in map(units.find, members) if root in sizes):
            continue
        for member in members[1:]:
            grew = units.join(members[0], member) or grew
    return grew


def strong_components(after: dict[T, list[T]]) -> list[list[T]]:
    """Return the strongly connected components of more than one node (Kosaraju, iterative)."""
    before: dict[T, list[T]] = {node: [] for node in after}
    for node, successors in after.items():
        for successor in successors:
            before[successor].append(node)
    order: list[T] = []
    seen: set[T] = set()
    for start in after:
        order += _postorder(start, after, seen)
    components: list[list[T]] = []
    seen = set()
    for start in reversed(order):
        component = _postorder(start, before, seen)
        components += [component] if len(component) > 1 else []
    return components


def _postorder(start: T, after: dict[T, list[T]], seen: set[T]) -> list[T]:
    """Return the nodes that are reachable and not seen yet, in postorder."""
    if start in seen:
        return []
    seen.add(start)
    nodes: list[T] = []
    # An explicit stack, because a cluster of 100,000 resources exceeds Python's recursion limit.
    path = [(start, iter(after[start]))]
    while path:
        node, successors = path[-1]
        successor = next((candidate for candidate in successors if candidate not in seen), None)
        if successor is None:
            path.pop()
            nodes.append(node)
        else:
            seen.add(successor)
            path.append((successor, iter(after[successor])))
    return nodes


def make_units(
    state: UpgradeState, works: dict[ResourceId, list[WorkItem]]
) -> tuple[list[UpgradeUnit], dict[str, Reason]]:
    """Group the resources of a request into units. Also return the sets without a method."""
    units: list[UpgradeUnit] = []
    infeasible: dict[str, Reason] = {}
    for members in _unit_members(state, works, _mark_incompatible(state, works)):
        unit_id = UnitId(f"{state.requests.scheduled}/{members[0]}")
        graph = _unit_graph(state, members)
        unit = make_unit(graph, unit_id, members, remote_links=state.settings.remote_links)
        text = f"no method can change {', '.join(members)} together"
        reason: Reason | None = Reason("no-method", text)
        if unit is not None:
            # Also for a unit that is refused below: the operator reads how many spare hosts it
            # would need.
            state.requests.note_degraded_hosts(unit.degraded_hosts or 0)
            shortfall, crowded = protection_shortfall(graph, unit), aggregate_shortfall(graph, unit)
            reason = None
            if shortfall:
                reason = Reason("protection-group-short", shortfall)
            elif crowded:
                reason = Reason("constituents-short", crowded)
            reason = reason or unit_shortage(state, unit)
            if reason is None:
                units.append(unit)
                continue
        assert reason is not None
        infeasible |= {work.set: reason for id_ in members for work in works[id_]}
    return units, infeasible


def _mark_incompatible(
    state: UpgradeState, works: dict[ResourceId, list[WorkItem]]
) -> list[Dependency]:
    """Mark the dependencies of a request that are incompatible half way, and return them."""
    found: list[Dependency] = []
    for index, tracked in enumerate(state.resources.dependencies):
        if tracked.dependency.dependent in works and tracked.dependency.sponsor in works:
            is_mixed = is_incompatible(state, tracked, works)
            found += [tracked.dependency] if is_mixed else []
            # The mark is of the last request on both ends, so a compatible request clears it.
            if is_mixed or tracked.incompatible:
                requests = (
                    (*tracked.incompatible_requests, state.requests.scheduled)
                    if is_mixed
                    else tracked.incompatible_requests
                )
                state.resources.change_dependency(
                    index, incompatible=is_mixed, incompatible_requests=requests
                )
    return found


def _unit_members(
    state: UpgradeState, works: dict[ResourceId, list[WorkItem]], clashing: list[Dependency]
) -> list[list[ResourceId]]:
    """Return the members of each unit, in the order of the cluster."""
    if not clashing:
        return []
    changed = [id_ for id_ in state.resources.states if id_ in works]
    # Other rules handle dependencies that a set adds or removes, and VM-supporting ones.
    lasting = [
        tracked.dependency
        for tracked in state.resources.dependencies
        if tracked.set is None
        and not tracked.dependency.kind.is_vm_supporting
        and presence(state, tracked) is not None
    ]
    guarded = [group.members for group in protection_groups(state) if group.in_service_min]
    return group_units(changed, lasting, clashing, guarded)


def is_incompatible(
    state: UpgradeState, tracked: TrackedDependency, works: dict[ResourceId, list[WorkItem]]
) -> bool:
    """Return whether the ends of a dependency are incompatible while only one is changed."""
    dependency = tracked.dependency
    if tracked.set is not None or dependency.kind.is_vm_supporting:
        return False
    if presence(state, tracked) is None:
        return False
    # The operator has declared it, whatever the catalog says.
    if dependency.incompatible:
        return True
    dependent, sponsor = (
        state.resources.states[dependency.dependent],
        state.resources.states[dependency.sponsor],
    )
    before = projected_components(dependent), projected_components(sponsor)
    after = _components_after(dependent, works), _components_after(sponsor, works)
    return not (
        are_compatible(state, dependency, before[0], after[1])
        and are_compatible(state, dependency, after[0], before[1])
    )


def _components_after(
    resource_state: ResourceState, works: dict[ResourceId, list[WorkItem]]
) -> dict[ComponentId, str]:
    return components_after(projected_components(resource_state), works[resource_state.resource.id])


def _unit_graph(state: UpgradeState, members: list[ResourceId]) -> ResourceGraph:
    """Return a unit and all resources outside that need it, directly or not."""
    needs = service_needs(state)
    reached = dict.fromkeys(members)
    queue = list(members)
    for current in queue:
        for tracked in needs.dependents.get(current, ()):
            dependent = tracked.dependency.dependent
            if dependent not in reached and dependent in state.resources.states:
                reached[dependent] = None
                queue.append(dependent)
    return ResourceGraph(
        FrozenMap({id_: _vertex(state, state.resources.states[id_]) for id_ in reached}),
        tuple(_edges(state, set(reached))),
        protection_groups(state),
    )


def _vertex(state: UpgradeState, resource_state: ResourceState) -> Vertex:
    host = resource_state.resource.host
    runs_vms = (
        host is not None
        and host in state.cluster.compute_hosts
        and state.cluster.compute_hosts[host].vms_max > 0
    )
    return Vertex(
        resource_state.resource.id,
        resource_state.resource.kind,
        host=host if runs_vms else None,  # other hosts offer no capacity for VMs
        constituents_min=constituents_needed(state, resource_state),
    )


def _edges(state: UpgradeState, inside: set[ResourceId]) -> Iterator[Edge]:
    for tracked in state.resources.dependencies:
        dependency, holds = tracked.dependency, presence(state, tracked)
        # An aggregate outside the unit counts: its constituents inside depend on each other.
        if holds is not None and (dependency.dependent in inside or dependency.sponsor in inside):
            yield Edge(
                dependency.dependent,
                dependency.sponsor,
                dependency.kind,
                holds,
                tracked.incompatible,
                link=dependency.link,
            )
