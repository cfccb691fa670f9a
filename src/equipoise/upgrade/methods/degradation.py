"""How many hosts a unit keeps out of service, and how many spare hosts that needs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.upgrade.graph import Edge, ResourceGraph
from equipoise.model.upgrade.infrastructure import DependencyKind, DependencyPresence, ResourceKind
from equipoise.model.upgrade.work import UpgradeUnit
from equipoise.upgrade.methods.switching import (
    SwitchingState,
    keeps_deactivated,
    switching_states,
    switchings_of,
)

_VM_BEARING: Final = (ResourceKind.SERVER, ResourceKind.HYPERVISOR, ResourceKind.HOST_OS)
"""Without one of these a host runs no VM. A host without one of its NICs may still run VMs."""


def worst_degradation(graph: ResourceGraph, unit: UpgradeUnit) -> int:
    """Return the largest number of deactivated hosts at one time; 0 if the method keeps none off.

    Hosts that are out only during their own change do not count: equation 4 covers them.
    """
    if not keeps_deactivated(unit):
        return 0
    moments = switching_states(unit, switchings_of(graph, unit))
    return max(len(hosts_out(graph, moment)) for moment in moments if moment.lasts)


def protection_shortfall(graph: ResourceGraph, unit: UpgradeUnit) -> str:
    """Return which protection group a unit leaves with too few members; empty if none.

    Resources outside the unit count as in service.
    """
    guarded = [group for group in graph.protections if group.in_service_min]
    if not guarded:
        return ""
    states = switching_states(unit, switchings_of(graph, unit))
    moments = [moment for moment in states if moment.lasts]
    for group in guarded:
        members = set(group.members)
        worst = max(len(members.intersection(out_of_service(graph, moment))) for moment in moments)
        if worst and len(members) - worst < group.in_service_min:
            return (
                f"the method of unit {unit.id} takes out {worst} members of protection group "
                f"{group.id} at a time; {group.in_service_min} of {len(members)} must be in service"
            )
    return ""


def aggregate_shortfall(graph: ResourceGraph, unit: UpgradeUnit) -> str:
    """Return which aggregate a unit leaves with too few constituents; empty if none."""
    constituents: dict[ResourceId, list[ResourceId]] = {}
    for edge in graph.edges:
        if edge.kind is DependencyKind.AGGREGATION and _is_relevant(edge):
            constituents.setdefault(edge.dependent, []).append(edge.sponsor)
    inside = set(unit.resources)
    watched = {
        aggregate: (members, graph.vertices[aggregate].constituents_min)
        for aggregate, members in constituents.items()
        if aggregate in graph.vertices and not inside.isdisjoint(members)
    }
    if not watched:
        return ""
    for moment in switching_states(unit, switchings_of(graph, unit)):
        if not moment.lasts:
            continue
        out = set(out_of_service(graph, moment))
        for aggregate, (members, needed) in watched.items():
            left = len(members) - len(out.intersection(members))
            if left < needed:
                return (
                    f"the method of unit {unit.id} leaves {left} of {len(members)} constituents "
                    f"of {aggregate} in service; it needs {needed}"
                )
    return ""


def hosts_out(graph: ResourceGraph, moment: SwitchingState) -> tuple[HostId, ...]:
    """Return the hosts that run no VMs at a moment: they are off, or a sponsor is."""
    hosts: dict[HostId, None] = {}
    for resource in out_of_service(graph, moment):
        vertex = graph.vertices.get(resource)
        if vertex is not None and vertex.host is not None and vertex.kind in _VM_BEARING:
            hosts[vertex.host] = None
    return tuple(hosts)


def out_of_service(graph: ResourceGraph, moment: SwitchingState) -> tuple[ResourceId, ...]:
    """Return all resources that do not work at a moment: off, or without a sponsor.

    One sponsor of each kind is enough, and an aggregate works while enough constituents do. VMs are
    left out: they move away before.
    """
    out = dict.fromkeys(resource for resource in graph.vertices if resource in moment.off)
    # The first round checks every edge, because a link or a version can separate ends that are both
    # on. Later rounds follow only what went out.
    to_check = [edge for edge in graph.edges if not edge.kind.is_symmetrical]
    while to_check:
        newly_out: dict[ResourceId, None] = {}
        for edge in to_check:
            if edge.dependent in out or edge.dependent in newly_out or not _is_relevant(edge):
                continue
            if not _serves(edge, out, moment) and not _has_replacement(graph, edge, out, moment):
                newly_out[edge.dependent] = None
        out |= newly_out
        to_check = [
            edge for resource in newly_out for edge in graph.dependent_edges.get(resource, ())
        ]
    return tuple(out)


def _is_relevant(edge: Edge) -> bool:
    return (
        edge.kind is not DependencyKind.MIGRATION and edge.presence is not DependencyPresence.FUTURE
    )


def _serves(edge: Edge, out: Collection[ResourceId], moment: SwitchingState) -> bool:
    if edge.sponsor in out or (edge.dependent, edge.sponsor) in moment.cut:
        return False
    same = (edge.dependent in moment.new) == (edge.sponsor in moment.new)
    return same or not edge.incompatible


def _has_replacement(
    graph: ResourceGraph, edge: Edge, out: Collection[ResourceId], moment: SwitchingState
) -> bool:
    """Return whether other sponsors of the same kind replace the sponsor of a dependency."""
    others = [other_edge for other_edge in graph.sponsor_edges[edge.dependent]
              if other_edge.kind is edge.kind and _is_relevant(other_edge)]  # fmt: skip
    if edge.kind is DependencyKind.AGGREGATION:
        aggregate = graph.vertices.get(edge.dependent)
        needed = 0 if aggregate is None else aggregate.constituents_min
        serving = sum(_serves(other_edge, out, moment) for other_edge in others)
        return serving >= max(1, needed)
    return any(_serves(other_edge, out, moment) for other_edge in others)
