"""The upgrade engine that uses Ansible. It answers every task that it receives.

A thread executes the schedules in sequence; the answers wait in a queue. A schedule runs stage by
stage, all hosts of a stage in one run, and a failure does not stop it. Tasks of one vertex are
sequential, vertices are parallel: each run takes the next job of every vertex without a failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from equipoise.adapters.ansible.batch import perform
from equipoise.adapters.ansible.host_log import HostLogs
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
from equipoise.adapters.ansible.process import StopSignal
from equipoise.adapters.ansible.reach import check_modules, unreachable_hosts
from equipoise.model.event import Event
from equipoise.model.quantity import VmId
from equipoise.model.upgrade.event import (
    BatchEnded,
    BatchStarted,
    TaskFailed,
    TaskFinished,
    VmBatchStarted,
    VmMoved,
    VmMoveFailed,
)
from equipoise.model.upgrade.work import BatchId, TaskBatch, TaskKind, UpgradeTask, VmBatch, VmMove

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
    all_playbooks: tuple[Path, ...] = ()
    """Every playbook that the engine may run, for the preflight."""
    first_hosts: tuple[str, ...] = ()
    """The hosts that the campaign names, for the preflight; later requests may name others."""


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
        known = self._known.get(task_key(task.kind, task.resource))
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


def task_key(kind: TaskKind, resource: str) -> str:
    """Return the key of a task within its batch; links of one resource share a key."""
    return f"{kind} {resource}"


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


POLL_MS: Final = 1000


class AnsibleEngine:
    """Executes schedules on real hosts, by playbooks.

    After a crash the same schedule comes again. Tasks with an answer in the journal do not run
    again. Other tasks do; a playbook describes a state, so it finds work that is already done.
    """

    def __init__(self, config: AnsibleConfig, clock_ms: Callable[[], int]) -> None:
        self._config = config
        self._clock_ms = clock_ms
        self._clock_offset_ms = 0
        """The difference between the time of the journal and the clock."""
        self._journaled: dict[BatchId, dict[str, JournaledResult]] = {}
        """Results in the journal for the tasks of schedules that have not ended."""
        self._stop_signal = StopSignal()
        self._logs: HostLogs | None = None
        self._schedules: SimpleQueue[TaskBatch | VmBatch] = SimpleQueue()
        self._events: SimpleQueue[Event | BaseException] = SimpleQueue()
        self._answers: dict[BatchId, list[Event]] = {}
        self._under_way: set[BatchId] = set()
        self._thread: Thread | None = None

    def perform(self, schedule: TaskBatch | VmBatch) -> None:
        """Start to execute a schedule; a finished schedule is only answered again."""
        if schedule.id in self._under_way:
            return
        if schedule.id in self._answers:
            for event in self._answers[schedule.id]:
                self._events.put(event.but(at_ms=self.now_ms()))
            return
        self._under_way.add(schedule.id)
        self._schedules.put(schedule)
        if self._thread is None:
            self._thread = Thread(target=self._execute_schedules, name="ansible", daemon=True)
            self._thread.start()

    def next_event(self, until_ms: int | None) -> Event | None:
        """Wait for the next answer. Ctrl-C stops the run first; its tasks are then unknown."""
        wait_s = None if until_ms is None else max(0, until_ms - self.now_ms()) / 1000
        # Nothing is under way, so no event would end a wait without a limit.
        if until_ms is None and not self._under_way:
            wait_s = 0
        try:
            event = self._events.get(timeout=wait_s)
        except Empty:
            return None
        except KeyboardInterrupt:
            self.stop()
            raise
        if isinstance(event, BaseException):
            raise event
        return event

    def now_ms(self) -> int:
        """Return the time of the journal, which continues where an earlier run ended."""
        return self._clock_ms() + self._clock_offset_ms

    def poll_ms(self) -> int:
        """Return the interval at which the caller checks for commands."""
        return POLL_MS

    def is_idle(self) -> bool:
        """Return whether no schedule is under way and no answer waits."""
        return not self._under_way and self._events.empty()

    def on_event(self, event: Event) -> None:
        """Read the time and the answered tasks from an event of the journal."""
        # The clock of this machine may be behind the journal, whose times never go back.
        self._clock_offset_ms += max(0, event.at_ms - self.now_ms())
        match event:
            case BatchStarted() | VmBatchStarted():
                self._journaled[event.batch.id] = {}
            case BatchEnded():
                self._journaled.pop(event.batch, None)
            case TaskFinished() | TaskFailed() if event.kind not in _LINKS:
                answers = self._journaled.setdefault(event.batch, {})
                answers[task_key(event.kind, event.resource)] = event
            case VmMoved() | VmMoveFailed():
                self._journaled.setdefault(event.batch, {})[move_key(event.vm)] = event

    def preflight(self) -> Mapping[str, str]:
        """Parse every playbook and log in to every host; return the hosts that do not answer."""
        check_modules(self._config.all_playbooks, self._config.run_options)
        config = self._config
        connections = {name: config.connections[name] for name in config.first_hosts}
        return unreachable_hosts(connections, config.run_options, self._stop_signal)

    def resources_on(self, host: str, resources: Mapping[str, str | None]) -> list[str]:
        """Return the resources that are changed by logging in to a host of the access file."""
        connections = self._config.connections
        return [id_ for id_, on in resources.items() if host_of(id_, on, connections) == host]

    def stop(self) -> None:
        """Stop the run with all its processes; the remaining tasks are answered as unknown."""
        self._stop_signal.stop()
        if self._thread is not None:
            self._schedules.put(TaskBatch(id=_STOP, stages=()))
            self._thread.join()
            self._thread = None

    def _execute_schedules(self) -> None:
        while True:
            schedule = self._schedules.get()
            if schedule.id == _STOP:
                return
            try:
                self._execute(schedule)
            except BaseException as error:  # a bug: ``next_event`` raises it in the main thread
                self._events.put(error)
            self._under_way.discard(schedule.id)

    def _execute(self, schedule: TaskBatch | VmBatch) -> None:
        answers: list[Event] = []
        config = self._config

        def report(result: TaskResult) -> None:
            answers.append(self._event(schedule.id, result))
            self._events.put(answers[-1])

        # A copy: the main thread writes the answers of this schedule into the original.
        known = dict(self._journaled.get(schedule.id, {}))
        if isinstance(schedule, TaskBatch):
            execute_batch(schedule, config, known, self._run_jobs, report)
        else:
            move_vms(schedule, config, known, self._run_jobs, report)
        answers.append(BatchEnded(at_ms=self.now_ms(), batch=schedule.id))
        self._answers[schedule.id] = answers
        self._events.put(answers[-1])

    def _run_jobs(self, jobs: Sequence[PlaybookJob]) -> Sequence[JobResult]:
        config, logs = self._config, self._logs
        connections, run_options = config.connections, config.run_options
        if logs is None:
            return perform(jobs, connections, run_options, self._stop_signal).results
        results = perform(
            jobs, connections, run_options, self._stop_signal, job_listener=logs.step
        ).results
        logs.results(results)
        return results

    def log_to(self, folder: Path) -> None:
        """Write a log per host to this folder."""
        self._logs = HostLogs(folder, self._config.connections)

    def _event(self, batch: BatchId, result: TaskResult) -> Event:
        subject, at_ms, reason, code = result.subject, self.now_ms(), result.reason, result.code
        match subject:
            case VmMove() if reason:
                return VmMoveFailed(
                    at_ms=at_ms, batch=batch, vm=subject.vm, reason=reason, code=code
                )
            case VmMove():
                return VmMoved(at_ms=at_ms, batch=batch, vm=subject.vm)
        resource, kind = subject.resource, subject.kind
        if not reason:
            return TaskFinished(at_ms=at_ms, batch=batch, resource=resource, kind=kind)
        return TaskFailed(
            at_ms=at_ms,
            batch=batch,
            resource=resource,
            kind=kind,
            done=result.done,
            begun=result.is_begun,
            unreachable=result.is_unreachable,
            reason=reason,
            code=code,
        )


_LINKS = (TaskKind.LINK_ON, TaskKind.LINK_OFF)
"""Tasks whose answer does not name the link: a resource can have several."""
_STOP = BatchId("the last")
"""Ends the thread. It cannot be the id of a schedule, because ids have no spaces."""
