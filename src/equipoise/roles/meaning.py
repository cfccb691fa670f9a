"""The meaning of a layout: which role runs on which processor, given the filled slots.

The relations (inverse, domain, image) and the meaning are those of ClusterWare Light, with two
differences: duplicate pairs are kept, so that they can be found, and a condition is an element of a
layout, so that conditions can be nested.

The coverage tells which slots can carry a role, for every number of filled slots. What a slot
carries depends on how many slots are filled, not on which. So each number is computed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from equipoise.model.quantity import RoleId, SlotId
from equipoise.model.roles.layout import LayoutElement, RoleGroup, roles_in_layout

X = TypeVar("X", bound=Hashable)
Y = TypeVar("Y", bound=Hashable)


def inverse(pairs: Iterable[tuple[X, Y]]) -> list[tuple[Y, X]]:
    """Return the pairs with both elements swapped."""
    return [(y, x) for x, y in pairs]


def remove_duplicates(items: Iterable[X]) -> list[X]:
    """Return each element once, at its first position."""
    return list(dict.fromkeys(items))


def domain(pairs: Iterable[tuple[X, Y]]) -> list[X]:
    """Return the first elements of the pairs, each once."""
    return remove_duplicates(x for x, _ in pairs)


def image(elements: Iterable[X], pairs: Sequence[tuple[X, Y]]) -> list[Y]:
    """Return the second elements that are related to some elements."""
    return [y for x in elements for first, y in pairs if first == x]


P = TypeVar("P", bound=Hashable)

Members = Sequence[tuple[SlotId, P]]
"""Pairs of a slot and the processor that fills it."""


def layout_meaning(members: Members[P], layout: Iterable[LayoutElement]) -> list[tuple[RoleId, P]]:
    """Return the pairs of role and processor of a layout, element by element.

    A pair that two elements give occurs twice.
    """
    return [pair for element in layout for pair in _element_meaning(members, element)]


def _element_meaning(members: Members[P], element: LayoutElement) -> list[tuple[RoleId, P]]:
    if element.on_each is not None:
        processors = domain(inverse(members))
        return [(role, processor) for role in element.on_each for processor in processors]
    if element.slot is not None:
        in_slot = image([element.slot], members)
        return [(role, processor) for processor in in_slot for role in element.roles]
    return layout_meaning(members, element.layout) if condition_holds(element, len(members)) else []


def condition_holds(element: LayoutElement, filled: int) -> bool:
    """Return whether the layout of a condition applies to a number of filled slots."""
    if element.if_active is not None:
        # Exactly this number; ``at_least`` exists beside it (design, section 7).
        return filled == element.if_active
    if element.at_least is not None:
        return filled >= element.at_least
    return element.at_most is not None and filled <= element.at_most


RolesBySlot = Mapping[SlotId, Counter[RoleId]]
"""How often each slot gets each role, if it is filled."""


def roles_by_slot(
    slots: Sequence[SlotId], layout: Sequence[LayoutElement], filled: int
) -> RolesBySlot:
    """Return the roles of each slot for a number of filled slots."""
    by_slot: dict[SlotId, Counter[RoleId]] = {slot: Counter() for slot in slots}
    # Each slot stands for its own processor, so that the meaning is computed by slot.
    for role, slot in _possible_meaning(slots, layout, filled):
        if slot in by_slot:
            by_slot[slot][role] += 1
    return by_slot


def _possible_meaning(
    slots: Sequence[SlotId], layout: Sequence[LayoutElement], filled: int
) -> Iterator[tuple[RoleId, SlotId]]:
    for element in layout:
        if element.on_each is not None or element.slot is not None:
            yield from layout_meaning([(slot, slot) for slot in slots], [element])
        elif condition_holds(element, filled):
            yield from _possible_meaning(slots, element.layout, filled)


@dataclass(frozen=True, slots=True)
class RoleCoverageByCount:
    """The slots that can run a role, by number of filled slots."""

    slots: tuple[SlotId, ...]
    packed: bool
    carriers: tuple[frozenset[SlotId], ...]
    """The slots that would carry it, for each number of filled slots from 0."""

    def uncovered_counts(self) -> list[int]:
        """Return the numbers of filled slots at which it may have no holder."""
        return [n for n in range(1, len(self.slots) + 1) if not self._always(n)]

    def counts_lost_by_joining(self) -> list[int]:
        """Return the numbers of filled slots at which one more processor can remove its holder."""
        return [n for n in range(1, len(self.slots)) if self._may_lose_holder(n)]

    def _always(self, filled: int) -> bool:
        carriers = self.carriers[filled]
        if self.packed:
            return any(slot in carriers for slot in self.slots[:filled])
        # Pigeonhole: more filled slots than slots without the role.
        return len(self.slots) - len(carriers) < filled

    def _may_lose_holder(self, filled: int) -> bool:
        before, after = self.carriers[filled], self.carriers[filled + 1]
        if self.packed:
            first, more = self.slots[:filled], self.slots[: filled + 1]
            return any(s in before for s in first) and not any(s in after for s in more)
        # A slot loses the role, and enough slots without it exist to be exactly the filled ones.
        return bool(before - after) and len(self.slots) - len(after) > filled


def role_coverage(team: RoleGroup) -> dict[RoleId, RoleCoverageByCount]:
    """Return the coverage of each role of a group, whose redundancy model is expanded."""
    slots = tuple(slot.id for slot in team.slots)
    by_number = [roles_by_slot(slots, team.layout, n) for n in range(len(slots) + 1)]
    listed: dict[RoleId, set[SlotId]] = {}
    for preference in team.preferences:
        listed.setdefault(preference.role, set()).update(s for s in preference.slots if s in slots)
    roles = dict.fromkeys(roles_in_layout(team.layout)) | dict.fromkeys(listed)
    return {
        role: RoleCoverageByCount(
            slots,
            team.packed,
            tuple(
                frozenset(slot for slot in slots if at[slot][role]) | listed.get(role, set())
                for at in by_number
            ),
        )
        for role in roles
    }
