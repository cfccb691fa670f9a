"""The anatomy of a unit: what goes in one piece, who stands in for whom, and who needs whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import DependencyKind, Presence
from equipoise.model.upgrade.graph import Edge, ResourceGraph

T = TypeVar("T")

Place = int
"""A block of a unit, by its number in the order of the graph."""

_ONE_PIECE = (DependencyKind.CONTAINER, DependencyKind.COMPOSITION)


@dataclass(frozen=True)
class Anatomy:
    """A unit as the rules of partitioning see it."""

    blocks: tuple[tuple[ResourceId, ...], ...]
    """Members that are changed in one iteration anyway: containers with what they contain."""
    families: tuple[tuple[Place, ...], ...]
    """Peers, direct and indirect; each block is in exactly one, most are in it alone."""
    constituents: tuple[tuple[Place, ...], ...]
    """Of each aggregate that has two or more in the unit: its constituents. Protection groups with
    two in the unit are among them: one of the two is in service at any time as well."""
    needs: tuple[tuple[Place, Place, bool], ...]
    """Dependent, sponsor, and whether they are linked by an incompatible communication."""

    @property
    def communicates(self) -> bool:
        """Whether versions do not understand each other along a link."""
        return any(linked for _, _, linked in self.needs)

    def layers(self) -> tuple[int, ...]:
        """How far each block is from those that need no other: 0 for the sponsors of all."""
        waiting = [0] * len(self.blocks)
        users: list[list[Place]] = [[] for _ in self.blocks]
        for dependent, sponsor, _ in self.needs:
            waiting[dependent] += 1
            users[sponsor].append(dependent)
        depth = [0] * len(self.blocks)
        ready = [place for place, count in enumerate(waiting) if not count]
        for place in ready:
            for user in users[place]:
                depth[user] = max(depth[user], depth[place] + 1)
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
        # Those in a circle have no depth of their own: they come behind all others.
        last = max(depth) + 1
        return tuple(last if left else own for left, own in zip(waiting, depth, strict=True))


def anatomy_of(graph: ResourceGraph, members: Sequence[ResourceId]) -> Anatomy:
    """Take a unit apart."""
    within = set(members)
    blocks = _classes(members, _one_piece(graph, members))
    place_of = {one: place for place, block in enumerate(blocks) for one in block}
    edges = [edge for one in members for edge in graph.sponsorships.get(one, ())]
    constituents = (*_constituents(graph, members, place_of), *_pairs(graph, place_of))
    peers = [
        (place_of[one], place_of[other])
        for one in members
        for other in graph.peers.get(one, ())
        if other in within
    ]
    peers += [(family[0], other) for family in constituents for other in family[1:]]
    return Anatomy(
        blocks=blocks,
        families=_classes(range(len(blocks)), peers),
        constituents=constituents,
        needs=_needs(edges, place_of),
    )


def _one_piece(
    graph: ResourceGraph, members: Sequence[ResourceId]
) -> list[tuple[ResourceId, ResourceId]]:
    """Pairs that the control graph merges, also by way of resources that are not members."""
    found = []
    seen = set(members)
    ahead = list(members)
    for one in ahead:
        for edge in (*graph.sponsorships.get(one, ()), *graph.dependants.get(one, ())):
            if edge.kind not in _ONE_PIECE:
                continue
            other = edge.sponsor if edge.dependent == one else edge.dependent
            found.append((one, other))
            if other not in seen:
                seen.add(other)
                ahead.append(other)
    return found


def _constituents(
    graph: ResourceGraph, members: Sequence[ResourceId], place_of: dict[ResourceId, Place]
) -> tuple[tuple[Place, ...], ...]:
    found: dict[ResourceId, dict[Place, None]] = {}
    for one in members:
        for edge in graph.dependants.get(one, ()):
            if edge.kind is DependencyKind.AGGREGATION and edge.presence is not Presence.FUTURE:
                found.setdefault(edge.dependent, {})[place_of[one]] = None
    return tuple(tuple(places) for places in found.values() if len(places) > 1)


def _pairs(
    graph: ResourceGraph, place_of: dict[ResourceId, Place]
) -> tuple[tuple[Place, ...], ...]:
    guarded = (one.members for one in graph.protections if one.in_service_min)
    found = (dict.fromkeys(place_of[one] for one in those if one in place_of) for those in guarded)
    return tuple(tuple(places) for places in found if len(places) == 2)  # noqa: PLR2004


def _needs(
    edges: Iterable[Edge], place_of: dict[ResourceId, Place]
) -> tuple[tuple[Place, Place, bool], ...]:
    found: dict[tuple[Place, Place], bool] = {}
    for edge in edges:
        if not edge.incompatible or edge.sponsor not in place_of:
            continue
        pair = place_of[edge.dependent], place_of[edge.sponsor]
        if pair[0] != pair[1]:
            linked = edge.kind is DependencyKind.COMMUNICATION
            found[pair] = found.get(pair, False) or linked
    return tuple((dependent, sponsor, linked) for (dependent, sponsor), linked in found.items())


def _classes(items: Iterable[T], pairs: Iterable[tuple[T, T]]) -> tuple[tuple[T, ...], ...]:
    """Put together what pairs connect, in the order of the items; others only connect."""
    root: dict[T, T] = {}

    def find(one: T) -> T:
        top = one
        while root.setdefault(top, top) != top:
            top = root[top]
        while root[one] != top:
            root[one], one = top, root[one]
        return top

    for one, other in pairs:
        root[find(other)] = find(one)
    classes: dict[T, list[T]] = {}
    for item in items:
        classes.setdefault(find(item), []).append(item)
    return tuple(tuple(one) for one in classes.values())
