"""The upgrade engine that uses Ansible. It answers every task that it receives.

A thread executes the schedules in sequence; the answers wait in a queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from equipoise.adapters.ansible.batch import perform
from equipoise.adapters.ansible.job import JobResult, PlaybookJob
from equipoise.adapters.ansible.process import StopSignal
from equipoise.adapters.ansible.schedule import (
    AnsibleConfig,
    JournaledResult,
    TaskResult,
    execute_batch,
    move_key,
    move_vms,
    task_key,
)
from equipoise.model.event import Event
from equipoise.model.upgrade.event import (
    BatchEnded,
    BatchStarted,
    TaskFailed,
    TaskFinished,
    VmBatchStarted,
    VmMoved,
    VmMoveFailed,
)
from equipoise.model.upgrade.work import BatchId, TaskBatch, TaskKind, VmBatch, VmMove

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
        self._clock_offset_ms += max(0, event.at_ms - self.now_ms())
        match event:
            case BatchStarted() | VmBatchStarted():
                self._journaled[event.batch.id] = {}
            case BatchEnded():
                self._journaled.pop(event.batch, None)
            case TaskFinished() | TaskFailed() if event.errand not in _LINKS:
                answers = self._journaled.setdefault(event.batch, {})
                answers[task_key(event.errand, event.resource)] = event
            case VmMoved() | VmMoveFailed():
                self._journaled.setdefault(event.batch, {})[move_key(event.vm)] = event

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

        known = dict(self._journaled.get(schedule.id, {}))
        if isinstance(schedule, TaskBatch):
            execute_batch(schedule, config, known, self._run_jobs, report)
        else:
            move_vms(schedule, config, known, self._run_jobs, report)
        answers.append(BatchEnded(at_ms=self.now_ms(), batch=schedule.id))
        self._answers[schedule.id] = answers
        self._events.put(answers[-1])

    def _run_jobs(self, jobs: Sequence[PlaybookJob]) -> Sequence[JobResult]:
        config = self._config
        return perform(jobs, config.connections, config.run_options, self._stop_signal).results

    def _event(self, batch: BatchId, result: TaskResult) -> Event:
        subject, at_ms, reason, code = result.subject, self.now_ms(), result.reason, result.code
        match subject:
            case VmMove() if reason:
                return VmMoveFailed(
                    at_ms=at_ms, batch=batch, vm=subject.vm, reason=reason, code=code
                )
            case VmMove():
                return VmMoved(at_ms=at_ms, batch=batch, vm=subject.vm)
        resource, errand = subject.resource, subject.errand
        if not reason:
            return TaskFinished(at_ms=at_ms, batch=batch, resource=resource, errand=errand)
        return TaskFailed(
            at_ms=at_ms,
            batch=batch,
            resource=resource,
            errand=errand,
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
