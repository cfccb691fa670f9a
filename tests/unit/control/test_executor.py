from __future__ import annotations

import pytest

from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.cli.story import tell
from equipoise.control import Cancel, ControlConfig, Loop, Start
from equipoise.control.executor import Executor
from equipoise.errors import Conflict
from equipoise.model.action import Migrate, PowerOff
from equipoise.model.event import Event, HostFailed, PlanCancelled, PlanEnded
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, PlanId, StepId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.plan import VerifiedPlan, verify
from equipoise.plan.ledger import Ledger
from equipoise.store import MemoryJournal
from memory_world import MemoryWorld, Script

A, B = StepId("a"), StepId("b")
CONFIG = ControlConfig(
    timeout_factor=2, timeout_ms_min=0, grace_ms=500, attempts_max=2, retry_delay_ms=100
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


def story(*steps: Step, script: Script | None = None) -> list[str]:
    """What the journal says after the plan was accepted."""
    journal = MemoryJournal()
    loop = Loop(MemoryWorld(cluster(), script), journal, config=CONFIG)
    loop.carry_out(a_plan(*steps, base_version=1))
    return [f"{event.at_ms} {tell(event)}" for event in list(journal.events())[2:]]


def test_an_implied_order_is_kept_when_the_world_is_slow() -> None:
    assert story(*MOVE_THEN_OFF, script=Script(durations_ms={A: 1500})) == [
        "0 step a started: migrate v1 from h1 to h3",
        "1500 step a finished",
        "1500 step b started: power off h1",
        "2500 step b finished",
        "2500 plan p ended, done: 2 finished",
    ]


def test_a_failure_is_tried_again() -> None:
    assert story(MOVE_THEN_OFF[0], script=Script(failures={A: 1})) == [
        "0 step a started: migrate v1 from h1 to h3",
        "1000 step a failed: as the script says",
        "1100 step a started: migrate v1 from h1 to h3 (attempt 2)",
        "2100 step a finished",
        "2100 plan p ended, done: 1 finished",
    ]


def test_what_needs_a_failed_step_is_skipped() -> None:
    assert story(*MOVE_THEN_OFF, script=Script(failures={A: 9}))[-4:] == [
        "1100 step a started: migrate v1 from h1 to h3 (attempt 2)",
        "2100 step a failed (attempt 2): as the script says",
        "2100 step b skipped: a, which it needs, did not succeed",
        "2100 plan p ended, partial: 0 finished, 1 failed, 1 skipped",
    ]


def test_an_overdue_step_is_cancelled_and_tried_again() -> None:
    assert story(MOVE_THEN_OFF[0], script=Script(durations_ms={A: 10**9})) == [
        "0 step a started: migrate v1 from h1 to h3",
        "2000 step a asked to cancel",
        "2000 step a failed: cancelled",
        "2100 step a started: migrate v1 from h1 to h3 (attempt 2)",
        "4100 step a asked to cancel",
        "4100 step a failed (attempt 2): cancelled",
        "4100 plan p ended, partial: 0 finished, 1 failed",
    ]


def test_a_world_that_never_answers_is_given_up_and_not_tried_again() -> None:
    assert story(*MOVE_THEN_OFF, script=Script(silent=frozenset([A]))) == [
        "0 step a started: migrate v1 from h1 to h3",
        "2000 step a asked to cancel",
        "2500 step a unanswered, its outcome is unknown",
        "2500 step b skipped: a, which it needs, did not succeed",
        "2500 plan p ended, partial: 0 finished, 1 failed, 1 skipped",
    ]


def test_a_host_that_dies_ends_the_steps_that_touch_it_and_others_go_on() -> None:
    dies = HostFailed(at_ms=400, host=HostId("h3"))
    other = a_step("c", move("v2", "h2", "h1"), 0, 1000)
    assert story(*MOVE_THEN_OFF[:1], other, script=Script(happenings=(dies,))) == [
        "0 step a started: migrate v1 from h1 to h3",
        "0 step c started: migrate v2 from h2 to h1",
        "400 host h3 failed",
        "400 step a failed: the host or VM it worked on was lost",
        "1000 step c finished",
        "1000 plan p ended, partial: 1 finished, 1 failed",
    ]


def test_a_step_that_can_no_longer_start_is_skipped_with_the_reason() -> None:
    dies = HostFailed(at_ms=400, host=HostId("h3"))
    later = a_step("b", move("v2", "h2", "h3"), 1000, 2000, "a")
    first = a_step("a", move("v1", "h1", "h2"), 0, 1000)
    assert story(first, later, script=Script(happenings=(dies,)))[-2:] == [
        "1000 step b skipped: target h3 is failed, not on",
        "1000 plan p ended, partial: 1 finished, 1 skipped",
    ]


def test_a_cancelled_plan_starts_nothing_new_but_finishes_what_runs() -> None:
    stop = PlanCancelled(at_ms=500, plan=PlanId("p"), reason="changed my mind")
    assert story(*MOVE_THEN_OFF, script=Script(happenings=(stop,)))[1:] == [
        "500 plan p cancelled: changed my mind",
        "500 step b skipped: the plan was cancelled",
        "1000 step a finished",
        "1000 plan p ended, cancelled: 1 finished, 1 skipped",
    ]


def test_an_aborted_plan_cancels_what_runs() -> None:
    stop = PlanCancelled(at_ms=500, plan=PlanId("p"), abort=True)
    assert story(*MOVE_THEN_OFF, script=Script(happenings=(stop,)))[1:] == [
        "500 plan p aborted",
        "500 step a asked to cancel",
        "500 step b skipped: the plan was cancelled",
        "500 step a failed: cancelled",
        "500 plan p ended, cancelled: 0 finished, 1 failed, 1 skipped",
    ]


def test_a_step_that_waits_for_its_next_attempt_is_cancelled_too() -> None:
    stop = PlanCancelled(at_ms=1050, plan=PlanId("p"))
    script = Script(failures={A: 1}, happenings=(stop,))
    assert story(MOVE_THEN_OFF[0], script=script)[1:] == [
        "1000 step a failed: as the script says",
        "1050 plan p cancelled",
        "1050 step a skipped: the plan was cancelled",
        "1050 plan p ended, cancelled: 0 finished, 1 skipped",
    ]


def test_a_stale_verdict_is_not_executed() -> None:
    snapshot = cluster()
    verdict = verify(snapshot, a_plan())
    assert isinstance(verdict, VerifiedPlan)
    ledger = Ledger(snapshot)
    ledger.apply(HostFailed(at_ms=1, host=HostId("h1")))
    with pytest.raises(Conflict, match="observe again"):
        Executor(verdict, ledger, CONFIG)


def test_after_a_crash_the_open_instructions_are_given_again() -> None:
    class Deaf(MemoryWorld):
        """A world that takes instructions and dies."""

        def next_event(self, until_ms: int) -> Event | None:
            raise RuntimeError("gone")

    journal = MemoryJournal()
    with pytest.raises(RuntimeError, match="gone"):
        Loop(Deaf(cluster()), journal, config=CONFIG).carry_out(
            a_plan(*MOVE_THEN_OFF, base_version=1)
        )
    asked: list[Start | Cancel] = []

    class Fresh(MemoryWorld):
        def perform(self, instruction: Start | Cancel) -> None:
            asked.append(instruction)
            super().perform(instruction)

    survivor = Loop(Fresh(cluster()), journal, config=CONFIG)
    assert asked == [Start(MOVE_THEN_OFF[0], 1)]
    assert not survivor.idle
    survivor.finish()
    last = list(journal.events())[-1]
    assert isinstance(last, PlanEnded)
    assert last.finished == 2
