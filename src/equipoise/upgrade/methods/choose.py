"""Which method an upgrade unit takes, and into which partitions it falls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import DependencyKind
from equipoise.model.upgrade.graph import ResourceGraph
from equipoise.model.upgrade.work import Method, UnitId, UpgradeUnit
from equipoise.upgrade.methods.anatomy import Anatomy, anatomy_of
from equipoise.upgrade.methods.degradation import worst_degradation
from equipoise.upgrade.methods.halves import halve
from equipoise.upgrade.methods.partitions import (
    Partition,
    halves_for_links,
    levels,
    one_at_a_time,
)

CONSTITUENTS_MAX: Final = 2
"""So many constituents of one aggregate fit into two halves."""
_SWITCHABLE: Final = (Method.MODIFIED_SPLIT, Method.MODIFIED_SPLIT_CONSTITUENTS)
"""What links can do instead of keeping resources off; the partitions stay as they are."""


def unit_of(
    graph: ResourceGraph, id_: UnitId, members: Sequence[ResourceId], *, remote_links: bool
) -> UpgradeUnit | None:
    """Choose the method for resources that are bound by incompatible dependencies (5.1.4).

    ``members`` are in the order of the graph. ``remote_links`` says whether links can be switched
    from afar. ``None`` means that no method is known by which they can be changed.
    """
    anatomy = anatomy_of(graph, members)
    chosen = _chosen(anatomy)
    if chosen is None:
        return None
    method, partitions = chosen
    if method in _SWITCHABLE and remote_links and links_suffice(graph, members):
        method = Method.MODIFIED_SPLIT_LINKS
    unit = UpgradeUnit(
        id=id_,
        method=method,
        partitions=tuple(
            tuple(one for place in partition for one in anatomy.blocks[place])
            for partition in partitions
        ),
    )
    return unit.but(degraded_hosts=worst_degradation(graph, unit) or None)


def links_suffice(graph: ResourceGraph, members: Sequence[ResourceId]) -> bool:
    """Whether switching links is enough to keep versions apart: peers, for one, talk without."""
    within = set(members)
    return all(
        edge.kind is DependencyKind.COMMUNICATION
        for edge in graph.edges
        if edge.incompatible and edge.dependent in within and edge.sponsor in within
    )


def _chosen(anatomy: Anatomy) -> tuple[Method, list[Partition]] | None:
    if len(anatomy.blocks) == 1:
        return Method.ROLLING, [(0,)]
    halves = halves_for_links(anatomy) if anatomy.communicates else halve(anatomy)
    crowded = any(len(one) > CONSTITUENTS_MAX for one in anatomy.constituents)
    if halves is None or crowded:
        return _by_constituents(anatomy)
    if not anatomy.communicates:
        return Method.SPLIT, [halves.first, halves.second]
    rest = levels(anatomy, halves.second)
    return None if rest is None else (Method.MODIFIED_SPLIT, [halves.first, *rest])


def _by_constituents(anatomy: Anatomy) -> tuple[Method, list[Partition]] | None:
    """As in the modified split, were it not for the constituents, which go one at a time."""
    apart = Anatomy(anatomy.blocks, anatomy.families, (), anatomy.needs)
    halves = halves_for_links(apart)
    assert halves is not None, "without pairs to keep apart there is always a division"
    rest = levels(anatomy, halves.second)
    if rest is None:
        return None
    partitions = one_at_a_time(anatomy, [halves.first, *rest])
    return Method.MODIFIED_SPLIT_CONSTITUENTS, partitions
