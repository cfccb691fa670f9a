"""How much of the cluster a unit takes out of service, and how many spare hosts that calls for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.resource import DependencyKind, Presence, ResourceKind
from equipoise.model.upgrade.graph import Edge, ResourceGraph
from equipoise.model.upgrade.work import UpgradeUnit
from equipoise.upgrade.methods.moments import Moment, moments_of
from equipoise.upgrade.methods.passage import keeps_off, passages_of

_BEARING: Final = (ResourceKind.SERVER, ResourceKind.HYPERVISOR, ResourceKind.HOST_OS)
"""Without these a host runs no VM; without one of its NICs it may."""


def worst_degradation(graph: ResourceGraph, unit: UpgradeUnit) -> int:
    """How many hosts are out of service at the worst moment; 0 if the method keeps none off.

    What is out of service for the time of its own change is not counted: equation 4 is about that.
    """
    if not keeps_off(unit):
        return 0
    moments = moments_of(unit, passages_of(graph, unit))
    return max(len(hosts_out(graph, one)) for one in moments if one.lasts)


def spare_hosts(units: Iterable[UpgradeUnit], *, failover_new: int = 0) -> int:
    """How many dedicated hosts make up for units that are kept out of service (5.1.4.2).

    One unit at a time is enough, hence the largest counts. ``failover_new`` is the reserve for
    failing hosts of the new side, which nobody has sold and nobody has set aside before; 0 if the
    hosts are not divided.
    """
    return max((unit.degraded_hosts or 0 for unit in units), default=0) + failover_new


def unprotected(graph: ResourceGraph, unit: UpgradeUnit) -> str:
    """Say which protection group has too few members in service while a unit goes through its
    partitions; nothing if none has. All that are not in the unit are taken to be in service.
    """
    guarded = [one for one in graph.protections if one.in_service_min]
    if not guarded:
        return ""
    moments = [one for one in moments_of(unit, passages_of(graph, unit)) if one.lasts]
    for group in guarded:
        members = set(group.members)
        worst = max(len(members.intersection(out_of_service(graph, one))) for one in moments)
        if worst and len(members) - worst < group.in_service_min:
            return (
                f"the method of unit {unit.id} takes {worst} of protection group {group.id} out at "
                f"a time, which needs {group.in_service_min} of {len(members)} in service"
            )
    return ""


def hosts_out(graph: ResourceGraph, moment: Moment) -> tuple[HostId, ...]:
    """The hosts that serve nobody at a moment: they are off, or what they need is."""
    found: dict[HostId, None] = {}
    for one in out_of_service(graph, moment):
        vertex = graph.vertices.get(one)
        if vertex is not None and vertex.host is not None and vertex.kind in _BEARING:
            found[vertex.host] = None
    return tuple(found)


def out_of_service(graph: ResourceGraph, moment: Moment) -> tuple[ResourceId, ...]:
    """Everything that does not work at a moment, because it is off or lacks a sponsor.

    Peers stand in for each other, and an aggregate works while enough constituents do. VMs are
    left out: they are moved away before.
    """
    found = dict.fromkeys(one for one in graph.vertices if one in moment.off)
    doubtful = [edge for edge in graph.edges if not edge.kind.is_symmetrical]
    while doubtful:
        fallen: dict[ResourceId, None] = {}
        for edge in doubtful:
            if edge.dependent in found or edge.dependent in fallen or not _matters(edge):
                continue
            if not _serves(edge, found, moment) and not _replaced(graph, edge, found, moment):
                fallen[edge.dependent] = None
        found |= fallen
        doubtful = [edge for one in fallen for edge in graph.dependants.get(one, ())]
    return tuple(found)


def _matters(edge: Edge) -> bool:
    return edge.kind is not DependencyKind.MIGRATION and edge.presence is not Presence.FUTURE


def _serves(edge: Edge, out: Collection[ResourceId], moment: Moment) -> bool:
    if edge.sponsor in out or (edge.dependent, edge.sponsor) in moment.cut:
        return False
    same = (edge.dependent in moment.new) == (edge.sponsor in moment.new)
    return same or not edge.incompatible


def _replaced(
    graph: ResourceGraph, edge: Edge, out: Collection[ResourceId], moment: Moment
) -> bool:
    """Whether others do what the sponsor of a dependency does not do."""
    others = [one for one in graph.sponsorships[edge.dependent]
              if one.kind is edge.kind and _matters(one)]  # fmt: skip
    if edge.kind is DependencyKind.AGGREGATION:
        aggregate = graph.vertices.get(edge.dependent)
        least = 0 if aggregate is None else aggregate.constituents_min
        serving = sum(_serves(one, out, moment) for one in others)
        return serving >= max(1, least)
    stand_ins = _kin(graph, edge.sponsor)
    return any(one.sponsor in stand_ins and _serves(one, out, moment) for one in others)


def _kin(graph: ResourceGraph, resource: ResourceId) -> Sequence[ResourceId]:
    """The peers of a resource, direct and indirect."""
    found = {resource: None}
    ahead = [resource]
    for one in ahead:
        for other in graph.peers.get(one, ()):
            if other not in found:
                found[other] = None
                ahead.append(other)
    return tuple(found)
