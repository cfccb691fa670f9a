"""What is wrong with the names and the form of one group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from equipoise.model.files.words import Path, listed, quoted
from equipoise.model.quantity import RoleId
from equipoise.model.roles.layout import Element, Redundancy, Role, Team
from equipoise.roles.defect import Defect, Kind, unknown

RESERVED: Final = ("on_each", "if_active", "at_least", "at_most")
"""Words of a layout, which a slot may not be called by."""


class GroupLint:
    """Goes through a group, part by part."""

    def __init__(self, team: Team, roles: Mapping[RoleId, Role], path: Path) -> None:
        self._team, self._roles, self._path = team, roles, path
        self._slots = {slot.id for slot in team.slots}

    def defects(self) -> Iterator[Defect]:
        """Everything, in the order of the file."""
        yield from self._check_slots()
        yield from self._check_layout(self._team.layout, (*self._path, "layout"))
        yield from self._check_preferences()
        yield from self._check_companions()
        yield from self._check_ready()

    def _check_slots(self) -> Iterator[Defect]:
        first: dict[str, int] = {}
        needs = self._team.slots[0].needs
        for place, slot in enumerate(self._team.slots):
            path = (*self._path, "slots", place)
            if slot.id in RESERVED:
                what = f"a slot may not be called {quoted(slot.id)}: the word has its own meaning"
                yield Defect(Kind.RESERVED, (*path, "id"), what, "give it another id")
            if slot.id in first:
                there = (*self._path, "slots", first[slot.id], "id")
                what = f"the slot {quoted(slot.id)} is defined twice, first by"
                yield Defect(Kind.DUPLICATE, (*path, "id"), what, "every slot once", there)
            first.setdefault(slot.id, place)
            if self._team.packed and slot.needs != needs:
                what = "slots of a packed group have the same needs, because members close holes"
                yield Defect(Kind.CONFLICT, path, what, "the same needs for all, or packed: false")

    def _check_layout(self, layout: Sequence[Element], path: Path) -> Iterator[Defect]:
        for place, element in enumerate(layout):
            yield from self._check_element(element, (*path, place))

    def _check_element(self, element: Element, path: Path) -> Iterator[Defect]:
        given = [
            key
            for key in ("on_each", "slot", "if_active", "at_least", "at_most")
            if getattr(element, key) is not None
        ]
        condition = bool(given) and given[0] not in ("on_each", "slot")
        if len(given) != 1:
            said = f"{' and '.join(given)} are given together" if given else "it says nothing"
            cure = "one of on_each, slot (with roles), if_active, at_least or at_most (with layout)"
            yield Defect(Kind.FORM, path, said, cure)
            return
        if element.roles and given != ["slot"]:
            cure = f"list the roles in {given[0]}" if not condition else "put them into its layout"
            yield Defect(Kind.FORM, (*path, "roles"), "roles belong to a slot", cure)
        if element.layout and not condition:
            cure = "if_active, at_least or at_most beside it"
            yield Defect(Kind.FORM, (*path, "layout"), "a layout belongs to a condition", cure)
        if element.slot is not None and element.slot not in self._slots:
            yield unknown((*path, "slot"), "slot", element.slot, self._slot_names())
        key = "on_each" if element.on_each is not None else "roles"
        yield from self._check_roles(element.on_each or element.roles, (*path, key))
        number = element.if_active if element.if_active is not None else element.at_least
        if number is not None and number > len(self._team.slots):
            what = f"{number} slots are never filled: there are {len(self._team.slots)}"
            cure = f"at most {len(self._team.slots)}, or leave it out"
            yield Defect(Kind.CONFLICT, (*path, given[0]), what, cure)
        yield from self._check_layout(element.layout, (*path, "layout"))

    def _check_preferences(self) -> Iterator[Defect]:
        first: dict[str, int] = {}
        for place, one in enumerate(self._team.preferences):
            path = (*self._path, "preferences", place)
            yield from self._check_roles([one.role], path, "role")
            if one.promotes is not None:
                yield from self._check_roles([one.promotes], path, "promotes")
            if one.role in first:
                there = (*self._path, "preferences", first[one.role], "role")
                what = f"{quoted(one.role)} is preferred twice, first by"
                yield Defect(Kind.DUPLICATE, (*path, "role"), what, "one list for a role", there)
            first.setdefault(one.role, place)
            if not one.slots:
                what = f"the list of {quoted(one.role)} is empty: it can run nowhere"
                cure = f"name slots: {listed(self._slot_names())}"
                yield Defect(Kind.EMPTY, (*path, "slots"), what, cure)
            seen: dict[str, int] = {}
            for number, slot in enumerate(one.slots):
                here = (*path, "slots", number)
                if slot not in self._slots:
                    yield unknown(here, "slot", slot, self._slot_names())
                elif slot in seen:
                    what = f"{quoted(slot)} is named twice, first by"
                    there = (*path, "slots", seen[slot])
                    yield Defect(Kind.DUPLICATE, here, what, "once is enough", there)
                seen.setdefault(slot, number)

    def _check_companions(self) -> Iterator[Defect]:
        for key in ("together", "apart"):
            for place, some in enumerate(getattr(self._team, key)):
                path = (*self._path, key, place)
                yield from self._check_roles(some, path)
                if len(set(some)) < 2:  # noqa: PLR2004
                    what = "it takes two to be together or apart"
                    yield Defect(Kind.FORM, path, what, "name at least two roles")
        for place, some in enumerate(self._team.together):
            for number, others in enumerate(self._team.apart):
                both = [role for role in some if role in others]
                if len(set(both)) > 1:
                    what = f"{' and '.join(map(quoted, both))} are to be together, and apart by"
                    there = (*self._path, "apart", number)
                    here = (*self._path, "together", place)
                    yield Defect(Kind.CONFLICT, here, what, "leave one of the two out", there)

    def _check_ready(self) -> Iterator[Defect]:
        ready = self._team.redundancy
        if ready is None:
            return
        path = (*self._path, "redundancy")
        wants = ready.model in (Redundancy.TWO_N, Redundancy.N_PLUS_M, Redundancy.N_WAY)
        for place, one in enumerate(ready.workloads):
            here = (*path, "workloads", place)
            yield from self._check_roles([one.active], here, "active")
            if one.standby is not None:
                yield from self._check_roles([one.standby], here, "standby")
            if wants != (one.standby is not None):
                what = f"{ready.model} {'has' if wants else 'has no'} standbys"
                cure = "name a standby role" if wants else "leave standby out"
                yield Defect(Kind.CONFLICT, here, what, cure)
        counts = [ready.actives] if ready.model is Redundancy.N_WAY_ACTIVE else []
        if ready.model is Redundancy.N_PLUS_M:
            counts = [ready.actives, ready.standbys]
        if sum(counts) > len(self._team.slots):
            what = f"{' + '.join(map(str, counts))} holders need more than the slots there are"
            yield Defect(Kind.CONFLICT, path, what, f"at most {len(self._team.slots)} together")

    def _check_roles(self, names: Iterable[str], path: Path, key: str = "") -> Iterator[Defect]:
        for place, name in enumerate(names):
            if name not in self._roles:
                here = (*path, key) if key else (*path, place)
                yield unknown(here, "role", name, [str(role) for role in self._roles])

    def _slot_names(self) -> list[str]:
        return list(dict.fromkeys(slot.id for slot in self._team.slots))
