"""Requests of an upgrade: what they name must be there and described, and make sense together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path, listed, quoted
from equipoise.model.resource import Resource
from equipoise.model.upgrade.catalog import Catalog
from equipoise.model.upgrade.request import Change, ChangeKind, ChangeSet, Request


@dataclass(frozen=True, slots=True)
class Grounds:
    """What requests are checked against, and what earlier ones have taken."""

    components: Mapping[str, str | None]
    """Each resource with the component it is an installation of; nothing: it could not be read."""
    versions: Mapping[str, tuple[str, ...]] | None
    """Of each component, what the catalog describes; nothing: the catalog could not be read."""
    requests: dict[str, Path] = field(default_factory=dict)
    sets: dict[str, Path] = field(default_factory=dict)

    @classmethod
    def of(
        cls, resources: Mapping[str, Resource | None], catalog: Catalog | None, all_: list[Request]
    ) -> Grounds:
        """Take what a cluster has and what any of the requests adds to it."""
        added = {new.id: new for one in all_ for s in one.sets for c in s.changes for new in c.new}
        known = {
            id_: None if one is None else main_component_of(one)
            for id_, one in ({**added} | {**resources}).items()
        }
        return cls(known, None if catalog is None else versions_of(catalog))


def main_component_of(resource: Resource) -> str:
    """The component that a resource is an installation of."""
    return resource.component or resource.kind.value


def versions_of(catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """What a catalog describes, component by component."""
    found: dict[str, list[str]] = {}
    for one in catalog.descriptions:
        found.setdefault(one.component, []).append(one.version)
    return {name: tuple(versions) for name, versions in found.items()}


def check_request(request: Request, path: Path, grounds: Grounds, found: Findings) -> None:
    """Find what makes no sense in a request."""
    if request.id in grounds.requests:
        _taken(request.id, (*path, "id"), grounds.requests, found)
    grounds.requests.setdefault(request.id, path)
    for place, set_ in enumerate(request.sets):
        here: Path = (*path, "sets", place)
        if set_.id in grounds.sets:
            _taken(set_.id, (*here, "id"), grounds.sets, found)
        grounds.sets.setdefault(set_.id, here)
        _check_set(set_, here, grounds, found)


def _taken(id_: str, path: Path, first: Mapping[str, Path], found: Findings) -> None:
    found.add(path, f"the id {quoted(id_)} is taken by", "every id once", first=first[id_])


def _check_set(set_: ChangeSet, path: Path, grounds: Grounds, found: Findings) -> None:
    for place, change in enumerate(set_.changes):
        _check_change(change, (*path, "changes", place), grounds, found)
    for place, window in enumerate(set_.windows):
        if window.closes_s <= window.opens_s:
            what = f"a window that opens at {window.opens_s} s closes at {window.closes_s} s"
            found.add((*path, "windows", place, "closes_s"), what, "close it after it opens")
        elif window.closes_s > window.every_s:
            what = f"it closes after its period of {window.every_s} s"
            found.add((*path, "windows", place, "closes_s"), what, "write it as two windows")
    marks = set_.checkpoints_pct
    for place, mark in enumerate(marks):
        here = (*path, "checkpoints_pct", place)
        if mark == _ALL_PCT:
            found.add(here, "nothing is left to hold back at 100", "write a share below 100")
        elif mark in marks[:place] or any(mark < one for one in marks[:place]):
            found.add(here, f"{mark} does not come after the share before it", "let them rise")


_ALL_PCT = 100


def _check_change(change: Change, path: Path, grounds: Grounds, found: Findings) -> None:
    known = grounds.components
    for place, id_ in enumerate(change.resources):
        here = (*path, "resources", place)
        if id_ not in known:
            found.add_unknown(here, "resource", id_, known)
        elif id_ in change.resources[:place]:
            found.add(here, f"{quoted(id_)} is named twice", "name it once")
    _check_ends(change, path, known, found)
    if change.replaces is not None and change.replaces not in known:
        found.add_unknown((*path, "replaces"), "resource", change.replaces, known)
    if not (change.resources or change.new or change.dependencies):
        found.add(path, "it is about nothing", "name resources, or new ones, or dependencies")
    if change.new and change.does is not ChangeKind.ADD:
        what = f"what is new cannot be the subject of {change.does}"
        found.add((*path, "new"), what, "write does: add")
    if grounds.versions is not None:
        _check_versions(change, path, grounds.versions, known, found)


def _check_ends(
    change: Change, path: Path, known: Mapping[str, str | None], found: Findings
) -> None:
    for place, one in enumerate(change.dependencies):
        for key, end in (("dependent", one.dependent), ("sponsor", one.sponsor)):
            if end not in known:
                found.add_unknown((*path, "dependencies", place, key), "resource", end, known)


def _check_versions(
    change: Change,
    path: Path,
    described: Mapping[str, tuple[str, ...]],
    known: Mapping[str, str | None],
    found: Findings,
) -> None:
    """What a change leads to must be in the catalog, or nobody knows how to get there."""
    for place, new in enumerate(change.new):
        here = (*path, "new", place, "version")
        _check_described(main_component_of(new), new.version, here, described, found)
    named = [change.component or known.get(one) for one in change.resources]
    components = dict.fromkeys(one for one in named if one is not None)
    for component in components:
        if change.does is not ChangeKind.REMOVE:
            if change.version is None:
                cure = f"one of {listed(described.get(component, ()))}"
                found.add((*path, "version"), f"is missing for {quoted(component)}", cure)
                continue
            _check_described(component, change.version, (*path, "version"), described, found)
        if change.undo_version is not None:
            here = (*path, "undo_version")
            _check_described(component, change.undo_version, here, described, found)


def _check_described(
    component: str,
    version: str,
    path: Path,
    described: Mapping[str, Iterable[str]],
    found: Findings,
) -> None:
    versions = list(described.get(component, ()))
    if version in versions:
        return
    what = f"the catalog does not describe {component} {quoted(version)}"
    if versions:
        cure = f"{found.guess(version, versions)}it describes {listed(versions)}"
    else:
        guess = found.guess(component, list(described))
        cure = f"{guess}give {component} a description under catalog"
    found.add(path, what, cure)
