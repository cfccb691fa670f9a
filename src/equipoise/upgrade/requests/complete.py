"""Completeness: what else must change for a set of changes to make sense, or why it never will."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import Dependency, DependencyKind, Presence
from equipoise.model.upgrade.catalog import ComponentId, Need
from equipoise.model.upgrade.request import Change, ChangeKind, ChangeSet
from equipoise.upgrade.requests.bind import is_there
from equipoise.upgrade.requests.project import Projection
from equipoise.upgrade.state import State, main_component

ROUNDS_MAX = 10_000


class Impossible(Exception):
    """A set that can never succeed, in a sentence. Caught where sets are taken up."""


def complete(state: State, asked: ChangeSet) -> ChangeSet:
    """Add what the catalog says is missing, each with the reason."""
    future = Projection(state)
    changes = [_known(state, future, change) for change in asked.changes]
    for change in changes:
        future.apply(change)
    for change in changes:
        _check_dependencies(state, future, change)
    changes += _removals(state, changes)
    changes = [_with_edges(future, change) for change in changes]
    touched = [id_ for change in changes for id_ in (*change.resources, *_ids(change))]
    forced: dict[tuple[ResourceId, ComponentId], str] = {
        (id_, change.component or main_component(future.resources[id_])): change.version
        for change in changes
        for id_ in change.resources
        if change.version is not None
    }
    extra = _complements(future, touched, forced, changes)
    return asked.but(changes=(*changes, *extra))


def _ids(change: Change) -> tuple[ResourceId, ...]:
    return tuple(one.id for one in change.new)


def _known(state: State, future: Projection, change: Change) -> Change:
    """The change, if all it names is there and described."""
    for id_ in change.resources:
        if id_ not in future.resources:
            raise Impossible(f"there is no resource {id_}")
    for new in change.new:
        if new.id in future.resources:
            raise Impossible(f"there is a resource {new.id} already")
        if future.describe(main_component(new), new.version) is None:
            raise Impossible(f"the catalog does not describe {main_component(new)} {new.version}")
    if change.replaces is not None and change.replaces not in state.parts:
        raise Impossible(f"there is no resource {change.replaces} to replace")
    threshold = change.undo_threshold
    targets = len(change.resources) + len(change.new)
    if threshold is not None and threshold > targets:
        raise Impossible(
            f"{threshold} resources are to be operational in the end, but it is about {targets}"
        )
    for id_ in change.resources:
        component = change.component or main_component(future.resources[id_])
        version = change.version
        if change.does is not ChangeKind.REMOVE and (
            version is None or future.describe(component, version) is None
        ):
            raise Impossible(f"the catalog does not describe {component} {version or ''}".strip())
    return change


def _check_dependencies(state: State, future: Projection, change: Change) -> None:
    """The ends of a dependency are there, and so is one that is to be removed."""
    for one in change.dependencies:
        for end in (one.dependent, one.sponsor):
            if end not in future.resources:
                raise Impossible(f"there is no resource {end} for a dependency to be bound to")
        if change.does is ChangeKind.REMOVE and not is_there(state, one):
            raise Impossible(f"{one.dependent} has no dependency ({one.kind}) on {one.sponsor}")


def _removals(state: State, changes: list[Change]) -> list[Change]:
    """What is replaced goes in the end, whether somebody said so or not."""
    said = {id_ for one in changes if one.does is ChangeKind.REMOVE for id_ in one.resources}
    return [
        Change(
            does=ChangeKind.REMOVE,
            resources=(change.replaces,),
            complements=f"it is replaced by {', '.join(one.id for one in change.new)}",
        )
        for change in changes
        if change.replaces is not None and change.replaces not in said
    ]


def _with_edges(future: Projection, change: Change) -> Change:
    """Bind an added resource to those that have what it needs, if nobody said to whom."""
    made: list[Dependency] = []
    given = {(one.kind, one.dependent) for one in change.dependencies}
    given |= {(one.kind, one.sponsor) for one in change.dependencies}
    for new in change.new:
        said = future.describe(main_component(new), new.version)
        for need in said.needs if said else ():
            if need.along is None or (need.along, new.id) in given:
                continue
            for id_, components in future.components.items():
                if id_ != new.id and need.component in components:
                    made.append(_edge(new.id, id_, need.along))
    for dependency in made:
        future.join(dependency)
    return change.but(dependencies=(*change.dependencies, *made)) if made else change


def _edge(new: ResourceId, other: ResourceId, kind: DependencyKind) -> Dependency:
    """An aggregate needs its constituents; of any other kind, the others need what is new."""
    new_depends = kind is DependencyKind.AGGREGATION
    dependent, sponsor = (new, other) if new_depends else (other, new)
    return Dependency(dependent=dependent, sponsor=sponsor, kind=kind, presence=Presence.FUTURE)


def _complements(
    future: Projection,
    touched: list[ResourceId],
    forced: dict[tuple[ResourceId, ComponentId], str],
    changes: list[Change],
) -> list[Change]:
    """Change whoever does not fit any more, until all fit."""
    made: dict[tuple[ComponentId, str, ChangeKind, str], list[ResourceId]] = {}
    queue = list(dict.fromkeys(touched))
    for place, id_ in enumerate(queue):
        if place > ROUNDS_MAX + len(touched):
            raise Impossible("its complementary changes have no end")
        neighbours = [other for _, other in future.edges.get(id_, ())]
        for one in dict.fromkeys((id_, *neighbours)):
            for need, other, component in list(future.unmet(one)):
                target, of, version = _mended(future, one, other, component, need, forced)
                if not version or (target, of) in forced:
                    raise Impossible(
                        f"{one} needs {need.component} {' or '.join(need.versions)} on {other}, "
                        f"which would have {future.components[other].get(need.component)}"
                    )
                has = of in future.components[target]
                does = ChangeKind.UPGRADE if has else ChangeKind.ADD
                why = f"{component} on {one} needs {need.component} {' or '.join(need.versions)}"
                forced[target, of] = version
                future.components[target][of] = version
                made.setdefault((of, version, does, why.strip()), []).append(target)
                queue.append(target)
    return [
        Change(
            does=does,
            resources=tuple(ids),
            component=component,
            version=version,
            undo_threshold=_inherited(changes, len(ids)),
            undo_version=_undo_version(future, changes, component),
            complements=why,
        )
        for (component, version, does, why), ids in made.items()
    ]


def _mended(
    future: Projection,
    one: ResourceId,
    other: ResourceId,
    component: ComponentId,
    need: Need,
    forced: dict[tuple[ResourceId, ComponentId], str],
) -> tuple[ResourceId, ComponentId, str]:
    """Which of the two ends of a broken need is changed, and to what."""
    if (other, need.component) not in forced:
        version = future.latest(need.component, need.versions)
        if version is not None:
            return other, need.component, version
    if (one, component) not in forced:
        has = future.components[other].get(need.component)
        for name, version in reversed(list(future.described(component))):
            said = future.describe(name, version)
            fits = said is not None and all(
                not wish.versions or has in wish.versions
                for wish in said.needs
                if wish.component == need.component and wish.along is need.along
            )
            if fits:
                return one, component, version
    return other, need.component, ""


def _undo_version(future: Projection, changes: list[Change], component: ComponentId) -> str | None:
    """That of a change of the same component: a version says nothing about another one."""
    for one in changes:
        about = [one.component or main_component(future.resources[id_]) for id_ in one.resources]
        if one.undo_version is not None and component in about:
            return one.undo_version
    return None


def _inherited(changes: list[Change], targets: int) -> int | None:
    """As many may be missing as of the change it complements, in the strictest of them."""
    spare = [
        len(one.resources) + len(one.new) - one.undo_threshold
        for one in changes
        if one.undo_threshold is not None
    ]
    return max(0, targets - min(spare)) if spare else None
