"""Upgrade campaigns: what requests, commands and the story name must be there."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.files.check.roster import Roster
from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path, quoted
from equipoise.model.resource import Presence
from equipoise.model.upgrade.campaign import Campaign, Moment
from equipoise.model.upgrade.request import Change, ChangeSet, Request


def check_campaign(campaign: Campaign, roster: Roster, found: Findings) -> None:
    """Find what makes no sense in a campaign besides its cluster."""
    requests = list(_requests(campaign))
    known = set(roster.resources.by_id) | {
        new.id for _, one in requests for set_ in one.sets for c in set_.changes for new in c.new
    }
    for place, dependency in roster.dependencies:
        if dependency.presence is Presence.FUTURE:
            here: Path = ("cluster", "dependencies", place, "presence")
            what = "nobody says with which change it comes"
            found.add(here, what, "write it under the dependencies of that change")
    sets: dict[str, Path] = {}
    for path, request in requests:
        for place, set_ in enumerate(request.sets):
            here = (*path, "sets", place)
            if set_.id in sets:
                what = f"the id {quoted(set_.id)} is taken by"
                found.add((*here, "id"), what, "every id once", first=sets[set_.id])
            sets.setdefault(set_.id, here)
            _check_set(set_, here, known, found)
    for place, moment in enumerate(campaign.story.moments):
        _check_moment(moment, ("story", "moments", place), roster, found)
    for place, failing in enumerate(campaign.story.failing):
        if failing.resource not in known:
            here = ("story", "failing", place, "resource")
            found.add_unknown(here, "resource", failing.resource, known)


def _requests(campaign: Campaign) -> Iterator[tuple[Path, Request]]:
    for place, request in enumerate(campaign.requests):
        yield ("requests", place), request
    for place, moment in enumerate(campaign.story.moments):
        if moment.request is not None:
            yield ("story", "moments", place, "request"), moment.request


def _check_set(set_: ChangeSet, path: Path, known: set[str], found: Findings) -> None:
    for place, change in enumerate(set_.changes):
        _check_change(change, (*path, "changes", place), known, found)
    for place, window in enumerate(set_.windows):
        if window.closes_s <= window.opens_s:
            what = f"a window that opens at {window.opens_s} s closes at {window.closes_s} s"
            found.add((*path, "windows", place, "closes_s"), what, "close it after it opens")
        elif window.closes_s > window.every_s:
            what = f"it closes after its period of {window.every_s} s"
            found.add((*path, "windows", place, "closes_s"), what, "write it as two windows")


def _check_change(change: Change, path: Path, known: set[str], found: Findings) -> None:
    for place, id_ in enumerate(change.resources):
        if id_ not in known:
            found.add_unknown((*path, "resources", place), "resource", id_, known)
    for place, one in enumerate(change.dependencies):
        for key, end in (("dependent", one.dependent), ("sponsor", one.sponsor)):
            if end not in known:
                found.add_unknown((*path, "dependencies", place, key), "resource", end, known)
    if change.replaces is not None and change.replaces not in known:
        found.add_unknown((*path, "replaces"), "resource", change.replaces, known)
    if not (change.resources or change.new or change.dependencies):
        found.add(path, "it is about nothing", "name resources, or new ones, or dependencies")


def _check_moment(moment: Moment, path: Path, roster: Roster, found: Findings) -> None:
    if (moment.at_s is None) == (moment.iteration is None):
        found.add(path, "it has no single time", "write either at_s or iteration")
    for place, one in enumerate(moment.scaling):
        roster.tenants.check(one.tenant, (*path, "scaling", place, "tenant"), found)
    for key in ("host_fails", "host_recovers"):
        host = getattr(moment, key)
        if host is not None:
            roster.hosts.check(host, (*path, key), found)
