"""What is switched off and on while a unit goes through its partitions (5.1.4.1).

Versions that do not understand each other are never in service at the same time, or the link
between them is off. A partition is done with in one iteration, in this order: ``links_off``,
``off``, ``on_meanwhile``, the works, ``links_apart``, ``links_on``, ``on``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import DependencyKind, Presence
from equipoise.model.upgrade.graph import Edge, ResourceGraph
from equipoise.model.upgrade.work import Method, UpgradeUnit

Link = tuple[ResourceId, ResourceId]
"""A dependent and its sponsor, with the link between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """How one partition is changed."""

    partition: int
    links_off: tuple[Link, ...] = ()
    """To those who depend on it and are not changed with it; before it goes out of service."""
    off: tuple[ResourceId, ...]
    on_meanwhile: tuple[ResourceId, ...] = ()
    """What was kept out of service and is put back as soon as this partition is out of it."""
    links_apart: tuple[Link, ...] = ()
    """To its own sponsors of the old version; after the works."""
    links_on: tuple[Link, ...] = ()
    """Between it and what has the new version already."""
    on: tuple[ResourceId, ...] = ()
    """What goes back into service in the end; nothing: it is kept out of it."""


def passages_of(graph: ResourceGraph, unit: UpgradeUnit) -> tuple[Passage, ...]:
    """Say for each partition, in order, what is switched off and on."""
    partitions = [tuple(map(ResourceId, partition)) for partition in unit.partitions]
    match unit.method:
        case Method.ROLLING:
            return tuple(
                Passage(partition=place, off=own, on=own) for place, own in enumerate(partitions)
            )
        case Method.MODIFIED_SPLIT_LINKS:
            return tuple(_by_links(graph, partitions))
        case Method.SPLIT | Method.MODIFIED_SPLIT | Method.MODIFIED_SPLIT_CONSTITUENTS:
            return tuple(_kept_off(partitions))


def keeps_off(unit: UpgradeUnit) -> bool:
    """Whether the method keeps changed resources out of service until later iterations."""
    return unit.method not in (Method.ROLLING, Method.MODIFIED_SPLIT_LINKS)


def _kept_off(partitions: list[tuple[ResourceId, ...]]) -> Iterator[Passage]:
    """All but the last stay out of service; they return when the last one leaves it."""
    last = len(partitions) - 1
    for place, own in enumerate(partitions[:-1]):
        yield Passage(partition=place, off=own)
    waiting = tuple(one for partition in partitions[:-1] for one in partition)
    yield Passage(partition=last, off=partitions[last], on_meanwhile=waiting, on=partitions[last])


def _by_links(graph: ResourceGraph, partitions: list[tuple[ResourceId, ...]]) -> Iterator[Passage]:
    place_of = {one: place for place, own in enumerate(partitions) for one in own}
    edges = [edge for edge in _links(graph, place_of) if edge.incompatible]
    for place, own in enumerate(partitions):
        here = set(own)
        towards = [edge for edge in edges if edge.sponsor in here and edge.dependent not in here]
        away = [edge for edge in edges if edge.dependent in here and edge.sponsor not in here]
        done = [
            edge for edge in (*towards, *away)
            if max(place_of[edge.dependent], place_of[edge.sponsor]) == place
        ]  # fmt: skip
        # A link to somebody changed before has been off since then.
        yield Passage(
            partition=place,
            links_off=_pairs(edge for edge in towards if place_of[edge.dependent] > place),
            off=own,
            links_apart=_pairs(edge for edge in away if place_of[edge.sponsor] > place),
            links_on=_pairs(done),
            on=own,
        )


def _links(graph: ResourceGraph, members: dict[ResourceId, int]) -> Iterator[Edge]:
    for one in members:
        for edge in graph.sponsorships.get(one, ()):
            if (
                edge.kind is DependencyKind.COMMUNICATION
                and edge.sponsor in members
                and edge.presence is not Presence.FUTURE
            ):
                yield edge


def _pairs(edges: Iterable[Edge]) -> tuple[Link, ...]:
    return tuple(dict.fromkeys((edge.dependent, edge.sponsor) for edge in edges))
