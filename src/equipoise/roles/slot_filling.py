"""Which processor fills which slot. A processor keeps its slot while others join and leave.

Spares fill as many open slots as possible. In a packed group the filled slots are the first ones:
where no spare is left, the last member closes the gap and no other member moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from equipoise.model.quantity import ProcessorId, RoleId, SlotId
from equipoise.model.roles.layout import LayoutElement
from equipoise.roles.assess import GroupStatus

FILLINGS_MAX: Final = 400
"""At most so many fillings are compared, the first ones found."""

SlotMap = Mapping[SlotId, ProcessorId]


class _OpenSlots(NamedTuple):
    """The members that keep their slots, the open slots and the spare processors."""

    kept: dict[SlotId, ProcessorId]
    open: list[SlotId]
    spares: list[ProcessorId]


def candidate_fillings(group_status: GroupStatus) -> Iterator[SlotMap]:
    """Yield fillings, preferred ones first; at least one."""
    open_slots = _open_slots(group_status)
    if group_status.team.packed:
        yield _packed_filling(group_status, open_slots)
        return
    if not open_slots.open or not open_slots.spares:
        yield _auto_adjusted(group_status, open_slots)
        return
    most = _maximum_matching(group_status, open_slots)
    found = False
    for number, more in enumerate(_all_matchings(group_status, open_slots, len(most))):
        if number == FILLINGS_MAX:
            break
        found = True
        yield {**open_slots.kept, **more}
    if not found:
        yield {**open_slots.kept, **most}


def with_previous_owners(group_status: GroupStatus, filled: SlotMap) -> dict[SlotId, ProcessorId]:
    """Return the filling as recorded: an empty slot keeps its last owner."""
    in_use = set(filled.values())
    return {
        slot.id: owner
        for slot in group_status.team.slots
        if (owner := filled.get(slot.id) or _previous_owner(group_status, slot.id, in_use))
        is not None
    }


def _previous_owner(
    group_status: GroupStatus, slot: SlotId, in_use: set[ProcessorId]
) -> ProcessorId | None:
    owner = group_status.members.get(slot)
    return owner if owner in group_status.out_of_service and owner not in in_use else None


def _open_slots(group_status: GroupStatus) -> _OpenSlots:
    slots = [slot.id for slot in group_status.team.slots]
    keeping: dict[SlotId, ProcessorId] = {}
    for slot in slots:
        owner = group_status.members.get(slot)
        if (
            owner is not None
            and owner in group_status.present
            and group_status.eligible(owner, slot)
        ):
            keeping.setdefault(slot, owner)
    in_use = set(keeping.values())
    spares = [
        processor
        for processor in group_status.present
        if processor not in in_use
        # A suspected processor may be down, so it gets nothing new.
        and processor not in group_status.suspected
        and processor not in group_status.taken
    ]
    _release_failed(group_status, keeping, spares)
    kept = {
        slot for slot in slots if group_status.members.get(slot) in group_status.slot_kept_until_ms
    }
    open_ = [slot for slot in slots if slot not in keeping and slot not in kept]
    return _OpenSlots(keeping, open_, spares)


def _release_failed(
    group_status: GroupStatus, kept: dict[SlotId, ProcessorId], spares: list[ProcessorId]
) -> None:
    """Release the slot of a processor that failed too often if a better spare exists."""
    if not group_status.isolated:
        return
    for slot, owner in tuple(kept.items()):
        if not _failed_too_often(group_status, owner, slot):
            continue
        if any(
            group_status.eligible(spare, slot) and not _failed_too_often(group_status, spare, slot)
            for spare in spares
        ):
            del kept[slot]


def _failed_too_often(group_status: GroupStatus, processor: ProcessorId, slot: SlotId) -> bool:
    roles = _possible_roles(group_status.team.layout, slot)
    return any((role, processor) in group_status.isolated for role in roles)


def _possible_roles(layout: Sequence[LayoutElement], slot: SlotId) -> Iterator[RoleId]:
    """Yield the roles that a layout can give to a slot, for any filling."""
    for element in layout:
        yield from element.on_each or ()
        if element.slot == slot:
            yield from element.roles
        yield from _possible_roles(element.layout, slot)


def _auto_adjusted(group_status: GroupStatus, open_slots: _OpenSlots) -> SlotMap:
    """If the group is stable and configured so, an earlier processor replaces a later one."""
    stable = (
        not open_slots.open and not group_status.slot_kept_until_ms and not group_status.suspected
    )
    if not group_status.team.auto_adjust or not stable:
        return open_slots.kept
    rank = {processor: index for index, processor in enumerate(group_status.team.processors)}
    # The owner that is last in the list is replaced first. One exchange per decision keeps the
    # group stable.
    for slot, owner in sorted(open_slots.kept.items(), key=lambda item: -rank[item[1]]):
        for spare in open_slots.spares:
            better = rank[spare] < rank[owner] and spare not in group_status.on_probation
            if (
                better
                and group_status.eligible(spare, slot)
                and not _failed_too_often(group_status, spare, slot)
            ):
                return {**open_slots.kept, slot: spare}
    return open_slots.kept


def _packed_filling(group_status: GroupStatus, open_slots: _OpenSlots) -> SlotMap:
    filled, spares = dict(open_slots.kept), list(open_slots.spares)
    for slot in open_slots.open:
        spare = next((spare for spare in spares if group_status.eligible(spare, slot)), None)
        if spare is not None:
            filled[slot] = spare
            spares.remove(spare)
    order = [slot.id for slot in group_status.team.slots]
    while True:
        gap = next((slot for slot in order if slot in open_slots.open and slot not in filled), None)
        last = next((slot for slot in reversed(order) if slot in filled), None)
        if gap is None or last is None or order.index(last) < order.index(gap):
            break
        if filled[last] in group_status.suspected:
            break  # a suspected processor keeps its slot
        filled[gap] = filled.pop(last)
    if len(filled) == len(open_slots.kept) and not open_slots.open:
        return _auto_adjusted(group_status, open_slots)
    return {slot: filled[slot] for slot in order if slot in filled}


def _maximum_matching(
    group_status: GroupStatus, open_slots: _OpenSlots
) -> dict[SlotId, ProcessorId]:
    """Return a maximum matching of open slots and spares (augmenting paths)."""
    owner_of: dict[ProcessorId, SlotId] = {}

    def assign(slot: SlotId, tried: set[ProcessorId]) -> bool:
        for spare in open_slots.spares:
            if spare in tried or not group_status.eligible(spare, slot):
                continue
            tried.add(spare)
            if spare not in owner_of or assign(owner_of[spare], tried):
                owner_of[spare] = slot
                return True
        return False

    for slot in open_slots.open:
        assign(slot, set())
    return {slot: spare for spare, slot in owner_of.items()}


def _all_matchings(
    group_status: GroupStatus, open_slots: _OpenSlots, most: int
) -> Iterator[SlotMap]:
    """Yield every maximum matching; of equivalent spares only the first is tried."""
    kinds = {
        spare: _spare_class(group_status, spare, open_slots.open) for spare in open_slots.spares
    }

    def fill(index: int, free: Sequence[ProcessorId], filled: SlotMap) -> Iterator[SlotMap]:
        if len(filled) == most:
            yield filled
            return
        # This branch cannot reach a maximum matching any more.
        if len(filled) + len(open_slots.open) - index < most:
            return
        slot, seen = open_slots.open[index], set()
        for spare in free:
            if kinds[spare] in seen or not group_status.eligible(spare, slot):
                continue
            seen.add(kinds[spare])
            rest = [other for other in free if other != spare]
            yield from fill(index + 1, rest, {**filled, slot: spare})
        # Leaving the slot open can be necessary for another maximum matching.
        yield from fill(index + 1, free, filled)

    yield from fill(0, open_slots.spares, {})


def _spare_class(
    group_status: GroupStatus, processor: ProcessorId, slots: Sequence[SlotId]
) -> tuple[object, ...]:
    """Return all properties that distinguish spares. Spares of one class are interchangeable."""
    return (
        tuple(group_status.eligible(processor, slot) for slot in slots),
        group_status.held.get(processor, ()),
        group_status.load_pct.get(processor, 0.0),
        tuple(role for role in group_status.roles if (role, processor) in group_status.isolated),
        processor in group_status.on_probation,
    )
