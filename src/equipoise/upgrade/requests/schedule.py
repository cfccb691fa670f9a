"""Taking up a request: each change becomes work on each of its resources, in execution levels."""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import Dependency, Presence
from equipoise.model.upgrade.catalog import Description, Doing, Recipe
from equipoise.model.upgrade.request import Change, ChangeKind, ChangeSet, Request
from equipoise.model.upgrade.settings import Mixing
from equipoise.model.upgrade.work import Level, UnitId, Work
from equipoise.upgrade.begin import a_part
from equipoise.upgrade.requests.complete import Impossible, complete
from equipoise.upgrade.requests.feasible import check_feasible
from equipoise.upgrade.requests.heirs import goal_of
from equipoise.upgrade.requests.project import projected
from equipoise.upgrade.requests.units import units_for
from equipoise.upgrade.state import Bond, Standing, State


def schedule(state: State, request: Request, requested_ms: int) -> dict[str, str]:
    """Take up a request. Gives the sets that can never succeed, with the reason.

    What it needs of the resources is computed as if nothing else were under way (the new request
    graph), and comes behind everything that is left to do with them.
    """
    state.taken_up += 1
    refused: dict[str, str] = {}
    works: dict[ResourceId, list[Work]] = {}
    for asked in request.sets:
        if asked.id in state.standings:
            refused[asked.id] = "a set of this name was asked for before"
            continue
        try:
            whole = complete(state, asked)
            check_feasible(state, whole)
        except Impossible as problem:
            _stand(state, asked, requested_ms)
            refused[asked.id] = str(problem)
            continue
        standing = _stand(state, whole, requested_ms)
        _add_resources(state, standing)
        for change in whole.changes:
            for id_, work in _works(state, whole, change, works):
                works.setdefault(id_, []).append(work)
        _bind(state, standing, works)
    hopeless = _level(state, works)
    return refused | {one: why for one, why in hopeless.items() if one not in refused}


def _stand(state: State, set_: ChangeSet, requested_ms: int) -> Standing:
    targets = tuple((*change.resources, *(one.id for one in change.new)) for change in set_.changes)
    standing = Standing(
        set=set_,
        order=state.taken_up,
        requested_ms=requested_ms,
        targets=targets,
        priority=set_.priority,
    )
    state.standings[set_.id] = standing
    return standing


def _add_resources(state: State, standing: Standing) -> None:
    for change in standing.set.changes:
        for new in change.new:
            part = a_part(new, present=False)
            state.parts[new.id] = part.but(related=change.replaces)
            state.grouping = None
            if change.replaces is not None:
                old = state.parts[change.replaces]
                state.parts[change.replaces] = old.but(related=new.id)


def _works(
    state: State, set_: ChangeSet, change: Change, so_far: dict[ResourceId, list[Work]]
) -> list[tuple[ResourceId, Work]]:
    """What a change means for each resource; nothing where it matches already."""
    found: list[tuple[ResourceId, Work]] = []
    for id_ in (*change.resources, *(one.id for one in change.new)):
        part = state.parts[id_]
        component = change.component or part.main
        before = projected(part).get(component)
        for work in so_far.get(id_, ()):
            if work.component == component:
                before = work.after
        after = goal_of(change, part)
        if before == after:
            continue
        doing = Doing.UPGRADE
        if before is None or after is None:
            doing = Doing.INSTALL if before is None else Doing.REMOVE
        said = state.catalog.get((component, after or before or ""))
        found.append(
            (
                id_,
                Work(
                    set=set_.id,
                    component=component,
                    does=doing,
                    before=before,
                    after=after,
                    recipe=_recipe(said, doing),
                ),
            )
        )
    return found


def _recipe(said: Description | None, doing: Doing) -> Recipe:
    if said is None:
        return Recipe()
    recipes = {
        Doing.INSTALL: said.install,
        Doing.REMOVE: said.remove,
        Doing.UPGRADE: said.upgrade or said.install,
    }
    return recipes[doing] or Recipe()


def _bind(state: State, standing: Standing, works: dict[ResourceId, list[Work]]) -> None:
    """Note which dependencies come and go with a set, and with whose change they do."""
    coming = [one for change in standing.set.changes for one in _coming(change)]
    gone = {
        id_
        for change in standing.set.changes
        if change.does is ChangeKind.REMOVE and change.component is None
        for id_ in change.resources
    }
    new = {one.id for change in standing.set.changes for one in change.new}
    removed = [
        (one.kind, one.dependent, one.sponsor)
        for change in standing.set.changes
        if change.does is ChangeKind.REMOVE
        for one in change.dependencies
    ]
    for place, bond in enumerate(state.bonds):
        one = bond.dependency
        named = (one.kind, one.dependent, one.sponsor) in removed
        if bond.set is None and (one.dependent in gone or one.sponsor in gone or named):
            owner = _owner(one, gone, works, standing)
            state.bonds[place] = Bond(one, standing.id, owner, comes=False)
    for one in coming:
        state.bind(Bond(one, standing.id, _owner(one, new, works, standing), comes=True))
    supports = any(
        one.kind.is_vm_supporting and (one.sponsor in new or one.sponsor in gone) for one in coming
    )
    hypervisors = state.settings.vms is Mixing.DIVIDED and any(
        (host := state.parts[id_].resource.host) is not None
        and host in state.places
        and state.places[host].places > 0
        and id_ in works
        for id_ in standing.resources
    )
    if supports or hypervisors:
        state.standings[standing.id] = replace(standing, divides=True)


def _coming(change: Change) -> tuple[Dependency, ...]:
    if change.does is ChangeKind.REMOVE:
        return ()
    return tuple(one.but(presence=Presence.FUTURE) for one in change.dependencies)


def _owner(
    one: Dependency, moving: set[ResourceId], works: dict[ResourceId, list[Work]], of: Standing
) -> ResourceId:
    """With whose change a dependency comes or goes: of the end that stays, if that is changed."""
    stays = one.dependent if one.sponsor in moving else one.sponsor
    if any(work.set == of.id for work in works.get(stays, ())):
        return stays
    return one.sponsor if one.sponsor in moving else one.dependent


def _level(state: State, works: dict[ResourceId, list[Work]]) -> dict[str, str]:
    """Put the works behind what is left to do, in the upgrade units of this request."""
    units, hopeless = units_for(state, works)
    state.units |= {one.id: one for one in units}
    unit_of = {id_: unit.id for unit in units for id_ in unit.resources}
    for id_, those in works.items():
        kept = tuple(one for one in those if one.set not in hopeless)
        part = state.parts[id_]
        sets = tuple(dict.fromkeys((*part.sets, *(one.set for one in kept))))
        if kept:
            name = unit_of.get(id_, UnitId(f"{state.taken_up}/{id_}"))
            level = Level(unit=name, order=state.taken_up, works=kept)
            state.parts[id_] = part.but(levels=(*part.levels, level), sets=sets)
    state.grouping = None
    return hopeless
