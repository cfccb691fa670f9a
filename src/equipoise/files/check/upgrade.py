"""Upgrades: the resource graph, its groups, the requests for changes, and whole campaigns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from equipoise.files.check.references import (
    InventoryIndex,
    check_at_most,
    check_members,
    find_cycles,
    format_cycle,
    report_repeated,
    report_taken_id,
)
from equipoise.files.document import Gaps
from equipoise.model.diagnostics import Diagnostics, KeyPath, format_list, quoted
from equipoise.model.upgrade.campaign import ScheduledCampaignEvent, UpgradeCampaign
from equipoise.model.upgrade.catalog import Catalog
from equipoise.model.upgrade.infrastructure import (
    Dependency,
    DependencyKind,
    DependencyPresence,
    Resource,
    ResourceGroup,
    ResourceGroupKind,
    ResourceKind,
)
from equipoise.model.upgrade.request import (
    ChangeKind,
    ChangeSet,
    CommandKind,
    RequestedChange,
    UpgradeCommand,
    UpgradeRequest,
)
from equipoise.model.upgrade.wall_clock import (
    INSTANT_EXAMPLE,
    WINDOW_EXAMPLE,
    parse_instant,
    parse_window,
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
    if dependency.kind is DependencyKind.AGGREGATION:
        least, most = dependency.constituents_min, constituents.get(dependency.dependent)
        excess = f"is more than the constituents of {quoted(dependency.dependent)}"
        check_at_most(least, most, excess, (*path, "constituents_min"), diagnostics)


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
        else:
            excess = f"is more than the members of {quoted(outer.id if outer else group.id)}"
            check_at_most(number, len(members), excess, (*path, key), diagnostics)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The resources and versions that requests may name, and the ids of earlier requests."""

    components: Mapping[str, str | None]
    """The component of each resource; ``None`` if the resource could not be read."""
    versions: Mapping[str, tuple[str, ...]] | None
    """The versions of each component in the catalog; ``None`` if that could not be read."""
    requests: dict[str, KeyPath] = field(default_factory=dict)
    sets: dict[str, KeyPath] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        resources: Mapping[str, Resource | None],
        catalog: Catalog | None,
        requests: list[UpgradeRequest],
    ) -> RequestContext:
        """Return the context of a cluster together with the resources that the requests add."""
        added = {
            resource.id: resource
            for request in requests
            for change_set in request.sets
            for change in change_set.changes
            for resource in change.new
        } | {resource.id: resource for request in requests for resource in request.new.resources}
        components = {
            id_: None if resource is None else component_of(resource)
            for id_, resource in ({**added} | {**resources}).items()
        }
        if catalog is None:
            return cls(components, None)
        described = (request.catalog.descriptions for request in requests)
        whole = Catalog(descriptions=(*catalog.descriptions, *chain.from_iterable(described)))
        return cls(components, described_versions(whole))


def component_of(resource: Resource) -> str:
    """Return the component that a resource is an installation of."""
    return resource.component or resource.kind.value


