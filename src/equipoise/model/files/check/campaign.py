"""Upgrade campaigns: what the catalog, requests, commands and the story name must make sense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from equipoise.model.files.check.cycles import cycle_shown, cycles
from equipoise.model.files.check.requests import Grounds, check_request
from equipoise.model.files.check.roster import Roster
from equipoise.model.files.findings import Findings
from equipoise.model.files.tree import Gaps
from equipoise.model.files.words import Path, quoted
from equipoise.model.resource import DependencyKind, Presence
from equipoise.model.upgrade.campaign import Campaign, Moment
from equipoise.model.upgrade.catalog import Catalog
from equipoise.model.upgrade.request import Command, Order, Request

_ONE_WAY: Final = (
    DependencyKind.CONTAINER,
    DependencyKind.COMPOSITION,
    DependencyKind.AGGREGATION,
    DependencyKind.STORAGE,
    DependencyKind.CONTROLLER,
    DependencyKind.COMMUNICATION,
)
"""Who is changed first follows from these. A storage for VMs may well be built on its users."""


def check_campaign(campaign: Campaign, roster: Roster, found: Findings, gaps: Gaps) -> None:
    """Find what makes no sense in a campaign besides its cluster."""
    requests = list(_requests(campaign))
    is_whole = not any(path[0] == "catalog" for path in gaps)
    grounds = Grounds.of(
        roster.resources.by_id,
        campaign.catalog if is_whole else None,
        [request for _, request in requests],
    )
    _check_catalog(campaign.catalog, found.below("catalog"))
    _check_circles(roster, found.below("cluster"))
    _check_future(roster, found.below("cluster"))
    for path, request in requests:
        check_request(request, path, grounds, found)
    for place, moment in enumerate(campaign.story.moments):
        _check_moment(moment, ("story", "moments", place), roster, found)
        if moment.command is not None:
            here: Path = ("story", "moments", place, "command")
            _check_command(moment.command, here, grounds, found)
    for place, failing in enumerate(campaign.story.failing):
        if failing.resource not in grounds.components:
            here = ("story", "failing", place, "resource")
            found.add_unknown(here, "resource", failing.resource, grounds.components)


def _requests(campaign: Campaign) -> Iterator[tuple[Path, Request]]:
    for place, request in enumerate(campaign.requests):
        yield ("requests", place), request
    for place, moment in enumerate(campaign.story.moments):
        if moment.request is not None:
            yield ("story", "moments", place, "request"), moment.request


def _check_catalog(catalog: Catalog, found: Findings) -> None:
    seen: dict[tuple[str, str], int] = {}
    for place, one in enumerate(catalog.descriptions):
        first = seen.setdefault((one.component, one.version), place)
        if first != place:
            what = f"{one.component} {quoted(one.version)} is described by"
            found.add(("descriptions", place), what, "describe it once", ("descriptions", first))


def _check_circles(roster: Roster, found: Findings) -> None:
    """Resources of which each waits for the next could never be changed one after the other."""
    for times in ((Presence.CURRENT,), (Presence.FUTURE,)):
        edges: dict[str, list[str]] = {}
        places: dict[tuple[str, str], int] = {}
        for place, one in roster.dependencies:
            if one.kind in _ONE_WAY and one.presence in (*times, Presence.CURRENT_FUTURE):
                edges.setdefault(one.dependent, []).append(one.sponsor)
                places.setdefault((one.dependent, one.sponsor), place)
        found_any = False
        for cycle in cycles(edges):
            if len(cycle) > 1:  # who depends on itself was told
                found_any = True
                place = places[cycle[0], cycle[1]]
                what = f"resources depend on each other in a circle: {cycle_shown(cycle)}"
                cure = "leave one of them out; equals that talk to each other are peer_stateless"
                found.add(("dependencies", place), what, cure)
        if found_any:
            return


def _check_future(roster: Roster, found: Findings) -> None:
    for place, one in roster.dependencies:
        if one.presence is Presence.FUTURE:
            what = "nobody says with which change it comes"
            cure = "write it under the dependencies of that change"
            found.add(("dependencies", place, "presence"), what, cure)


def _check_moment(moment: Moment, path: Path, roster: Roster, found: Findings) -> None:
    if (moment.at_s is None) == (moment.iteration is None):
        found.add(path, "it has no single time", "write either at_s or iteration")
    happens = (moment.scaling, moment.request, moment.command)
    if not any(happens) and moment.host_fails is None and moment.host_recovers is None:
        cure = "write scaling, request, command, host_fails or host_recovers"
        found.add(path, "nothing happens then", cure)
    for place, one in enumerate(moment.scaling):
        roster.tenants.check(one.tenant, (*path, "scaling", place, "tenant"), found)
    for key in ("host_fails", "host_recovers"):
        host = getattr(moment, key)
        if host is not None:
            roster.hosts.check(host, (*path, key), found)


def _check_command(command: Command, path: Path, grounds: Grounds, found: Findings) -> None:
    if command.set is not None and command.set not in grounds.sets:
        found.add_unknown((*path, "set"), "set", command.set, grounds.sets)
    if command.set is None and command.order not in (Order.PAUSE, Order.RESUME):
        found.add(path, f"{command.order} is about one set", "name it with set")
