"""Actions from their start to their end, and the picture of them."""

from __future__ import annotations

from builders import a_step
from equipoise.model.action import Action, Migrate, PowerOn
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ActionStarted,
    Event,
)
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.report.actions import Deed, Ending, deeds_of
from equipoise.report.material import Material
from equipoise.report.timeline import timeline
from unit.report.parsed import Element, parsed
from unit.report.synthetic import a_run, told


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
    found = [(deed.start_s, deed.end_s, deed.ending) for deed in deeds_of(events, 10.0)]
    assert found == [(1, 3, Ending.FAILED), (2, 6, Ending.LOST), (4, 5, Ending.FINISHED)]


def test_what_was_never_answered_runs_to_the_end() -> None:
    (deed,) = deeds_of([started("a", 1000)], 10.0)
    assert (deed.end_s, deed.ending) == (10.0, Ending.RUNNING)


def test_late_and_repeated_answers_change_nothing() -> None:
    done = ActionFinished(at_ms=2000, step=StepId("a"), attempt=1)
    late = ActionFailed(at_ms=3000, step=StepId("a"), attempt=1)
    stray = ActionFinished(at_ms=500, step=StepId("zzz"), attempt=1)
    (deed,) = deeds_of([stray, started("a", 1000), done, late, done], 10.0)
    assert (deed.end_s, deed.ending) == (2.0, Ending.FINISHED)


def test_a_deed_says_all_about_itself() -> None:
    deed = Deed(a_move(), 60, 90, Ending.FAILED, "no room")
    assert deed.words == "0:01 to 0:01:30, migrate v1 from h1 to h2, failed: no room"
    assert deed.subject == "v1"
    assert Deed(PowerOn(host=HostId("h9")), 0, 1, Ending.FINISHED).subject == "h9"


# The picture


def section(deeds: list[Deed]) -> Element:
    record = a_run(hosts=3, samples=5).record
    material = Material(summary={}, record=record, events=(), tell=told)
    return parsed(timeline(material, deeds).markup())


def test_without_actions_it_says_so() -> None:
    made = section([])
    assert "No actions were carried out" in made.text
    assert not made.all("svg")


def test_a_migration_is_seen_once_by_vm_and_on_both_hosts() -> None:
    made = section([Deed(a_move(), 60, 90, Ending.FINISHED)])
    by_vm, by_host = made.all("div", "view")
    assert len(by_vm.one("figure").all("rect", "deed")) == 1 + 1  # and one in the legend
    assert len(by_host.one("figure").all("rect", "deed")) == 2 + 1
    assert "v1" in by_vm.text
    assert "h1" in by_host.text
    assert "h2" in by_host.text


def test_of_many_vms_the_busiest_are_shown_and_the_rest_counted() -> None:
    deeds = [Deed(a_move(f"v{n}"), n, n + 1, Ending.FINISHED) for n in range(300)]
    deeds += [Deed(a_move("v299"), 400, 500, Ending.FAILED)]
    made = section(deeds)
    assert "The 80 busiest of 300 VMs and hosts are shown; the other 220 are in" in made.text
    assert "v299" in made.text
    assert "The most was done to v299: 2 actions." in made.text


def test_very_many_bars_are_drawn_together() -> None:
    deeds = [Deed(a_move(f"v{n % 10}"), n, n + 1, Ending.FINISHED) for n in range(5000)]
    made = section(deeds)
    assert len(made.all("path", "deed")) == 2
