"""The resource graph: what depends on what, and which groups protect each other."""

from __future__ import annotations

from typing import Final

from equipoise.files.check.references import InventoryIndex, check_members
from equipoise.model.diagnostics import Diagnostics, KeyPath, format_list, quoted
from equipoise.model.upgrade.infrastructure import (
    Dependency,
    DependencyKind,
    DependencyPresence,
    ResourceGroup,
    ResourceGroupKind,
    ResourceKind,
)

_LINK_KINDS: Final = (ResourceKind.LINK, ResourceKind.VIRTUAL_LINK)


def check_resource_graph(index: InventoryIndex, diagnostics: Diagnostics) -> None:
    """Report resources, dependencies and groups with unknown names or inconsistent options."""
    for position, resource in index.resources:
        if resource.host is not None:
            index.hosts.check(resource.host, ("resources", position, "host"), diagnostics)
        if resource.vm is not None:
            index.vms.check(resource.vm, ("resources", position, "vm"), diagnostics)
    constituents = _count_constituents(index)
    for position, dependency in index.dependencies:
        path: KeyPath = ("dependencies", position)
        _check_endpoints(dependency, index, path, diagnostics)
        _check_options(dependency, path, diagnostics)
        _check_constituents(dependency, constituents, path, diagnostics)
    for position, group in index.groups:
        check_members(
            group.resources, index.resources, ("groups", position, "resources"), diagnostics
        )
        if group.within is not None:
            _check_within(group, group.within, index, ("groups", position, "within"), diagnostics)
        _check_group_limits(group, index, ("groups", position), diagnostics)


def _check_endpoints(
    dependency: Dependency, index: InventoryIndex, path: KeyPath, diagnostics: Diagnostics
) -> None:
    index.resources.check(dependency.dependent, (*path, "dependent"), diagnostics)
    if dependency.dependent == dependency.sponsor:
        what = f"{quoted(dependency.sponsor)} depends on itself"
        diagnostics.add((*path, "sponsor"), what, "name another resource", code="cycle")
    else:
        index.resources.check(dependency.sponsor, (*path, "sponsor"), diagnostics)
    if dependency.link is None:
        return
    if index.resources.check(dependency.link, (*path, "link"), diagnostics):
        link = index.resources.by_id[dependency.link]
        if link is not None and link.kind not in _LINK_KINDS:
            what = f"{quoted(link.id)} is of kind {link.kind}"
            diagnostics.add(
                (*path, "link"),
                what,
                f"name a resource of kind {format_list(_LINK_KINDS)}",
                code="contradiction",
            )


def _check_options(dependency: Dependency, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report options that a dependency of this kind does not have."""
    if dependency.link is not None and dependency.kind is not DependencyKind.COMMUNICATION:
        what = f"a dependency of kind {dependency.kind} has no link"
        diagnostics.add(
            (*path, "link"),
            what,
            "leave it out, or write kind: communication",
            code="contradiction",
        )
    if dependency.incompatible and dependency.presence is not DependencyPresence.CURRENT_FUTURE:
        what = f"a dependency that is {dependency.presence} only cannot be incompatible"
        cure = "leave it out, or write presence: current_future"
        diagnostics.add((*path, "incompatible"), what, cure, code="contradiction")
    is_aggregation = dependency.kind is DependencyKind.AGGREGATION
    if dependency.constituents_min is not None and not is_aggregation:
        what = f"a dependency of kind {dependency.kind} has no constituents"
        cure = "leave it out, or write kind: aggregation"
        diagnostics.add((*path, "constituents_min"), what, cure, code="contradiction")


def _count_constituents(index: InventoryIndex) -> dict[str, int]:
    """Return the number of constituents of each aggregate; empty if some could not be read."""
    if not index.dependencies.is_whole:
        return {}
    sponsors: dict[str, set[str]] = {}
    for _, dependency in index.dependencies:
        if dependency.kind is DependencyKind.AGGREGATION:
            sponsors.setdefault(dependency.dependent, set()).add(dependency.sponsor)
    return {dependent: len(constituents) for dependent, constituents in sponsors.items()}


def _check_constituents(
    dependency: Dependency, constituents: dict[str, int], path: KeyPath, diagnostics: Diagnostics
) -> None:
    least = dependency.constituents_min
    if least is None or dependency.kind is not DependencyKind.AGGREGATION:
        return
    most = constituents.get(dependency.dependent)
    if most is not None and least > most:
        what = f"{least} is more than the constituents of {quoted(dependency.dependent)}"
        diagnostics.add((*path, "constituents_min"), what, f"at most {most}", code="out-of-range")


def _check_within(
    group: ResourceGroup, name: str, index: InventoryIndex, path: KeyPath, diagnostics: Diagnostics
) -> None:
    if group.kind is not ResourceGroupKind.PROTECTION:
        what = f"a group of kind {group.kind} is not within another"
        diagnostics.add(path, what, "leave it out, or write kind: protection", code="contradiction")
        return
    if not index.groups.check(name, path, diagnostics):
        return
    outer = index.groups.by_id[name]
    if outer is None:
        return
    if outer.kind is not ResourceGroupKind.POTENTIAL_PROTECTION:
        what = f"{quoted(name)} is a group of kind {outer.kind}"
        diagnostics.add(
            path, what, "name a group of kind potential_protection", code="contradiction"
        )
        return
    members = frozenset(outer.resources)
    missing = [resource for resource in group.resources if resource not in members]
    if missing:
        what = f"{quoted(name)} has no {format_list(missing)}"
        diagnostics.add(
            path, what, f"add them to {name}, or remove them here", code="contradiction"
        )


def _check_group_limits(
    group: ResourceGroup, index: InventoryIndex, path: KeyPath, diagnostics: Diagnostics
) -> None:
    """Report limits of a group that has too few members for them, or that does not protect."""
    outer = index.groups.by_id.get(group.within) if group.within is not None else None
    members = frozenset(group.resources if outer is None else outer.resources)
    for key, number in (("in_service_min", group.in_service_min), ("out_max", group.out_max)):
        if number is None:
            continue
        if not group.kind.protects:
            what = (
                f"a group of kind {group.kind} does not limit how many members are out of service"
            )
            diagnostics.add(
                (*path, key), what, "leave it out, or write kind: protection", code="contradiction"
            )
        elif number > len(members):
            what = f"{number} is more than the members of {quoted(outer.id if outer else group.id)}"
            diagnostics.add((*path, key), what, f"at most {len(members)}", code="out-of-range")
