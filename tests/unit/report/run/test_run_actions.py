"""Actions from their start to their end, and the picture of them."""

from __future__ import annotations

from builders import a_step
from equipoise.documents.simulation import SimulationDocument
from equipoise.model.action import Action, Migrate, PowerOn
from equipoise.model.event import ActionFailed, ActionFinished, ActionLost, ActionStarted, Event
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.report.run.actions import (
    ActionAttempt,
    ActionOutcome,
    action_attempts,
    actions_section,
)
from equipoise.report.run.data import RunData
from unit.report.parsed import Element, parsed
from unit.report.synthetic import a_run


def a_move(vm: str = "v1") -> Action:
    return Migrate(vm=VmId(vm), source=HostId("h1"), target=HostId("h2"))


def started(name: str, at_ms: int, attempt: int = 1, action: Action | None = None) -> Event:
    return ActionStarted(at_ms=at_ms, step=a_step(name, action or a_move()), attempt=attempt)


def test_a_start_and_its_answer_are_one_deed() -> None:
    events = [
        started("a", 1000),
        started("b", 2000),
        ActionFailed(at_ms=3000, step=StepId("a"), attempt=1, reason="no room"),
        started("a", 4000, attempt=2),
        ActionFinished(at_ms=5000, step=StepId("a"), attempt=2),
        ActionLost(at_ms=6000, step=StepId("b"), attempt=1),
    ]
    found = [
        (attempt.start_s, attempt.end_s, attempt.outcome)
        for attempt in action_attempts(events, 10.0)
    ]
    assert found == [
        (1, 3, ActionOutcome.FAILED),
        (2, 6, ActionOutcome.LOST),
        (4, 5, ActionOutcome.FINISHED),
    ]


def test_what_was_never_answered_runs_to_the_end() -> None:
    (attempt,) = action_attempts([started("a", 1000)], 10.0)
    assert (attempt.end_s, attempt.outcome) == (10.0, ActionOutcome.RUNNING)


def test_late_and_repeated_answers_change_nothing() -> None:
    done = ActionFinished(at_ms=2000, step=StepId("a"), attempt=1)
    late = ActionFailed(at_ms=3000, step=StepId("a"), attempt=1)
    stray = ActionFinished(at_ms=500, step=StepId("zzz"), attempt=1)
    (attempt,) = action_attempts([stray, started("a", 1000), done, late, done], 10.0)
    assert (attempt.end_s, attempt.outcome) == (2.0, ActionOutcome.FINISHED)


def test_a_deed_says_all_about_itself() -> None:
    attempt = ActionAttempt(a_move(), 60, 90, ActionOutcome.FAILED, "no room")
    assert attempt.words == "0:01 to 0:01:30, migrate v1 from h1 to h2, failed: no room"
    assert attempt.subject == "v1"
    assert ActionAttempt(PowerOn(host=HostId("h9")), 0, 1, ActionOutcome.FINISHED).subject == "h9"


# The picture


def section(attempts: list[ActionAttempt]) -> Element:
    record = a_run(hosts=3, samples=5).record
    run = RunData(document=SimulationDocument(), record=record, events=())
    return parsed(actions_section(run, attempts).markup())


def test_without_actions_the_section_has_no_chart() -> None:
    made = section([])
    assert "The run has no actions." in made.text
    assert not made.all("svg")


def test_a_migration_is_seen_once_by_vm_and_on_both_hosts() -> None:
    made = section([ActionAttempt(a_move(), 60, 90, ActionOutcome.FINISHED)])
    by_vm, by_host = made.all("div", "view")
    assert len(by_vm.one("figure").all("rect", "action")) == 1 + 1  # and one in the legend
    assert len(by_host.one("figure").all("rect", "action")) == 2 + 1
    assert "v1" in by_vm.text
    assert "h1" in by_host.text
    assert "h2" in by_host.text


def test_of_many_vms_the_busiest_are_shown_and_the_rest_counted() -> None:
    attempts = [
        ActionAttempt(a_move(f"v{n}"), n, n + 1, ActionOutcome.FINISHED) for n in range(300)
    ]
    attempts += [ActionAttempt(a_move("v299"), 400, 500, ActionOutcome.FAILED)]
    made = section(attempts)
    assert "The chart shows the 80 busiest of 300 VMs and hosts; the other 220 are in" in made.text
    assert "v299" in made.text
    assert "v299 has the most: 2 actions." in made.text


def test_very_many_bars_are_drawn_together() -> None:
    attempts = [
        ActionAttempt(a_move(f"v{n % 10}"), n, n + 1, ActionOutcome.FINISHED) for n in range(5000)
    ]
    made = section(attempts)
    assert len(made.all("path", "action")) == 2
