"""Static coverage of a layout: which slots can carry a role, for every number of filled slots.

What a slot carries depends on how many slots are filled, not on which. So each number is computed
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from equipoise.model.quantity import RoleId, SlotId
from equipoise.model.roles.layout import LayoutElement, RoleGroup, roles_in_layout
from equipoise.roles.meaning import condition_holds, layout_meaning

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
