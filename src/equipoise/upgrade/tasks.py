"""Tasks: the work of a batch for the engine, stage by stage, and the effect of its results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.work import (
    BatchId,
    ExecutionLevel,
    TaskBatch,
    TaskKind,
    UpgradeMethod,
    UpgradeTask,
    UpgradeUnit,
    VertexId,
)
from equipoise.model.value import FrozenMap
from equipoise.upgrade.graph.dependencies import CHANGED_TOGETHER
from equipoise.upgrade.graph.iteration_view import IterationView, next_partition
from equipoise.upgrade.requests.set_conflicts import version_conflicts
from equipoise.upgrade.requests.undo import rebase_levels
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.iteration import OpenBatch
from equipoise.upgrade.state.resources import ResourceState, components_after

TaskStage = list[UpgradeTask]


def batch_schedule(view: IterationView, batch: tuple[VertexId, ...], id_: BatchId) -> TaskBatch:
    """Turn a batch into stages: deactivate, activate returning groups, work, activate."""
    off: TaskStage = []
    back: TaskStage = []
    work: TaskStage = []
    on: TaskStage = []
    states = view.state.resources.states
    returning = {id_ for groups in view.returning if groups.due for id_ in groups.groups}
    for vertex in batch:
        group = view.control.groups[vertex]
        unit = view.unit(vertex)
        levels = view.level(vertex)
        changing = [member for member in group.members if member in levels]
        block_of = _change_blocks(view, vertex)
        # A group without work only returns into service.
        if not group.active and (vertex in returning or not levels):
            back += _new_tasks(view.state, block_of, group.members, TaskKind.ACTIVATE)
            continue
        work += [_apply_task(view.state, block_of[member], member) for member in changing]
        if unit is None:  # an earlier unit may have left members out of service
            off_now = [
                id_ for id_ in group.members if states[id_].present and not states[id_].active
            ]
            on += _new_tasks(view.state, block_of, off_now, TaskKind.ACTIVATE)
        elif unit.method is UpgradeMethod.MODIFIED_SPLIT_LINKS:
            # The members stay in service; only their links are switched off.
            off += _link_tasks(view, block_of, unit, changing)
        else:
            in_service = [id_ for id_ in changing if states[id_].active]
            off += _new_tasks(view.state, block_of, in_service, TaskKind.DEACTIVATE)
            if not _stays_deactivated(view.state, unit):
                on += _new_tasks(view.state, block_of, changing, TaskKind.ACTIVATE)
    # ``back`` after ``off``: groups of the new version return only when the old one is out of
    # service.
    stages = tuple(tuple(stage) for stage in (off, back, work, on) if stage)
    return TaskBatch(id=id_, stages=stages)


def _change_blocks(view: IterationView, vertex: VertexId) -> dict[ResourceId, VertexId]:
    """Return the block of each member: a container and its contents change one after the other.

    The other members of a partition change side by side. A failure affects only its own block.
    """
    members = view.control.groups[vertex].members
    if view.unit(vertex) is None:
        return dict.fromkeys(members, vertex)
    block_of: dict[ResourceId, VertexId] = {}
    inside = set(members)
    for start in members:
        if start in block_of:
            continue
        queue = [start]
        block_of[start] = VertexId(start)
        for member in queue:
            edges = (
                *view.graph.sponsor_edges.get(member, ()),
                *view.graph.dependent_edges.get(member, ()),
            )
            for edge in edges:
                neighbour = edge.sponsor if edge.dependent == member else edge.dependent
                if (
                    edge.kind in CHANGED_TOGETHER
                    and neighbour in inside
                    and neighbour not in block_of
                ):
                    block_of[neighbour] = VertexId(start)
                    queue.append(neighbour)
    return block_of


def _stays_deactivated(state: UpgradeState, unit: UpgradeUnit) -> bool:
    """Return whether the current partition stays out of service until the last one."""
    current = next_partition(state, unit)
    return current is not None and current < len(unit.partitions) - 1


def _new_tasks(
    state: UpgradeState,
    block_of: dict[ResourceId, VertexId],
    resources: Iterable[ResourceId],
    kind: TaskKind,
) -> TaskStage:
    return [_new_task(state, block_of[resource], resource, kind) for resource in resources]


def _new_task(
    state: UpgradeState, vertex: VertexId, resource: ResourceId, kind: TaskKind
) -> UpgradeTask:
    return UpgradeTask(
        resource=resource,
        vertex=vertex,
        kind=kind,
        host=state.resources.states[resource].resource.host,
    )


def _apply_task(state: UpgradeState, vertex: VertexId, resource: ResourceId) -> UpgradeTask:
    resource_state = state.resources.states[resource]
    works = resource_state.levels[0].works
    attempt = 1 + max((resource_state.attempts.get(work.set, 0) for work in works), default=0)
    return _new_task(state, vertex, resource, TaskKind.APPLY).but(works=works, attempt=attempt)


def _link_tasks(
    view: IterationView,
    block_of: dict[ResourceId, VertexId],
    unit: UpgradeUnit,
    members: list[ResourceId],
) -> TaskStage:
    """Switch off all links of a unit with incompatible ends where one end changes.

    Whether the change succeeds is not known yet. ``relink_schedule`` switches a link on again when
    its ends are compatible.
    """
    tasks: TaskStage = []
    inside = set(unit.resources)
    for edge in view.graph.edges:
        ends = (edge.dependent, edge.sponsor)
        member, neighbour = ends if ends[0] in members else ends[::-1]
        if member in members and neighbour in inside and edge.incompatible:
            tasks.append(
                _new_task(view.state, block_of[member], member, TaskKind.LINK_OFF).but(
                    link_to=neighbour
                )
            )
    return tasks


def revert_schedule(
    state: UpgradeState, group_of: dict[ResourceId, VertexId], id_: BatchId
) -> TaskBatch:
    """Return tasks that revert failed attempts, the last work first."""
    tasks = tuple(
        _new_task(state, group_of[resource], resource, TaskKind.REVERT).but(
            works=tuple(reversed(works))
        )
        for resource, works in state.attempts.to_revert.items()
    )
    return TaskBatch(id=id_, stages=(tasks,))


def relink_schedule(
    state: UpgradeState, group_of: dict[ResourceId, VertexId], id_: BatchId
) -> TaskBatch | None:
    """Return tasks that switch on links whose ends are compatible, or None."""
    conflicts = version_conflicts(state) if state.resources.links_off else {}
    tasks = tuple(
        _new_task(state, group_of[resource], resource, TaskKind.LINK_ON).but(link_to=neighbour)
        for resource, neighbour in state.resources.links_off
        if all(_is_reachable(state, end) for end in (resource, neighbour))
        and neighbour not in conflicts.get(resource, ())
    )
    return TaskBatch(id=id_, stages=(tasks,)) if tasks else None


def _is_reachable(state: UpgradeState, resource: ResourceId) -> bool:
    """Return whether a task can run on a resource. A resource to be isolated cannot."""
    resource_state = state.resources.states.get(resource)
    return (
        resource_state is not None
        and resource_state.operational
        and resource not in state.attempts.to_isolate
    )


def check_schedule(
    state: UpgradeState, group_of: dict[ResourceId, VertexId], id_: BatchId
) -> TaskBatch:
    """Return the health checks of the changed resources, after the bake time."""
    tasks = tuple(
        _new_task(state, group_of[resource], resource, TaskKind.CHECK).but(
            works=state.attempts.applied_levels[resource].works
        )
        for resource in state.attempts.to_check
        if resource in state.attempts.applied_levels
        and state.resources.states[resource].present
        and resource not in state.attempts.to_isolate
    )
    return TaskBatch(id=id_, stages=(tasks,) if tasks else ())


ATTEMPT_KINDS: Final = (TaskKind.APPLY, TaskKind.CHECK)
"""The tasks of an attempt. If one fails, the whole block is reverted."""


def _answered_task(
    state: UpgradeState, event: past.TaskFinished | past.TaskFailed
) -> UpgradeTask | None:
    """Return the task that an event answers. Late and repeated answers belong to none."""
    schedule = state.iteration.open_schedule(event.batch)
    if not isinstance(schedule, TaskBatch):
        return None
    for task in schedule.tasks:
        if task.resource == event.resource and task.kind is event.kind:
            is_first = state.iteration.answer(f"{event.kind} {event.resource}")
            return task if is_first else None
    return None


def on_task_finished(state: UpgradeState, event: past.TaskFinished) -> None:
    """Apply the success of a task."""
    task = _answered_task(state, event)
    if task is None:
        return
    resource_state = state.resources.states[task.resource]
    match task.kind:
        case TaskKind.APPLY:
            # Before the level is removed from the resource: a revert needs it.
            state.attempts.apply(task.resource, resource_state.levels[0])
            state.resources.put(after_apply(resource_state))
        case TaskKind.REVERT:
            level = state.attempts.reverted(task.resource)
            if level is not None:
                state.resources.put(after_revert(resource_state, level))
        case TaskKind.ACTIVATE | TaskKind.DEACTIVATE:
            state.resources.put(resource_state.but(active=task.kind is TaskKind.ACTIVATE))
        case TaskKind.LINK_ON | TaskKind.LINK_OFF:
            _switch_links(state, task)


def _switch_links(state: UpgradeState, task: UpgradeTask) -> None:
    """Record the links that a resource has switched. One answer covers all its links."""
    assert state.iteration.open_batch is not None
    assert isinstance(state.iteration.open_batch.schedule, TaskBatch)
    for other in state.iteration.open_batch.schedule.tasks:
        is_same = (other.resource, other.kind) == (task.resource, task.kind)
        if is_same and other.link_to is not None:
            is_on = task.kind is TaskKind.LINK_ON
            state.resources.switch_link(other.resource, other.link_to, on=is_on)


def after_apply(resource_state: ResourceState) -> ResourceState:
    """Return the resource after its first level was applied."""
    level, *rest = resource_state.levels
    components = components_after(resource_state.components, level.works)
    applied = list(resource_state.applied)
    for work in level.works:
        if work.undoing:
            applied = [
                applied_work
                for applied_work in applied
                if applied_work.set != work.set or applied_work.component != work.component
            ]
        else:
            applied.append(work)
    present = resource_state.own_component in components
    # The failed attempts stay: only a passed health check ends the count (``_iteration_began``).
    return resource_state.but(
        components=FrozenMap(components),
        present=present,
        active=resource_state.active if present == resource_state.present else present,
        levels=tuple(rest),
        applied=tuple(applied),
    )


def after_revert(resource_state: ResourceState, level: ExecutionLevel) -> ResourceState:
    """Return the resource after an applied level was reverted. The level is pending again."""
    components = dict(resource_state.components)
    applied = list(resource_state.applied)
    for work in reversed(level.works):
        if work.before is None:
            components.pop(work.component, None)
        else:
            components[work.component] = work.before
        if work in applied:
            applied.remove(work)
    present = resource_state.own_component in components
    reverted = resource_state.but(
        components=FrozenMap(components),
        present=present,
        active=resource_state.active if present == resource_state.present else present,
        levels=(level, *resource_state.levels),
        applied=tuple(applied),
    )
    return rebase_levels(reverted)


def on_task_failed(state: UpgradeState, event: past.TaskFailed) -> None:
    """Apply the failure of a task, or an unknown result."""
    task = _answered_task(state, event)
    if task is None:
        return
    reason = event.reason or "the task failed"
    attempts = state.attempts
    if _may_retry(state, event):
        state.iteration.refuse_task(f"{task.kind} {task.resource}")
        return
    state.iteration.fail_vertex(task.vertex)
    match task.kind:
        case TaskKind.APPLY:
            # The attempt counts for the set of the work that failed.
            set_ = task.works[min(event.done, len(task.works) - 1)].set
            state.resources.count_attempt(task.resource, set_)
            state.requests.count_failure(set_)
            # Nothing is known about an unreachable resource, so a revert could break it further.
            if event.unreachable:
                attempts.must_isolate(task.resource, "unreachable", reason)
            # A task that failed before its first work has left nothing to revert.
            elif event.done or event.begun:
                attempts.must_revert(task.resource, task.works[: event.done + event.begun])
        case TaskKind.CHECK:
            level = attempts.applied_levels.get(task.resource)
            if level is not None:
                state.resources.count_attempt(task.resource, level.works[-1].set)
                state.requests.count_failure(level.works[-1].set)
                attempts.must_revert(task.resource, level.works)
        case TaskKind.REVERT:
            text = f"the revert of a failed attempt failed: {reason}"
            attempts.must_isolate(task.resource, "task-failed", text)
        case _:
            attempts.must_isolate(task.resource, "task-failed", f"{task.kind} failed: {reason}")


def _may_retry(state: UpgradeState, event: past.TaskFailed) -> bool:
    """Return whether nothing has happened but a refused connection, and not too often."""
    is_untouched = event.unreachable and not event.done and not event.begun
    return (
        is_untouched
        and event.code == "connection-refused"
        and state.attempts.retries + 1 < state.settings.connection_attempts_max
    )


def _stages_to_retry(ended: OpenBatch, schedule: TaskBatch) -> tuple[tuple[UpgradeTask, ...], ...]:
    """Return the refused tasks, and the later tasks of their vertices that the engine skipped."""

    def name(task: UpgradeTask) -> str:
        return f"{task.kind} {task.resource}"

    waiting = {task.vertex for task in schedule.tasks if name(task) in ended.refused}
    waiting -= ended.failed
    stages = (
        tuple(
            task
            for task in stage
            if task.vertex in waiting
            and (name(task) in ended.refused or name(task) not in ended.answered_tasks)
        )
        for stage in schedule.stages
    )
    return tuple(stage for stage in stages if stage)


def close_batch(state: UpgradeState, ended: OpenBatch) -> None:
    """Close a schedule.

    If a task of a vertex failed, its applied resources are reverted too. A resource without an
    answer is in an unknown state.
    """
    schedule, attempts = ended.schedule, state.attempts
    if not isinstance(schedule, TaskBatch):
        return
    failed = set(ended.failed)
    attempts.must_retry(_stages_to_retry(ended, schedule))
    waiting = {task.vertex for stage in attempts.to_retry for task in stage}
    applied: dict[VertexId, list[ResourceId]] = {}
    for task in schedule.tasks:
        if task.kind in ATTEMPT_KINDS and task.resource in attempts.applied_levels:
            applied.setdefault(task.vertex, []).append(task.resource)
        unanswered = f"{task.kind} {task.resource}" not in ended.answered_tasks
        # After a failure the engine skips the later tasks of the vertex: they need no report.
        if unanswered and task.vertex not in failed | waiting:
            failed.add(task.vertex)
            if task.kind is TaskKind.CHECK:
                attempts.must_revert(task.resource, task.works)
            else:
                text = "the engine did not report the result"
                attempts.must_isolate(task.resource, "task-unanswered", text)
    if any(task.kind in ATTEMPT_KINDS for task in schedule.tasks):
        for vertex in [key for key in applied if key in failed]:
            for resource in reversed(applied[vertex]):  # the last change is reverted first
                if resource not in attempts.to_isolate:
                    works = attempts.applied_levels[resource].works
                    attempts.must_revert(resource, attempts.to_revert.get(resource, works))
