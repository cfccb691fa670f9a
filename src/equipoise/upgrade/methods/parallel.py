"""The partial parallel universe: an old and a new infrastructure side by side, until all VMs moved.

What supports VMs (a shared storage, a controller) and cannot be changed in place is replaced: the
new one is added while the old one goes on, hosts change sides one by one and their VMs with them,
and the old one is removed in the end (chapter 4, rules 2, 6 and 7).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.resource import DependencyKind, Presence
from equipoise.model.upgrade.graph import Modification, ResourceGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Universe:
    """One infrastructure that supports VMs, and what takes over from it."""

    old: ResourceId
    new: ResourceId
    old_constituents: tuple[ResourceId, ...]
    new_constituents: tuple[ResourceId, ...]
    supported: tuple[ResourceId, ...]
    """What keeps its VMs on one or the other: the compute hosts that change sides."""
    least_old: int
    """How many constituents the old one takes, for its configuration and its data."""
    least_new: int

    @property
    def needed(self) -> int:
        """How many hosts both take side by side: the right side of equation 7."""
        return self.least_old + self.least_new

    def missing(self, graph: ResourceGraph, used: frozenset[HostId]) -> int:
        """How many hosts have to be added before both fit, while VMs run on ``used`` hosts."""
        storing = (*self.old_constituents, *self.new_constituents)
        free = [one for one in dict.fromkeys(storing) if graph.vertices[one].host not in used]
        return max(0, self.needed - len(free))


def universes(graph: ResourceGraph) -> Iterator[Universe]:
    """Every infrastructure that is being replaced, in the order of the graph."""
    for old, vertex in graph.vertices.items():
        new = vertex.related
        if new is None or vertex.modification is not Modification.REMOVE:
            continue
        yield Universe(
            old=old,
            new=new,
            old_constituents=_constituents(graph, old),
            new_constituents=_constituents(graph, new),
            supported=_supported(graph, old, new),
            least_old=vertex.constituents_min,
            least_new=graph.vertices[new].constituents_min,
        )


def _constituents(graph: ResourceGraph, aggregate: ResourceId) -> tuple[ResourceId, ...]:
    return tuple(
        edge.sponsor
        for edge in graph.sponsorships.get(aggregate, ())
        if edge.kind is DependencyKind.AGGREGATION
    )


def _supported(graph: ResourceGraph, old: ResourceId, new: ResourceId) -> tuple[ResourceId, ...]:
    found: dict[ResourceId, None] = {}
    for one, absent in ((old, Presence.FUTURE), (new, Presence.CURRENT)):
        for edge in graph.dependants.get(one, ()):
            if edge.kind.is_vm_supporting and edge.presence is not absent:
                found[edge.dependent] = None
    return tuple(found)
