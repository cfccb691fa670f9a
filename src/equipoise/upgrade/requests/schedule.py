"""Taking up a request: each change becomes work on each of its resources, in execution levels."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import Description, Doing, Recipe
from equipoise.model.upgrade.request import Change, ChangeSet, Request
from equipoise.model.upgrade.work import Level, UnitId, Work
from equipoise.upgrade.begin import a_part
from equipoise.upgrade.requests.bind import bind
from equipoise.upgrade.requests.complete import Impossible, complete
from equipoise.upgrade.requests.feasible import check_feasible
from equipoise.upgrade.requests.heirs import goal_of
from equipoise.upgrade.requests.project import projected
from equipoise.upgrade.requests.units import units_for
from equipoise.upgrade.state import Standing, State


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
        bind(state, standing, works)
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
