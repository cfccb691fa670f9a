"""A world in memory: actions take their planned time, unless a script says otherwise.

It has the true state of the cluster, which ``transition`` changes, and a virtual clock. The same
script gives the same events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from equipoise.control.ports import CancelAction, Instruction, StartAction
from equipoise.model.event import ActionFailed, ActionFinished, ActionStarted, Event
from equipoise.model.quantity import StepId
from equipoise.model.state import transition
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Deviations from the plan."""

    durations_ms: Mapping[StepId, int] = field(default_factory=dict)
    """Steps that take longer or shorter than planned."""
    failures: Mapping[StepId, int] = field(default_factory=dict)
    """Number of attempts of a step that fail before one succeeds."""
    silent: frozenset[StepId] = frozenset()
    """Steps that the world never answers, not even after a cancellation."""
    events: tuple[Event, ...] = ()
    """Events that happen at their time."""


class MemoryWorld:
    """A world that executes actions in virtual time."""

    def __init__(self, snapshot: Snapshot, script: Script | None = None) -> None:
        self._state = Draft(snapshot)
        self._script = script or Script()
        self._queue: list[tuple[int, int, Event]] = []
        self._counter = 0
        self._received: set[tuple[StepId, int]] = set()
        self._answers: dict[tuple[StepId, int], ActionFinished | ActionFailed] = {}
        self._repeated_answers: deque[Event] = deque()
        self._schedule(self._script.events)

    def observe(self) -> Snapshot:
        """Return the true state."""
        return self._state.freeze()

    def perform(self, instruction: Instruction) -> None:
        """Start an action, or cancel it."""
        match instruction:
            case StartAction():
                self._start(instruction)
            case CancelAction():
                self._cancel(instruction)

    def next_event(self, until_ms: int) -> Event | None:
        """Advance the clock to the next event, at most to ``until_ms``."""
        if self._repeated_answers:
            return self._repeated_answers.popleft()
        while self._queue and self._queue[0][0] <= until_ms:
            at_ms, _, event = heappop(self._queue)
            self._state.at_ms = max(self._state.at_ms, at_ms)
            if self._is_possible(event):
                transition.apply_to_draft(self._state, event)
                self._store_answer(event)
                return event
        self._state.at_ms = max(self._state.at_ms, until_ms)
        return None

    def _start(self, start: StartAction) -> None:
        step, attempt = start.step, start.attempt
        now_ms = self._state.at_ms
        if (step.id, attempt) in self._received:
            self._answer_again(step.id, attempt)
            return
        self._received.add((step.id, attempt))
        transition.apply_to_draft(
            self._state, ActionStarted(at_ms=now_ms, step=step, attempt=attempt)
        )
        if step.id in self._script.silent:
            return
        end_ms = now_ms + self._script.durations_ms.get(step.id, step.duration_ms)
        if attempt <= self._script.failures.get(step.id, 0):
            answer: Event = ActionFailed(
                at_ms=end_ms, step=step.id, attempt=attempt, reason="failed by the script"
            )
        else:
            answer = ActionFinished(at_ms=end_ms, step=step.id, attempt=attempt)
        self._schedule([answer])

    def _answer_again(self, step: StepId, attempt: int) -> None:
        """Repeat an answer after a crash of the loop; a running action is answered at its end."""
        running = self._state.in_flight.get(step)
        if running is not None and running.attempt == attempt:
            return
        answer = self._answers.get((step, attempt))
        if answer is None:
            at_ms = self._state.at_ms
            answer = ActionFailed(at_ms=at_ms, step=step, attempt=attempt, reason="interrupted")
        self._repeated_answers.append(answer)

    def _cancel(self, cancel: CancelAction) -> None:
        running = self._state.in_flight.get(cancel.step)
        known = running is not None and running.attempt == cancel.attempt
        if known and cancel.step not in self._script.silent:
            at_ms = self._state.at_ms
            failed = ActionFailed(
                at_ms=at_ms, step=cancel.step, attempt=cancel.attempt, reason="cancelled"
            )
            self._schedule([failed])

    def _store_answer(self, event: Event) -> None:
        if isinstance(event, ActionFinished | ActionFailed):
            self._answers[event.step, event.attempt] = event

    def _is_possible(self, event: Event) -> bool:
        """Whether an event is still possible: no answer follows to an action that has ended."""
        if isinstance(event, ActionFinished | ActionFailed):
            running = self._state.in_flight.get(event.step)
            return running is not None and running.attempt == event.attempt
        return True

    def _schedule(self, events: Iterable[Event]) -> None:
        for event in events:
            heappush(self._queue, (event.at_ms, self._counter, event))
            self._counter += 1
