"""The lint of a role layout: defects found without running anything.

A layout with an error has no meaning, and every file reader refuses it. Warnings remain usable,
such as a role without a holder while a slot is empty. ``lint_layout`` reports both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from equipoise.model.diagnostics import Diagnostics, KeyPath, closest_match, format_list, quoted
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import RoleId
from equipoise.model.roles.layout import (
    LayoutElement,
    RedundancyModel,
    Role,
    RoleGroup,
    RoleLayout,
    expand_redundancy,
)
from equipoise.roles.meaning import role_coverage, roles_by_slot


class DefectKind(StrEnum):
    """The kind of a defect. The values are stable codes, see ``errors.CODES``."""

    DUPLICATE = "duplicate-definition"
    UNKNOWN = "unknown-name"
    RESERVED = "reserved-slot-name"
    UNCLEAR_ELEMENT = "unclear-element"
    APPLICATION = "application-in-two-roles"
    DUPLICATE_PAIR = "duplicate-pair"
    SINGLE_TWICE = "single-role-twice"
    NO_PROCESSORS = "no-processors"
    CONFLICT = "contradiction"
    UNCOVERED = "uncovered-role"
    LOST_BY_JOINING = "coverage-lost-by-joining"
    EMPTY = "list-can-be-empty"

    @property
    def is_warning(self) -> bool:
        """Whether the layout still has a meaning."""
        return self in (DefectKind.UNCOVERED, DefectKind.LOST_BY_JOINING, DefectKind.EMPTY)


class LayoutDefect(NamedTuple):
    """One defect of a layout."""

    kind: DefectKind
    path: KeyPath
    """The path of the value, from the layout down."""
    what: str
    cure: str
    first: KeyPath | None = None
    """The path of the other value of a contradiction or duplicate."""


def unknown_name(path: KeyPath, noun: str, name: str, known: Collection[str]) -> LayoutDefect:
    """Return the defect of a name that is not defined, with the closest known name."""
    near = closest_match(name, known)
    guess = f"did you mean {quoted(near)}? " if near else ""
    among = f"the {noun}s are: {format_list(known)}" if known else f"no {noun} is defined"
    return LayoutDefect(
        DefectKind.UNKNOWN, path, f"there is no {noun} {quoted(name)}", f"{guess}{among}"
    )


def counts_text(counts: list[int]) -> str:
    """Format numbers of filled slots: ``1``, ``1 or 2``, ``1 to 4``."""
    if len(counts) > 2 and counts == list(range(counts[0], counts[-1] + 1)):  # noqa: PLR2004
        return f"{counts[0]} to {counts[-1]}"
    return " or ".join(map(str, counts))


RESERVED_SLOT_NAMES: Final = ("on_each", "if_active", "at_least", "at_most")
"""Keywords of a layout. A slot may not have such a name."""


class GroupLint:
    """The lint of one group."""

    def __init__(self, team: RoleGroup, roles: Mapping[RoleId, Role], path: KeyPath) -> None:
        self._team, self._roles, self._path = team, roles, path
        self._slots = {slot.id for slot in team.slots}

    def defects(self) -> Iterator[LayoutDefect]:
        """Yield all defects, in the order of the file."""
        yield from self._check_slots()
        yield from self._check_layout(self._team.layout, (*self._path, "layout"))
        yield from self._check_preferences()
        yield from self._check_together_apart()
        yield from self._check_redundancy()

    def _check_slots(self) -> Iterator[LayoutDefect]:
        first: dict[str, int] = {}
        needs = self._team.slots[0].needs
        for index, slot in enumerate(self._team.slots):
            path = (*self._path, "slots", index)
            if slot.id in RESERVED_SLOT_NAMES:
                what = f"{quoted(slot.id)} is a layout keyword and no name of a slot"
                yield LayoutDefect(DefectKind.RESERVED, (*path, "id"), what, "give it another id")
            if slot.id in first:
                first_path = (*self._path, "slots", first[slot.id], "id")
                what = f"the slot {quoted(slot.id)} is defined twice, first by"
                yield LayoutDefect(
                    DefectKind.DUPLICATE, (*path, "id"), what, "define each slot once", first_path
                )
            first.setdefault(slot.id, index)
            if self._team.packed and slot.needs != needs:
                what = "slots of a packed group need equal needs, because members change slots"
                yield LayoutDefect(
                    DefectKind.CONFLICT, path, what, "write equal needs, or packed: false"
                )

    def _check_layout(
        self, layout: Sequence[LayoutElement], path: KeyPath
    ) -> Iterator[LayoutDefect]:
        for index, element in enumerate(layout):
            yield from self._check_element(element, (*path, index))

    def _check_element(self, element: LayoutElement, path: KeyPath) -> Iterator[LayoutDefect]:
        given = [
            key
            for key in ("on_each", "slot", "if_active", "at_least", "at_most")
            if getattr(element, key) is not None
        ]
        is_condition = bool(given) and given[0] not in ("on_each", "slot")
        if len(given) != 1:
            what = f"{' and '.join(given)} are given together" if given else "the element is empty"
            cure = (
                "write one of on_each, slot with roles, or if_active, at_least, at_most with layout"
            )
            yield LayoutDefect(DefectKind.UNCLEAR_ELEMENT, path, what, cure)
            return
        if element.roles and given != ["slot"]:
            cure = (
                f"list the roles in {given[0]}" if not is_condition else "move them into its layout"
            )
            yield LayoutDefect(
                DefectKind.UNCLEAR_ELEMENT, (*path, "roles"), "roles belong to a slot", cure
            )
        if element.layout and not is_condition:
            cure = "write if_active, at_least or at_most beside it"
            yield LayoutDefect(
                DefectKind.UNCLEAR_ELEMENT,
                (*path, "layout"),
                "a layout belongs to a condition",
                cure,
            )
        if element.slot is not None and element.slot not in self._slots:
            yield unknown_name((*path, "slot"), "slot", element.slot, self._slot_names())
        key = "on_each" if element.on_each is not None else "roles"
        yield from self._check_roles(element.on_each or element.roles, (*path, key))
        count = element.if_active if element.if_active is not None else element.at_least
        if count is not None and count > len(self._team.slots):
            what = f"the group has {len(self._team.slots)} slots; {count} are never filled"
            cure = f"write at most {len(self._team.slots)}, or remove the element"
            yield LayoutDefect(DefectKind.CONFLICT, (*path, given[0]), what, cure)
        yield from self._check_layout(element.layout, (*path, "layout"))

    def _check_preferences(self) -> Iterator[LayoutDefect]:
        first: dict[str, int] = {}
        for index, preference in enumerate(self._team.preferences):
            path = (*self._path, "preferences", index)
            yield from self._check_roles([preference.role], path, "role")
            if preference.promotes is not None:
                yield from self._check_roles([preference.promotes], path, "promotes")
            if preference.role in first:
                first_path = (*self._path, "preferences", first[preference.role], "role")
                what = f"{quoted(preference.role)} has two preferences, the first is"
                yield LayoutDefect(
                    DefectKind.DUPLICATE,
                    (*path, "role"),
                    what,
                    "write one list per role",
                    first_path,
                )
            first.setdefault(preference.role, index)
            if not preference.slots:
                what = f"the list of {quoted(preference.role)} is empty: no slot can run it"
                cure = f"name slots: {format_list(self._slot_names())}"
                yield LayoutDefect(DefectKind.EMPTY, (*path, "slots"), what, cure)
            seen: dict[str, int] = {}
            for slot_index, slot in enumerate(preference.slots):
                slot_path = (*path, "slots", slot_index)
                if slot not in self._slots:
                    yield unknown_name(slot_path, "slot", slot, self._slot_names())
                elif slot in seen:
                    what = f"{quoted(slot)} is listed twice, first by"
                    first_path = (*path, "slots", seen[slot])
                    yield LayoutDefect(
                        DefectKind.DUPLICATE, slot_path, what, "list it once", first_path
                    )
                seen.setdefault(slot, slot_index)

    def _check_together_apart(self) -> Iterator[LayoutDefect]:
        for key in ("together", "apart"):
            for index, roles in enumerate(getattr(self._team, key)):
                path = (*self._path, key, index)
                yield from self._check_roles(roles, path)
                if len(set(roles)) < 2:  # noqa: PLR2004
                    what = "together and apart need two roles"
                    yield LayoutDefect(
                        DefectKind.UNCLEAR_ELEMENT, path, what, "name at least two roles"
                    )
        for index, roles in enumerate(self._team.together):
            for other_index, separated in enumerate(self._team.apart):
                both = [role for role in roles if role in separated]
                if len(set(both)) > 1:
                    what = f"{' and '.join(map(quoted, both))} must be together, and apart by"
                    other_path = (*self._path, "apart", other_index)
                    path = (*self._path, "together", index)
                    yield LayoutDefect(
                        DefectKind.CONFLICT, path, what, "remove one of the two", other_path
                    )

    def _check_redundancy(self) -> Iterator[LayoutDefect]:
        redundancy = self._team.redundancy
        if redundancy is None:
            return
        path = (*self._path, "redundancy")
        needs_standby = redundancy.model in (
            RedundancyModel.TWO_N,
            RedundancyModel.N_PLUS_M,
            RedundancyModel.N_WAY,
        )
        for index, workload in enumerate(redundancy.workloads):
            workload_path = (*path, "workloads", index)
            yield from self._check_roles([workload.active], workload_path, "active")
            if workload.standby is not None:
                yield from self._check_roles([workload.standby], workload_path, "standby")
            if needs_standby != (workload.standby is not None):
                what = f"{redundancy.model} {'needs' if needs_standby else 'has no'} standbys"
                cure = "name a standby role" if needs_standby else "remove standby"
                yield LayoutDefect(DefectKind.CONFLICT, workload_path, what, cure)
        counts = [redundancy.actives] if redundancy.model is RedundancyModel.N_WAY_ACTIVE else []
        if redundancy.model is RedundancyModel.N_PLUS_M:
            counts = [redundancy.actives, redundancy.standbys]
        if sum(counts) > len(self._team.slots):
            what = f"{' + '.join(map(str, counts))} holders exceed the slots of the group"
            yield LayoutDefect(
                DefectKind.CONFLICT, path, what, f"write at most {len(self._team.slots)} together"
            )

    def _check_roles(
        self, names: Iterable[str], path: KeyPath, key: str = ""
    ) -> Iterator[LayoutDefect]:
        for index, name in enumerate(names):
            if name not in self._roles:
                role_path = (*path, key) if key else (*path, index)
                yield unknown_name(role_path, "role", name, [str(role) for role in self._roles])

    def _slot_names(self) -> list[str]:
        return list(dict.fromkeys(slot.id for slot in self._team.slots))


def count_defects(
    team: RoleGroup, roles: Mapping[RoleId, Role], path: KeyPath, own: int
) -> Iterator[LayoutDefect]:
    """Yield the defects that depend on the number of filled slots.

    The first ``own`` preferences are in the file; the others come from the redundancy model.
    """
    redundancy: KeyPath = (*path, "redundancy")
    preferred: dict[RoleId, KeyPath] = {
        preference.role: (*path, "preferences", index, "slots") if index < own else redundancy
        for index, preference in enumerate(team.preferences)
    }
    yield from _duplicate_pairs(team, path)
    yield from _single_roles(team, roles, path, preferred)
    yield from _uncovered_roles(team, roles, path, preferred)


def _duplicate_pairs(team: RoleGroup, path: KeyPath) -> Iterator[LayoutDefect]:
    slots = [slot.id for slot in team.slots]
    counts_of_pair: dict[tuple[str, str], list[int]] = {}
    # Each number of filled slots is a layout of its own. Raw pairs are compared, not de-duplicated
    # ones (design, section 7): two elements that give a pair are the defect.
    for filled in range(1, len(slots) + 1):
        for slot, roles in roles_by_slot(slots, team.layout, filled).items():
            for role, times in roles.items():
                if times > 1:
                    counts_of_pair.setdefault((role, slot), []).append(filled)
    for (role_id, slot_id), counts in counts_of_pair.items():
        what = f"slot {quoted(slot_id)} gets the role {quoted(role_id)} twice"
        what += f" with {counts_text(counts)} slots filled"
        paths = list(_mentions(team.layout, (*path, "layout"), role_id, slot_id))
        last_path, first_path = paths[-1], paths[0]
        first = first_path if first_path != last_path else None
        what += ", first by" if first is not None else ""
        yield LayoutDefect(
            DefectKind.DUPLICATE_PAIR, last_path, what, "remove it from one of the elements", first
        )


def _single_roles(
    team: RoleGroup,
    roles: Mapping[RoleId, Role],
    path: KeyPath,
    preferred: Mapping[RoleId, KeyPath],
) -> Iterator[LayoutDefect]:
    slots = [slot.id for slot in team.slots]
    for role in (role for role in roles.values() if role.single):
        # With one filled slot a role cannot have two holders.
        for filled in range(2, len(slots) + 1):
            by_slot = roles_by_slot(slots, team.layout, filled)
            holders = [slot for slot in slots if by_slot[slot][role.id]]
            # In a packed group only the first slots are filled, so later ones cannot hold the role.
            if team.packed:
                holders = [slot for slot in holders if slot in slots[:filled]]
            if len(holders) > 1:
                what = f"{quoted(role.id)} is single; with {filled} slots filled two can hold it"
                here = next(_mentions(team.layout, (*path, "layout"), role.id, holders[1]))
                cure = "give it to one slot, write a preference, or remove single"
                yield LayoutDefect(DefectKind.SINGLE_TWICE, here, what, cure)
                break
    for preference in team.preferences:
        definition = roles.get(preference.role)
        if definition is not None and definition.single and preference.count > 1:
            what = f"{quoted(preference.role)} is single, but its count is {preference.count}"
            yield LayoutDefect(
                DefectKind.SINGLE_TWICE,
                preferred[preference.role],
                what,
                "write count: 1, or remove single",
            )


def _uncovered_roles(
    team: RoleGroup,
    roles: Mapping[RoleId, Role],
    path: KeyPath,
    preferred: Mapping[RoleId, KeyPath],
) -> Iterator[LayoutDefect]:
    empty = {preference.role for preference in team.preferences if not preference.slots}
    for role, coverage in role_coverage(team).items():
        definition = roles.get(role)
        optional = definition is not None and definition.optional
        role_path = next(_mentions(team.layout, (*path, "layout"), role, None), path)
        missing, lost = coverage.uncovered_counts(), coverage.counts_lost_by_joining()
        if role in preferred and missing and role not in empty:
            filled = counts_text(missing)
            what = f"with {filled} slots filled, all slots of {quoted(role)} can be empty"
            cure = f"list all {len(team.slots)} slots of the group"
            yield LayoutDefect(
                DefectKind.EMPTY,
                preferred[role],
                what,
                cure,
            )
        elif missing and not optional and role not in preferred:
            what = (
                f"with {counts_text(missing)} slots filled, {quoted(role)} can be without a holder"
            )
            cure = "add if_active or at_least for it, write a preference, or mark it optional"
            yield LayoutDefect(DefectKind.UNCOVERED, role_path, what, cure)
        if lost:
            filled = counts_text(lost)
            what = f"{quoted(role)} can lose its holder when one more joins {filled} filled slots"
            cure = "write at_least instead of if_active, or add an element for that number"
            yield LayoutDefect(
                DefectKind.LOST_BY_JOINING,
                role_path,
                what,
                cure,
            )


def _mentions(
    layout: Sequence[LayoutElement], path: KeyPath, role: str, slot: str | None
) -> Iterator[KeyPath]:
    """Yield the paths at which a layout names a role, for one slot if given."""
    for index, element in enumerate(layout):
        element_path = (*path, index)
        if role in (element.on_each or ()):
            yield (*element_path, "on_each")
        if role in element.roles and slot in (None, element.slot):
            yield (*element_path, "roles")
        yield from _mentions(element.layout, (*element_path, "layout"), role, slot)


def lint_layout(
    layout: RoleLayout, hosts: Collection[str], vms: Collection[str]
) -> list[LayoutDefect]:
    """Return all defects of a layout, in the order of the file."""
    defects = [
        *_duplicates("role", ("roles",), [role.id for role in layout.roles]),
        *_duplicates("group", ("groups",), [team.id for team in layout.groups]),
        *_shared_applications(layout),
    ]
    roles = {role.id: role for role in layout.roles}
    hosts, vms = dict.fromkeys(hosts), dict.fromkeys(vms)  # an ordered set: fast lookup
    for index, team in enumerate(layout.groups):
        path: KeyPath = ("groups", index)
        group_defects = [
            *_processor_defects(team, path, hosts, vms),
            *GroupLint(team, roles, path).defects(),
        ]
        if not any(
            defect.kind is DefectKind.UNCLEAR_ELEMENT or defect.kind is DefectKind.UNKNOWN
            for defect in group_defects
        ):
            # The checks by count need a layout whose elements and names are clear.
            group_defects += count_defects(
                expand_redundancy(team), roles, path, own=len(team.preferences)
            )
        defects += group_defects
    return defects


def report_layout_errors(inventory: Inventory, diagnostics: Diagnostics) -> None:
    """Report the errors of a layout, for readers of files. Warnings are left out."""
    if inventory.layout is None:
        return
    hosts = [host.id for host in inventory.hosts]
    vms = [vm.id for vm in inventory.vms]
    for defect in lint_layout(inventory.layout, hosts, vms):
        if not defect.kind.is_warning:
            first = None if defect.first is None else ("layout", *defect.first)
            diagnostics.add(
                ("layout", *defect.path),
                defect.what,
                defect.cure,
                first=first,
                code=defect.kind.value,
            )


def _duplicates(noun: str, path: KeyPath, names: Iterable[str]) -> Iterator[LayoutDefect]:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in first:
            what = f"the {noun} {quoted(name)} is defined twice, first by"
            first_path = (*path, first[name], "id")
            cure = "define it once, or give this one another id"
            yield LayoutDefect(DefectKind.DUPLICATE, (*path, index, "id"), what, cure, first_path)
        first.setdefault(name, index)


def _shared_applications(layout: RoleLayout) -> Iterator[LayoutDefect]:
    first: dict[str, tuple[KeyPath, str]] = {}
    for index, role in enumerate(layout.roles):
        for application_index, name in enumerate(role.applications):
            path: KeyPath = ("roles", index, "applications", application_index)
            if name not in first:
                first[name] = path, role.id
                continue
            first_path, other = first[name]
            again = "twice in" if other == role.id else f"in {quoted(other)} and in"
            what = f"the application {quoted(name)} is {again} {quoted(role.id)}, first by"
            cure = "an application has at most one role: remove it from one of them"
            yield LayoutDefect(DefectKind.APPLICATION, path, what, cure, first_path)


def _processor_defects(
    team: RoleGroup, path: KeyPath, hosts: Collection[str], vms: Collection[str]
) -> Iterator[LayoutDefect]:
    if bool(team.hosts) == bool(team.vms):
        what = "the group has both hosts and VMs" if team.hosts else "the group has no processors"
        cure = "list hosts or vms, one of the two"
        yield LayoutDefect(DefectKind.NO_PROCESSORS, path, what, cure)
    for key, noun, names, known in (
        ("hosts", "host", team.hosts, hosts),
        ("vms", "VM", team.vms, vms),
    ):
        first: dict[str, int] = {}
        for index, name in enumerate(names):
            processor_path = (*path, key, index)
            if name not in known:
                yield unknown_name(processor_path, noun, name, known)
            if name in first:
                what = f"{quoted(name)} is listed twice, first by"
                yield LayoutDefect(
                    DefectKind.DUPLICATE,
                    processor_path,
                    what,
                    "list it once",
                    (*path, key, first[name]),
                )
            first.setdefault(name, index)
