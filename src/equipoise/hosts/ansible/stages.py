"""Carries out a schedule: stage by stage, all hosts of a stage in one run. Never ends at a failure.

Tasks of one vertex come one after the other, vertices side by side: each run takes the next chore
of every vertex that is still well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

from equipoise.hosts.ansible.scripts import Nameless, Scripts, chores_of, move_of
from equipoise.hosts.ansible.words import Chore, Manners, Outcome, Verdict, Way
from equipoise.model.quantity import VmId
from equipoise.model.upgrade.event import TaskFailed, TaskFinished, VmMoved, VmMoveFailed
from equipoise.model.upgrade.work import Batch, Errand, Task, VmBatch, VmMove

Act = Callable[[Sequence[Chore]], Sequence[Verdict]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a task or a move; without a reason it was done."""

    subject: Task | VmMove
    reason: str = ""
    is_unreachable: bool = False
    is_begun: bool = False
    """Whether a playbook failed, which may have done something before it did."""
    done: int = 0
    """How many works of a task had been carried out before it failed."""


Tell = Callable[[Answer], object]
Answered = TaskFinished | TaskFailed | VmMoved | VmMoveFailed


@dataclass(slots=True)
class _Course:
    """A task on its way."""

    task: Task
    chores: Sequence[Chore]
    done: int = 0

    @property
    def is_over(self) -> bool:
        return self.done == len(self.chores)


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What is needed to reach hosts and to know what to do there."""

    scripts: Scripts
    ways: Mapping[str, Way]
    manners: Manners = field(default_factory=Manners)


def carry_out(
    batch: Batch, kit: Equipment, known: Mapping[str, Answered], act: Act, tell: Tell
) -> None:
    """Carry out the stages of a batch, and tell of each task what came of it.

    What is known of a task, by its name, is told again, and nothing is done for it.
    """
    broken: set[str] = set()
    for tasks in batch.stages:
        stage = _Stage(tasks, broken, kit, known, tell)
        while courses := stage.advance():
            verdicts = act([course.chores[course.done] for course in courses])
            for course, verdict in zip(courses, verdicts, strict=True):
                stage.hear(course, verdict)


class _Stage:
    """The tasks of a stage, by vertex, and how far each vertex has come."""

    def __init__(
        self,
        tasks: Sequence[Task],
        broken: set[str],
        kit: Equipment,
        known: Mapping[str, Answered],
        tell: Tell,
    ) -> None:
        self._broken, self._kit, self._known, self._tell = broken, kit, known, tell
        self._under_way: dict[str, _Course] = {}
        self._todo: dict[str, deque[Task]] = {}
        for task in tasks:
            self._todo.setdefault(task.vertex, deque()).append(task)

    def advance(self) -> list[_Course]:
        """Bring each vertex to its next chore; nothing is left to do where there is none."""
        for vertex in self._todo:
            while vertex not in self._broken and self._step(vertex):
                pass
        return list(self._under_way.values())

    def hear(self, course: _Course, verdict: Verdict) -> None:
        """Take note of what came of the chore of a course."""
        if verdict.outcome is Outcome.DONE:
            course.done += 1
        else:
            self._fail(_failure(course, verdict), course.task)

    def _step(self, vertex: str) -> bool:
        """Answer a task that is over, or take up the next; say whether there may be more to do."""
        course = self._under_way.get(vertex)
        if course is not None:
            if course.is_over:
                self._tell(Answer(subject=course.task))
                del self._under_way[vertex]
            return course.is_over
        if not self._todo[vertex]:
            return False
        task = self._todo[vertex].popleft()
        known = self._known.get(name_of(task.errand, task.resource))
        if isinstance(known, TaskFailed):
            self._fail(_again(task, known), task)
            return True
        try:
            chores = [] if known is not None else _chores(task, self._kit)
            self._under_way[vertex] = _Course(task, chores)
        except Nameless as error:
            self._fail(Answer(subject=task, reason=str(error)), task)
        return True

    def _fail(self, answer: Answer, task: Task) -> None:
        self._tell(answer)
        self._broken.add(task.vertex)
        self._under_way.pop(task.vertex, None)


def _failure(course: _Course, verdict: Verdict) -> Answer:
    return Answer(
        subject=course.task,
        reason=f"{verdict.outcome}: {verdict.reason}",
        is_unreachable=verdict.outcome is Outcome.UNREACHABLE,
        is_begun=verdict.is_begun,
        done=course.done,
    )


def _again(task: Task, event: TaskFailed) -> Answer:
    return Answer(
        subject=task,
        reason=event.reason or "it failed",
        is_unreachable=event.unreachable,
        is_begun=event.begun,
        done=event.done,
    )


def name_of(errand: Errand, resource: str) -> str:
    """What a task is called within its batch; links of one resource have the same name."""
    return f"{errand} {resource}"


def _chores(task: Task, kit: Equipment) -> list[Chore]:
    host = host_of(task.resource, task.host, kit.ways)
    chores = chores_of(task, host or "", kit.scripts)
    if chores and host is None:
        raise Nameless(f"the access file knows no way to {task.host or task.resource} (hosts)")
    return chores


def host_of(resource: str, host: str | None, ways: Container[str]) -> str | None:
    """Where the playbooks for a resource act: on itself, if one can log in there, or its host."""
    return next((name for name in (resource, host) if name in ways), None)


def name_of_move(vm: VmId) -> str:
    """What a move is called within its batch."""
    return f"move {vm}"


def move(
    batch: VmBatch, kit: Equipment, known: Mapping[str, Answered], act: Act, tell: Tell
) -> None:
    """Move the VMs of a batch side by side, and tell of each what came of it.

    What is known of a move is told again: the VM is not on its source any more.
    """
    moves: list[VmMove] = []
    chores: list[Chore] = []
    for one in batch.moves:
        before = known.get(name_of_move(one.vm))
        if before is not None:
            why = (before.reason or "it failed") if isinstance(before, VmMoveFailed) else ""
            tell(Answer(subject=one, reason=why))
            continue
        try:
            chore = move_of(one, kit.scripts)
            if one.source not in kit.ways:
                raise Nameless(f"the access file knows no way to {one.source} (hosts)")
        except Nameless as error:
            tell(Answer(subject=one, reason=str(error)))
            continue
        moves.append(one)
        chores.append(chore)
    for one, verdict in zip(moves, act(chores) if chores else (), strict=True):
        is_done = verdict.outcome is Outcome.DONE
        tell(Answer(subject=one, reason="" if is_done else f"{verdict.outcome}: {verdict.reason}"))
