"""Who fills which slot. Whoever has a slot keeps it while others come and go.

Open slots are filled by spares, as many as possible. In a packed group the filled slots are the
first ones: where there is no spare, who is last closes the hole, and nobody else moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from equipoise.model.quantity import ProcessorId, RoleId, SlotId
from equipoise.model.roles.layout import Element
from equipoise.roles.standing import Standing

LOOK_MAX: Final = 400
"""So many fillings are compared at the most; beyond that, the first ones found."""

Slots = Mapping[SlotId, ProcessorId]


class _Seats(NamedTuple):
    """Who stays, and what is left to fill."""

    staying: dict[SlotId, ProcessorId]
    open: list[SlotId]
    spares: list[ProcessorId]


def fillings(at: Standing) -> Iterator[Slots]:
    """The fillings to choose from, what comes first being preferred; at least one."""
    seats = _seats(at)
    if at.team.packed:
        yield _packed(at, seats)
        return
    if not seats.open or not seats.spares:
        yield _adjusted(at, seats)
        return
    most = _most(at, seats)
    found = False
    for number, more in enumerate(_ways(at, seats, len(most))):
        if number == LOOK_MAX:
            break
        found = True
        yield {**seats.staying, **more}
    if not found:
        yield {**seats.staying, **most}


def remembered(at: Standing, filled: Slots) -> dict[SlotId, ProcessorId]:
    """The filling as it is written down: an empty slot remembers who had it last."""
    inside = set(filled.values())
    return {
        slot.id: owner
        for slot in at.team.slots
        if (owner := filled.get(slot.id) or _last(at, slot.id, inside)) is not None
    }


def _last(at: Standing, slot: SlotId, inside: set[ProcessorId]) -> ProcessorId | None:
    owner = at.members.get(slot)
    return owner if owner in at.missed and owner not in inside else None


def _seats(at: Standing) -> _Seats:
    slots = [slot.id for slot in at.team.slots]
    staying: dict[SlotId, ProcessorId] = {}
    for slot in slots:
        owner = at.members.get(slot)
        if owner is not None and owner in at.present and at.eligible(owner, slot):
            staying.setdefault(slot, owner)
    inside = set(staying.values())
    spares = [
        one
        for one in at.present
        if one not in inside and one not in at.doubtful and one not in at.taken
    ]
    _make_way(at, staying, spares)
    kept = {slot for slot in slots if at.members.get(slot) in at.kept_until}
    empty = [slot for slot in slots if slot not in staying and slot not in kept]
    return _Seats(staying, empty, spares)


def _make_way(at: Standing, staying: dict[SlotId, ProcessorId], spares: list[ProcessorId]) -> None:
    """Who failed too often with what his slot carries goes, if somebody better is there."""
    if not at.isolated:
        return
    for slot, owner in tuple(staying.items()):
        if not _spoilt(at, owner, slot):
            continue
        if any(at.eligible(one, slot) and not _spoilt(at, one, slot) for one in spares):
            del staying[slot]


def _spoilt(at: Standing, processor: ProcessorId, slot: SlotId) -> bool:
    carried = _ever_carried(at.team.layout, slot)
    return any((role, processor) in at.isolated for role in carried)


def _ever_carried(layout: Sequence[Element], slot: SlotId) -> Iterator[RoleId]:
    """What a slot may be given by a layout, whatever else is filled."""
    for one in layout:
        yield from one.on_each or ()
        if one.slot == slot:
            yield from one.roles
        yield from _ever_carried(one.layout, slot)


def _adjusted(at: Standing, seats: _Seats) -> Slots:
    """If all is well and the group wants it so: an earlier processor takes the place of a later."""
    calm = not seats.open and not at.kept_until and not at.doubtful
    if not at.team.auto_adjust or not calm:
        return seats.staying
    rank = {one: place for place, one in enumerate(at.team.processors)}
    for slot, owner in sorted(seats.staying.items(), key=lambda one: -rank[one[1]]):
        for spare in seats.spares:
            better = rank[spare] < rank[owner] and spare not in at.unsettled
            if better and at.eligible(spare, slot) and not _spoilt(at, spare, slot):
                return {**seats.staying, slot: spare}
    return seats.staying


def _packed(at: Standing, seats: _Seats) -> Slots:
    filled, spares = dict(seats.staying), list(seats.spares)
    for slot in seats.open:
        spare = next((one for one in spares if at.eligible(one, slot)), None)
        if spare is not None:
            filled[slot] = spare
            spares.remove(spare)
    order = [slot.id for slot in at.team.slots]
    while True:
        hole = next((slot for slot in order if slot in seats.open and slot not in filled), None)
        last = next((slot for slot in reversed(order) if slot in filled), None)
        if hole is None or last is None or order.index(last) < order.index(hole):
            break
        if filled[last] in at.doubtful:
            break  # who may be dead is not sent to another place
        filled[hole] = filled.pop(last)
    if len(filled) == len(seats.staying) and not seats.open:
        return _adjusted(at, seats)
    return {slot: filled[slot] for slot in order if slot in filled}


def _most(at: Standing, seats: _Seats) -> dict[SlotId, ProcessorId]:
    """As many open slots as possible with a spare each, by augmenting paths."""
    owner_of: dict[ProcessorId, SlotId] = {}

    def seat(slot: SlotId, tried: set[ProcessorId]) -> bool:
        for spare in seats.spares:
            if spare in tried or not at.eligible(spare, slot):
                continue
            tried.add(spare)
            if spare not in owner_of or seat(owner_of[spare], tried):
                owner_of[spare] = slot
                return True
        return False

    for slot in seats.open:
        seat(slot, set())
    return {slot: spare for spare, slot in owner_of.items()}


def _ways(at: Standing, seats: _Seats, most: int) -> Iterator[Slots]:
    """Every way to fill as many open slots as possible; of spares alike, only the first."""
    kinds = {one: _kind(at, one, seats.open) for one in seats.spares}

    def fill(place: int, free: Sequence[ProcessorId], filled: Slots) -> Iterator[Slots]:
        if len(filled) == most:
            yield filled
            return
        if len(filled) + len(seats.open) - place < most:
            return
        slot, seen = seats.open[place], set()
        for spare in free:
            if kinds[spare] in seen or not at.eligible(spare, slot):
                continue
            seen.add(kinds[spare])
            rest = [one for one in free if one != spare]
            yield from fill(place + 1, rest, {**filled, slot: spare})
        yield from fill(place + 1, free, filled)

    yield from fill(0, seats.spares, {})


def _kind(at: Standing, processor: ProcessorId, slots: Sequence[SlotId]) -> tuple[object, ...]:
    """All that tells a spare from others: who is of the same kind is as good."""
    return (
        tuple(at.eligible(processor, slot) for slot in slots),
        at.held.get(processor, ()),
        at.load_pct.get(processor, 0.0),
        tuple(role for role in at.roles if (role, processor) in at.isolated),
        processor in at.unsettled,
    )
