"""Dependencies that a change set adds and removes, and with which resource."""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.campaign import VmCompatibility
from equipoise.model.upgrade.infrastructure import Dependency, DependencyPresence
from equipoise.model.upgrade.request import ChangeKind, ChangeSet, RequestedChange, SetId
from equipoise.model.upgrade.work import WorkItem
from equipoise.upgrade.graph.dependencies import presence
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import ChangeSetStatus
from equipoise.upgrade.state.resources import TrackedDependency

WorksByResource = dict[ResourceId, list[WorkItem]]


def track_dependencies(
    state: UpgradeState, status: ChangeSetStatus, works: WorksByResource
) -> None:
    """Record which dependencies appear and disappear with a set, and whether it divides hosts."""
    changes = status.set.changes
    added = [dependency for change in changes for dependency in _added_dependencies(change)]
    removed = removed_resources(status.set)
    new = {resource.id for change in changes for resource in change.new}
    replaced: dict[tuple[str, ...], list[Dependency]] = {}
    for change in changes:
        for dependency in change.dependencies if change.does is not ChangeKind.ADD else ():
            replaced.setdefault(_key(dependency), []).append(dependency)
    for index, tracked in enumerate(state.resources.dependencies):
        dependency = tracked.dependency
        disappears = dependency.dependent in removed or dependency.sponsor in removed
        named = replaced.get(_key(dependency), ())
        # A dependency that another open set changes belongs to that set until it ends.
        if tracked.set is None and (
            disappears or any(_matches(dependency, name) for name in named)
        ):
            owner = _owner(dependency, removed, works, status)
            state.resources.change_dependency(index, set=status.id, owner=owner, appears=False)
    for dependency in added:
        owner = _owner(dependency, new, works, status)
        state.resources.add_dependency(
            TrackedDependency(dependency, status.id, owner, appears=True)
        )
    if _divides(state, status, works, added, removed | new):
        state.requests.change_set(status.id, partitions_hosts=True)


def removed_resources(set_: ChangeSet) -> set[ResourceId]:
    """Return the resources that a set removes."""
    return {
        id_
        for change in set_.changes
        if change.does is ChangeKind.REMOVE and change.component is None
        for id_ in change.resources
    }


def settle_dependencies(state: UpgradeState, set_: SetId) -> None:
    """Settle the dependencies of a set that has ended.

    Those that it added become permanent, those that it removed are dropped.
    """
    if not any(tracked.set == set_ for tracked in state.resources.dependencies):
        return
    kept: list[TrackedDependency] = []
    for tracked in state.resources.dependencies:
        if tracked.set != set_:
            kept.append(tracked)
        elif presence(state, tracked) is not None:
            kept.append(replace(tracked, set=None, owner=None, appears=True))
    state.resources.replace_dependencies(kept)


def has_dependency(state: UpgradeState, named: Dependency) -> bool:
    """Return whether such a dependency exists now or in future."""
    return any(
        _matches(tracked.dependency, named) and presence(state, tracked) is not None
        for tracked in state.resources.dependencies
    )


def _matches(dependency: Dependency, named: Dependency) -> bool:
    """Return whether a named dependency means this one. A name can select one of parallel links."""
    return _key(dependency) == _key(named) and (
        named.link is None or dependency.link is None or dependency.link == named.link
    )


def _key(dependency: Dependency) -> tuple[str, ...]:
    return dependency.kind, dependency.dependent, dependency.sponsor


def _divides(
    state: UpgradeState,
    status: ChangeSetStatus,
    works: WorksByResource,
    added: list[Dependency],
    changed_resources: set[ResourceId],
) -> bool:
    """Return whether hosts before and after a set cannot run each other's VMs."""
    if any(
        dependency.kind.is_vm_supporting and dependency.sponsor in changed_resources
        for dependency in added
    ):
        return True
    return state.settings.vms is VmCompatibility.DIVIDED and any(
        (host := state.resources.states[id_].resource.host) is not None
        and host in state.cluster.compute_hosts
        and state.cluster.compute_hosts[host].vms_max > 0
        and id_ in works
        for id_ in status.resources
    )


def _added_dependencies(change: RequestedChange) -> tuple[Dependency, ...]:
    if change.does is ChangeKind.REMOVE:
        return ()
    return tuple(
        dependency.but(presence=DependencyPresence.FUTURE) for dependency in change.dependencies
    )


def _owner(
    dependency: Dependency, moving: set[ResourceId], works: WorksByResource, status: ChangeSetStatus
) -> ResourceId | None:
    """Return the resource with whose change a dependency appears or disappears.

    It is the end that stays, if that end changes. None: no end changes, so the end of the set
    counts.
    """
    stays = dependency.dependent if dependency.sponsor in moving else dependency.sponsor
    moves = dependency.sponsor if dependency.sponsor in moving else dependency.dependent
    # The end that stays uses the dependency, so its change is the moment at which it counts.
    for end in (stays, moves):
        if any(work.set == status.id for work in works.get(end, ())):
            return end
    return None
