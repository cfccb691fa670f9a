"""The executor: order, retries, timeouts, cancellation, failures and restarts."""

from __future__ import annotations

import pytest

from builders import a_cluster, a_host, a_plan, a_step, a_vm, event_facts
from equipoise.capacity.ledger import CapacityLedger
from equipoise.control import ControlLoop
from equipoise.control.config import ControlConfig
from equipoise.control.executor import Executor
from equipoise.control.ports import CancelAction, StartAction
from equipoise.errors import Conflict
from equipoise.model.action import Migrate, PowerOff
from equipoise.model.event import Event, HostFailed, PlanCancelled, PlanEnded
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, PlanId, StepId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import VerifiedPlan, verify
from equipoise.store import MemoryJournal
from memory_world import MemoryWorld, Script

A, B = StepId("a"), StepId("b")
CONFIG = ControlConfig(
    timeout_factor=2, timeout_ms_min=0, cancel_grace_ms=500, attempts_max=2, retry_delay_ms=100
)


def move(vm: str, source: str, target: str) -> Migrate:
    return Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))


def cluster() -> Snapshot:
    return a_cluster(
        a_host("h1"), a_host("h2"), a_host("h3"), vms=[a_vm("v1", "h1"), a_vm("v2", "h2")]
    )


MOVE_THEN_OFF = (
    a_step("a", move("v1", "h1", "h3"), 0, 1000),
    a_step("b", PowerOff(host=HostId("h1")), 1000, 2000),
)


def run(*steps: Step, script: Script | None = None) -> list[str]:
    """Execute a plan, and return the facts of its events after it was accepted."""
    journal = MemoryJournal()
    loop = ControlLoop(MemoryWorld(cluster(), script), journal, config=CONFIG)
    loop.execute(a_plan(*steps, base_version=1))
    return [f"{event.at_ms} {event_facts(event)}" for event in list(journal.events())[2:]]


def test_a_slow_world_does_not_change_the_order_of_steps() -> None:
    assert run(*MOVE_THEN_OFF, script=Script(durations_ms={A: 1500})) == [
        "0 action_started a 1",
        "1500 action_finished a 1",
        "1500 action_started b 1",
        "2500 action_finished b 1",
        "2500 plan_ended p done 2 0 0",
    ]


def test_a_failed_step_is_retried() -> None:
    assert run(MOVE_THEN_OFF[0], script=Script(failures={A: 1})) == [
        "0 action_started a 1",
        "1000 action_failed a 1",
        "1100 action_started a 2",
        "2100 action_finished a 2",
        "2100 plan_ended p done 1 0 0",
    ]


def test_the_dependents_of_a_failed_step_are_skipped() -> None:
    assert run(*MOVE_THEN_OFF, script=Script(failures={A: 9}))[-4:] == [
        "1100 action_started a 2",
        "2100 action_failed a 2",
        "2100 action_skipped b prerequisite-failed",
        "2100 plan_ended p partial 0 1 1",
    ]


def test_an_overdue_step_is_cancelled_and_retried() -> None:
    assert run(MOVE_THEN_OFF[0], script=Script(durations_ms={A: 10**9})) == [
        "0 action_started a 1",
        "2000 action_timed_out a 1",
        "2000 action_failed a 1",
        "2100 action_started a 2",
        "6100 action_timed_out a 2",
        "6100 action_failed a 2",
        "6100 plan_ended p partial 0 1 0",
    ]


def test_a_step_without_any_answer_is_lost_and_not_retried() -> None:
    assert run(*MOVE_THEN_OFF, script=Script(silent=frozenset([A]))) == [
        "0 action_started a 1",
        "2000 action_timed_out a 1",
        "2500 action_lost a 1",
        "2500 action_skipped b prerequisite-failed",
        "2500 plan_ended p partial 0 1 1",
    ]


