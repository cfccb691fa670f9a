"""Whole runs: where they end, what comes of plans, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_plan, a_step, a_vm, an_inventory
from equipoise.cli.story import tell
from equipoise.control import Loop
from equipoise.errors import InvalidInput
from equipoise.model.action import Boot, Migrate, PowerOff, PowerOn
from equipoise.model.event import (
    ActionFinished,
    ActionStarted,
    ActionTimedOut,
    HostFailed,
    Outcome,
    PlanEnded,
    PlanRefused,
)
from equipoise.model.host import HostState
from equipoise.model.plan import Intent, Plan, Proposal, Purpose
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.load import Load, Pattern
from equipoise.model.story.physics import MigrationPhysics, Physics, SwitchPhysics
from equipoise.model.story.scenario import Scenario
from equipoise.model.story.unrest import MonitoringLost, PowerOnStuck
from equipoise.model.vm import VmState
from equipoise.sim.play import Play, Result
from equipoise.sim.world import SimulatedWorld
from equipoise.store import MemoryJournal

H1, H2, V1 = HostId("h1"), HostId("h2"), VmId("v1")
MOVE = Migrate(vm=V1, source=H1, target=H2)


def a_story(plan: Plan | None = None, **fields: Any) -> Scenario:
    given: dict[str, Any] = {
        "duration_s": 600,
        "cluster": an_inventory(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1")]),
    }
    return Scenario(name="played", plan=plan, **given | fields)


def played(story: Scenario, **deciders: Any) -> tuple[Result, MemoryJournal]:
    journal = MemoryJournal()
    play = Play(story, journal, **deciders)
    play.run(1000 * story.duration_s)
    return play.result(), journal


def told(journal: MemoryJournal) -> list[str]:
    return [f"{event.at_ms // 1000} {tell(event)}" for event in journal.events()]


def test_a_plan_is_carried_out_from_the_start_whatever_version_it_was_made_for() -> None:
    result, journal = played(a_story(a_plan(a_step("m", MOVE, 0, 20_000), base_version=77)))
    assert result.violations == ()
    assert result.snapshot.vms[V1].host == result.truth.vms[V1].host == "h2"
    assert result.finished[Migrate] == 1
    assert [(one.outcome, one.finished) for one in result.plans] == [(Outcome.DONE, 1)]
    assert result.migrations_per_pass == (1,)
    assert result.ended_ms == 600_000
    assert "20 step m finished" in told(journal)


def test_a_plan_that_runs_past_the_end_is_cut_there() -> None:
    result, journal = played(a_story(a_plan(a_step("m", MOVE, 0, 601_000))))
    assert result.ended_ms == 600_000
    assert result.finished[Migrate] == 0
    assert result.plans == ()
    assert result.truth.vms[V1].host == result.snapshot.vms[V1].host == "h1"
    assert set(result.truth.in_flight) == {"m"}
    assert max(event.at_ms for event in journal.events()) <= 600_000


def test_what_ends_with_the_run_is_part_of_it() -> None:
    result, _ = played(a_story(a_plan(a_step("m", MOVE, 0, 600_000))))
    assert result.finished[Migrate] == 1
    assert len(result.plans) == 1
    assert result.truth.vms[V1].host == "h2"


def test_a_refused_plan_is_said_so_and_the_run_goes_on() -> None:
    back = Migrate(vm=V1, source=H2, target=H1)
    result, journal = played(a_story(a_plan(a_step("m", back))))
    assert [violation.constraint for violation in result.violations] == ["vm_life"]
    assert any(isinstance(event, PlanRefused) for event in journal.events())
    assert result.plans == ()
    assert result.migrations_per_pass == ()
    assert result.ended_ms == 600_000


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("restrat", "did you mean restart?"),
        ("zzz", "restart"),
    ],
)
def test_an_unknown_decider_is_refused_with_a_cure(name: str, expected: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Play(a_story(deciders=(name,)), MemoryJournal())
    (problem,) = refused.value.problems
    assert problem.key == "deciders"
    assert expected in str(problem)


class Once:
    """Wants v1 on h2 as soon as it is asked."""

    def propose(self, snapshot: Snapshot) -> Proposal:
        there = snapshot.vms[V1].host == "h2"
        wish = Intent(id=StepId("1"), action=MOVE, duration_ms=5000)
        intents = () if there else (wish,)
        return Proposal(decider="once", purpose=Purpose.BALANCE, intents=intents, reason="so")


def test_deciders_of_ones_own_can_be_given() -> None:
    result, journal = played(a_story(), deciders=[Once()])
    assert result.truth.vms[V1].host == "h2"
    assert any("once proposed migrate" in line for line in told(journal))


def test_deciders_are_asked_as_often_as_the_story_says() -> None:
    _, journal = played(a_story(pass_s=250, deciders=("restart",)))
    passes = [line for line in told(journal) if "restart proposed" in line]
    assert [int(line.split()[0]) for line in passes] == [0, 250, 500]


def test_a_hanging_power_on_is_given_up_and_tried_again() -> None:
    story = a_story(
        cluster=an_inventory(a_host("h1"), a_host("h2", state=HostState.STANDBY)),
        physics=Physics(switching=SwitchPhysics(power_on_s=30, jitter_pct=0)),
        happenings=(PowerOnStuck(at_ms=1, host=H2),),
    )
    journal = MemoryJournal()
    play = Play(story, journal, deciders=[Waker()])
    play.run(600_000)
    answers = [
        (event.at_ms, type(event))
        for event in journal.events()
        if isinstance(event, ActionStarted | ActionTimedOut | ActionFinished)
    ]
    assert answers == [
        (300_000, ActionStarted),
        (360_000, ActionTimedOut),
        (360_000, ActionStarted),  # in a new plan, made at once
        (390_000, ActionFinished),
    ]
    assert play.result().truth.hosts[H2].state is HostState.ON


class Waker:
    """Wants h2 on, from the second pass on."""

    def propose(self, snapshot: Snapshot) -> Proposal:
        late = snapshot.at_ms > 0 and snapshot.hosts[H2].state is HostState.STANDBY
        wish = Intent(id=StepId("1"), action=PowerOn(host=H2), duration_ms=30_000)
        return Proposal(decider="waker", purpose=Purpose.WAKE, intents=(wish,) if late else ())


def test_a_loop_that_is_replaced_finds_its_migration_under_way() -> None:
    story = a_story(physics=Physics(migration=MigrationPhysics(link_mbps=838.8608)))
    world, journal = SimulatedWorld(story), MemoryJournal()
    Loop(world, journal, deciders=[Once()]).run(5000)
    second = Loop(world, journal, deciders=[Once()])
    assert not second.idle
    second.run(600_000)
    ends = [event for event in journal.events() if isinstance(event, PlanEnded)]
    assert [(one.outcome, one.at_ms) for one in ends] == [(Outcome.DONE, 10_340)]
    assert world.observe().vms[V1].host == "h2"
    moves = [event for event in journal.events() if isinstance(event, ActionStarted)]
    assert len(moves) == 1


def test_an_answer_that_came_while_nobody_listened_is_given_again() -> None:
    story = a_story(a_plan(a_step("m", MOVE, 0, 5000)))
    world, journal = SimulatedWorld(story), MemoryJournal()
    first = Loop(world, journal)
    assert story.plan is not None
    first.submit(story.plan.but(base_version=first.snapshot().version))
    first.run(1000)
    assert world.next_event(10_000) is not None, "and the loop died before it could write it down"
    second = Loop(world, journal)
    second.run(20_000)
    assert second.idle
    assert second.snapshot().vms[V1].host == "h2"
    finished = [event for event in journal.events() if isinstance(event, ActionFinished)]
    assert [one.at_ms for one in finished] == [5000]


def test_to_look_at_a_run_does_not_change_it() -> None:
    """Results may be asked for on the way, as often as one likes."""
    wave = Load(cpu_mhz=(Pattern(high=1000, high_s=170, low=100, low_s=90),))
    story = a_story(loads={"wave": wave}, vm_loads={"v1": "wave"}, duration_s=1500)
    quiet, journal = played(story)
    curious = MemoryJournal()
    play = Play(story, curious)
    for until_ms in (100_000, 450_000, 1_500_000):
        play.run(until_ms)
        play.result()
    assert list(curious.lines()) == list(journal.lines())
    assert play.result().record.cluster["at_s"].tolist() == quiet.record.cluster["at_s"].tolist()


def test_the_truth_is_told_also_where_the_loop_does_not_know_it_yet() -> None:
    gap = MonitoringLost(at_ms=1, for_ms=10**9)
    fault = HostFailed(at_ms=599_000, host=H1)
    result, _ = played(a_story(happenings=(gap, fault)))
    assert result.truth.vms[V1].state is result.snapshot.vms[V1].state is VmState.READY
    assert result.truth.hosts == result.snapshot.hosts


def test_actions_are_counted_by_what_they_are() -> None:
    steps = [
        a_step("m", MOVE, 0, 5000),
        a_step("off", PowerOff(host=H1), 5000, 10_000, "m"),
        a_step("b", Boot(vm=VmId("v2"), target=H2), 0, 5000),
    ]
    cluster = an_inventory(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2")])
    result, _ = played(a_story(a_plan(*steps), cluster=cluster))
    assert dict(result.finished) == {Migrate: 1, PowerOff: 1, PowerOn: 0, Boot: 1}
