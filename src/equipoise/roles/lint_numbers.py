"""What is wrong with a group at some number of filled slots, without trying all fillings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from equipoise.model.files.words import Path, quoted
from equipoise.model.quantity import RoleId
from equipoise.model.roles.layout import Element, Role, Team
from equipoise.model.words import counted
from equipoise.roles.defect import Defect, Kind, numbers
from equipoise.roles.static import carried, coverages


def numbered_defects(team: Team, roles: Mapping[RoleId, Role], path: Path) -> Iterator[Defect]:
    """Everything that depends on how many slots are filled."""
    yield from _pairs(team, path)
    yield from _singles(team, roles, path)
    yield from _coverage(team, roles, path)


def _pairs(team: Team, path: Path) -> Iterator[Defect]:
    slots = [slot.id for slot in team.slots]
    found: dict[tuple[str, str], list[int]] = {}
    for filled in range(1, len(slots) + 1):
        for slot, given in carried(slots, team.layout, filled).items():
            for role, times in given.items():
                if times > 1:
                    found.setdefault((role, slot), []).append(filled)
    for (name, where), some in found.items():
        what = f"{quoted(name)} is given to slot {quoted(where)} twice"
        what += f" when {numbers(some)} are filled"
        places = list(_naming(team.layout, (*path, "layout"), name, where))
        here, there = places[-1], places[0]
        first = there if there != here else None
        what += ", first by" if first is not None else ""
        yield Defect(Kind.PAIR, here, what, "take it out of one of the elements", first)


def _singles(team: Team, roles: Mapping[RoleId, Role], path: Path) -> Iterator[Defect]:
    slots = [slot.id for slot in team.slots]
    for role in (one for one in roles.values() if one.single):
        for filled in range(2, len(slots) + 1):
            given = carried(slots, team.layout, filled)
            holders = [slot for slot in slots if given[slot][role.id]]
            if team.packed:
                holders = [slot for slot in holders if slot in slots[:filled]]
            if len(holders) > 1:
                what = f"{quoted(role.id)} is single, and {filled} filled slots can have it twice"
                here = next(_naming(team.layout, (*path, "layout"), role.id, holders[1]))
                cure = "give it to one slot, or prefer it (preferences), or drop single"
                yield Defect(Kind.TWICE, here, what, cure)
                break
    for place, one in enumerate(team.preferences):
        known = roles.get(one.role)
        if known is not None and known.single and one.count > 1:
            what = f"{quoted(one.role)} is single, and {one.count} are to hold it"
            here = (*path, "preferences", place, "count")
            yield Defect(Kind.TWICE, here, what, "count: 1, or drop single")


def _coverage(team: Team, roles: Mapping[RoleId, Role], path: Path) -> Iterator[Defect]:
    listed = {one.role: place for place, one in enumerate(team.preferences)}
    for role, coverage in coverages(team).items():
        known = roles.get(role)
        here = next(_naming(team.layout, (*path, "layout"), role, None), path)
        missing, lost = coverage.uncovered(), coverage.lost_by_joining()
        if role in listed and missing:
            at = (*path, "preferences", listed[role], "slots")
            what = f"no slot of the list may be filled when {numbers(missing)} are"
            cure = f"name {counted(len(team.slots), 'slot')}, or as many as there are"
            yield Defect(Kind.EMPTY, at, f"{quoted(role)}: {what}", cure)
        elif missing and not (known is not None and known.optional):
            what = f"nobody may hold {quoted(role)} when {numbers(missing)} are filled"
            cure = "say who has it then (if_active, at_least), prefer it, or mark it optional"
            yield Defect(Kind.UNCOVERED, here, what, cure)
        if lost:
            more = numbers([one + 1 for one in lost])
            what = f"{quoted(role)} may be lost when one more joins and {more} are filled"
            cure = "write at_least instead of if_active, or say who has it then"
            yield Defect(Kind.JOINING, here, what, cure)


def _naming(layout: Sequence[Element], path: Path, role: str, slot: str | None) -> Iterator[Path]:
    """The places where a role is named, for a slot if one is given."""
    for place, element in enumerate(layout):
        here = (*path, place)
        if role in (element.on_each or ()):
            yield (*here, "on_each")
        if role in element.roles and slot in (None, element.slot):
            yield (*here, "roles")
        yield from _naming(element.layout, (*here, "layout"), role, slot)
