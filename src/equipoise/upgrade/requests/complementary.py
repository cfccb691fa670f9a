"""Complementary changes: what else must change for a change set to be complete."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentId, ComponentRequirement
from equipoise.model.upgrade.infrastructure import Dependency, DependencyKind, DependencyPresence
from equipoise.model.upgrade.request import ChangeKind, ChangeSet, RequestedChange
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.requests.compatibility import Projection
from equipoise.upgrade.requests.dependency_changes import has_dependency
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.resources import main_component

COMPLEMENTS_MAX = 10_000
"""A bound on the search, far above the size of real clusters: requirements can form a cycle."""


class InfeasibleSet(Exception):
    """A change set can never succeed. ``schedule_request`` turns it into a refusal."""

    def __init__(self, code: str, text: str) -> None:
        self.reason = Reason(code, text)
        super().__init__(text)


def complete_set(state: UpgradeState, requested: ChangeSet) -> ChangeSet:
    """Return the set with the complementary changes of the catalog, each with its reason."""
    future = Projection(state)
    changes = [_checked_change(state, future, change) for change in requested.changes]
    for change in changes:
        # All changes first: a dependency may name a resource that a later change of the set adds.
        future.apply(change)
    for change in changes:
        _check_dependencies(state, future, change)
    changes += _removals(state, changes)
    changes = [_with_dependencies(future, change) for change in changes]
    touched = [id_ for change in changes for id_ in (*change.resources, *_new_ids(change))]
    forced: dict[tuple[ResourceId, ComponentId], str] = {
        (id_, change.component or main_component(future.resources[id_])): change.version
        for change in changes
        for id_ in change.resources
        if change.version is not None
    }
    complements = _complements(future, touched, forced, changes)
    return requested.but(changes=(*changes, *complements))


def _new_ids(change: RequestedChange) -> tuple[ResourceId, ...]:
    return tuple(new.id for new in change.new)


def _checked_change(
    state: UpgradeState, future: Projection, change: RequestedChange
) -> RequestedChange:
    """Return the change if all resources and versions that it names exist."""
    for id_ in change.resources:
        if id_ not in future.resources:
            raise InfeasibleSet("unknown-resource", f"there is no resource {id_}")
    for new in change.new:
        if new.id in future.resources:
            raise InfeasibleSet("duplicate-resource", f"a resource {new.id} exists")
        if future.describe(main_component(new), new.version) is None:
            text = f"the catalog does not describe {main_component(new)} {new.version}"
            raise InfeasibleSet("no-description", text)
    if change.replaces is not None and change.replaces not in state.resources.states:
        text = f"there is no resource {change.replaces} to replace"
        raise InfeasibleSet("unknown-resource", text)
    # The threshold is the least number of operational targets. A larger one than all targets would
    # undo the set at its first iteration.
    threshold = change.undo_threshold
    targets = len(change.resources) + len(change.new)
    if threshold is not None and threshold > targets:
        text = f"the undo threshold is {threshold}, but the change has {targets} resources"
        raise InfeasibleSet("threshold-too-high", text)
    for id_ in change.resources:
        component = change.component or main_component(future.resources[id_])
        version = change.version
        if change.does is not ChangeKind.REMOVE and (
            version is None or future.describe(component, version) is None
        ):
            text = f"the catalog does not describe {component} {version or ''}".strip()
            raise InfeasibleSet("no-description", text)
    return change


def _check_dependencies(state: UpgradeState, future: Projection, change: RequestedChange) -> None:
    """Check that the ends of each dependency exist, and each dependency to be removed."""
    for dependency in change.dependencies:
        for end in (dependency.dependent, dependency.sponsor):
            if end not in future.resources:
                text = f"there is no resource {end} for the dependency"
                raise InfeasibleSet("unknown-resource", text)
        if change.does is ChangeKind.REMOVE and not has_dependency(state, dependency):
            ends = f"{dependency.dependent} on {dependency.sponsor}"
            text = f"there is no dependency ({dependency.kind}) of {ends}"
            raise InfeasibleSet("unknown-dependency", text)


def _removals(state: UpgradeState, changes: list[RequestedChange]) -> list[RequestedChange]:
    """Return the removals of replaced resources that the request does not name itself."""
    named = {
        id_ for removal in changes if removal.does is ChangeKind.REMOVE for id_ in removal.resources
    }
    return [
        RequestedChange(
            does=ChangeKind.REMOVE,
            resources=(change.replaces,),
            complements=f"it is replaced by {', '.join(new.id for new in change.new)}",
        )
        for change in changes
        if change.replaces is not None and change.replaces not in named
    ]


def _with_dependencies(future: Projection, change: RequestedChange) -> RequestedChange:
    """Add the dependencies of a new resource that its catalog entry implies.

    Dependencies that the change itself names take precedence.
    """
    added: list[Dependency] = []
    named = {(dependency.kind, dependency.dependent) for dependency in change.dependencies}
    named |= {(dependency.kind, dependency.sponsor) for dependency in change.dependencies}
    for new in change.new:
        description = future.describe(main_component(new), new.version)
        for need in description.needs if description else ():
            if need.along is None or (need.along, new.id) in named:
                continue
            for id_, components in future.components.items():
                if id_ != new.id and need.component in components:
                    added.append(_future_dependency(new.id, id_, need.along))
    for dependency in added:
        future.join(dependency)
    return change.but(dependencies=(*change.dependencies, *added)) if added else change


def _future_dependency(new: ResourceId, other: ResourceId, kind: DependencyKind) -> Dependency:
    """Return a future dependency: an aggregate depends on it, any other resource sponsors it."""
    new_depends = kind is DependencyKind.AGGREGATION
    dependent, sponsor = (new, other) if new_depends else (other, new)
    return Dependency(
        dependent=dependent, sponsor=sponsor, kind=kind, presence=DependencyPresence.FUTURE
    )


def _complements(
    future: Projection,
    touched: list[ResourceId],
    forced: dict[tuple[ResourceId, ComponentId], str],
    changes: list[RequestedChange],
) -> list[RequestedChange]:
    """Return the changes of all resources that no longer fit, until all fit."""
    resources_by_change: dict[tuple[ComponentId, str, ChangeKind, str], list[ResourceId]] = {}
    queue = list(dict.fromkeys(touched))
    for index, id_ in enumerate(queue):
        if index > COMPLEMENTS_MAX + len(touched):
            text = f"more than {COMPLEMENTS_MAX} complementary changes are needed"
            raise InfeasibleSet("complements-unbounded", text)
        # A change can break needs at both ends of a dependency.
        neighbours = [other for _, other in future.edges.get(id_, ())]
        for resource in dict.fromkeys((id_, *neighbours)):
            for need, other, component in list(future.unmet_needs(resource)):
                target, changed_component, version = _repaired_need(
                    future, resource, other, component, need, forced
                )
                # A version that was requested or already derived may not change again.
                if not version or (target, changed_component) in forced:
                    text = (
                        f"{resource} needs {need.component} "
                        f"{' or '.join(need.versions)} on {other}, "
                        f"which would have {future.components[other].get(need.component)}"
                    )
                    raise InfeasibleSet("requirement-conflict", text)
                has = changed_component in future.components[target]
                does = ChangeKind.UPGRADE if has else ChangeKind.ADD
                why = (
                    f"{component} on {resource} needs {need.component} {' or '.join(need.versions)}"
                )
                forced[target, changed_component] = version
                future.components[target][changed_component] = version
                resources_by_change.setdefault(
                    (changed_component, version, does, why.strip()), []
                ).append(target)
                queue.append(target)
    return [
        RequestedChange(
            does=does,
            resources=tuple(ids),
            component=component,
            version=version,
            undo_threshold=_inherited_threshold(changes, len(ids)),
            undo_version=_undo_version(future, changes, component),
            complements=why,
        )
        for (component, version, does, why), ids in resources_by_change.items()
    ]


def _repaired_need(
    future: Projection,
    resource: ResourceId,
    other: ResourceId,
    component: ComponentId,
    need: ComponentRequirement,
    forced: dict[tuple[ResourceId, ComponentId], str],
) -> tuple[ResourceId, ComponentId, str]:
    """Return the end of an unmet need that changes, the component and its new version.

    The version is empty if neither end can change.
    """
    # The needed end changes first. The needing end was usually requested by the operator.
    if (other, need.component) not in forced:
        version = future.latest_version(need.component, need.versions)
        if version is not None:
            return other, need.component, version
    if (resource, component) not in forced:
        installed = future.components[other].get(need.component)
        # The newest version that accepts what the other end has.
        for name, version in reversed(list(future.versions_of(component))):
            description = future.describe(name, version)
            fits = description is not None and all(
                not requirement.versions or installed in requirement.versions
                for requirement in description.needs
                if requirement.component == need.component and requirement.along is need.along
            )
            if fits:
                return resource, component, version
    return other, need.component, ""


def _undo_version(
    future: Projection, changes: list[RequestedChange], component: ComponentId
) -> str | None:
    """Return the undo version of a change of the same component, or None."""
    for change in changes:
        components = [
            change.component or main_component(future.resources[id_]) for id_ in change.resources
        ]
        if change.undo_version is not None and component in components:
            return change.undo_version
    return None


def _inherited_threshold(changes: list[RequestedChange], targets: int) -> int | None:
    """Return the undo threshold of a complementary change.

    As many resources may be lost as in the strictest change that it complements.
    """
    spare = [
        len(change.resources) + len(change.new) - change.undo_threshold
        for change in changes
        if change.undo_threshold is not None
    ]
    return max(0, targets - min(spare)) if spare else None