def test_a_failed_host_ends_only_the_steps_that_touch_it() -> None:
    failure = HostFailed(at_ms=400, host=HostId("h3"))
    other = a_step("c", move("v2", "h2", "h1"), 0, 1000)
    assert run(*MOVE_THEN_OFF[:1], other, script=Script(events=(failure,))) == [
        "0 action_started a 1",
        "0 action_started c 1",
        "400 host_failed h3",
        "400 action_failed a 1 action-interrupted",
        "1000 action_finished c 1",
        "1000 plan_ended p partial 1 1 0",
    ]


def test_a_step_that_cannot_start_any_more_is_skipped() -> None:
    failure = HostFailed(at_ms=400, host=HostId("h3"))
    later = a_step("b", move("v2", "h2", "h3"), 1000, 2000, "a")
    first = a_step("a", move("v1", "h1", "h2"), 0, 1000)
    assert run(first, later, script=Script(events=(failure,)))[-2:] == [
        "1000 action_skipped b step-blocked",
        "1000 plan_ended p partial 1 0 1",
    ]


def test_a_cancelled_plan_starts_no_step_and_finishes_running_ones() -> None:
    stop = PlanCancelled(at_ms=500, plan=PlanId("p"), reason="operator")
    assert run(*MOVE_THEN_OFF, script=Script(events=(stop,)))[1:] == [
        "500 plan_cancelled p",
        "500 action_skipped b plan-cancelled",
        "1000 action_finished a 1",
        "1000 plan_ended p cancelled 1 0 1",
    ]


def test_an_aborted_plan_cancels_running_steps() -> None:
    stop = PlanCancelled(at_ms=500, plan=PlanId("p"), abort=True)
    assert run(*MOVE_THEN_OFF, script=Script(events=(stop,)))[1:] == [
        "500 plan_cancelled p",
        "500 action_timed_out a 1",
        "500 action_skipped b plan-cancelled",
        "500 action_failed a 1",
        "500 plan_ended p cancelled 0 1 1",
    ]


def test_cancelling_a_plan_skips_a_step_that_waits_for_its_retry() -> None:
    stop = PlanCancelled(at_ms=1050, plan=PlanId("p"))
    script = Script(failures={A: 1}, events=(stop,))
    assert run(MOVE_THEN_OFF[0], script=script)[1:] == [
        "1000 action_failed a 1",
        "1050 plan_cancelled p",
        "1050 action_skipped a plan-cancelled",
        "1050 plan_ended p cancelled 0 0 1",
    ]


def test_a_plan_that_was_verified_for_another_version_is_refused() -> None:
    snapshot = cluster()
    verdict = verify(snapshot, a_plan())
    assert isinstance(verdict, VerifiedPlan)
    ledger = CapacityLedger(snapshot)
    ledger.apply(HostFailed(at_ms=1, host=HostId("h1")))
    with pytest.raises(Conflict) as caught:
        Executor(verdict, ledger, CONFIG)
    assert caught.value.code == "stale-plan"


def test_open_instructions_are_repeated_after_a_crash() -> None:
    class Crashing(MemoryWorld):
        """A world that accepts instructions and then raises."""

        def next_event(self, until_ms: int) -> Event | None:
            raise RuntimeError("crash")

    journal = MemoryJournal()
    with pytest.raises(RuntimeError, match="crash"):
        ControlLoop(Crashing(cluster()), journal, config=CONFIG).execute(
            a_plan(*MOVE_THEN_OFF, base_version=1)
        )
    received: list[StartAction | CancelAction] = []

    class Recording(MemoryWorld):
        def perform(self, instruction: StartAction | CancelAction) -> None:
            received.append(instruction)
            super().perform(instruction)

    restarted = ControlLoop(Recording(cluster()), journal, config=CONFIG)
    assert received == [StartAction(MOVE_THEN_OFF[0], 1)]
    assert not restarted.idle
    restarted.finish()
    last = list(journal.events())[-1]
    assert isinstance(last, PlanEnded)
    assert last.finished == 2
