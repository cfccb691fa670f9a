"""The executor against an adversary: answers in any order, twice, late or never, and crashes.

Hypothesis is the world. The safety laws must hold after every action. At the end the world stops
answering, and the plan must end by itself.
"""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from equipoise.capacity.ledger import CapacityLedger
from equipoise.control.config import ControlConfig
from equipoise.control.executor import Executor, instruction_for
from equipoise.control.ports import CancelAction, StartAction
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionSkipped,
    ActionStarted,
    Event,
    HostFailed,
    HostRecovered,
    PlanCancelled,
    PlanEnded,
    VmCrashed,
)
from equipoise.model.plan import Plan
from equipoise.model.quantity import PlanId, StepId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import VerifiedPlan, order, verify
from equipoise.plan.preconditions import failed_preconditions
from worlds import clusters, intents

CONFIG = ControlConfig(
    timeout_factor=2, timeout_ms_min=0, cancel_grace_ms=700, attempts_max=2, retry_delay_ms=300
)
SILENCE_LIMIT = 200


class Adversary(RuleBasedStateMachine):
    """A world that answers in the worst way."""

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.base: Snapshot = data.draw(clusters(ruled=False))
        wanted = data.draw(intents(self.base, size_max=8))
        ordered = order(self.base, wanted, PlanId("p"))
        plan = ordered if isinstance(ordered, Plan) else ordered.plan
        assume(plan.steps)
        verdict = verify(self.base, plan)
        assert isinstance(verdict, VerifiedPlan)
        self.verdict = verdict
        self.now_ms = 0
        self.recorded: list[Event] = []
        self.ledger = CapacityLedger(self.base)
        self.executor = Executor(verdict, self.ledger, CONFIG)
        self.open: dict[tuple[StepId, int], None] = {}
        self.asked: set[tuple[StepId, int]] = set()
        self.succeeded: set[StepId] = set()
        self.react()

    # What the machine under test does

    def record(self, event: Event) -> None:
        self.recorded.append(event)
        self.check_before(event)
        self.executor.handle(event, self.ledger.apply(event))

    def react(self) -> None:
        for _ in range(100):
            decision = self.executor.decide(self.now_ms)
            if decision is None:
                return
            self.record(decision)
            match instruction_for(decision):
                case StartAction(step, attempt):
                    assert (step.id, attempt) not in self.asked, "no attempt is requested twice"
                    self.asked.add((step.id, attempt))
                    self.open[step.id, attempt] = None
                case CancelAction(step_id, attempt):
                    assert (step_id, attempt) in self.asked
                case None:
                    pass
        raise AssertionError("it never stops deciding")

    def check_before(self, event: Event) -> None:
        """The safety laws, at the moment of each start and each success."""
        if isinstance(event, ActionFinished):
            running = self.ledger.draft.in_flight.get(event.step)
            if running is not None and running.attempt == event.attempt:
                self.succeeded.add(event.step)
        if isinstance(event, ActionStarted):
            limits = self.ledger.draft.settings.limits
            assert set(self.verdict.prerequisites[event.step.id]) <= self.succeeded
            assert not failed_preconditions(self.ledger, event.step.action)
            assert len(self.ledger.draft.in_flight) < limits.actions_total
            for host in event.step.footprint.hosts:
                assert len(self.ledger.draft.actions_on_host(host)) < limits.actions_per_host
            assert event.attempt <= CONFIG.attempts_max

    # What the adversary may do

    @precondition(lambda self: self.open)
    @rule(data=st.data(), good=st.booleans(), again=st.booleans())
    def answer(self, data: st.DataObject, good: bool, again: bool) -> None:
        step, attempt = data.draw(st.sampled_from(list(self.open)))
        if not again:
            del self.open[step, attempt]
        kind = ActionFinished if good else ActionFailed
        self.record(kind(at_ms=self.now_ms, step=step, attempt=attempt))
        self.react()

    @rule(attempt=st.integers(1, 3), step=st.sampled_from(["s0", "s1", "unknown"]))
    def answer_something_that_was_not_asked(self, attempt: int, step: str) -> None:
        name = StepId(step)
        assume((name, attempt) not in self.open)
        self.record(ActionFinished(at_ms=self.now_ms, step=name, attempt=attempt))
        self.react()

    @rule(ms=st.sampled_from([1, 300, 700, 2000, 10_000]))
    def let_time_pass(self, ms: int) -> None:
        self.now_ms += ms
        self.react()

    @rule(data=st.data(), kind=st.sampled_from([HostFailed, HostRecovered]))
    def change_a_host(
        self, data: st.DataObject, kind: type[HostFailed] | type[HostRecovered]
    ) -> None:
        host = data.draw(st.sampled_from(list(self.base.hosts)))
        self.record(kind(at_ms=self.now_ms, host=host))
        self.react()

    @precondition(lambda self: self.base.vms)
    @rule(data=st.data())
    def crash_a_vm(self, data: st.DataObject) -> None:
        vm = data.draw(st.sampled_from(list(self.base.vms)))
        self.record(VmCrashed(at_ms=self.now_ms, vm=vm))
        self.react()

    @rule(abort=st.booleans())
    def cancel(self, abort: bool) -> None:
        self.record(PlanCancelled(at_ms=self.now_ms, plan=PlanId("p"), abort=abort))
        self.react()

    @rule()
    def crash_and_come_back(self) -> None:
        before = (self.executor.ended, self.executor.open_instructions(), self.executor.alarm_ms())
        self.ledger = CapacityLedger(self.base)
        self.executor = Executor(self.verdict, self.ledger, CONFIG)
        for event in self.recorded:
            self.executor.handle(event, self.ledger.apply(event))
        after = (self.executor.ended, self.executor.open_instructions(), self.executor.alarm_ms())
        assert after == before
        assert self.executor.decide(self.now_ms) is None, "it had nothing left to decide"

    # What must hold

    @invariant()
    def nothing_is_counted_twice(self) -> None:
        if not hasattr(self, "recorded"):
            return
        skipped = [event.step for event in self.recorded if isinstance(event, ActionSkipped)]
        assert len(skipped) == len(set(skipped))
        assert not set(skipped) & self.succeeded
        ends = [event for event in self.recorded if isinstance(event, PlanEnded)]
        assert len(ends) == int(self.executor.ended)
        for end in ends:
            assert end.finished + end.failed + end.skipped == len(self.verdict.plan.steps)
            assert end.finished == len(self.succeeded)

    def teardown(self) -> None:
        """Without further answers, the timeouts must end the plan."""
        if not hasattr(self, "executor"):
            return
        for _ in range(SILENCE_LIMIT):
            if self.executor.ended:
                break
            alarm_ms = self.executor.alarm_ms()
            assert alarm_ms is not None, "it waits for nothing and has not ended"
            assert alarm_ms >= self.now_ms, "an alarm in the past"
            self.now_ms = alarm_ms
            self.react()
        assert self.executor.ended
        self.nothing_is_counted_twice()


def test_the_executor_is_safe_and_terminates_in_any_world() -> None:
    run_state_machine_as_test(Adversary)
