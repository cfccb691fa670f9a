"""What is switched off and on while a unit changes partition by partition (5.1.4.1).

Incompatible versions are never in service at the same time, or the link between them is off. One
iteration handles one partition, in this order: ``links_off``, ``off``, ``on_during_work``, the
works, ``links_apart``, ``links_on``, ``on``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.graph import Edge, ResourceGraph
from equipoise.model.upgrade.infrastructure import DependencyKind, DependencyPresence
from equipoise.model.upgrade.work import UpgradeMethod, UpgradeUnit

LinkEnds = tuple[ResourceId, ResourceId]
"""The ends of a link: a dependent and its sponsor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSwitching:
    """The switching of one partition."""

    partition: int
    links_off: tuple[LinkEnds, ...] = ()
    """Links to dependents that change later; switched before the partition is out of service."""
    off: tuple[ResourceId, ...]
    on_during_work: tuple[ResourceId, ...] = ()
    """Deactivated resources that return as soon as this partition is out of service."""
    links_apart: tuple[LinkEnds, ...] = ()
    """Links to its own sponsors of the old version; switched after the works."""
    links_on: tuple[LinkEnds, ...] = ()
    """Links to resources that have the new version already."""
    on: tuple[ResourceId, ...] = ()
    """Resources that return into service at the end; empty: they stay deactivated."""


def switchings_of(graph: ResourceGraph, unit: UpgradeUnit) -> tuple[PartitionSwitching, ...]:
    """Return, for each partition in order, what is switched off and on."""
    partitions = [tuple(map(ResourceId, partition)) for partition in unit.partitions]
    match unit.method:
        case UpgradeMethod.ROLLING:
            return tuple(
                PartitionSwitching(partition=index, off=own, on=own)
                for index, own in enumerate(partitions)
            )
        case UpgradeMethod.MODIFIED_SPLIT_LINKS:
            return tuple(_by_links(graph, partitions))
        case (
            UpgradeMethod.SPLIT
            | UpgradeMethod.MODIFIED_SPLIT
            | UpgradeMethod.MODIFIED_SPLIT_CONSTITUENTS
        ):
            return tuple(_deactivated_until_last(partitions))


def keeps_deactivated(unit: UpgradeUnit) -> bool:
    """Return whether the method keeps changed resources deactivated until later iterations."""
    return unit.method not in (UpgradeMethod.ROLLING, UpgradeMethod.MODIFIED_SPLIT_LINKS)


def _deactivated_until_last(
    partitions: list[tuple[ResourceId, ...]],
) -> Iterator[PartitionSwitching]:
    """Yield switchings in which all partitions but the last return when the last one leaves."""
    last = len(partitions) - 1
    for index, own in enumerate(partitions[:-1]):
        # Changed resources stay off: their version must not meet the old one that still serves.
        yield PartitionSwitching(partition=index, off=own)
    waiting = tuple(resource for partition in partitions[:-1] for resource in partition)
    yield PartitionSwitching(
        partition=last, off=partitions[last], on_during_work=waiting, on=partitions[last]
    )


def _by_links(
    graph: ResourceGraph, partitions: list[tuple[ResourceId, ...]]
) -> Iterator[PartitionSwitching]:
    index_of = {resource: index for index, own in enumerate(partitions) for resource in own}
    edges = [edge for edge in _unit_links(graph, index_of) if edge.incompatible]
    for index, own in enumerate(partitions):
        here = set(own)
        towards = [edge for edge in edges if edge.sponsor in here and edge.dependent not in here]
        away = [edge for edge in edges if edge.dependent in here and edge.sponsor not in here]
        # A link returns when the later of its two ends has changed.
        done = [
            edge for edge in (*towards, *away)
            if max(index_of[edge.dependent], index_of[edge.sponsor]) == index
        ]  # fmt: skip
        # A link to a resource that changed earlier is off already.
        yield PartitionSwitching(
            partition=index,
            links_off=_link_ends(edge for edge in towards if index_of[edge.dependent] > index),
            off=own,
            links_apart=_link_ends(edge for edge in away if index_of[edge.sponsor] > index),
            links_on=_link_ends(done),
            on=own,
        )


def _unit_links(graph: ResourceGraph, members: dict[ResourceId, int]) -> Iterator[Edge]:
    for resource in members:
        for edge in graph.sponsor_edges.get(resource, ()):
            if (
                edge.kind is DependencyKind.COMMUNICATION
                and edge.sponsor in members
                and edge.presence is not DependencyPresence.FUTURE
            ):
                yield edge


def _link_ends(edges: Iterable[Edge]) -> tuple[LinkEnds, ...]:
    return tuple(dict.fromkeys((edge.dependent, edge.sponsor) for edge in edges))


@dataclass(frozen=True, slots=True)
class SwitchingState:
    """The resources of a unit between two switchings."""

    off: frozenset[ResourceId]
    new: frozenset[ResourceId]
    cut: frozenset[LinkEnds]
    """Links that are off."""
    lasts: bool
    """Whether the state lasts: during works or between iterations, not just between two switchings.
    """


def switching_states(
    unit: UpgradeUnit, switchings: Sequence[PartitionSwitching]
) -> Iterator[SwitchingState]:
    """Yield the states of a unit before, between and after all switchings."""
    off: set[ResourceId] = set()
    new: set[ResourceId] = set()
    cut: set[LinkEnds] = set()

    def now(*, lasts: bool = False) -> SwitchingState:
        return SwitchingState(frozenset(off), frozenset(new), frozenset(cut), lasts)

    yield now(lasts=True)
    for switching in switchings:
        cut.update(switching.links_off)
        yield now()
        off.update(switching.off)
        yield now()
        off.difference_update(switching.on_during_work)
        yield now(lasts=True)
        new.update(ResourceId(id_) for id_ in unit.partitions[switching.partition])
        yield now()
        cut.update(switching.links_apart)
        cut.difference_update(switching.links_on)
        yield now()
        off.difference_update(switching.on)
        yield now(lasts=True)
