"""The undo of a change set: pending work is dropped, applied work becomes undo work.

In service are either only old or only new versions of a unit. If old ones are, changed resources
are off and are undone while off. If new ones are, resources that are off are undone first, and the
others when these return. Before that, work with the goal of another set passes to that set.
"""

from __future__ import annotations

from collections.abc import Collection

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentId, ComponentOperation, Recipe
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.infrastructure import DependencyKind
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import (
    ExecutionLevel,
    UnitId,
    UpgradeMethod,
    UpgradeUnit,
    WorkItem,
)
from equipoise.model.value import FrozenMap
from equipoise.upgrade.graph.dependencies import constituents_needed
from equipoise.upgrade.requests.set_conflicts import WorkGoal, conflicting_sets, set_goals
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import SetProgress
from equipoise.upgrade.state.resources import ResourceState, operation_between


def undo_units(
    state: UpgradeState, set_: SetId, undone: Collection[ResourceId]
) -> dict[ResourceId, UnitId]:
    """Replace units by the units of their undo. Return the undo unit of each resource.

    Members of other sets continue in the rest of the unit. If such a set is in conflict, it is
    undone next, and all its members are undone together then.
    """
    unit_of: dict[ResourceId, UnitId] = {}
    # Computed before the units change.
    conflicting = conflicting_sets(state)
    request = state.requests.set_status[set_].order
    for unit in list(state.resources.units.values()):
        members = [
            ResourceId(id_)
            for id_ in unit.resources
            if id_ in state.resources.states and not state.resources.states[ResourceId(id_)].failed
        ]
        continuing = [id_ for id_ in members if _continues(state, id_, unit, request)]
        # The unit has nothing of this set to undo.
        if not any(id_ in undone for id_ in members):
            continue
        # That set is undone next, and then the unit is divided once for both.
        if _is_conflicting(state, continuing, conflicting):
            continue
        own = [id_ for id_ in members if id_ not in continuing]
        back = [id_ for id_ in own if _is_undone(state, id_, request)]
        if not back:
            continue
        undo_unit = unit.but(
            id=UnitId(f"undo/{unit.id}"),
            partitions=_partitions(state, unit, own, back),
            # An undo may use the reserve, so no spare hosts are required for it.
            degraded_hosts=None,
        )
        rest = unit.but(partitions=_in_unit_order(unit, continuing))
        state.resources.replace_unit(unit.id, [rest, undo_unit] if continuing else [undo_unit])
        unit_of |= dict.fromkeys(back, undo_unit.id)
    return unit_of


def _is_conflicting(
    state: UpgradeState, continuing: list[ResourceId], conflicting: Collection[SetId]
) -> bool:
    """Return whether a set of the continuing members will be undone as well."""
    return any(
        work.set in conflicting
        for id_ in continuing
        for work in state.resources.states[id_].forward_works
    )


def _continues(state: UpgradeState, resource: ResourceId, unit: UpgradeUnit, request: int) -> bool:
    """Return whether a member belongs to a set of the request that is not undone.

    A member that another request changes with the unit continues as well.
    """
    resource_state = state.resources.states[resource]
    sets = (work.set for work in resource_state.forward_works)
    return any(level.unit == unit.id for level in resource_state.levels) or any(
        state.requests.is_scheduled(set_) and state.requests.set_status[set_].order == request
        for set_ in sets
    )


def _is_undone(state: UpgradeState, resource: ResourceId, request: int) -> bool:
    """Return whether something of a request is undone on a resource."""
    return any(
        work.undoing and state.requests.set_status[work.set].order == request
        for work in state.resources.states[resource].pending_works
    )


def _partitions(
    state: UpgradeState, unit: UpgradeUnit, members: list[ResourceId], back: list[ResourceId]
) -> tuple[tuple[ResourceId, ...], ...]:
    """Return the partitions of the undo: deactivated resources first, see the module docstring."""
    deactivated = [id_ for id_ in members if not state.resources.states[id_].active]
    in_service = [id_ for id_ in back if state.resources.states[id_].active]
    if unit.method is UpgradeMethod.MODIFIED_SPLIT_LINKS:
        return _in_unit_order(unit, members)
    if not deactivated:
        return _in_unit_order(unit, back)
    if not in_service:
        return (tuple(back),)
    middle = _to_serve_first(state, deactivated, in_service)
    last = tuple(id_ for id_ in in_service if id_ not in middle)
    return tuple(part for part in (tuple(deactivated), tuple(middle), last) if part)


