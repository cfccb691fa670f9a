"""The graphs of the thesis' example by hand: fifteen hosts, a replaced storage (5.1.3)."""

from __future__ import annotations

from equipoise.model.quantity import HostId, ResourceId, VmId
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
from equipoise.model.upgrade.work import VertexId
from equipoise.model.value import FrozenMap

UPGRADE = Modification.UPGRADE
CURRENT, FUTURE, BOTH = (
    DependencyPresence.CURRENT,
    DependencyPresence.FUTURE,
    DependencyPresence.CURRENT_FUTURE,
)


def _named(number: int) -> ResourceId:
    return ResourceId(f"R{number}")


def _vertices(hosts: int) -> dict[ResourceId, Vertex]:
    found = {}
    for number in range(1, hosts + 1):
        host = HostId(f"host{number}")
        parts = [(f"H{number}", ResourceKind.HYPERVISOR), (f"S{number}", ResourceKind.SERVER)]
        parts += [(f"C{number}", ResourceKind.CPU), (f"N{number}", ResourceKind.NIC)]
        for name, kind in parts:
            change = UPGRADE if kind.value in ("hypervisor", "server") else Modification.NO_CHANGE
            found[ResourceId(name)] = Vertex(ResourceId(name), kind, change, host=host)
    for number in range(31, 39):
        kind = ResourceKind.SWITCH if number < 37 else ResourceKind.ROUTER
        found[_named(number)] = Vertex(_named(number), kind, UPGRADE)
    for number in range(39, 45):
        host = HostId(f"host{7 + (number - 39) // 2}")
        kind = ResourceKind.VIRTUAL_SERVER
        found[_named(number)] = Vertex(
            _named(number), kind, UPGRADE, host=host, vm=VmId(f"R{number}")
        )
    storage = ResourceKind.VIRTUAL_SHARED_STORAGE
    found[_named(45)] = Vertex(_named(45), storage, Modification.ADD, related=_named(46))
    found[_named(46)] = Vertex(_named(46), storage, Modification.REMOVE, related=_named(45))
    return found


def _edges(hosts: int) -> list[Edge]:
    edges = []
    for number in range(1, hosts + 1):
        server = ResourceId(f"S{number}")
        edges.append(Edge(ResourceId(f"H{number}"), server, DependencyKind.CONTAINER))
        edges += [Edge(server, ResourceId(f"{part}{number}"), DependencyKind.COMPOSITION)
                  for part in "CN"]  # fmt: skip
        pair = 31 + 2 * ((number - 1) * 3 // hosts)
        edges += [Edge(server, _named(pair + n), DependencyKind.COMMUNICATION) for n in (0, 1)]
    for number in range(31, 37):
        edges += [Edge(_named(number), _named(n), DependencyKind.COMMUNICATION) for n in (37, 38)]
    for number in (31, 33, 35, 37):
        first, second = _named(number), _named(number + 1)
        edges += [Edge(*two, DependencyKind.PEER_STATELESS)
                  for two in ((first, second), (second, first))]  # fmt: skip
    for aggregate, last, when in ((46, 9, CURRENT), (45, 5, FUTURE)):
        edges += [Edge(_named(aggregate), ResourceId(f"S{number}"),
                       DependencyKind.AGGREGATION, when)
                  for number in range(1, last + 1)]  # fmt: skip
        edges += [Edge(ResourceId(f"S{number}"), _named(aggregate),
                       DependencyKind.VM_SUPPORTING_STORAGE, when)
                  for number in range(6, hosts + 1)]  # fmt: skip
    edges += [Edge(_named(number), ResourceId(f"H{7 + (number - 39) // 2}"),
                   DependencyKind.MIGRATION)
              for number in range(39, 45)]  # fmt: skip
    return edges


def resource_graph(hosts: int = 15) -> ResourceGraph:
    """The resource graph of figure 5.2, with two parts in each host."""
    return ResourceGraph(FrozenMap(_vertices(hosts)), tuple(_edges(hosts)))


def control_graph(resources: ResourceGraph, hosts: int = 15) -> ControlGraph:
    """The control graph of figure 5.6."""
    groups: dict[VertexId, ChangeGroup] = {}
    group_of: dict[ResourceId, VertexId] = {}
    for number in range(1, hosts + 1):
        id_ = VertexId(f"GR{number}")
        members = tuple(ResourceId(f"{part}{number}") for part in "HSCN")
        groups[id_] = ChangeGroup(id_, members, UPGRADE, hosts=(HostId(f"host{number}"),))
    for number in [*range(31, 39), 45, 46]:
        id_ = VertexId(f"R{number}")
        change = resources.vertices[_named(number)].modification
        groups[id_] = ChangeGroup(id_, (_named(number),), change)
    for id_, group in groups.items():
        group_of |= dict.fromkeys(group.members, id_)
    edges = [
        ChangeGroupEdge(group_of[edge.dependent], group_of[edge.sponsor], edge.kind, edge.presence)
        for edge in resources.edges
        if edge.kind is not DependencyKind.MIGRATION
        and group_of[edge.dependent] != group_of[edge.sponsor]
    ]
    return ControlGraph(FrozenMap(groups), tuple(edges), FrozenMap(group_of))
