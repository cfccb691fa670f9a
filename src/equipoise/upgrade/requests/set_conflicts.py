"""Conflicts between change sets: incompatible versions, and sets that complete only together.

Resources of several sets can be one unit. If one set is undone, another can continue only if its
target is compatible with what remains; otherwise it is undone as well. So coupled sets complete
together: a completed set is never undone. Work that several sets request has one goal and is done
once.
"""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.model.upgrade.request import ChangeKind, RequestedChange, SetId
from equipoise.model.upgrade.work import UpgradeMethod, UpgradeUnit, WorkItem
from equipoise.upgrade.graph.dependencies import presence
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.requests.compatibility import are_compatible, projected_components
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import ChangeSetStatus, SetProgress
from equipoise.upgrade.state.resources import ResourceState, TrackedDependency

Conflicts = dict[ResourceId, dict[ResourceId, None]]
WorkGoal = tuple[ResourceId, ComponentId, str | None]
"""A resource, a component of it, and its version; None means removed."""


def version_conflicts(state: UpgradeState) -> Conflicts:
    """Return pairs of resources whose current versions are incompatible."""
    conflicts: Conflicts = {}
    for dependent, sponsor, tracked in _incompatible_pairs(state):
        mixed = any(
            _is_applied(state, dependent, request) != _is_applied(state, sponsor, request)
            for request in tracked.incompatible_requests
        )
        # The request comparison is cheap and mostly false; the catalog is read only for real
        # mixtures.
        if mixed and not _are_compatible(
            state, tracked, dict(dependent.components), dict(sponsor.components)
        ):
            conflicts.setdefault(dependent.resource.id, {})[sponsor.resource.id] = None
            conflicts.setdefault(sponsor.resource.id, {})[dependent.resource.id] = None
    return conflicts


def service_conflicts(state: UpgradeState) -> Conflicts:
    """Return the resources that each resource conflicts with, in service now or after a change."""
    conflicts: Conflicts = {}
    current = version_conflicts(state)
    for dependent, sponsor, tracked in _incompatible_pairs(state):
        ends = dependent.resource.id, sponsor.resource.id
        later = _will_conflict(state, tracked, dependent, sponsor)
        for end, opposite in ((dependent, sponsor), (sponsor, dependent)):
            in_service = (
                opposite.active and opposite.operational and ends[1] in current.get(ends[0], ())
            )
            # Without pending work the other end is in its final version, and ``in_service`` covers
            # it.
            will_conflict = later and bool(opposite.levels) and opposite.can_be_changed
            if in_service or will_conflict:
                conflicts.setdefault(end.resource.id, {})[opposite.resource.id] = None
    return conflicts


def _incompatible_pairs(
    state: UpgradeState,
) -> Iterator[tuple[ResourceState, ResourceState, TrackedDependency]]:
    """Yield the present ends of each dependency with incompatible versions."""
    for tracked in state.resources.dependencies:
        ends = _present_ends(state, tracked)
        if ends is not None:
            yield *ends, tracked


def _will_conflict(
    state: UpgradeState,
    tracked: TrackedDependency,
    dependent: ResourceState,
    sponsor: ResourceState,
) -> bool:
    """Return whether two resources are incompatible after all their pending work."""
    mixed = any(
        bool(_lasting_sets(state, dependent, request))
        != bool(_lasting_sets(state, sponsor, request))
        for request in tracked.incompatible_requests
    )
    return mixed and not _are_compatible(
        state, tracked, projected_components(dependent), projected_components(sponsor)
    )


def conflicting_sets(state: UpgradeState) -> dict[SetId, Reason]:
    """Return the sets that cannot complete because another set is undone or was cancelled."""
    conflicting = _sets_on_undone_requests(state)
    for dependent, sponsor, tracked in _incompatible_pairs(state):
        if not (
            dependent.operational
            and sponsor.operational
            and _will_conflict(state, tracked, dependent, sponsor)
        ):
            continue
        for request in tracked.incompatible_requests:
            for changed, unchanged in ((dependent, sponsor), (sponsor, dependent)):
                if not _lasting_sets(state, unchanged, request):
                    reason = _version_conflict(changed, unchanged)
                    conflicting = (
                        # The first reason of a set is kept: it is the closest to the undone set.
                        dict.fromkeys(_lasting_sets(state, changed, request), reason) | conflicting
                    )
    for unit in state.resources.units.values():
        conflicting |= _inseparable_sets(state, unit)
    return conflicting


