"""What is wrong with a layout, or will surprise: found without running anything.

Some defects leave a layout without a meaning, and every reader of files refuses them. Others are
only doubtful, such as a role that nobody holds while some slot is empty. ``lint`` tells all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path, quoted
from equipoise.model.inventory import Inventory
from equipoise.model.roles.layout import RoleLayout, Team
from equipoise.model.roles.redundancy import expanded
from equipoise.roles.defect import Defect, Kind, unknown
from equipoise.roles.lint_group import GroupLint
from equipoise.roles.lint_numbers import numbered_defects


def lint(layout: RoleLayout, hosts: Collection[str], vms: Collection[str]) -> list[Defect]:
    """Say everything that is wrong with a layout, in the order of the file."""
    found = [
        *_twice("role", ("roles",), [role.id for role in layout.roles]),
        *_twice("group", ("groups",), [team.id for team in layout.groups]),
        *_applications(layout),
    ]
    roles = {role.id: role for role in layout.roles}
    hosts, vms = dict.fromkeys(hosts), dict.fromkeys(vms)  # in order, and quick to look up
    for place, team in enumerate(layout.groups):
        path: Path = ("groups", place)
        mine = [
            *_processors(team, path, hosts, vms),
            *GroupLint(team, roles, path).defects(),
        ]
        if not any(one.kind is Kind.FORM or one.kind is Kind.UNKNOWN for one in mine):
            mine += numbered_defects(expanded(team), roles, path, own=len(team.preferences))
        found += mine
    return found


def refuse_defects(inventory: Inventory, found: Findings) -> None:
    """Find what leaves a layout without a meaning; for readers of files."""
    if inventory.layout is None:
        return
    hosts = [host.id for host in inventory.hosts]
    vms = [vm.id for vm in inventory.vms]
    for one in lint(inventory.layout, hosts, vms):
        if not one.kind.is_doubtful:
            first = None if one.first is None else ("layout", *one.first)
            found.add(("layout", *one.path), one.what, one.cure, first=first)


def _twice(noun: str, path: Path, names: Iterable[str]) -> Iterator[Defect]:
    first: dict[str, int] = {}
    for place, name in enumerate(names):
        if name in first:
            what = f"the {noun} {quoted(name)} is defined twice, first by"
            there = (*path, first[name], "id")
            cure = "define it once, or give this one another id"
            yield Defect(Kind.DUPLICATE, (*path, place, "id"), what, cure, there)
        first.setdefault(name, place)


def _applications(layout: RoleLayout) -> Iterator[Defect]:
    first: dict[str, tuple[Path, str]] = {}
    for place, role in enumerate(layout.roles):
        for number, name in enumerate(role.applications):
            path: Path = ("roles", place, "applications", number)
            if name not in first:
                first[name] = path, role.id
                continue
            there, other = first[name]
            again = "twice in" if other == role.id else f"in {quoted(other)} and in"
            what = f"the application {quoted(name)} is {again} {quoted(role.id)}, first by"
            cure = "an application is in at most one role: take it out of one of them"
            yield Defect(Kind.APPLICATION, path, what, cure, there)


def _processors(
    team: Team, path: Path, hosts: Collection[str], vms: Collection[str]
) -> Iterator[Defect]:
    if bool(team.hosts) == bool(team.vms):
        both = "it has both hosts and VMs" if team.hosts else "nobody may fill its slots"
        cure = "list hosts or vms, one of the two"
        yield Defect(Kind.NOBODY, path, both, cure)
    for key, noun, names, known in (
        ("hosts", "host", team.hosts, hosts),
        ("vms", "VM", team.vms, vms),
    ):
        first: dict[str, int] = {}
        for place, name in enumerate(names):
            here = (*path, key, place)
            if name not in known:
                yield unknown(here, noun, name, known)
            if name in first:
                what = f"{quoted(name)} is named twice, first by"
                yield Defect(
                    Kind.DUPLICATE, here, what, "once is enough", (*path, key, first[name])
                )
            first.setdefault(name, place)
