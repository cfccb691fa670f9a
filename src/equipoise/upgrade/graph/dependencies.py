"""Current dependencies and protection groups (section 3.1)."""

from __future__ import annotations

from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.infrastructure import (
    DependencyKind,
    DependencyPresence,
)
from equipoise.model.upgrade.request import SetId
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import ChangeSetStatus, SetProgress
from equipoise.upgrade.state.resources import ResourceState, TrackedDependency

PRESENT_NOW = (DependencyPresence.CURRENT, DependencyPresence.CURRENT_FUTURE)
CHANGED_TOGETHER = (DependencyKind.CONTAINER, DependencyKind.COMPOSITION)
"""Dependencies whose ends change in one iteration. Otherwise they would be out of service twice."""


def presence(state: UpgradeState, tracked: TrackedDependency) -> DependencyPresence | None:
    """Return when a dependency holds, or None if it no longer does."""
    dependency = tracked.dependency
    ends = (
        state.resources.states.get(dependency.dependent),
        state.resources.states.get(dependency.sponsor),
    )
    if any(end is None or not (end.present or end.levels) for end in ends):
        return None
    # No set changes it: it holds now and in future.
    if tracked.set is None:
        return DependencyPresence.CURRENT_FUTURE
    if tracked.owner is None:
        return _presence_with_set(state.requests.set_status[tracked.set], appears=tracked.appears)
    # With an owner the dependency changes when the set changes the owner, or undoes that.
    forward, undo = _pending_directions(state.resources.states[tracked.owner], tracked.set)
    # Undo reverses the direction: what appeared is about to go, and what went is about to return.
    if undo:
        return DependencyPresence.CURRENT if tracked.appears else DependencyPresence.FUTURE
    if _is_applied(state.resources.states[tracked.owner], tracked.set) and not forward:
        return DependencyPresence.CURRENT_FUTURE if tracked.appears else None
    # The owner was never changed, and the set will not do it any more: the old state is final.
    if not forward and state.requests.set_status[tracked.set].progress is not SetProgress.SCHEDULED:
        return None if tracked.appears else DependencyPresence.CURRENT_FUTURE
    return DependencyPresence.FUTURE if tracked.appears else DependencyPresence.CURRENT


def _presence_with_set(status: ChangeSetStatus, *, appears: bool) -> DependencyPresence | None:
    """Return when a dependency without an owner holds: it changes when its set ends."""
    if status.progress is SetProgress.SCHEDULED:
        return DependencyPresence.FUTURE if appears else DependencyPresence.CURRENT
    stays = appears == (status.outcome is SetOutcome.APPLIED)
    return DependencyPresence.CURRENT_FUTURE if stays else None


def _pending_directions(resource_state: ResourceState, set_: SetId) -> tuple[bool, bool]:
    """Return whether a set is still to be applied to a resource, and whether to be undone."""
    undoing = {work.undoing for work in resource_state.pending_works if work.set == set_}
    return False in undoing, True in undoing


def _is_applied(resource_state: ResourceState, set_: SetId) -> bool:
    return any(work.set == set_ for work in resource_state.applied)


def constituents_needed(state: UpgradeState, resource_state: ResourceState) -> int:
    """Return the constituents that an aggregate needs, by its catalog or its dependencies."""
    version = resource_state.components.get(resource_state.own_component) or _coming_version(
        resource_state
    )
    description = state.catalog.get((resource_state.own_component, version)) if version else None
    if description is not None and (description.constituents_min or description.storing_min):
        return max(description.constituents_min or 0, description.storing_min or 0)
    return state.resources.declared_constituents_min.get(resource_state.resource.id, 0)


def _coming_version(resource_state: ResourceState) -> str | None:
    own = (
        work
        for work in resource_state.pending_works
        if work.component == resource_state.own_component
    )
    return next((work.after for work in own if work.after is not None), None)


def is_down(state: UpgradeState, resource_state: ResourceState) -> bool:
    """Return whether the host of a resource is down."""
    compute_host = (
        None
        if resource_state.resource.host is None
        else state.cluster.compute_hosts.get(resource_state.resource.host)
    )
    return compute_host is not None and not compute_host.up
