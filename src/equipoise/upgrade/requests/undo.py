"""Taking a set back: what was not done is dropped, what was done becomes work in the other way."""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentId, Doing
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import Level, UnitId, Work
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
        if not part.failed and (found := _backwards(part, set_, wanted))
    }
    for id_, part in list(state.parts.items()):
        if any(work.set == set_ for work in part.applied):
            state.parts[id_] = part.but(applied=_bridged(part.applied, set_))
    for id_, found in works.items():
        part = state.parts[id_]
        level = Level(unit=UnitId(f"undo/{set_}/{id_}"), order=0, works=found)
        state.parts[id_] = rebased(part.but(levels=(level, *part.levels)))
    state.standings[set_] = replace(state.standings[set_], progress=Progress.UNDOING)
    for id_, unit in units_back(state, set_, works).items():
        part = state.parts[id_]
        state.parts[id_] = part.but(levels=tuple(_in_unit(one, unit) for one in part.levels))
    state.grouping = None


def _in_unit(level: Level, unit: UnitId) -> Level:
    """What is taken back goes in a unit; everything else as it was."""
    return level.but(unit=unit) if level.order == 0 else level


def _undo_versions(state: State, set_: SetId) -> dict[tuple[ResourceId, ComponentId], str]:
    """Where an administrator wants resources to be led back to."""
    standing = state.standings[set_]
    return {
        (id_, change.component or state.parts[id_].main): change.undo_version
        for change, ids in zip(standing.set.changes, standing.targets, strict=True)
        if change.undo_version is not None
        for id_ in ids
    }


def _backwards(
    part: Part, set_: SetId, wanted: dict[tuple[ResourceId, ComponentId], str]
) -> tuple[Work, ...]:
    """The way back, last first. What a later set has changed since is that set's business."""
    found: dict[ComponentId, Work] = {}
    superseded: set[ComponentId] = set()
    for work in reversed(part.applied):
        if work.set != set_:
            superseded.add(work.component)
        elif work.component not in superseded and not work.undoing:
            now = part.components.get(work.component)
            goal = wanted.get((part.resource.id, work.component), work.before)
            if now == goal:
                found.pop(work.component, None)
                continue
            does = Doing.UPGRADE
            if now is None or goal is None:
                does = Doing.INSTALL if now is None else Doing.REMOVE
            found[work.component] = work.but(does=does, before=now, after=goal, undoing=True)
    return tuple(found.values())


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
            does = Doing.UPGRADE
            if before is None or work.after is None:
                does = Doing.INSTALL if before is None else Doing.REMOVE
            works.append(work.but(before=before, does=does))
            now[work.component] = work.after
        if works:
            levels.append(level.but(works=tuple(works)))
    return part.but(levels=tuple(levels))
