"""The engine that carries out upgrades by Ansible. Never forgets a task that it was given.

A schedule is carried out by a thread, one schedule after the other; answers wait in a queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from equipoise.hosts.ansible.batch import perform
from equipoise.hosts.ansible.brake import Brake
from equipoise.hosts.ansible.stages import (
    Answer,
    Answered,
    Equipment,
    carry_out,
    move,
    name_of,
    name_of_move,
)
from equipoise.hosts.ansible.words import Chore, Verdict
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
from equipoise.model.upgrade.work import Batch, BatchId, Errand, VmBatch, VmMove

LOOK_MS: Final = 1000


class AnsibleEngine:
    """Carries out schedules on real hosts, by playbooks.

    After a crash the same schedule comes again. Tasks that were answered are not done again; what
    else was done is found done by the playbooks themselves: they say how things are to be.
    """

    def __init__(self, equipment: Equipment, clock_ms: Callable[[], int]) -> None:
        self._equipment = equipment
        self._clock_ms = clock_ms
        self._ahead_ms = 0
        """How far the time of the journal is ahead of the clock."""
        self._written: dict[BatchId, dict[str, Answered]] = {}
        """What was written down about the tasks of schedules that have not ended."""
        self._brake = Brake()
        self._todo: SimpleQueue[Batch | VmBatch] = SimpleQueue()
        self._heard: SimpleQueue[Event | BaseException] = SimpleQueue()
        self._answers: dict[BatchId, list[Event]] = {}
        self._under_way: set[BatchId] = set()
        self._thread: Thread | None = None

    def perform(self, schedule: Batch | VmBatch) -> None:
        """Begin to carry out a schedule; one that was carried out is only answered again."""
        if schedule.id in self._under_way:
            return
        if schedule.id in self._answers:
            for event in self._answers[schedule.id]:
                self._heard.put(event.but(at_ms=self.now_ms()))
            return
        self._under_way.add(schedule.id)
        self._todo.put(schedule)
        if self._thread is None:
            self._thread = Thread(target=self._work, name="ansible", daemon=True)
            self._thread.start()

    def next_event(self, until_ms: int | None) -> Event | None:
        """Wait for the next answer. Ctrl-C ends the run first; its tasks are unknown then."""
        wait_s = None if until_ms is None else max(0, until_ms - self.now_ms()) / 1000
        if until_ms is None and not self._under_way:
            wait_s = 0
        try:
            heard = self._heard.get(timeout=wait_s)
        except Empty:
            return None
        except KeyboardInterrupt:
            self.stop()
            raise
        if isinstance(heard, BaseException):
            raise heard
        return heard

    def now_ms(self) -> int:
        """The time of the journal, which goes on where an earlier run has ended."""
        return self._clock_ms() + self._ahead_ms

    def look_ms(self) -> int:
        """Orders are looked for every second."""
        return LOOK_MS

    def is_idle(self) -> bool:
        """Whether it has nothing to do and nothing to tell."""
        return not self._under_way and self._heard.empty()

    def witness(self, event: Event) -> None:
        """Learn from a journal what time it is, and which tasks were answered before a crash."""
        self._ahead_ms += max(0, event.at_ms - self.now_ms())
        match event:
            case BatchStarted() | VmBatchStarted():
                self._written[event.batch.id] = {}
            case BatchEnded():
                self._written.pop(event.batch, None)
            case TaskFinished() | TaskFailed() if event.errand not in _LINKS:
                answers = self._written.setdefault(event.batch, {})
                answers[name_of(event.errand, event.resource)] = event
            case VmMoved() | VmMoveFailed():
                self._written.setdefault(event.batch, {})[name_of_move(event.vm)] = event

    def stop(self) -> None:
        """End what runs, with all it has started, and answer what is left as unknown."""
        self._brake.pull()
        if self._thread is not None:
            self._todo.put(Batch(id=_LAST, stages=()))
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while True:
            schedule = self._todo.get()
            if schedule.id == _LAST:
                return
            try:
                self._carry_out(schedule)
            except BaseException as error:  # a bug: it is raised where somebody sees it
                self._heard.put(error)
            self._under_way.discard(schedule.id)

    def _carry_out(self, schedule: Batch | VmBatch) -> None:
        answers: list[Event] = []
        kit = self._equipment

        def tell(answer: Answer) -> None:
            answers.append(self._event(schedule.id, answer))
            self._heard.put(answers[-1])

        known = dict(self._written.get(schedule.id, {}))
        if isinstance(schedule, Batch):
            carry_out(schedule, kit, known, self._act, tell)
        else:
            move(schedule, kit, known, self._act, tell)
        answers.append(BatchEnded(at_ms=self.now_ms(), batch=schedule.id))
        self._answers[schedule.id] = answers
        self._heard.put(answers[-1])

    def _act(self, chores: Sequence[Chore]) -> Sequence[Verdict]:
        kit = self._equipment
        return perform(chores, kit.ways, kit.manners, self._brake).verdicts

    def _event(self, batch: BatchId, answer: Answer) -> Event:
        subject, at_ms, reason = answer.subject, self.now_ms(), answer.reason
        match subject:
            case VmMove() if reason:
                return VmMoveFailed(at_ms=at_ms, batch=batch, vm=subject.vm, reason=reason)
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
            done=answer.done,
            begun=answer.is_begun,
            unreachable=answer.is_unreachable,
            reason=reason,
        )


_LINKS = (Errand.LINK_ON, Errand.LINK_OFF)
"""An answer does not say to which of several links of a resource it belongs."""
_LAST = BatchId("the last")
"""No id of a schedule has a space in it."""
