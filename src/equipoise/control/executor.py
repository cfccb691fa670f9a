"""The executor: executes one verified plan, as a state machine without I/O.

It is driven from outside. ``handle`` applies a recorded event; ``decide`` returns the next event
to record, until there is none. Its state follows from the events alone, so the same events
restore it after a crash. ``instruction_for`` gives what a decision asks of the world. It never
starts a step whose prerequisite did not succeed, never exceeds a limit, and terminates whatever
the world answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from equipoise.capacity.ledger import CapacityLedger
from equipoise.control.config import ControlConfig
from equipoise.control.ports import CancelAction, Instruction, StartAction
from equipoise.errors import Conflict
from equipoise.model.action import Migrate, PowerOn, RoleAction
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ActionSkipped,
    ActionStarted,
    ActionTimedOut,
    Event,
    PlanAccepted,
    PlanCancelled,
    PlanEnded,
    PlanOutcome,
    SlotsFilled,
)
from equipoise.model.plan import Step
from equipoise.model.quantity import StepId
from equipoise.model.state.draft import TouchedEntities
from equipoise.plan import VerifiedPlan
from equipoise.plan.step_queue import StepQueue

NEVER_MS: Final = 10**18
_EXECUTION_EVENTS: Final = (
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
"""Events that cannot interrupt any action other than the one that they name."""


@dataclass(slots=True)
class _RunningAttempt:
    """An attempt of a step that has started and has not ended."""

    step: Step
    number: int
    deadline_ms: int
    cancelling: bool = False
    """Whether the world has received a cancellation."""


class Executor:
    """The execution of one verified plan."""

    def __init__(
        self, verified: VerifiedPlan, ledger: CapacityLedger, config: ControlConfig
    ) -> None:
        if verified.plan.base_version != ledger.draft.version:
            raise Conflict(
                f"plan {verified.plan.id} was verified for version {verified.plan.base_version}, "
                f"but the cluster has version {ledger.draft.version}: observe and plan again",
                code="stale-plan",
            )
        self.plan = verified.plan
        self.ended = False
        self._ledger = ledger
        self._config = config
        self._waiting = StepQueue(
            self.plan.steps, verified.prerequisites, ledger, self.plan.repairs
        )
        self._steps = {step.id: step for step in self.plan.steps}
        self._running: dict[StepId, _RunningAttempt] = {}
        self._interrupted: dict[StepId, _RunningAttempt] = {}
        self._first_deadline_ms = NEVER_MS
        """No running attempt has an earlier deadline; a lower bound, updated when it passes."""
        self._retries: dict[StepId, int] = {}
        """Failed steps that will be tried again, each with the time of the next attempt."""
        self._attempts: dict[StepId, int] = {}
        self._to_skip: dict[StepId, tuple[str, str]] = {}
        """Steps that will be skipped, each with the code and the reason."""
        self._finished = self._failed = self._skipped = 0
        self._cancelled = self._aborted = False

    def alarm_ms(self) -> int | None:
        """Return the time of the next ``decide`` if no event comes before; ``None`` for never."""
        times = [attempt.deadline_ms for attempt in self._running.values()]
        return min([*times, *self._retries.values()], default=None)

    def remaining(self) -> tuple[Step, ...]:
        """Return the steps that have not started yet."""
        return self._waiting.steps()

    def open_instructions(self) -> tuple[Instruction, ...]:
        """Return the instructions to repeat after a crash: the world may not have received them."""
        instructions: list[Instruction] = []
        for attempt in self._running.values():
            instructions.append(StartAction(attempt.step, attempt.number))
            if attempt.cancelling:
                instructions.append(CancelAction(attempt.step.id, attempt.number))
        return tuple(instructions)

    def is_affected_by(self, event: Event) -> bool:
        """Whether an event can change the next decision.

        The end of an action of another plan matters only while steps wait: it may free capacity.
        """
        match event:
            case ActionFinished() | ActionFailed() | ActionLost() | ActionTimedOut():
                return event.step in self._steps or bool(self._waiting)
            case ActionStarted():
                return event.step.id in self._steps
            case _:
                return True

    # Events in

    def handle(self, event: Event, touched: TouchedEntities) -> None:
        """Apply an event that is in the journal and that the ledger has applied."""
        self._waiting.wake(touched)
        self._apply(event)
        if not isinstance(event, _EXECUTION_EVENTS):
            self._find_interrupted()

    def _apply(self, event: Event) -> None:
        match event:
            case ActionStarted():
                self._started(event)
            case ActionTimedOut() if self._is_running(event):
                attempt = self._running[event.step]
                attempt.cancelling = True
                attempt.deadline_ms = event.at_ms + self._config.cancel_grace_ms
                self._first_deadline_ms = min(self._first_deadline_ms, attempt.deadline_ms)
            case ActionFinished() if self._is_running(event):
                del self._running[event.step]
                self._finished += 1
                self._waiting.succeeded(event.step)
            case ActionFailed() if event.step in self._interrupted:
                del self._interrupted[event.step]
                self._give_up(event.step)
            case ActionFailed() if self._is_running(event):
                self._retry_or_give_up(event)
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
        """Whether an answer belongs to a running attempt; late and repeated answers do not."""
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
        deadline_ms = event.at_ms + self._timeout_ms(step, event.attempt)
        self._running[step.id] = _RunningAttempt(step, event.attempt, deadline_ms)
        self._first_deadline_ms = min(self._first_deadline_ms, deadline_ms)

    def _timeout_ms(self, step: Step, attempt: int) -> int:
        config, expected_ms = self._config, step.duration_ms
        if isinstance(step.action, Migrate):
            # The attempt before was perhaps broken off too early, so this one gets twice its time.
            expected_ms *= _doubled(attempt)
        timeout_ms = config.timeout_factor * expected_ms
        if isinstance(step.action, PowerOn):
            # VMs wait for the host, so that a hanging power-on must end sooner than other actions.
            timeout_ms = min(timeout_ms, config.power_on_timeout_pct * expected_ms // 100)
        return max(config.timeout_ms_min, timeout_ms)

    def _retry_or_give_up(self, event: ActionFailed) -> None:
        attempts_max = self._attempts_max(self._steps[event.step])
        if event.attempt < attempts_max and not self._cancelled:
            del self._running[event.step]
            delay_ms = self._config.retry_delay_ms * _doubled(event.attempt)
            self._retries[event.step] = event.at_ms + delay_ms
        else:
            self._give_up(event.step)

    def _attempts_max(self, step: Step) -> int:
        if isinstance(step.action, PowerOn):
            return self._config.power_on_attempts_max
        if isinstance(step.action, RoleAction):
            return self._config.role_attempts_max
        return self._config.attempts_max

    def _give_up(self, step: StepId) -> None:
        self._running.pop(step, None)
        self._failed += 1
        self._drop_followers(step)

    def _drop_followers(self, step: StepId) -> None:
        for follower in self._waiting.drop_followers(step):
            self._to_skip[follower] = ("prerequisite-failed", f"it needs {step}, which failed")

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
        # Steps that wait for a retry are neither running nor waiting, and would start again.
        for name in (*(step.id for step in self._waiting.steps()), *self._retries):
            self._to_skip[name] = ("plan-cancelled", "the plan was cancelled")

    def _find_interrupted(self) -> None:
        """Move attempts that the transition has ended from the running to the interrupted ones.

        An attempt that is no longer in flight, and has no answer, lost its host or its VM.
        """
        in_flight = self._ledger.draft.in_flight
        for name in [step for step in self._running if step not in in_flight]:
            self._interrupted[name] = self._running.pop(name)

    # Decisions out

    def decide(self, now_ms: int) -> Event | None:
        """Return the next event to record, or ``None`` if there is nothing to do now."""
        # The usual answer while many actions run, without the scans below.
        if self.ended or (now_ms < self._first_deadline_ms and self._only_waits_for_answers()):
            return None
        # The order matters: ends free capacity and drop followers before a new step may start.
        return (
            self._report_interrupted(now_ms)
            or self._overdue(now_ms)
            or self._pending_skip(now_ms)
            or self._next_start(now_ms)
            or self._skip_blocked(now_ms)
            or self._end(now_ms)
        )

    def _only_waits_for_answers(self) -> bool:
        """Whether all remaining work is to wait for answers of the world."""
        return bool(self._running) and not (
            self._waiting or self._retries or self._to_skip or self._interrupted or self._aborted
        )

    def _report_interrupted(self, now_ms: int) -> Event | None:
        # One event per call: the caller applies it, and the next call sees its effect.
        for name, attempt in self._interrupted.items():
            return ActionFailed(
                at_ms=now_ms,
                step=name,
                attempt=attempt.number,
                reason="the host or VM of the action failed or was removed",
                code="action-interrupted",
            )
        return None

    def _overdue(self, now_ms: int) -> Event | None:
        if now_ms < self._first_deadline_ms and not self._aborted:
            return None
        for name, attempt in self._running.items():
            late = now_ms >= attempt.deadline_ms
            # The cancellation got no answer either: the next observation shows the outcome.
            if late and attempt.cancelling:
                return ActionLost(at_ms=now_ms, step=name, attempt=attempt.number)
            if (late or self._aborted) and not attempt.cancelling:
                return ActionTimedOut(at_ms=now_ms, step=name, attempt=attempt.number)
        # Every late attempt has been reported, so that the bound can rise again.
        deadlines = (attempt.deadline_ms for attempt in self._running.values())
        self._first_deadline_ms = min(deadlines, default=NEVER_MS)
        return None

    def _pending_skip(self, now_ms: int) -> Event | None:
        for step, (code, reason) in self._to_skip.items():
            return ActionSkipped(at_ms=now_ms, step=step, reason=reason, code=code)
        return None

    def _next_start(self, now_ms: int) -> Event | None:
        for name in [step for step, due_ms in self._retries.items() if due_ms <= now_ms]:
            del self._retries[name]
            self._waiting.put_back(self._steps[name])
        step = self._waiting.next_startable(self._ledger, self._ledger.draft.settings.limits)
        if step is None:
            return None
        attempt = self._attempts.get(step.id, 0) + 1
        return ActionStarted(at_ms=now_ms, step=step, attempt=attempt)

    def _skip_blocked(self, now_ms: int) -> Event | None:
        """Skip the first waiting step if no own action runs that could make it startable."""
        if self._running or self._retries:
            return None
        step = self._waiting.first()
        if step is None:
            return None
        objections = self._waiting.why_not(self._ledger, step)
        reason = "; ".join(objection.detail for objection in objections)
        if not reason:  # every precondition holds, so only the limits are in the way
            code, reason = "concurrency-limit", "the concurrency limit is reached"
        else:
            code = "step-blocked"
        return ActionSkipped(at_ms=now_ms, step=step.id, reason=reason, code=code)

    def _end(self, now_ms: int) -> Event | None:
        # Skips and interruptions are reported by the calls before, so none is left here.
        if self._running or self._retries or self._waiting:
            return None
        complete = self._finished == len(self._steps)
        outcome = PlanOutcome.CANCELLED if self._cancelled else PlanOutcome.PARTIAL
        return PlanEnded(
            at_ms=now_ms,
            plan=self.plan.id,
            outcome=PlanOutcome.DONE if complete else outcome,
            finished=self._finished,
            failed=self._failed,
            skipped=self._skipped,
        )


def _doubled(attempt: int) -> int:
    """Return the factor of an attempt: 1, 2, 4 and so on."""
    return 1 << min(attempt - 1, 16)


def instruction_for(decision: Event) -> Instruction | None:
    """Return the instruction that the world receives after a decision is recorded."""
    match decision:
        case ActionStarted():
            return StartAction(decision.step, decision.attempt)
        case ActionTimedOut():
            return CancelAction(decision.step, decision.attempt)
        case _:
            return None
