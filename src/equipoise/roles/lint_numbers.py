"""What is wrong with a group at some number of filled slots, without trying all fillings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from equipoise.model.files.words import Path, quoted
from equipoise.model.quantity import RoleId
from equipoise.model.roles.layout import Element, Role, Team
from equipoise.roles.defect import Defect, Kind, numbers
from equipoise.roles.static import carried, coverages


def numbered_defects(
    team: Team, roles: Mapping[RoleId, Role], path: Path, own: int
) -> Iterator[Defect]:
    """Everything that depends on how many slots are filled.

    Of the preferences the first ``own`` are in the file, the others follow from a ready layout.
    """
    ready: Path = (*path, "redundancy")
    preferred: dict[RoleId, Path] = {
        one.role: (*path, "preferences", place, "slots") if place < own else ready
        for place, one in enumerate(team.preferences)
    }
    yield from _pairs(team, path)
    yield from _singles(team, roles, path, preferred)
    yield from _coverage(team, roles, path, preferred)


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
        what += f" with {numbers(some)} filled"
        places = list(_naming(team.layout, (*path, "layout"), name, where))
        here, there = places[-1], places[0]
        first = there if there != here else None
        what += ", first by" if first is not None else ""
        yield Defect(Kind.PAIR, here, what, "take it out of one of the elements", first)


def _singles(
    team: Team, roles: Mapping[RoleId, Role], path: Path, preferred: Mapping[RoleId, Path]
) -> Iterator[Defect]:
    slots = [slot.id for slot in team.slots]
    for role in (one for one in roles.values() if one.single):
        for filled in range(2, len(slots) + 1):
            given = carried(slots, team.layout, filled)
            holders = [slot for slot in slots if given[slot][role.id]]
            if team.packed:
                holders = [slot for slot in holders if slot in slots[:filled]]
            if len(holders) > 1:
                what = f"{quoted(role.id)} is single, and with {filled} filled two can have it"
                here = next(_naming(team.layout, (*path, "layout"), role.id, holders[1]))
                cure = "give it to one slot, or prefer it (preferences), or drop single"
                yield Defect(Kind.TWICE, here, what, cure)
                break
    for one in team.preferences:
        known = roles.get(one.role)
        if known is not None and known.single and one.count > 1:
            what = f"{quoted(one.role)} is single, and {one.count} are to hold it"
            yield Defect(Kind.TWICE, preferred[one.role], what, "one holder, or drop single")


def _coverage(
    team: Team, roles: Mapping[RoleId, Role], path: Path, preferred: Mapping[RoleId, Path]
) -> Iterator[Defect]:
    empty = {one.role for one in team.preferences if not one.slots}
    for role, coverage in coverages(team).items():
        known = roles.get(role)
        optional = known is not None and known.optional
        here = next(_naming(team.layout, (*path, "layout"), role, None), path)
        missing, lost = coverage.uncovered(), coverage.lost_by_joining()
        if role in preferred and missing and role not in empty:
            what = f"the list of {quoted(role)} can be empty: with {numbers(missing)} filled, "
            cure = f"list all {len(team.slots)} slots of the group"
            yield Defect(
                Kind.EMPTY, preferred[role], f"{what}none of its slots need be among them", cure
            )
        elif missing and not optional and role not in preferred:
            what = f"with {numbers(missing)} filled it can be that nobody has {quoted(role)}"
            cure = "say who has it then (if_active, at_least), prefer it, or mark it optional"
            yield Defect(Kind.UNCOVERED, here, what, cure)
        if lost:
            what = f"{quoted(role)} can be lost because one more joins: with {numbers(lost)} filled"
            cure = "write at_least instead of if_active, or say who has it then"
            yield Defect(Kind.JOINING, here, f"{what} somebody has it, with one more nobody", cure)


def _naming(layout: Sequence[Element], path: Path, role: str, slot: str | None) -> Iterator[Path]:
    """The places where a role is named, for a slot if one is given."""
    for place, element in enumerate(layout):
        here = (*path, place)
        if role in (element.on_each or ()):
            yield (*here, "on_each")
        if role in element.roles and slot in (None, element.slot):
            yield (*here, "roles")
        yield from _naming(element.layout, (*here, "layout"), role, slot)
