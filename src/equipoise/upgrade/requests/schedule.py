"""Scheduling of a request: each change becomes work on its resources, in execution levels."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentDescription, ComponentOperation, Recipe
from equipoise.model.upgrade.request import ChangeSet, RequestedChange, UpgradeRequest
from equipoise.model.upgrade.work import ExecutionLevel, UnitId, WorkItem
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.requests.compatibility import projected_components
from equipoise.upgrade.requests.complementary import InfeasibleSet, complete_set
from equipoise.upgrade.requests.dependency_changes import track_dependencies
from equipoise.upgrade.requests.feasibility import check_feasible
from equipoise.upgrade.requests.set_conflicts import target_version
from equipoise.upgrade.requests.units import make_units
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import ChangeSetStatus
from equipoise.upgrade.state.resources import (
    TrackedDependency,
    initial_resource_state,
    operation_between,
)


def schedule_request(
    state: UpgradeState, request: UpgradeRequest, requested_ms: int
) -> dict[str, Reason]:
    """Schedule a request. Return the sets that can never succeed, with the reason.

    Its work is computed as if nothing else were under way (the new request graph). The work comes
    after all work that the resources already have.
    """
    state.requests.count_request()
    _join(state, request)
    refused: dict[str, Reason] = {}
    works: dict[ResourceId, list[WorkItem]] = {}
    for requested in request.sets:
        if requested.id in state.requests.set_status:
            refused[requested.id] = Reason("duplicate-set", f"a set {requested.id} exists")
            continue
        try:
            whole = complete_set(state, requested)
            check_feasible(state, whole)
        except InfeasibleSet as problem:
            # A refused set is registered too: its status and its end are in the journal, and its id
            # is taken.
            _register_set(state, requested, requested_ms)
            refused[requested.id] = problem.reason
            continue
        status = _register_set(state, whole, requested_ms)
        _add_resources(state, status)
        for change in whole.changes:
            for id_, work in _works(state, whole, change, works):
                works.setdefault(id_, []).append(work)
        # The works of earlier sets of the request count, because they change the same resources.
        track_dependencies(state, status, works)
    infeasible = _add_levels(state, works)
    return refused | {set_: why for set_, why in infeasible.items() if set_ not in refused}


def _join(state: UpgradeState, request: UpgradeRequest) -> None:
    """Add the versions, hosts and resources that come with a request."""
    state.describe(request.catalog)
    for host in request.new.hosts:
        state.cluster.join_host(state.campaign.cluster.overcommitted(host))
    for resource in request.new.resources:
        if resource.id not in state.resources.states:
            state.resources.put(initial_resource_state(resource))
    for dependency in request.new.dependencies:
        state.resources.add_dependency(TrackedDependency(dependency))
    if request.new.hosts:
        # The groups name the compute hosts of their resources.
        state.resources.cache_grouping(None)


def _register_set(state: UpgradeState, set_: ChangeSet, requested_ms: int) -> ChangeSetStatus:
    targets = tuple((*change.resources, *(new.id for new in change.new)) for change in set_.changes)
    status = ChangeSetStatus(
        set=set_,
        order=state.requests.scheduled,
        requested_ms=requested_ms,
        targets=targets,
        priority=set_.priority,
    )
    state.requests.register(status)
    return status


def _add_resources(state: UpgradeState, status: ChangeSetStatus) -> None:
    """Add the new resources of a set to the state, not present yet."""
    for change in status.set.changes:
        for new in change.new:
            resource_state = initial_resource_state(new, present=False)
            state.resources.put(resource_state.but(related=change.replaces))
            if change.replaces is not None:
                old = state.resources.states[change.replaces]
                state.resources.put(old.but(related=new.id))


def _works(
    state: UpgradeState,
    set_: ChangeSet,
    change: RequestedChange,
    pending: dict[ResourceId, list[WorkItem]],
) -> list[tuple[ResourceId, WorkItem]]:
    """Return the work of a change on each resource; none where the version matches already."""
    works: list[tuple[ResourceId, WorkItem]] = []
    for id_ in (*change.resources, *(new.id for new in change.new)):
        resource_state = state.resources.states[id_]
        component = change.component or resource_state.own_component
        before = projected_components(resource_state).get(component)
        # Works of earlier changes of this request are not in the state yet.
        for work in pending.get(id_, ()):
            if work.component == component:
                before = work.after
        after = target_version(change, resource_state)
        if before == after:
            continue
        operation = operation_between(before, after)
        description = state.catalog.get((component, after or before or ""))
        works.append(
            (
                id_,
                WorkItem(
                    set=set_.id,
                    component=component,
                    does=operation,
                    before=before,
                    after=after,
                    recipe=_recipe(description, operation),
                ),
            )
        )
    return works


def _recipe(description: ComponentDescription | None, operation: ComponentOperation) -> Recipe:
    """Return the recipe of an operation; an upgrade without a recipe installs."""
    if description is None:
        return Recipe()
    recipes = {
        ComponentOperation.INSTALL: description.install,
        ComponentOperation.REMOVE: description.remove,
        ComponentOperation.UPGRADE: description.upgrade or description.install,
    }
    return recipes[operation] or Recipe()


def _add_levels(state: UpgradeState, works: dict[ResourceId, list[WorkItem]]) -> dict[str, Reason]:
    """Append the works to the resources, in the upgrade units of this request."""
    units, infeasible = make_units(state, works)
    state.resources.replace_unit(None, units)
    unit_of = {id_: unit.id for unit in units for id_ in unit.resources}
    for id_, items in works.items():
        kept = tuple(work for work in items if work.set not in infeasible)
        resource_state = state.resources.states[id_]
        sets = tuple(dict.fromkeys((*resource_state.sets, *(work.set for work in kept))))
        if kept:
            name = unit_of.get(id_, UnitId(f"{state.requests.scheduled}/{id_}"))
            level = ExecutionLevel(unit=name, order=state.requests.scheduled, works=kept)
            state.resources.put(
                resource_state.but(levels=(*resource_state.levels, level), sets=sets)
            )
    return infeasible
