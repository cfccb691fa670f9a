"""The structure of an upgrade unit: blocks, peers, constituents and sponsors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.graph import Edge, ResourceGraph
from equipoise.model.upgrade.infrastructure import DependencyKind, DependencyPresence
from equipoise.model.value import DisjointSets
from equipoise.upgrade.graph.dependencies import CHANGED_TOGETHER

T = TypeVar("T", bound=Hashable)

BlockIndex = int
"""The index of a block of a unit, in the order of the graph."""


@dataclass(frozen=True)
class UnitStructure:
    """The structure of a unit for partitioning."""

    blocks: tuple[tuple[ResourceId, ...], ...]
    """Members that change in one iteration anyway: containers with their contents."""
    peer_groups: tuple[tuple[BlockIndex, ...], ...]
    """Peers, direct and indirect. Each block is in exactly one group, often alone."""
    constituents: tuple[tuple[BlockIndex, ...], ...]
    """The constituents of each aggregate that has two or more in the unit. Protection groups with
    two members in the unit are included: one of the two must stay in service as well.
    """
    needs: tuple[tuple[BlockIndex, BlockIndex, bool], ...]
    """Dependent, sponsor, and whether an incompatible communication links them."""

    @property
    def has_incompatible_links(self) -> bool:
        """Return whether a link connects incompatible versions."""
        return any(linked for _, _, linked in self.needs)

    def sponsor_depths(self) -> tuple[int, ...]:
        """Return the distance of each block from the blocks without a sponsor, which have 0."""
        waiting = [0] * len(self.blocks)
        users: list[list[BlockIndex]] = [[] for _ in self.blocks]
        for dependent, sponsor, _ in self.needs:
            waiting[dependent] += 1
            users[sponsor].append(dependent)
        depth = [0] * len(self.blocks)
        ready = [index for index, count in enumerate(waiting) if not count]
        for index in ready:
            for user in users[index]:
                depth[user] = max(depth[user], depth[index] + 1)
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
        # Blocks in a cycle have no depth of their own: they come after all others.
        last = max(depth) + 1
        return tuple(last if open_ else own for open_, own in zip(waiting, depth, strict=True))


def unit_structure(graph: ResourceGraph, members: Sequence[ResourceId]) -> UnitStructure:
    """Compute the structure of a unit."""
    within = set(members)
    blocks = _equivalence_classes(members, _contracted_pairs(graph, members))
    index_of = {member: index for index, block in enumerate(blocks) for member in block}
    edges = [edge for member in members for edge in graph.sponsor_edges.get(member, ())]
    constituents = (*_constituents(graph, members, index_of), *_protection_pairs(graph, index_of))
    peers = [
        (index_of[member], index_of[peer])
        for member in members
        for peer in graph.peers.get(member, ())
        if peer in within
    ]
    # Constituents count as peers for the division: each half must keep one of them in service.
    peers += [
        (constituent_group[0], peer)
        for constituent_group in constituents
        for peer in constituent_group[1:]
    ]
    return UnitStructure(
        blocks=blocks,
        peer_groups=_equivalence_classes(range(len(blocks)), peers),
        constituents=constituents,
        needs=_sponsor_pairs(edges, index_of),
    )


def _contracted_pairs(
    graph: ResourceGraph, members: Sequence[ResourceId]
) -> list[tuple[ResourceId, ResourceId]]:
    """Return pairs that the control graph merges, also across resources outside the unit."""
    pairs = []
    seen = set(members)
    queue = list(members)
    for resource in queue:
        for edge in (
            *graph.sponsor_edges.get(resource, ()),
            *graph.dependent_edges.get(resource, ()),
        ):
            if edge.kind not in CHANGED_TOGETHER:
                continue
            neighbour = edge.sponsor if edge.dependent == resource else edge.dependent
            pairs.append((resource, neighbour))
            if neighbour not in seen:
                seen.add(neighbour)
                queue.append(neighbour)
    return pairs


def _constituents(
    graph: ResourceGraph, members: Sequence[ResourceId], index_of: dict[ResourceId, BlockIndex]
) -> tuple[tuple[BlockIndex, ...], ...]:
    by_aggregate: dict[ResourceId, dict[BlockIndex, None]] = {}
    for member in members:
        for edge in graph.dependent_edges.get(member, ()):
            if (
                edge.kind is DependencyKind.AGGREGATION
                and edge.presence is not DependencyPresence.FUTURE
            ):
                by_aggregate.setdefault(edge.dependent, {})[index_of[member]] = None
    return tuple(tuple(indices) for indices in by_aggregate.values() if len(indices) > 1)


def _protection_pairs(
    graph: ResourceGraph, index_of: dict[ResourceId, BlockIndex]
) -> tuple[tuple[BlockIndex, ...], ...]:
    guarded = (group.members for group in graph.protections if group.in_service_min)
    found = (
        dict.fromkeys(index_of[group] for group in members if group in index_of)
        for members in guarded
    )
    # Two halves can keep two members apart. With more members the rules limit how many are out.
    return tuple(tuple(indices) for indices in found if len(indices) == 2)  # noqa: PLR2004


def _sponsor_pairs(
    edges: Iterable[Edge], index_of: dict[ResourceId, BlockIndex]
) -> tuple[tuple[BlockIndex, BlockIndex, bool], ...]:
    linked_by_pair: dict[tuple[BlockIndex, BlockIndex], bool] = {}
    for edge in edges:
        if not edge.incompatible or edge.sponsor not in index_of:
            continue
        pair = index_of[edge.dependent], index_of[edge.sponsor]
        if pair[0] != pair[1]:
            linked = edge.kind is DependencyKind.COMMUNICATION
            linked_by_pair[pair] = linked_by_pair.get(pair, False) or linked
    return tuple(
        (dependent, sponsor, linked) for (dependent, sponsor), linked in linked_by_pair.items()
    )


def _equivalence_classes(
    items: Iterable[T], pairs: Iterable[tuple[T, T]]
) -> tuple[tuple[T, ...], ...]:
    """Return the classes that pairs connect, in the order of the items."""
    sets = DisjointSets(items)
    for first, second in pairs:
        sets.join(first, second)
    return tuple(tuple(members) for members in sets.classes().values())
