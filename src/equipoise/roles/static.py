"""What can be said of a layout for every number of filled slots, without trying all fillings.

What a slot carries depends on how many slots are filled, not on which. So it is enough to look at
each number once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from equipoise.model.quantity import RoleId, SlotId
from equipoise.model.roles.layout import Element, Team, named_roles
from equipoise.roles.meaning import counts, layout_meaning

Carried = Mapping[SlotId, Counter[RoleId]]
"""How often each slot is given each role, if it is filled."""


def carried(slots: Sequence[SlotId], layout: Sequence[Element], filled: int) -> Carried:
    """What each slot is given when so many are filled."""
    found: dict[SlotId, Counter[RoleId]] = {slot: Counter() for slot in slots}
    # Who fills a slot is called by the slot's name; the others are there to be counted.
    for role, slot in _all_meaning(slots, layout, filled):
        if slot in found:
            found[slot][role] += 1
    return found


def _all_meaning(
    slots: Sequence[SlotId], layout: Sequence[Element], filled: int
) -> Iterator[tuple[RoleId, SlotId]]:
    for element in layout:
        if element.on_each is not None or element.slot is not None:
            yield from layout_meaning([(slot, slot) for slot in slots], [element])
        elif counts(element, filled):
            yield from _all_meaning(slots, element.layout, filled)


def static_valid(slots: Sequence[SlotId], layout: Sequence[Element]) -> bool:
    """Whether no filling at all gives a role twice to one slot."""
    return not any(
        times > 1
        for filled in range(1, len(slots) + 1)
        for roles in carried(slots, layout, filled).values()
        for times in roles.values()
    )


@dataclass(frozen=True, slots=True)
class Coverage:
    """Where a role can run in a group, by the number of filled slots."""

    slots: tuple[SlotId, ...]
    packed: bool
    carriers: tuple[frozenset[SlotId], ...]
    """The slots that would carry it, for each number of filled slots, from none on."""

    def uncovered(self) -> list[int]:
        """The numbers of filled slots at which it may have no holder."""
        return [n for n in range(1, len(self.slots) + 1) if not self._always(n)]

    def lost_by_joining(self) -> list[int]:
        """The numbers of filled slots at which it may have a holder, and with one more none."""
        return [n for n in range(1, len(self.slots)) if self._may_lose(n)]

    def _always(self, filled: int) -> bool:
        carriers = self.carriers[filled]
        if self.packed:
            return any(slot in carriers for slot in self.slots[:filled])
        return len(self.slots) - len(carriers) < filled

    def _may_lose(self, filled: int) -> bool:
        before, after = self.carriers[filled], self.carriers[filled + 1]
        if self.packed:
            first, more = self.slots[:filled], self.slots[: filled + 1]
            return any(s in before for s in first) and not any(s in after for s in more)
        return bool(before - after) and len(self.slots) - len(after) > filled


def coverages(team: Team) -> dict[RoleId, Coverage]:
    """Where each role of a group can run; of a group whose ready layout is written out."""
    slots = tuple(slot.id for slot in team.slots)
    by_number = [carried(slots, team.layout, n) for n in range(len(slots) + 1)]
    listed: dict[RoleId, set[SlotId]] = {}
    for one in team.preferences:
        listed.setdefault(one.role, set()).update(s for s in one.slots if s in slots)
    roles = dict.fromkeys(named_roles(team.layout)) | dict.fromkeys(listed)
    return {
        role: Coverage(
            slots,
            team.packed,
            tuple(
                frozenset(slot for slot in slots if at[slot][role]) | listed.get(role, set())
                for at in by_number
            ),
        )
        for role in roles
    }
