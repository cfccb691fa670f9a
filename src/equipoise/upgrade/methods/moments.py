"""The moments of a passage: who is in service with which version, and which links are off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.work import UpgradeUnit
from equipoise.upgrade.methods.passage import Link, Passage


@dataclass(frozen=True, slots=True)
class Moment:
    """How the resources of a unit are while nothing changes."""

    partition: int
    """The partition that is being worked on."""
    off: frozenset[ResourceId]
    new: frozenset[ResourceId]
    cut: frozenset[Link]
    """Links that are off."""
    lasts: bool
    """While works are being done, or between iterations; else things are just being switched."""


def moments_of(unit: UpgradeUnit, passages: Sequence[Passage]) -> Iterator[Moment]:
    """Give what the unit is like before it begins, between all steps of it, and in the end."""
    off: set[ResourceId] = set()
    new: set[ResourceId] = set()
    cut: set[Link] = set()

    def now(partition: int, *, lasts: bool = False) -> Moment:
        return Moment(partition, frozenset(off), frozenset(new), frozenset(cut), lasts)

    yield now(0, lasts=True)
    for one in passages:
        cut.update(one.links_off)
        yield now(one.partition)
        off.update(one.off)
        yield now(one.partition)
        off.difference_update(one.on_meanwhile)
        yield now(one.partition, lasts=True)
        new.update(ResourceId(each) for each in unit.partitions[one.partition])
        yield now(one.partition)
        cut.update(one.links_apart)
        cut.difference_update(one.links_on)
        yield now(one.partition)
        off.difference_update(one.on)
        yield now(one.partition, lasts=True)