def _to_serve_first(
    state: UpgradeState, deactivated: list[ResourceId], in_service: list[ResourceId]
) -> list[ResourceId]:
    """Return the members that are undone before the last ones.

    When the last ones leave, the others return: together they must serve every aggregate.
    """
    constituents: dict[ResourceId, list[ResourceId]] = {}
    for tracked in state.resources.dependencies:
        dependency = tracked.dependency
        if dependency.kind is DependencyKind.AGGREGATION:
            constituents.setdefault(dependency.dependent, []).append(dependency.sponsor)
    first: list[ResourceId] = []
    inside = {*deactivated, *in_service}
    for aggregate, members in constituents.items():
        aggregate_state = state.resources.states.get(aggregate)
        if aggregate_state is None or inside.isdisjoint(members):
            continue
        needed = constituents_needed(state, aggregate_state)
        needed -= sum(
            member not in inside and state.resources.states[member].operational
            for member in members
        )
        early = sum(member in deactivated or member in first for member in members)
        late = [id_ for id_ in in_service if id_ in members and id_ not in first]
        first += late[: max(0, min(needed - early, len(late) - needed))]
    return first


def _in_unit_order(
    unit: UpgradeUnit, members: list[ResourceId]
) -> tuple[tuple[ResourceId, ...], ...]:
    """Return the members in the partitions of the unit, empty partitions left out."""
    wanted = set(members)
    kept = (tuple(id_ for id_ in partition if id_ in wanted) for partition in unit.partitions)
    return tuple(partition for partition in kept if partition)


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
            # A completed set takes over applied work only: it never starts work again.
            _transferred(id_, work, set_, scheduled | complete)
            for work in resource_state.applied
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


def drop_set(state: UpgradeState, set_: SetId) -> None:
    """Drop the pending work of a set, except work that another set requests as well."""
    transfer_work(state, set_)
    for resource_state in list(state.resources.states.values()):
        if resource_state.has_work_for(set_):
            state.resources.put(
                rebase_levels(resource_state.but(levels=_without_set(resource_state.levels, set_)))
            )


def give_up_sets(resource_state: ResourceState, sets: Collection[SetId]) -> ResourceState:
    """Return a resource without the pending work of some sets. It is in service as it is."""
    levels = resource_state.levels
    for set_ in sets:
        levels = _without_set(levels, set_)
    attempts = {id_: n for id_, n in resource_state.attempts.items() if id_ not in sets}
    return rebase_levels(
        resource_state.but(
            levels=levels,
            isolated=False,
            attempts=FrozenMap(attempts),
            given_up=tuple(dict.fromkeys((*resource_state.given_up, *sets))),
        )
    )


def undo_set(state: UpgradeState, set_: SetId) -> None:
    """Drop the pending work of a set and schedule the undo of its applied work first."""
    # First: work that another set takes over must not be undone.
    drop_set(state, set_)
    versions = _undo_versions(state, set_)
    works = {
        id_: undo
        for id_, resource_state in state.resources.states.items()
        if not resource_state.failed
        and (undo := _undo_works(state, resource_state, set_, versions))
    }
    for resource_state in list(state.resources.states.values()):
        if any(work.set == set_ for work in resource_state.applied):
            bridged = _without_superseded(resource_state.applied, set_)
            levels = _extended_undo(state, resource_state, bridged)
            state.resources.put(resource_state.but(applied=bridged, levels=levels))
    for id_, undo in works.items():
        resource_state = state.resources.states[id_]
        # Order 0 comes before every request: the undo is the next work of the resource.
        level = ExecutionLevel(unit=UnitId(f"undo/{set_}/{id_}"), order=0, works=undo)
        # The undo starts with fresh attempts; those of other sets still count.
        attempts = FrozenMap(
            {other: n for other, n in resource_state.attempts.items() if other != set_}
        )
        levels = (level, *resource_state.levels)
        state.resources.put(rebase_levels(resource_state.but(levels=levels, attempts=attempts)))
    state.requests.change_set(set_, progress=SetProgress.UNDOING)
    for id_, unit in undo_units(state, set_, works).items():
        resource_state = state.resources.states[id_]
        levels = tuple(_in_unit(level, unit) for level in resource_state.levels)
        state.resources.put(resource_state.but(levels=levels))


def _in_unit(level: ExecutionLevel, unit: UnitId) -> ExecutionLevel:
    """Put the undo level into its undo unit; other levels keep their unit."""
    return level.but(unit=unit) if level.order == 0 else level


def _undo_versions(state: UpgradeState, set_: SetId) -> UndoVersions:
    """Return the undo versions that an administrator named, by resource and component."""
    status = state.requests.set_status[set_]
    return {
        (id_, change.component or state.resources.states[id_].own_component): change.undo_version
        for change, ids in zip(status.set.changes, status.targets, strict=True)
        if change.undo_version is not None
        for id_ in ids
    }


UndoVersions = dict[tuple[ResourceId, ComponentId], str]