def _version_conflict(changed: ResourceState, unchanged: ResourceState) -> Reason:
    names = changed.resource.id, unchanged.resource.id
    is_late = any(not work.undoing for work in unchanged.pending_works)
    how = "changes too late" if is_late else "does not change"
    text = f"{names[0]} would be incompatible with {names[1]}, which {how}"
    return Reason("version-conflict", text)


def _sets_on_undone_requests(state: UpgradeState) -> dict[SetId, Reason]:
    """Return sets that need an older request which is undone.

    The versions are those after the request of each set. A later request may repair the conflict,
    but its work comes too late: both ends are in service until then.
    """
    found: dict[SetId, Reason] = {}
    for changed, unchanged, tracked in _cross_request_dependencies(state):
        for set_ in dict.fromkeys(work.set for work in changed.forward_works):
            request = state.requests.set_status[set_].order
            if not are_compatible(
                state,
                tracked.dependency,
                projected_components(changed, request),
                projected_components(unchanged, request),
            ):
                found[set_] = _version_conflict(changed, unchanged)
    return found


def _cross_request_dependencies(
    state: UpgradeState,
) -> Iterator[tuple[ResourceState, ResourceState, TrackedDependency]]:
    """Yield dependencies between resources of several requests, from both ends."""
    for tracked in state.resources.dependencies if state.requests.scheduled > 1 else ():
        dependent = state.resources.states.get(tracked.dependency.dependent)
        sponsor = state.resources.states.get(tracked.dependency.sponsor)
        if (
            dependent is None
            or sponsor is None
            or not (dependent.operational and sponsor.operational)
        ):
            continue
        if (dependent.sets or sponsor.sets) and presence(state, tracked) is not None:
            yield dependent, sponsor, tracked
            yield sponsor, dependent, tracked


def _sets_building_on_older(state: UpgradeState) -> Iterator[set[SetId]]:
    """Yield a set together with the older set that it needs for compatible versions."""
    for changed, older_resource, tracked in _cross_request_dependencies(state):
        newer = {work.set for work in changed.forward_works}
        for work in older_resource.forward_works:
            # What the older resource would have if its set were undone.
            before = dict(projected_components(older_resource))
            if work.before is None:
                before.pop(work.component, None)
            else:
                before[work.component] = work.before
            older = state.requests.set_status[work.set].order
            sets = {set_ for set_ in newer if state.requests.set_status[set_].order > older}
            if sets and not are_compatible(
                state, tracked.dependency, projected_components(changed), before
            ):
                yield sets | {work.set}


def _inseparable_sets(state: UpgradeState, unit: UpgradeUnit) -> dict[SetId, Reason]:
    """Return sets that must be undone with another: they share a resource or links of a unit."""
    found: dict[SetId, Reason] = {}
    for resource_states in _shared_resources(state, unit):
        sets = {
            set_: None
            for resource_state in resource_states
            for set_ in _open_sets(state, resource_state)
        }
        undoing = [
            set_ for set_ in sets if state.requests.set_status[set_].progress is SetProgress.UNDOING
        ]
        for set_ in sets:
            status = state.requests.set_status[set_]
            same = [
                undone
                for undone in undoing
                if state.requests.set_status[undone].order == status.order
            ]
            if status.progress is SetProgress.SCHEDULED and same:
                name = resource_states[0].resource.id
                text = f"it changes {name} together with set {same[0]}, which is undone"
                found[set_] = Reason("set-coupled", text)
    return found


def _shared_resources(state: UpgradeState, unit: UpgradeUnit) -> list[list[ResourceState]]:
    """Return the resources on which sets cannot be separated.

    That is each resource alone, or the whole unit if its links are switched.
    """
    resource_states = [
        state.resources.states[ResourceId(member)]
        for member in unit.resources
        if member in state.resources.states
    ]
    return (
        [resource_states]
        if unit.method is UpgradeMethod.MODIFIED_SPLIT_LINKS
        else [[member] for member in resource_states]
    )


def completes_with(state: UpgradeState, status: ChangeSetStatus) -> set[SetId]:
    """Return the sets that complete only together with a set, the set included."""
    found = {status.id}
    # One request without units cannot couple its sets.
    if not state.resources.units and state.requests.scheduled < 2:  # noqa: PLR2004
        return found
    pairs = [*_coupled_sets(state), *_sets_building_on_older(state)]
    grows = True
    while grows:
        # Transitive closure: a pair that shares a set with the result belongs to it.
        coupled = {set_ for pair in pairs if not found.isdisjoint(pair) for set_ in pair}
        grows = not coupled <= found
        found |= coupled
    return {set_ for set_ in found if set_ == status.id or state.requests.is_scheduled(set_)}


