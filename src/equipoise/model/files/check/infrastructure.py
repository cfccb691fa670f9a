"""The graph of resources: what depends on what, and which groups stand in for each other."""

from __future__ import annotations

from typing import Final

from equipoise.model.files.check.roster import Roster, check_members
from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path, listed, quoted
from equipoise.model.resource import (
    Dependency,
    DependencyKind,
    Presence,
    ResourceGroup,
    ResourceGroupKind,
    ResourceKind,
)

_LINKS: Final = (ResourceKind.LINK, ResourceKind.VIRTUAL_LINK)


def check_infrastructure(roster: Roster, found: Findings) -> None:
    """Find resources, dependencies and groups that name what is not there or make no sense."""
    for place, resource in roster.resources:
        if resource.host is not None:
            roster.hosts.check(resource.host, ("resources", place, "host"), found)
        if resource.vm is not None:
            roster.vms.check(resource.vm, ("resources", place, "vm"), found)
    constituents = _constituents(roster)
    for place, dependency in roster.dependencies:
        path: Path = ("dependencies", place)
        _check_ends(dependency, roster, path, found)
        _check_options(dependency, path, found)
        _check_constituents(dependency, constituents, path, found)
    for place, group in roster.groups:
        check_members(group.resources, roster.resources, ("groups", place, "resources"), found)
        if group.within is not None:
            _check_within(group, group.within, roster, ("groups", place, "within"), found)
        _check_numbers(group, roster, ("groups", place), found)


def _check_ends(dependency: Dependency, roster: Roster, path: Path, found: Findings) -> None:
    roster.resources.check(dependency.dependent, (*path, "dependent"), found)
    if dependency.dependent == dependency.sponsor:
        what = f"{quoted(dependency.sponsor)} depends on itself"
        found.add((*path, "sponsor"), what, "name another resource")
    else:
        roster.resources.check(dependency.sponsor, (*path, "sponsor"), found)
    if dependency.link is None:
        return
    if roster.resources.check(dependency.link, (*path, "link"), found):
        link = roster.resources.by_id[dependency.link]
        if link is not None and link.kind not in _LINKS:
            what = f"{quoted(link.id)} is of kind {link.kind}"
            found.add((*path, "link"), what, f"name a resource of kind {listed(_LINKS)}")


def _check_options(dependency: Dependency, path: Path, found: Findings) -> None:
    """Find options of one kind of dependency at another."""
    if dependency.link is not None and dependency.kind is not DependencyKind.COMMUNICATION:
        what = f"a dependency of kind {dependency.kind} has no link"
        found.add((*path, "link"), what, "leave it out, or write kind: communication")
    if dependency.incompatible and dependency.presence is not Presence.CURRENT_FUTURE:
        what = f"a dependency that is {dependency.presence} only cannot be incompatible"
        cure = "leave it out, or write presence: current_future"
        found.add((*path, "incompatible"), what, cure)
    is_aggregation = dependency.kind is DependencyKind.AGGREGATION
    if dependency.constituents_min is not None and not is_aggregation:
        what = f"a dependency of kind {dependency.kind} has no constituents"
        cure = "leave it out, or write kind: aggregation"
        found.add((*path, "constituents_min"), what, cure)


def _constituents(roster: Roster) -> dict[str, int]:
    """How many constituents each aggregate has, as far as that can be told."""
    if not roster.dependencies.is_whole:
        return {}
    sponsors: dict[str, set[str]] = {}
    for _, dependency in roster.dependencies:
        if dependency.kind is DependencyKind.AGGREGATION:
            sponsors.setdefault(dependency.dependent, set()).add(dependency.sponsor)
    return {dependent: len(those) for dependent, those in sponsors.items()}


def _check_constituents(
    dependency: Dependency, constituents: dict[str, int], path: Path, found: Findings
) -> None:
    least = dependency.constituents_min
    if least is None or dependency.kind is not DependencyKind.AGGREGATION:
        return
    most = constituents.get(dependency.dependent)
    if most is not None and least > most:
        what = f"{least} is more than the constituents of {quoted(dependency.dependent)}"
        found.add((*path, "constituents_min"), what, f"at most {most}")


def _check_within(
    group: ResourceGroup, name: str, roster: Roster, path: Path, found: Findings
) -> None:
    if group.kind is not ResourceGroupKind.PROTECTION:
        what = f"a group of kind {group.kind} is not within another"
        found.add(path, what, "leave it out, or write kind: protection")
        return
    if not roster.groups.check(name, path, found):
        return
    outer = roster.groups.by_id[name]
    if outer is None:
        return
    if outer.kind is not ResourceGroupKind.POTENTIAL_PROTECTION:
        what = f"{quoted(name)} is a group of kind {outer.kind}"
        found.add(path, what, "name a group of kind potential_protection")
        return
    members = frozenset(outer.resources)
    strangers = [resource for resource in group.resources if resource not in members]
    if strangers:
        what = f"{quoted(name)} has no {listed(strangers)}"
        found.add(path, what, "every member must be in the group it was chosen from")


def _check_numbers(group: ResourceGroup, roster: Roster, path: Path, found: Findings) -> None:
    """Find numbers of a group that does not protect, or that it has not the members for."""
    outer = roster.groups.by_id.get(group.within) if group.within is not None else None
    members = frozenset(group.resources if outer is None else outer.resources)
    for key, number in (("in_service_min", group.in_service_min), ("out_max", group.out_max)):
        if number is None:
            continue
        if not group.kind.protects:
            what = f"a group of kind {group.kind} does not say who may be out"
            found.add((*path, key), what, "leave it out, or write kind: protection")
        elif number > len(members):
            what = f"{number} is more than the members of {quoted(outer.id if outer else group.id)}"
            found.add((*path, key), what, f"at most {len(members)}")