def _undo_works(
    state: UpgradeState, resource_state: ResourceState, set_: SetId, wanted: UndoVersions
) -> tuple[WorkItem, ...]:
    """Return the undo works of a set on a resource, the last change first.

    A component that a later set has changed is left to that set. If the administrator named an undo
    version, every resource of the change gets it, changed or not (4.2).
    """
    undo_works: dict[ComponentId, WorkItem] = {}
    superseded: set[ComponentId] = set()
    # The last change first, because each work starts from the version that the one before it left.
    for work in reversed(resource_state.applied):
        if work.set != set_:
            superseded.add(work.component)
        elif work.component not in superseded and not work.undoing:
            version = wanted.get((resource_state.resource.id, work.component), work.before)
            recipe = work.recipe
            if version is not None and version != work.before:
                recipe = _undo_recipe(state, work.component, version)
            undo_works[work.component] = work.but(after=version, recipe=recipe)
    for (id_, component), version in wanted.items():
        is_installed = id_ == resource_state.resource.id and component in resource_state.components
        if is_installed and component not in undo_works and component not in superseded:
            recipe = _undo_recipe(state, component, version)
            work = WorkItem(
                set=set_,
                component=component,
                does=ComponentOperation.UPGRADE,
                after=version,
                recipe=recipe,
            )
            undo_works[component] = work
    current = resource_state.components
    works = [
        work.but(before=current.get(work.component), undoing=True) for work in undo_works.values()
    ]
    return tuple(_with_kind(work) for work in works if work.before != work.after)


def _with_kind(work: WorkItem) -> WorkItem:
    """Return the work with the operation that matches its versions."""
    return work.but(does=operation_between(work.before, work.after))


def _undo_recipe(state: UpgradeState, component: ComponentId, version: str) -> Recipe:
    """Return the recipe that leads back to a version.

    Undo work runs the undo script of its recipe. So script and undo script of that version are
    swapped.
    """
    description = state.catalog.get((component, version))
    recipe = (description.upgrade or description.install) if description is not None else None
    if recipe is None:
        return Recipe()
    return recipe.but(
        script=recipe.undo_script,
        undo_script=recipe.script,
        duration_s=recipe.undo_s,
        undo_duration_s=recipe.duration_s,
    )


def _without_superseded(applied: tuple[WorkItem, ...], set_: SetId) -> tuple[WorkItem, ...]:
    """Return applied works without those that a later set has replaced.

    The undo of the later set then leads further back.
    """
    chain = list(applied)
    superseded: set[int] = set()
    for index, work in enumerate(chain):
        if work.set != set_:
            continue
        for later in range(index + 1, len(chain)):
            if chain[later].component == work.component and chain[later].set != set_:
                # The later set bridges the gap: its own undo now leads to the version before both.
                chain[later] = chain[later].but(before=work.before)
                superseded.add(index)
                break
    return tuple(work for index, work in enumerate(chain) if index not in superseded)


def _extended_undo(
    state: UpgradeState, resource_state: ResourceState, bridged: tuple[WorkItem, ...]
) -> tuple[ExecutionLevel, ...]:
    """Return the pending levels; a later set under undo now leads back to the older version."""
    before_by_work = {(work.set, work.component): work.before for work in resource_state.applied}
    new_goals = {
        key: work.before
        for work in bridged
        if before_by_work[key := (work.set, work.component)] != work.before and not work.undoing
    }

    def redirected(work: WorkItem) -> WorkItem:
        key = work.set, work.component
        if not (work.undoing and key in new_goals and work.after == before_by_work[key]):
            return work
        goal = new_goals[key]
        recipe = work.recipe if goal is None else _undo_recipe(state, work.component, goal)
        return work.but(after=goal, recipe=recipe)

    return tuple(
        level.but(works=tuple(map(redirected, level.works))) for level in resource_state.levels
    )


def _without_set(levels: tuple[ExecutionLevel, ...], set_: SetId) -> tuple[ExecutionLevel, ...]:
    """Return the levels without the works of a set."""
    kept = []
    for level in levels:
        works = tuple(work for work in level.works if work.set != set_)
        if works:
            kept.append(level.but(works=works))
    return tuple(kept)


def rebase_levels(resource_state: ResourceState) -> ResourceState:
    """Start each work where the one before it ends, and drop works without effect."""
    current: dict[ComponentId, str | None] = dict(resource_state.components)
    levels = []
    for level in resource_state.levels:
        works = []
        for work in level.works:
            before = current.get(work.component)
            # An earlier work or undo has already reached the version.
            if before == work.after:
                continue
            works.append(_with_kind(work.but(before=before)))
            current[work.component] = work.after
        if works:
            levels.append(level.but(works=tuple(works)))
    return resource_state.but(levels=tuple(levels))
