"""The executor: carries out one verified plan, as a state machine without input or output.

It is driven from outside: ``handle`` takes in an event that was written down, ``decide`` gives the
next thing to write down, until there is none. What it knows follows from the events alone, so after
a crash the same events bring it back to where it was. ``instruction`` says what a decision asks
of the world. It never starts a step whose prerequisite did not succeed, never exceeds a limit, and
comes to an end whatever the world answers or does not answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from equipoise.control.config import ControlConfig
from equipoise.control.ports import Cancel, Instruction, Start
from equipoise.errors import Conflict
from equipoise.model.action import PowerOn, RoleAction
from equipoise.model.change.draft import Touched
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ActionSkipped,
    ActionStarted,
    ActionTimedOut,
    Event,
    Outcome,
    PlanAccepted,
    PlanCancelled,
    PlanEnded,
    SlotsFilled,
)
from equipoise.model.plan import Step
from equipoise.model.quantity import StepId
from equipoise.plan import VerifiedPlan
from equipoise.plan.ledger import Ledger
from equipoise.plan.waiting import Waiting

NEVER_MS: Final = 10**18
_OWN_BUSINESS: Final = (
    ActionStarted,
    ActionFinished,
    ActionFailed,
    ActionLost,
    ActionSkipped,
    ActionTimedOut,
    PlanAccepted,
    PlanEnded,
    SlotsFilled,
)
"""Events that break off nothing but what they name."""


@dataclass(slots=True)
class _Attempt:
    """A step that was started and has not ended."""

    step: Step
    number: int
    deadline_ms: int
    cancelling: bool = False


class Executor:
    """One verified plan on its way."""

    def __init__(self, verified: VerifiedPlan, ledger: Ledger, config: ControlConfig) -> None:
        if verified.plan.base_version != ledger.draft.version:
            raise Conflict(
                f"plan {verified.plan.id} was verified for version {verified.plan.base_version}, "
                f"the cluster is at {ledger.draft.version}: observe again"
            )
        self.plan = verified.plan
        self.ended = False
        self._ledger = ledger
        self._config = config
        self._waiting = Waiting(self.plan.steps, verified.prerequisites, ledger)
        self._steps = {step.id: step for step in self.plan.steps}
        self._running: dict[StepId, _Attempt] = {}
        self._broken_off: dict[StepId, _Attempt] = {}
        self._earliest_ms = NEVER_MS
        """Before this nothing that runs is overdue."""
        self._retries: dict[StepId, int] = {}
        self._attempts: dict[StepId, int] = {}
        self._to_skip: dict[StepId, str] = {}
        self._finished = self._failed = self._skipped = 0
        self._cancelled = self._aborted = False

    def alarm_ms(self) -> int | None:
        """When ``decide`` must be asked again even if nothing happens."""
        times = [attempt.deadline_ms for attempt in self._running.values()]
        return min([*times, *self._retries.values()], default=None)

    def left(self) -> tuple[Step, ...]:
        """The steps that have not been started yet."""
        return self._waiting.steps()

    def unanswered(self) -> tuple[Instruction, ...]:
        """The instructions to give again after a crash: the world may or may not have got them."""
        given: list[Instruction] = []
        for attempt in self._running.values():
            given.append(Start(attempt.step, attempt.number))
            if attempt.cancelling:
                given.append(Cancel(attempt.step.id, attempt.number))
        return tuple(given)

    def concerns(self, event: Event) -> bool:
        """Whether an event may change what it does; answers to others matter while steps wait."""
        match event:
            case ActionFinished() | ActionFailed() | ActionLost() | ActionTimedOut():
                return event.step in self._steps or bool(self._waiting)
            case ActionStarted():
                return event.step.id in self._steps
            case _:
                return True

    # Taking in what happened

    def handle(self, event: Event, touched: Touched) -> None:
        """Take in an event that was written down and that the ledger has settled."""
        self._waiting.wake(touched)
        self._take(event)
        if not isinstance(event, _OWN_BUSINESS):
            self._notice_broken_off()

    def _take(self, event: Event) -> None:
        match event:
            case ActionStarted():
                self._started(event)
            case ActionTimedOut() if self._is_running(event):
                attempt = self._running[event.step]
                attempt.cancelling = True
                attempt.deadline_ms = event.at_ms + self._config.grace_ms
                self._earliest_ms = min(self._earliest_ms, attempt.deadline_ms)
            case ActionFinished() if self._is_running(event):
                del self._running[event.step]
                self._finished += 1
                self._waiting.succeeded(event.step)
            case ActionFailed() if event.step in self._broken_off:
                del self._broken_off[event.step]
                self._give_up(event.step)
            case ActionFailed() if self._is_running(event):
                self._answered_failed(event)
            case ActionLost() if self._is_running(event):
                self._give_up(event.step)
            case ActionSkipped() if event.step in self._steps:
                self._skip(event)
            case PlanCancelled(plan=self.plan.id):
                self._cancel(event)
            case PlanEnded(plan=self.plan.id):
                self.ended = True

    def _is_running(
        self, event: ActionTimedOut | ActionFinished | ActionFailed | ActionLost
    ) -> bool:
        """Whether an answer belongs to what is running; late and repeated ones do not."""
        attempt = self._running.get(event.step)
        return attempt is not None and attempt.number == event.attempt

    def _started(self, event: ActionStarted) -> None:
        step = event.step
        if step.id not in self._steps:
            return
        self._retries.pop(step.id, None)
        if step.id in self._waiting:
            self._waiting.take(step.id)
        self._attempts[step.id] = event.attempt
        deadline_ms = event.at_ms + self._patience_ms(step)
        self._running[step.id] = _Attempt(step, event.attempt, deadline_ms)
        self._earliest_ms = min(self._earliest_ms, deadline_ms)

    def _patience_ms(self, step: Step) -> int:
        config, expected_ms = self._config, step.duration_ms
        most_ms = config.timeout_factor * expected_ms
        if isinstance(step.action, PowerOn):
            most_ms = min(most_ms, config.wake_timeout_pct * expected_ms // 100)
        return max(config.timeout_ms_min, most_ms)

    def _answered_failed(self, event: ActionFailed) -> None:
        most = self._attempts_max(self._steps[event.step])
        if event.attempt < most and not self._cancelled:
            del self._running[event.step]
            self._retries[event.step] = event.at_ms + self._config.retry_delay_ms
        else:
            self._give_up(event.step)

    def _attempts_max(self, step: Step) -> int:
        if isinstance(step.action, PowerOn):
            return self._config.wake_attempts_max
        if isinstance(step.action, RoleAction):
            return self._config.role_attempts_max
        return self._config.attempts_max

    def _give_up(self, step: StepId) -> None:
        self._running.pop(step, None)
        self._failed += 1
        self._drop_followers(step)

    def _drop_followers(self, step: StepId) -> None:
        for follower in self._waiting.drop_followers(step):
            self._to_skip[follower] = f"{step}, which it needs, did not succeed"

    def _skip(self, event: ActionSkipped) -> None:
        self._skipped += 1
        self._to_skip.pop(event.step, None)
        self._retries.pop(event.step, None)
        if event.step in self._waiting:
            self._waiting.take(event.step)
        self._drop_followers(event.step)

    def _cancel(self, event: PlanCancelled) -> None:
        self._cancelled = True
        self._aborted = self._aborted or event.abort
        for step in self._waiting.steps():
            self._to_skip[step.id] = "the plan was cancelled"
        for name in self._retries:
            self._to_skip[name] = "the plan was cancelled"

    def _notice_broken_off(self) -> None:
        """What is no longer in flight, and was not answered, lost its host or its VM."""
        for name in [one for one in self._running if one not in self._ledger.draft.in_flight]:
            self._broken_off[name] = self._running.pop(name)

    # Deciding what to do

    def decide(self, now_ms: int) -> Event | None:
        """Give the next thing to write down, or nothing if there is nothing to do now."""
        if self.ended or (now_ms < self._earliest_ms and self._only_runs()):
            return None
        return (
            self._loss(now_ms)
            or self._overdue(now_ms)
            or self._pending_skip(now_ms)
            or self._next_start(now_ms)
            or self._stuck(now_ms)
            or self._end(now_ms)
        )

    def _only_runs(self) -> bool:
        """Whether there is nothing to do but to wait for answers."""
        return bool(self._running) and not (
            self._waiting or self._retries or self._to_skip or self._broken_off or self._aborted
        )

    def _loss(self, now_ms: int) -> Event | None:
        for name, attempt in self._broken_off.items():
            reason = "the host or VM it worked on was lost"
            return ActionFailed(at_ms=now_ms, step=name, attempt=attempt.number, reason=reason)
        return None

    def _overdue(self, now_ms: int) -> Event | None:
        if now_ms < self._earliest_ms and not self._aborted:
            return None
        for name, attempt in self._running.items():
            late = now_ms >= attempt.deadline_ms
            if late and attempt.cancelling:
                return ActionLost(at_ms=now_ms, step=name, attempt=attempt.number)
            if (late or self._aborted) and not attempt.cancelling:
                return ActionTimedOut(at_ms=now_ms, step=name, attempt=attempt.number)
        deadlines = (attempt.deadline_ms for attempt in self._running.values())
        self._earliest_ms = min(deadlines, default=NEVER_MS)
        return None

    def _pending_skip(self, now_ms: int) -> Event | None:
        for step, reason in self._to_skip.items():
            return ActionSkipped(at_ms=now_ms, step=step, reason=reason)
        return None

    def _next_start(self, now_ms: int) -> Event | None:
        for name in [one for one, due_ms in self._retries.items() if due_ms <= now_ms]:
            del self._retries[name]
            self._waiting.put_back(self._steps[name])
        step = self._waiting.next_startable(self._ledger, self._ledger.draft.settings.limits)
        if step is None:
            return None
        attempt = self._attempts.get(step.id, 0) + 1
        return ActionStarted(at_ms=now_ms, step=step, attempt=attempt)

    def _stuck(self, now_ms: int) -> Event | None:
        """If nothing runs that could change it, what may not start now never will."""
        if self._running or self._retries:
            return None
        step = self._waiting.first()
        if step is None:
            return None
        why = "; ".join(one.detail for one in self._waiting.why_not(self._ledger, step))
        return ActionSkipped(at_ms=now_ms, step=step.id, reason=why or "too much is going on")

    def _end(self, now_ms: int) -> Event | None:
        if self._running or self._retries or self._waiting:
            return None
        complete = self._finished == len(self._steps)
        outcome = Outcome.CANCELLED if self._cancelled else Outcome.PARTIAL
        return PlanEnded(
            at_ms=now_ms,
            plan=self.plan.id,
            outcome=Outcome.DONE if complete else outcome,
            finished=self._finished,
            failed=self._failed,
            skipped=self._skipped,
        )


def instruction(decision: Event) -> Instruction | None:
    """Say what a decision, once it is written down, asks of the world."""
    match decision:
        case ActionStarted():
            return Start(decision.step, decision.attempt)
        case ActionTimedOut():
            return Cancel(decision.step, decision.attempt)
        case _:
            return None
