"""A world in memory: actions take the time they were planned to take, and a script may spoil it.

It keeps the true state of the cluster, which follows from the same ``transition`` as everything
else, and a virtual clock. Same script, same events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from equipoise.control.ports import Cancel, Instruction, Start
from equipoise.model.change import transition
from equipoise.model.change.draft import Draft
from equipoise.model.event import ActionFailed, ActionFinished, ActionStarted, Event
from equipoise.model.quantity import StepId
from equipoise.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What goes differently from plan."""

    durations_ms: Mapping[StepId, int] = field(default_factory=dict)
    """Steps that take longer or shorter than planned."""
    failures: Mapping[StepId, int] = field(default_factory=dict)
    """How many attempts of a step fail before one succeeds."""
    silent: frozenset[StepId] = frozenset()
    """Steps that are never answered, not even when cancelled."""
    happenings: tuple[Event, ...] = ()
    """Facts that come true at their time."""


class MemoryWorld:
    """Hosts and VMs that obey, at the speed of thought."""

    def __init__(self, snapshot: Snapshot, script: Script | None = None) -> None:
        self._truth = Draft(snapshot)
        self._script = script or Script()
        self._queue: list[tuple[int, int, Event]] = []
        self._counter = 0
        self._asked: set[tuple[StepId, int]] = set()
        self._answers: dict[tuple[StepId, int], ActionFinished | ActionFailed] = {}
        self._again: deque[Event] = deque()
        self._schedule(self._script.happenings)

    def observe(self) -> Snapshot:
        """Give the truth."""
        return self._truth.freeze()

    def perform(self, instruction: Instruction) -> None:
        """Begin an action, or break it off."""
        match instruction:
            case Start():
                self._start(instruction)
            case Cancel():
                self._cancel(instruction)

    def next_event(self, until_ms: int) -> Event | None:
        """Go to the next event, but not beyond ``until_ms``."""
        if self._again:
            return self._again.popleft()
        while self._queue and self._queue[0][0] <= until_ms:
            at_ms, _, event = heappop(self._queue)
            self._truth.at_ms = max(self._truth.at_ms, at_ms)
            if self._still_true(event):
                transition.change(self._truth, event)
                self._remember(event)
                return event
        self._truth.at_ms = max(self._truth.at_ms, until_ms)
        return None

    def _start(self, start: Start) -> None:
        step, attempt = start.step, start.attempt
        now_ms = self._truth.at_ms
        if (step.id, attempt) in self._asked:
            self._answer_again(step.id, attempt)
            return
        self._asked.add((step.id, attempt))
        transition.change(self._truth, ActionStarted(at_ms=now_ms, step=step, attempt=attempt))
        if step.id in self._script.silent:
            return
        end_ms = now_ms + self._script.durations_ms.get(step.id, step.duration_ms)
        if attempt <= self._script.failures.get(step.id, 0):
            answer: Event = ActionFailed(
                at_ms=end_ms, step=step.id, attempt=attempt, reason="as the script says"
            )
        else:
            answer = ActionFinished(at_ms=end_ms, step=step.id, attempt=attempt)
        self._schedule([answer])

    def _answer_again(self, step: StepId, attempt: int) -> None:
        """The loop has crashed and asks again: what is still on its way will be answered anyway."""
        running = self._truth.in_flight.get(step)
        if running is not None and running.attempt == attempt:
            return
        answer = self._answers.get((step, attempt))
        if answer is None:
            at_ms = self._truth.at_ms
            answer = ActionFailed(at_ms=at_ms, step=step, attempt=attempt, reason="broken off")
        self._again.append(answer)

    def _cancel(self, cancel: Cancel) -> None:
        running = self._truth.in_flight.get(cancel.step)
        known = running is not None and running.attempt == cancel.attempt
        if known and cancel.step not in self._script.silent:
            at_ms = self._truth.at_ms
            failed = ActionFailed(
                at_ms=at_ms, step=cancel.step, attempt=cancel.attempt, reason="cancelled"
            )
            self._schedule([failed])

    def _remember(self, event: Event) -> None:
        if isinstance(event, ActionFinished | ActionFailed):
            self._answers[event.step, event.attempt] = event

    def _still_true(self, event: Event) -> bool:
        """An answer about an action that has ended in the meantime is never given."""
        if isinstance(event, ActionFinished | ActionFailed):
            running = self._truth.in_flight.get(event.step)
            return running is not None and running.attempt == event.attempt
        return True

    def _schedule(self, events: Iterable[Event]) -> None:
        for event in events:
            heappush(self._queue, (event.at_ms, self._counter, event))
            self._counter += 1
