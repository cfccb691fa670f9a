"""Work that several sets request is done once; a set that ends early passes it on."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.request import ChangeKind, RequestedChange, SetId
from equipoise.model.upgrade.work import WorkItem
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import ChangeSetStatus, SetProgress
from equipoise.upgrade.state.resources import ResourceState

WorkGoal = tuple[ResourceId, ComponentId, str | None]


def transfer_work(state: UpgradeState, set_: SetId) -> None:
    """Assign applied and pending work of a set to other sets with the same goal."""
    scheduled, complete = _goals_of_others(state, set_)
    for id_ in state.requests.set_status[set_].resources:
        resource_state = state.resources.states.get(id_)
        if resource_state is None or not (scheduled or complete):
            continue
        levels = tuple(
            level.but(works=tuple(_transferred(id_, work, set_, scheduled) for work in level.works))
            for level in resource_state.levels
        )
        applied = tuple(
            _transferred(id_, work, set_, scheduled | complete) for work in resource_state.applied
        )
        pending = (work for level in levels for work in level.works)
        sets = (work.set for work in (*applied, *pending))
        all_sets = tuple(dict.fromkeys((*resource_state.sets, *sets)))
        state.resources.put(resource_state.but(levels=levels, applied=applied, sets=all_sets))


def _transferred(
    id_: ResourceId, work: WorkItem, set_: SetId, takers: dict[WorkGoal, SetId]
) -> WorkItem:
    taker = takers.get((id_, work.component, work.after))
    return work if taker is None or work.set != set_ or work.undoing else work.but(set=taker)


def _goals_of_others(
    state: UpgradeState, set_: SetId
) -> tuple[dict[WorkGoal, SetId], dict[WorkGoal, SetId]]:
    """Return the goals of other scheduled sets, and of applied sets."""
    scheduled: dict[WorkGoal, SetId] = {}
    complete: dict[WorkGoal, SetId] = {}
    for status in state.requests.set_status.values():
        if status.id == set_:
            continue
        if (
            status.progress is SetProgress.SCHEDULED
            and status.id not in state.requests.refused_sets
        ):
            scheduled |= dict.fromkeys(set_goals(state, status), status.id)
        elif status.outcome is SetOutcome.APPLIED:
            complete |= dict.fromkeys(set_goals(state, status), status.id)
    return scheduled, complete


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
        works = (work for level in resource_state.levels for work in level.works)
        if any((id_, work.component, work.after) in goals for work in works if not work.undoing):
            return True
    return False
