"""Taking a set back: what was not done is dropped, what was done becomes work in the other way."""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentId, Doing, Recipe
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import Level, UnitId, Work
from equipoise.model.value import FrozenMap
from equipoise.upgrade.requests.heirs import hand_over
from equipoise.upgrade.requests.units_back import units_back
from equipoise.upgrade.state import Part, Progress, State


def drop(state: State, set_: SetId) -> None:
    """Do no more of a set, other than what another wants as well."""
    hand_over(state, set_)
    for id_, part in list(state.parts.items()):
        if part.awaits(set_):
            state.parts[id_] = rebased(part.but(levels=_without(part.levels, set_)))
    state.grouping = None


def take_back(state: State, set_: SetId) -> None:
    """Drop what is left of a set, and undo what was done of it, before anything else."""
    drop(state, set_)
    wanted = _undo_versions(state, set_)
    works = {
        id_: found
        for id_, part in state.parts.items()
        if not part.failed and (found := _way_back(state, part, set_, wanted))
    }
    for id_, part in list(state.parts.items()):
        if any(work.set == set_ for work in part.applied):
            bridged = _bridged(part.applied, set_)
            levels = _further_back(state, part, bridged)
            state.parts[id_] = part.but(applied=bridged, levels=levels)
    for id_, found in works.items():
        part = state.parts[id_]
        level = Level(unit=UnitId(f"undo/{set_}/{id_}"), order=0, works=found)
        attempts = FrozenMap({one: n for one, n in part.attempts.items() if one != set_})
        state.parts[id_] = rebased(part.but(levels=(level, *part.levels), attempts=attempts))
    state.standings[set_] = replace(state.standings[set_], progress=Progress.UNDOING)
    for id_, unit in units_back(state, set_, works).items():
        part = state.parts[id_]
        state.parts[id_] = part.but(levels=tuple(_in_unit(one, unit) for one in part.levels))
    state.grouping = None


def _in_unit(level: Level, unit: UnitId) -> Level:
    """What is taken back goes in a unit; everything else as it was."""
    return level.but(unit=unit) if level.order == 0 else level


def _undo_versions(state: State, set_: SetId) -> Wanted:
    """Where an administrator wants resources to be led back to."""
    standing = state.standings[set_]
    return {
        (id_, change.component or state.parts[id_].main): change.undo_version
        for change, ids in zip(standing.set.changes, standing.targets, strict=True)
        if change.undo_version is not None
        for id_ in ids
    }


Wanted = dict[tuple[ResourceId, ComponentId], str]


def _way_back(state: State, part: Part, set_: SetId, wanted: Wanted) -> tuple[Work, ...]:
    """The way back, last first. What a later set has changed since is that set's business.

    To where an administrator wants it, every resource of a change is led, changed or not (4.2).
    """
    found: dict[ComponentId, Work] = {}
    superseded: set[ComponentId] = set()
    for work in reversed(part.applied):
        if work.set != set_:
            superseded.add(work.component)
        elif work.component not in superseded and not work.undoing:
            goal = wanted.get((part.resource.id, work.component), work.before)
            recipe = work.recipe
            if goal is not None and goal != work.before:
                recipe = _leading_to(state, work.component, goal)
            found[work.component] = work.but(after=goal, recipe=recipe)
    for (id_, component), goal in wanted.items():
        is_there = id_ == part.resource.id and component in part.components
        if is_there and component not in found and component not in superseded:
            recipe = _leading_to(state, component, goal)
            work = Work(
                set=set_, component=component, does=Doing.UPGRADE, after=goal, recipe=recipe
            )
            found[component] = work
    now = part.components
    works = [work.but(before=now.get(work.component), undoing=True) for work in found.values()]
    return tuple(_named(work) for work in works if work.before != work.after)


def _named(work: Work) -> Work:
    """The work, called as what it does."""
    does = Doing.UPGRADE
    if work.before is None or work.after is None:
        does = Doing.INSTALL if work.before is None else Doing.REMOVE
    return work.but(does=does)


def _leading_to(state: State, component: ComponentId, version: str) -> Recipe:
    """How to get to a version on the way back. What is taken back runs the undo of its recipe: so
    the recipe of that version is turned round.
    """
    said = state.catalog.get((component, version))
    recipe = (said.upgrade or said.install) if said is not None else None
    if recipe is None:
        return Recipe()
    return recipe.but(
        script=recipe.undo_script,
        undo_script=recipe.script,
        duration_s=recipe.taking_back_s,
        undo_duration_s=recipe.duration_s,
    )


def _bridged(applied: tuple[Work, ...], set_: SetId) -> tuple[Work, ...]:
    """What was done, without what a later set has built on: undoing that one leads further back."""
    chain = list(applied)
    gone: set[int] = set()
    for place, work in enumerate(chain):
        if work.set != set_:
            continue
        for after in range(place + 1, len(chain)):
            if chain[after].component == work.component and chain[after].set != set_:
                chain[after] = chain[after].but(before=work.before)
                gone.add(place)
                break
    return tuple(work for place, work in enumerate(chain) if place not in gone)


def _further_back(state: State, part: Part, bridged: tuple[Work, ...]) -> tuple[Level, ...]:
    """What is left to do, where a later set that is on its way back now goes all the way."""
    stays = {(one.set, one.component): one.before for one in part.applied}
    moved = {
        key: one.before
        for one in bridged
        if stays[key := (one.set, one.component)] != one.before and not one.undoing
    }

    def led(work: Work) -> Work:
        key = work.set, work.component
        if not (work.undoing and key in moved and work.after == stays[key]):
            return work
        goal = moved[key]
        recipe = work.recipe if goal is None else _leading_to(state, work.component, goal)
        return work.but(after=goal, recipe=recipe)

    return tuple(level.but(works=tuple(map(led, level.works))) for level in part.levels)


def _without(levels: tuple[Level, ...], set_: SetId) -> tuple[Level, ...]:
    kept = []
    for level in levels:
        works = tuple(one for one in level.works if one.set != set_)
        if works:
            kept.append(level.but(works=works))
    return tuple(kept)


def rebased(part: Part) -> Part:
    """Let each work begin where the one before it ends, and leave out those that lead nowhere."""
    now: dict[ComponentId, str | None] = dict(part.components)
    levels = []
    for level in part.levels:
        works = []
        for work in level.works:
            before = now.get(work.component)
            if before == work.after:
                continue
            works.append(_named(work.but(before=before)))
            now[work.component] = work.after
        if works:
            levels.append(level.but(works=tuple(works)))
    return part.but(levels=tuple(levels))