def _coupled_sets(state: UpgradeState) -> Iterator[set[SetId]]:
    """Yield sets that meet at an incompatible dependency or in a unit, or share a goal in it."""
    for dependent, sponsor, tracked in _incompatible_pairs(state):
        for request in tracked.incompatible_requests:
            yield {
                *_lasting_sets(state, dependent, request),
                *_lasting_sets(state, sponsor, request),
            }
    sets_by_goal = _sets_by_goal(state)
    for unit in state.resources.units.values():
        for resource_states in _shared_resources(state, unit):
            yield {
                set_
                for resource_state in resource_states
                for set_ in _open_sets(state, resource_state)
            }
            yield from (
                _sets_with_goal(resource_state, work, sets_by_goal)
                for resource_state in resource_states
                for work in resource_state.forward_works
            )


def _sets_by_goal(state: UpgradeState) -> dict[WorkGoal, set[SetId]]:
    """Return the scheduled sets by goal."""
    found: dict[WorkGoal, set[SetId]] = {}
    for status in state.requests.set_status.values():
        if status.progress is SetProgress.SCHEDULED:
            for goal in set_goals(state, status):
                found.setdefault(goal, set()).add(status.id)
    return found


def _sets_with_goal(
    resource_state: ResourceState, work: WorkItem, wanted: dict[WorkGoal, set[SetId]]
) -> set[SetId]:
    return {work.set} | wanted.get((resource_state.resource.id, work.component, work.after), set())


def _present_ends(
    state: UpgradeState, tracked: TrackedDependency
) -> tuple[ResourceState, ResourceState] | None:
    """Return the two ends of a dependency with incompatible versions, if both are present."""
    if not tracked.incompatible_requests:
        return None
    dependent = state.resources.states.get(tracked.dependency.dependent)
    sponsor = state.resources.states.get(tracked.dependency.sponsor)
    if dependent is None or sponsor is None or not (dependent.present and sponsor.present):
        return None
    return dependent, sponsor


def _are_compatible(
    state: UpgradeState, tracked: TrackedDependency, *components: dict[ComponentId, str]
) -> bool:
    return not tracked.dependency.incompatible and are_compatible(
        state, tracked.dependency, *components
    )


def _is_applied(state: UpgradeState, resource_state: ResourceState, request: int) -> bool:
    """Return whether a request has changed a resource."""
    return any(
        state.requests.set_status[work.set].order == request for work in resource_state.applied
    )


def _lasting_sets(state: UpgradeState, resource_state: ResourceState, request: int) -> list[SetId]:
    """Return the sets of a request that change a resource and are not undone on it."""
    pending = resource_state.pending_works
    undone = {(work.set, work.component) for work in pending if work.undoing}
    lasting = [
        work.set for work in resource_state.applied if (work.set, work.component) not in undone
    ]
    lasting += [work.set for work in pending if not work.undoing]
    return [
        set_ for set_ in dict.fromkeys(lasting) if state.requests.set_status[set_].order == request
    ]


def _open_sets(state: UpgradeState, resource_state: ResourceState) -> list[SetId]:
    """Return the sets that have not ended and have applied or pending work on a resource."""
    works = (*resource_state.pending_works, *resource_state.applied)
    return [
        set_
        for set_ in dict.fromkeys(work.set for work in works)
        if state.requests.set_status[set_].progress is not SetProgress.ENDED
    ]


def set_goals(state: UpgradeState, status: ChangeSetStatus) -> Iterator[WorkGoal]:
    """Yield the goals of a set: resource, component and version."""
    for change, ids in zip(status.set.changes, status.targets, strict=True):
        for id_ in ids:
            resource_state = state.resources.states.get(id_)
            if resource_state is not None:
                yield (
                    id_,
                    change.component or resource_state.own_component,
                    target_version(change, resource_state),
                )


def target_version(change: RequestedChange, resource_state: ResourceState) -> str | None:
    """Return the version to which a change leads; None means removed."""
    if change.does is ChangeKind.REMOVE:
        return None
    return resource_state.resource.version if change.new else change.version


def awaits_other_sets(state: UpgradeState, status: ChangeSetStatus) -> bool:
    """Return whether another set still has to do work that a set requests as well."""
    goals = set(set_goals(state, status))
    for id_ in status.resources:
        resource_state = state.resources.states.get(id_)
        if resource_state is None or not resource_state.can_be_changed:
            continue
        works = (work for work in resource_state.pending_works if not work.undoing)
        if any((id_, work.component, work.after) in goals for work in works):
            return True
    return False
