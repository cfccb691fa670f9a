"""Executes a schedule stage by stage, all hosts of a stage in one run. A failure does not stop it.

Tasks of one vertex are sequential, vertices are parallel: each run takes the next job of every
vertex without a failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

from equipoise.adapters.ansible.job import (
    HostConnection,
    JobOutcome,
    JobResult,
    PlaybookJob,
    RunOptions,
)
from equipoise.adapters.ansible.playbooks import (
    MissingPlaybook,
    PlaybookPaths,
    job_for_move,
    jobs_for_task,
)
from equipoise.model.quantity import VmId
from equipoise.model.upgrade.event import TaskFailed, TaskFinished, VmMoved, VmMoveFailed
from equipoise.model.upgrade.work import TaskBatch, TaskKind, UpgradeTask, VmBatch, VmMove

RunJobs = Callable[[Sequence[PlaybookJob]], Sequence[JobResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The result of a task or a move; without a reason it is a success."""

    subject: UpgradeTask | VmMove
    reason: str = ""
    code: str = ""
    """A key of ``errors.CODES``; empty for a success."""
    is_unreachable: bool = False
    is_begun: bool = False
    """Whether a playbook failed that may have changed something before."""
    done: int = 0
    """The number of works of the task that were complete before it failed."""


ReportResult = Callable[[TaskResult], object]
JournaledResult = TaskFinished | TaskFailed | VmMoved | VmMoveFailed


@dataclass(slots=True)
class _TaskProgress:
    """A task that is being executed."""

    task: UpgradeTask
    jobs: Sequence[PlaybookJob]
    done: int = 0

    @property
    def is_complete(self) -> bool:
        return self.done == len(self.jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsibleConfig:
    """The playbooks and connections of an engine."""

    playbooks: PlaybookPaths
    connections: Mapping[str, HostConnection]
    run_options: RunOptions = field(default_factory=RunOptions)


def execute_batch(
    batch: TaskBatch,
    config: AnsibleConfig,
    known: Mapping[str, JournaledResult],
    run_jobs: RunJobs,
    report: ReportResult,
) -> None:
    """Execute the stages of a batch and report the result of each task.

    The result of a task in ``known`` is reported again without executing the task.
    """
    failed_vertices: set[str] = set()
    for tasks in batch.stages:
        stage = _StageProgress(tasks, failed_vertices, config, known, report)
        while running := stage.advance():
            results = run_jobs([progress.jobs[progress.done] for progress in running])
            for progress, result in zip(running, results, strict=True):
                stage.apply(progress, result)


class _StageProgress:
    """The tasks of a stage by vertex, and the progress of each vertex."""

    def __init__(
        self,
        tasks: Sequence[UpgradeTask],
        failed_vertices: set[str],
        config: AnsibleConfig,
        known: Mapping[str, JournaledResult],
        report: ReportResult,
    ) -> None:
        self._failed_vertices, self._config, self._known, self._report = (
            failed_vertices,
            config,
            known,
            report,
        )
        self._under_way: dict[str, _TaskProgress] = {}
        self._todo: dict[str, deque[UpgradeTask]] = {}
        for task in tasks:
            self._todo.setdefault(task.vertex, deque()).append(task)

    def advance(self) -> list[_TaskProgress]:
        """Advance each vertex to its next job; return the tasks with a job to run."""
        for vertex in self._todo:
            while vertex not in self._failed_vertices and self._step(vertex):
                pass
        return list(self._under_way.values())

    def apply(self, progress: _TaskProgress, result: JobResult) -> None:
        """Apply the result of the current job of a task."""
        if result.outcome is JobOutcome.DONE:
            progress.done += 1
        else:
            self._fail(_failure(progress, result), progress.task)

    def _step(self, vertex: str) -> bool:
        """Report a complete task, or start the next one; return whether to call again."""
        progress = self._under_way.get(vertex)
        if progress is not None:
            if progress.is_complete:
                self._report(TaskResult(subject=progress.task))
                del self._under_way[vertex]
            return progress.is_complete
        if not self._todo[vertex]:
            return False
        task = self._todo[vertex].popleft()
        known = self._known.get(task_key(task.errand, task.resource))
        if isinstance(known, TaskFailed):
            self._fail(_repeated(task, known), task)
            return True
        try:
            jobs = [] if known is not None else _task_jobs(task, self._config)
            self._under_way[vertex] = _TaskProgress(task, jobs)
        except MissingPlaybook as error:
            self._fail(TaskResult(subject=task, reason=str(error), code="no-playbook"), task)
        return True

    def _fail(self, result: TaskResult, task: UpgradeTask) -> None:
        self._report(result)
        self._failed_vertices.add(task.vertex)
        self._under_way.pop(task.vertex, None)


def _failure(progress: _TaskProgress, result: JobResult) -> TaskResult:
    return TaskResult(
        subject=progress.task,
        reason=f"{result.outcome}: {result.reason}",
        code=result.outcome.code,
        is_unreachable=result.outcome is JobOutcome.UNREACHABLE,
        is_begun=result.is_begun,
        done=progress.done,
    )


def _repeated(task: UpgradeTask, event: TaskFailed) -> TaskResult:
    return TaskResult(
        subject=task,
        reason=event.reason or "the task failed",
        code=event.code,
        is_unreachable=event.unreachable,
        is_begun=event.begun,
        done=event.done,
    )


def task_key(errand: TaskKind, resource: str) -> str:
    """Return the key of a task within its batch; links of one resource share a key."""
    return f"{errand} {resource}"


def _task_jobs(task: UpgradeTask, config: AnsibleConfig) -> list[PlaybookJob]:
    host = host_of(task.resource, task.host, config.connections)
    jobs = jobs_for_task(task, host or "", config.playbooks)
    if jobs and host is None:
        raise MissingPlaybook(_no_connection(task.host or task.resource))
    return jobs


def _no_connection(host: str) -> str:
    return f"the access file has no host {host} (hosts)"


def host_of(resource: str, host: str | None, connections: Container[str]) -> str | None:
    """Return where the playbooks of a resource run: on itself if it has a login, or its host."""
    return next((name for name in (resource, host) if name in connections), None)


def move_key(vm: VmId) -> str:
    """Return the key of a move within its batch."""
    return f"move {vm}"


def move_vms(
    batch: VmBatch,
    config: AnsibleConfig,
    known: Mapping[str, JournaledResult],
    run_jobs: RunJobs,
    report: ReportResult,
) -> None:
    """Move the VMs of a batch in parallel and report the result of each.

    The result of a move in ``known`` is reported again: the VM has left its source.
    """
    moves: list[VmMove] = []
    jobs: list[PlaybookJob] = []
    for move in batch.moves:
        earlier = known.get(move_key(move.vm))
        if isinstance(earlier, VmMoveFailed):
            reason = earlier.reason or "the move failed"
            report(TaskResult(subject=move, reason=reason, code=earlier.code))
            continue
        if earlier is not None:
            report(TaskResult(subject=move))
            continue
        try:
            job = job_for_move(move, config.playbooks)
            if move.source not in config.connections:
                raise MissingPlaybook(_no_connection(move.source))
        except MissingPlaybook as error:
            report(TaskResult(subject=move, reason=str(error), code="no-playbook"))
            continue
        moves.append(move)
        jobs.append(job)
    for move, result in zip(moves, run_jobs(jobs) if jobs else (), strict=True):
        is_done = result.outcome is JobOutcome.DONE
        reason = "" if is_done else f"{result.outcome}: {result.reason}"
        report(TaskResult(subject=move, reason=reason, code=result.outcome.code))
