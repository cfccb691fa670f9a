"""What several sets ask for is done once, for one of them; if that is given up, for another."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.request import Change, ChangeKind, SetId
from equipoise.model.upgrade.work import Work
from equipoise.upgrade.state import Part, Progress, Standing, State

Goal = tuple[ResourceId, ComponentId, str | None]


def hand_over(state: State, set_: SetId) -> None:
    """Give what was done or is left to do for a set to others that want the same."""
    scheduled, complete = _goals_of_others(state, set_)
    for id_ in state.standings[set_].resources:
        part = state.parts.get(id_)
        if part is None or not (scheduled or complete):
            continue
        levels = tuple(
            level.but(works=tuple(_of_heir(id_, work, set_, scheduled) for work in level.works))
            for level in part.levels
        )
        applied = tuple(_of_heir(id_, work, set_, scheduled | complete) for work in part.applied)
        sets = (work.set for work in (*applied, *(one for level in levels for one in level.works)))
        state.parts[id_] = part.but(
            levels=levels, applied=applied, sets=tuple(dict.fromkeys((*part.sets, *sets)))
        )


def _of_heir(id_: ResourceId, work: Work, set_: SetId, heirs: dict[Goal, SetId]) -> Work:
    heir = heirs.get((id_, work.component, work.after))
    return work if heir is None or work.set != set_ or work.undoing else work.but(set=heir)


def _goals_of_others(state: State, set_: SetId) -> tuple[dict[Goal, SetId], dict[Goal, SetId]]:
    """What sets under way lead to, and what those did that are complete."""
    scheduled: dict[Goal, SetId] = {}
    complete: dict[Goal, SetId] = {}
    for one in state.standings.values():
        if one.id == set_:
            continue
        if one.progress is Progress.SCHEDULED and one.id not in state.refused:
            scheduled |= dict.fromkeys(goals(state, one), one.id)
        elif one.outcome is SetOutcome.APPLIED:
            complete |= dict.fromkeys(goals(state, one), one.id)
    return scheduled, complete


def goals(state: State, standing: Standing) -> Iterator[Goal]:
    """What a set leads to, component by component."""
    for change, ids in zip(standing.set.changes, standing.targets, strict=True):
        for id_ in ids:
            part = state.parts.get(id_)
            if part is not None:
                yield id_, change.component or part.main, goal_of(change, part)


def goal_of(change: Change, part: Part) -> str | None:
    """The version to which a change leads; nothing: the component is gone."""
    if change.does is ChangeKind.REMOVE:
        return None
    return part.resource.version if change.new else change.version


def awaits_others(state: State, standing: Standing) -> bool:
    """Whether another set still has to do what a set wants as well."""
    wanted = set(goals(state, standing))
    for id_ in standing.resources:
        part = state.parts.get(id_)
        if part is None or not part.can_be_changed:
            continue
        works = (work for level in part.levels for work in level.works)
        if any((id_, work.component, work.after) in wanted for work in works if not work.undoing):
            return True
    return False
