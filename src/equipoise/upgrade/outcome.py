"""What becomes of a resource when the engine has answered."""

from __future__ import annotations

from typing import Final

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import Batch, Errand, Level, Task, VertexId, VmBatch
from equipoise.model.value import FrozenMap
from equipoise.upgrade.requests.undo import rebased
from equipoise.upgrade.state import Open, Part, State

TRIED: Final = (Errand.APPLY, Errand.CHECK)
"""What an attempt consists of: whoever fails in one of them has everything beside it taken back."""


def opened(state: State, batch: str) -> Batch | VmBatch | None:
    """The schedule under way, if it is the one of that name."""
    if state.open is None or state.open.schedule.id != batch:
        return None
    return state.open.schedule


def _task(state: State, event: past.TaskFinished | past.TaskFailed) -> Task | None:
    """The task that is answered; late and repeated answers belong to none."""
    schedule = opened(state, event.batch)
    key = f"{event.errand} {event.resource}"
    if not isinstance(schedule, Batch) or state.open is None or key in state.open.answered:
        return None
    for task in schedule.tasks:
        if task.resource == event.resource and task.errand is event.errand:
            state.open.answered.add(key)
            return task
    return None


def task_finished(state: State, event: past.TaskFinished) -> None:
    """The engine has done it."""
    task = _task(state, event)
    if task is None:
        return
    part = state.parts[task.resource]
    match task.errand:
        case Errand.APPLY:
            state.last_done[task.resource] = part.levels[0]
            state.to_check = (*state.to_check, task.resource)
            _put(state, applied(part))
        case Errand.REVERT:
            level = state.last_done.pop(task.resource, None)
            if level is not None:
                _put(state, reverted(part, level))
        case Errand.ACTIVATE | Errand.DEACTIVATE:
            _put(state, part.but(active=task.errand is Errand.ACTIVATE))
        case Errand.LINK_ON | Errand.LINK_OFF:
            _switched(state, task)


def _switched(state: State, task: Task) -> None:
    """One answer is for all links that a resource was to switch in a schedule."""
    assert state.open is not None
    assert isinstance(state.open.schedule, Batch)
    for each in state.open.schedule.tasks:
        if (each.resource, each.errand) == (
            task.resource,
            task.errand,
        ) and each.link_to is not None:
            ends = min(each.resource, each.link_to), max(each.resource, each.link_to)
            if task.errand is Errand.LINK_OFF:
                state.cut[ends] = None
            else:
                state.cut.pop(ends, None)


def _put(state: State, part: Part) -> None:
    before = state.parts[part.resource.id]
    state.parts[part.resource.id] = part
    split = any(len(unit.resources) > 1 for unit in state.units.values())
    if before.present != part.present or split:
        state.grouping = None


def applied(part: Part) -> Part:
    """The resource after its first level was carried out."""
    level, *rest = part.levels
    components = dict(part.components)
    done = list(part.applied)
    for work in level.works:
        if work.after is None:
            components.pop(work.component, None)
        else:
            components[work.component] = work.after
        if work.undoing:
            done = [one for one in done if one.set != work.set or one.component != work.component]
        else:
            done.append(work)
    present = part.main in components
    sets = {work.set for work in level.works}
    return part.but(
        components=FrozenMap(components),
        present=present,
        active=part.active if present == part.present else present,
        levels=tuple(rest),
        applied=tuple(done),
        attempts=FrozenMap({one: n for one, n in part.attempts.items() if one not in sets}),
    )


def reverted(part: Part, level: Level) -> Part:
    """The resource after a level that was carried out was taken back: it is to be done again."""
    components = dict(part.components)
    done = list(part.applied)
    for work in reversed(level.works):
        if work.before is None:
            components.pop(work.component, None)
        else:
            components[work.component] = work.before
        if work in done:
            done.remove(work)
    present = part.main in components
    back = part.but(
        components=FrozenMap(components),
        present=present,
        active=part.active if present == part.present else present,
        levels=(level, *part.levels),
        applied=tuple(done),
    )
    return rebased(back)


def task_failed(state: State, event: past.TaskFailed) -> None:
    """The engine has not done it, or nobody knows."""
    task = _task(state, event)
    if task is None:
        return
    reason = event.reason or "it failed"
    if state.open is not None:
        state.open.failed.add(task.vertex)
    match task.errand:
        case Errand.APPLY:
            set_ = task.works[min(event.done, len(task.works) - 1)].set
            _count(state, task.resource, set_)
            if event.unreachable:
                state.broken[task.resource] = reason
            elif event.done or event.begun:
                state.to_revert[task.resource] = task.works[: event.done + event.begun]
        case Errand.CHECK:
            level = state.last_done.get(task.resource)
            if level is not None:
                _count(state, task.resource, level.works[-1].set)
                state.to_revert[task.resource] = level.works
        case Errand.REVERT:
            state.broken[task.resource] = f"taking a failed attempt back failed: {reason}"
        case _:
            state.broken[task.resource] = f"{task.errand} failed: {reason}"


def _count(state: State, resource: ResourceId, set_: SetId) -> None:
    part = state.parts[resource]
    attempts = part.attempts.but({set_: part.attempts.get(set_, 0) + 1})
    state.parts[resource] = part.but(attempts=attempts)


def close(state: State, ended: Open) -> None:
    """A schedule is over. When one resource of a vertex has failed, those done with it before go
    back as well; and what was not answered, nobody knows.
    """
    schedule = ended.schedule
    if not isinstance(schedule, Batch):
        return
    done: dict[VertexId, list[ResourceId]] = {}
    for task in schedule.tasks:
        if task.errand in TRIED and task.resource in state.last_done:
            done.setdefault(task.vertex, []).append(task.resource)
        unanswered = f"{task.errand} {task.resource}" not in ended.answered
        if unanswered and task.vertex not in ended.failed:
            ended.failed.add(task.vertex)
            if task.errand is Errand.CHECK:
                state.to_revert[task.resource] = task.works
            else:
                state.broken[task.resource] = "the engine did not say what became of it"
    if any(task.errand in TRIED for task in schedule.tasks):
        for vertex in [one for one in done if one in ended.failed]:
            for resource in reversed(done[vertex]):  # the last that was done goes back first
                if resource not in state.broken:
                    works = state.to_revert.pop(resource, state.last_done[resource].works)
                    state.to_revert[resource] = works
