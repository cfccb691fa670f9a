"""Which resources make one unit: those that clash, and whoever the rules would catch between them.

Rule 4 orders resources along dependencies and rule 6 keeps peers apart, from outside of a unit. If
somebody outside had to come before one partition and after another, nothing would ever go on: so
whoever lies between members joins them, and so do their peers (5.2.1).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import Dependency, DependencyKind

T = TypeVar("T", bound=Hashable)

_TOGETHER = (DependencyKind.CONTAINER, DependencyKind.COMPOSITION)


class Classes:
    """Resources in classes that only ever grow together."""

    def __init__(self, members: Iterable[ResourceId]) -> None:
        self._root = {one: one for one in members}

    def find(self, one: ResourceId) -> ResourceId:
        """The one that stands for its class."""
        while self._root[one] != one:
            self._root[one] = self._root[self._root[one]]
            one = self._root[one]
        return one

    def join(self, one: ResourceId, other: ResourceId) -> bool:
        """Put two classes together; say whether they were two."""
        first, second = self.find(one), self.find(other)
        self._root[second] = first
        return first != second

    def lists(self) -> dict[ResourceId, list[ResourceId]]:
        """The members of each class, in their order."""
        found: dict[ResourceId, list[ResourceId]] = {}
        for one in self._root:
            found.setdefault(self.find(one), []).append(one)
        return found


def units_among(
    changed: Sequence[ResourceId],
    bonds: Sequence[Dependency],
    clashing: Sequence[Dependency],
    guarded: Sequence[Sequence[ResourceId]] = (),
) -> list[list[ResourceId]]:
    """The units of more than one resource, of those that are changed.

    ``guarded`` are the members of each protection group, who stand in for one another as peers do.
    """
    units = Classes(changed)
    for one in clashing:
        units.join(one.dependent, one.sponsor)
    inside = set(changed)
    between = [one for one in bonds if one.dependent in inside and one.sponsor in inside]
    peers = _peers(bonds, inside)
    peers += [[one for one in those if one in inside] for those in guarded]
    grows = bool(clashing)
    while grows:
        grows = _join_peers(units, peers)
        grows = _join_circles(units, changed, between) or grows
    return [those for those in units.lists().values() if len(those) > 1]


def _peers(bonds: Iterable[Dependency], inside: set[ResourceId]) -> list[list[ResourceId]]:
    """Who stands in for whom: peers, and the constituents of an aggregate."""
    found: list[list[ResourceId]] = []
    aggregates: dict[ResourceId, list[ResourceId]] = {}
    for one in bonds:
        if one.kind.is_symmetrical:
            found.append([end for end in (one.dependent, one.sponsor) if end in inside])
        elif one.kind is DependencyKind.AGGREGATION and one.sponsor in inside:
            aggregates.setdefault(one.dependent, []).append(one.sponsor)
    return [*found, *aggregates.values()]


def _join_peers(units: Classes, peers: Iterable[Sequence[ResourceId]]) -> bool:
    """Peers of a unit's members are members."""
    sizes = {one: len(those) for one, those in units.lists().items()}
    grew = False
    for those in peers:
        if len(those) > 1 and any(sizes.get(units.find(one), 2) > 1 for one in those):
            for other in those[1:]:
                grew = units.join(those[0], other) or grew
    return grew


def _join_circles(
    units: Classes, changed: Sequence[ResourceId], between: Sequence[Dependency]
) -> bool:
    """Whoever has to come both before and after a unit is a member of it."""
    wholes = Classes(changed)
    for those in units.lists().values():
        for other in those[1:]:
            wholes.join(those[0], other)
    for one in between:
        if one.kind in _TOGETHER:
            wholes.join(one.dependent, one.sponsor)
    after: dict[ResourceId, list[ResourceId]] = {one: [] for one in wholes.lists()}
    for one in between:
        ends = wholes.find(one.dependent), wholes.find(one.sponsor)
        if not one.kind.is_symmetrical and ends[0] != ends[1]:
            after[ends[0]].append(ends[1])
    members = wholes.lists()
    sizes = {one: len(those) for one, those in units.lists().items()}
    grew = False
    for circle in circles(after):
        everybody = [one for whole in circle for one in members[whole]]
        if all(sizes[one] == 1 for one in map(units.find, everybody) if one in sizes):
            continue
        for other in everybody[1:]:
            grew = units.join(everybody[0], other) or grew
    return grew


def circles(after: dict[T, list[T]]) -> list[list[T]]:
    """Who can be reached from whom both ways, of more than one (Kosaraju, without recursion)."""
    before: dict[T, list[T]] = {one: [] for one in after}
    for one, others in after.items():
        for other in others:
            before[other].append(one)
    order: list[T] = []
    seen: set[T] = set()
    for start in after:
        order += _finished(start, after, seen)
    found: list[list[T]] = []
    seen = set()
    for start in reversed(order):
        circle = _finished(start, before, seen)
        found += [circle] if len(circle) > 1 else []
    return found


def _finished(start: T, after: dict[T, list[T]], seen: set[T]) -> list[T]:
    """Everybody who can be reached and was not seen before, the farthest first."""
    if start in seen:
        return []
    seen.add(start)
    found: list[T] = []
    path = [(start, iter(after[start]))]
    while path:
        one, others = path[-1]
        other = next((each for each in others if each not in seen), None)
        if other is None:
            path.pop()
            found.append(one)
        else:
            seen.add(other)
            path.append((other, iter(after[other])))
    return found