def described_versions(catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """Return the versions that a catalog describes, by component."""
    versions: dict[str, list[str]] = {}
    for description in catalog.descriptions:
        versions.setdefault(description.component, []).append(description.version)
    return {component: tuple(described) for component, described in versions.items()}


def check_request(
    request: UpgradeRequest, path: KeyPath, context: RequestContext, diagnostics: Diagnostics
) -> None:
    """Check a request; remember its ids in ``context`` for the next one."""
    if request.id in context.requests:
        report_taken_id(request.id, (*path, "id"), context.requests[request.id], diagnostics)
    context.requests.setdefault(request.id, path)
    _check_catalog(request.catalog, diagnostics.below(*path, "catalog"))
    for position, dependency in enumerate(request.new.dependencies):
        for key in ("dependent", "sponsor"):
            name = getattr(dependency, key)
            if name not in context.components:
                there: KeyPath = (*path, "new", "dependencies", position, key)
                diagnostics.add_unknown(there, "resource", name, context.components)
    for position, change_set in enumerate(request.sets):
        here: KeyPath = (*path, "sets", position)
        if change_set.id in context.sets:
            earlier = context.sets[change_set.id]
            report_taken_id(change_set.id, (*here, "id"), earlier, diagnostics)
        context.sets.setdefault(change_set.id, here)
        _check_set(change_set, here, context, diagnostics)


def _check_set(
    change_set: ChangeSet, path: KeyPath, context: RequestContext, diagnostics: Diagnostics
) -> None:
    for position, change in enumerate(change_set.changes):
        _check_change(change, (*path, "changes", position), context, diagnostics)
    if change_set.complete_by is not None:
        _check_text(change_set.complete_by, parse_instant, (*path, "complete_by"), diagnostics)
    for position, window in enumerate(change_set.windows):
        if isinstance(window, str):
            _check_text(window, parse_window, (*path, "windows", position), diagnostics)
            continue
        closes: KeyPath = (*path, "windows", position, "closes_s")
        if window.closes_s <= window.opens_s:
            what = f"a window that opens at {window.opens_s} s closes at {window.closes_s} s"
            diagnostics.add(closes, what, "close it after it opens", code="out-of-range")
        elif window.closes_s > window.every_s:
            what = f"the window closes after its period of {window.every_s} s"
            diagnostics.add(closes, what, "write it as two windows", code="out-of-range")
    _check_checkpoints(change_set.checkpoints_pct, (*path, "checkpoints_pct"), diagnostics)


def _check_text(
    text: str, parse: Callable[[str], object], path: KeyPath, diagnostics: Diagnostics
) -> None:
    """Report a text that a function of the model cannot read."""
    try:
        parse(text)
    except ValueError as error:
        what = f"{quoted(text)} cannot be read: {error}"
        example = INSTANT_EXAMPLE if parse is parse_instant else WINDOW_EXAMPLE
        diagnostics.add(path, what, f"such as {example}", code="syntax-error")


_ALL_PCT: Final = 100


def _check_checkpoints(marks: Sequence[int], path: KeyPath, diagnostics: Diagnostics) -> None:
    for position, mark in enumerate(marks):
        if mark == _ALL_PCT:
            what = "a checkpoint at 100 has nothing left to hold back"
            cure = "write a percentage below 100"
            diagnostics.add((*path, position), what, cure, code="out-of-range")
        elif any(mark <= earlier for earlier in marks[:position]):
            what = f"{mark} is not above the checkpoints before it"
            cure = "write them in rising order"
            diagnostics.add((*path, position), what, cure, code="out-of-range")


def _check_change(
    change: RequestedChange, path: KeyPath, context: RequestContext, diagnostics: Diagnostics
) -> None:
    known = context.components
    for position, id_ in enumerate(change.resources):
        here = (*path, "resources", position)
        if id_ not in known:
            diagnostics.add_unknown(here, "resource", id_, known)
        elif id_ in change.resources[:position]:
            earlier = (*path, "resources", change.resources.index(id_))
            report_repeated(id_, here, earlier, diagnostics)
    _check_dependency_ends(change, path, known, diagnostics)
    if change.replaces is not None and change.replaces not in known:
        diagnostics.add_unknown((*path, "replaces"), "resource", change.replaces, known)
    if not (change.resources or change.new or change.dependencies):
        cure = "name resources, new resources or dependencies"
        diagnostics.add(path, "changes nothing", cure, code="empty-value")
    if change.new and change.does is not ChangeKind.ADD:
        what = f"new resources cannot be the subject of {change.does}"
        diagnostics.add((*path, "new"), what, "write does: add", code="contradiction")
    if context.versions is not None:
        _check_versions(change, path, context.versions, known, diagnostics)


def _check_dependency_ends(
    change: RequestedChange,
    path: KeyPath,
    known: Mapping[str, str | None],
    diagnostics: Diagnostics,
) -> None:
    for position, dependency in enumerate(change.dependencies):
        for key in ("dependent", "sponsor"):
            name = getattr(dependency, key)
            if name not in known:
                here = (*path, "dependencies", position, key)
                diagnostics.add_unknown(here, "resource", name, known)


def _check_versions(
    change: RequestedChange,
    path: KeyPath,
    described: Mapping[str, tuple[str, ...]],
    known: Mapping[str, str | None],
    diagnostics: Diagnostics,
) -> None:
    """Report versions that the catalog does not describe: no method leads to them."""
    for position, new in enumerate(change.new):
        here = (*path, "new", position, "version")
        _check_described(component_of(new), new.version, here, described, diagnostics)
    named = [change.component or known.get(resource) for resource in change.resources]
    # Each component once: a change of a thousand hosts has one version.
    components = dict.fromkeys(component for component in named if component is not None)
    for component in components:
        if change.does is not ChangeKind.REMOVE:
            if change.version is None:
                what = f"is missing for {quoted(component)}"
                cure = f"one of {format_list(described.get(component, ()))}"
                diagnostics.add((*path, "version"), what, cure, code="missing-key")
                continue
            _check_described(component, change.version, (*path, "version"), described, diagnostics)
        if change.undo_version is not None:
            here = (*path, "undo_version")
            _check_described(component, change.undo_version, here, described, diagnostics)


def _check_described(
    component: str,
    version: str,
    path: KeyPath,
    described: Mapping[str, Iterable[str]],
    diagnostics: Diagnostics,
) -> None:
    versions = list(described.get(component, ()))
    if version in versions:
        return
    what = f"the catalog does not describe {component} {quoted(version)}"
    if versions:
        cure = f"{diagnostics.suggestion(version, versions)}it describes {format_list(versions)}"
    else:
        suggestion = diagnostics.suggestion(component, list(described))
        cure = f"{suggestion}add a description of {component} to the catalog"
    diagnostics.add(path, what, cure, code="unknown-name")


_ORDERING_KINDS: Final = (
    DependencyKind.CONTAINER,
    DependencyKind.COMPOSITION,
    DependencyKind.AGGREGATION,
    DependencyKind.STORAGE,
    DependencyKind.CONTROLLER,
    DependencyKind.COMMUNICATION,
)
"""The kinds of dependency that determine the order of changes, so that a cycle is an error.

Other kinds may form cycles: a storage for VMs can be built on the hosts that use it.
"""


def check_campaign(
    campaign: UpgradeCampaign, index: InventoryIndex, diagnostics: Diagnostics, gaps: Gaps
) -> None:
    """Check a campaign apart from its cluster."""
    requests = list(_requests(campaign))
    is_whole = not any(path[0] == "catalog" for path in gaps)
    context = RequestContext.of(
        index.resources.by_id,
        campaign.catalog if is_whole else None,
        [request for _, request in requests],
    )
    _check_catalog(campaign.catalog, diagnostics.below("catalog"))
    _check_dependency_cycles(index, diagnostics.below("cluster"))
    _check_future_dependencies(index, diagnostics.below("cluster"))
    for path, request in requests:
        check_request(request, path, context, diagnostics)
    _check_settings(campaign, index, diagnostics)
    for position, event in enumerate(campaign.simulation.events):
        here: KeyPath = ("simulation", "events", position)
        _check_event(event, here, index, diagnostics)
        if event.command is not None:
            _check_command(event.command, (*here, "command"), context, diagnostics)
    for position, failure in enumerate(campaign.simulation.failures):
        if failure.resource not in context.components:
            here = ("simulation", "failures", position, "resource")
            diagnostics.add_unknown(here, "resource", failure.resource, context.components)
    for position, move_failure in enumerate(campaign.simulation.move_failures):
        here = ("simulation", "move_failures", position)
        for key in ("source", "target"):
            host = getattr(move_failure, key)
            if host is not None:
                index.hosts.check(host, (*here, key), diagnostics)


def _check_settings(
    campaign: UpgradeCampaign, index: InventoryIndex, diagnostics: Diagnostics
) -> None:
    for position, host in enumerate(campaign.settings.extra_hosts):
        index.hosts.check(host, ("settings", "extra_hosts", position), diagnostics)
    starts_at = campaign.simulation.starts_at
    if starts_at is not None:
        _check_text(starts_at, parse_instant, ("simulation", "starts_at"), diagnostics)


def _requests(campaign: UpgradeCampaign) -> Iterator[tuple[KeyPath, UpgradeRequest]]:
    for position, request in enumerate(campaign.requests):
        yield ("requests", position), request
    for position, event in enumerate(campaign.simulation.events):
        if event.request is not None:
            yield ("simulation", "events", position, "request"), event.request


def _check_catalog(catalog: Catalog, diagnostics: Diagnostics) -> None:
    seen: dict[tuple[str, str], int] = {}
    for position, description in enumerate(catalog.descriptions):
        first = seen.setdefault((description.component, description.version), position)
        if first != position:
            what = f"{description.component} {quoted(description.version)} is already described by"
            here, earlier = ("descriptions", position), ("descriptions", first)
            diagnostics.add(here, what, "describe it once", earlier, code="duplicate-name")


def _check_dependency_cycles(index: InventoryIndex, diagnostics: Diagnostics) -> None:
    """Report cycles of resources in which each must be changed before the next."""
    for times in ((DependencyPresence.CURRENT,), (DependencyPresence.FUTURE,)):
        edges: dict[str, list[str]] = {}
        positions: dict[tuple[str, str], int] = {}
        for position, dependency in index.dependencies:
            if dependency.kind in _ORDERING_KINDS and dependency.presence in (
                *times,
                DependencyPresence.CURRENT_FUTURE,
            ):
                edges.setdefault(dependency.dependent, []).append(dependency.sponsor)
                positions.setdefault((dependency.dependent, dependency.sponsor), position)
        has_cycle = False
        for cycle in find_cycles(edges):
            if len(cycle) > 1:  # a resource that depends on itself is already reported
                has_cycle = True
                position = positions[cycle[0], cycle[1]]
                what = f"resources depend on each other in a cycle: {format_cycle(cycle)}"
                cure = "remove a dependency, or write kind: peer_stateless between equal resources"
                diagnostics.add(("dependencies", position), what, cure, code="cycle")
        # Dependencies that are both current and future would be reported a second time.
        if has_cycle:
            return


def _check_future_dependencies(index: InventoryIndex, diagnostics: Diagnostics) -> None:
    for position, dependency in index.dependencies:
        if dependency.presence is DependencyPresence.FUTURE:
            what = "a future dependency of the cluster belongs to no change"
            cure = "write it under the dependencies of the change that creates it"
            path = ("dependencies", position, "presence")
            diagnostics.add(path, what, cure, code="contradiction")


def _check_event(
    event: ScheduledCampaignEvent, path: KeyPath, index: InventoryIndex, diagnostics: Diagnostics
) -> None:
    if event.at_s is None and event.iteration is None:
        diagnostics.add(path, "has no time", "write at_s or iteration", code="missing-key")
    elif event.at_s is not None and event.iteration is not None:
        what = "has two times, at_s and iteration"
        diagnostics.add(path, what, "leave one of them out", code="contradiction")
    effects = (event.scaling, event.request, event.command)
    if not any(effects) and event.host_fails is None and event.host_recovers is None:
        cure = "write scaling, request, command, host_fails or host_recovers"
        diagnostics.add(path, "has no effect", cure, code="empty-value")
    for position, scaling in enumerate(event.scaling):
        index.tenants.check(scaling.tenant, (*path, "scaling", position, "tenant"), diagnostics)
    for key in ("host_fails", "host_recovers"):
        host = getattr(event, key)
        if host is not None:
            index.hosts.check(host, (*path, key), diagnostics)


def _check_command(
    command: UpgradeCommand, path: KeyPath, context: RequestContext, diagnostics: Diagnostics
) -> None:
    if command.set is not None and command.set not in context.sets:
        diagnostics.add_unknown((*path, "set"), "set", command.set, context.sets)
    if command.order is CommandKind.REPAIRED:
        if command.resource is None:
            what = "repaired needs a resource"
            diagnostics.add(path, what, "name it with resource", code="missing-key")
        elif command.resource not in context.components:
            here = (*path, "resource")
            diagnostics.add_unknown(here, "resource", command.resource, context.components)
        return
    # Only these two have a meaning for the whole campaign.
    if command.set is None and command.order not in (CommandKind.PAUSE, CommandKind.RESUME):
        what = f"{command.order} needs a set"
        diagnostics.add(path, what, "name the set with set", code="missing-key")
