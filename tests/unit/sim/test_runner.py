"""Whole runs: their end, their plans and their journal."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_plan, a_step, a_vm, an_inventory
from equipoise.control import ControlLoop
from equipoise.documents.event_text import describe_event
from equipoise.errors import InvalidInput
from equipoise.model.action import Boot, Migrate, PowerOff, PowerOn
from equipoise.model.event import (
    ActionFinished,
    ActionStarted,
    ActionTimedOut,
    HostFailed,
    PlanAccepted,
    PlanEnded,
    PlanOutcome,
    PlanRefused,
)
from equipoise.model.host import HostState
from equipoise.model.plan import Intent, Plan, Proposal, Purpose
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.scenario.faults import MonitoringLost, PowerOnStuck
from equipoise.model.scenario.load import CyclicLoad, Load
from equipoise.model.scenario.physics import MigrationPhysics, Physics, PowerPhysics
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.sim.runner import ScenarioRunner, SimulationResult
from equipoise.sim.world.simulated_world import SimulatedWorld
from equipoise.store import MemoryJournal

H1, H2, V1 = HostId("h1"), HostId("h2"), VmId("v1")
MOVE = Migrate(vm=V1, source=H1, target=H2)


def a_scenario(plan: Plan | None = None, **fields: Any) -> Scenario:
    given: dict[str, Any] = {
        "duration_s": 600,
        "cluster": an_inventory(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1")]),
    }
    return Scenario(name="played", plan=plan, **given | fields)


def played(scenario: Scenario, **deciders: Any) -> tuple[SimulationResult, MemoryJournal]:
    journal = MemoryJournal()
    play = ScenarioRunner(scenario, journal, **deciders)
    play.run(1000 * scenario.duration_s)
    return play.result(), journal


def journal_lines(journal: MemoryJournal) -> list[str]:
    return [f"{event.at_ms // 1000} {describe_event(event)}" for event in journal.events()]


def test_a_plan_of_any_version_runs_from_the_start() -> None:
    result, journal = played(a_scenario(a_plan(a_step("m", MOVE, 0, 20_000), base_version=77)))
    assert result.violations == ()
    assert result.snapshot.vms[V1].host == result.truth.vms[V1].host == "h2"
    assert result.finished[Migrate] == 1
    assert [(plan.outcome, plan.finished) for plan in result.plans] == [(PlanOutcome.DONE, 1)]
    assert result.migrations_per_pass == (1,)
    assert result.ended_ms == 600_000
    assert "20 step m finished" in journal_lines(journal)


def test_a_plan_beyond_the_end_of_the_run_is_cut_off() -> None:
    result, journal = played(a_scenario(a_plan(a_step("m", MOVE, 0, 601_000))))
    assert result.ended_ms == 600_000
    assert result.finished[Migrate] == 0
    assert result.plans == ()
    assert result.truth.vms[V1].host == result.snapshot.vms[V1].host == "h1"
    assert set(result.truth.in_flight) == {"m"}
    assert max(event.at_ms for event in journal.events()) <= 600_000


def test_an_action_that_ends_with_the_run_counts() -> None:
    result, _ = played(a_scenario(a_plan(a_step("m", MOVE, 0, 600_000))))
    assert result.finished[Migrate] == 1
    assert len(result.plans) == 1
    assert result.truth.vms[V1].host == "h2"


def test_a_refused_plan_is_reported_and_the_run_continues() -> None:
    back = Migrate(vm=V1, source=H2, target=H1)
    result, journal = played(a_scenario(a_plan(a_step("m", back))))
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
        ScenarioRunner(a_scenario(deciders=(name,)), MemoryJournal())
    (problem,) = refused.value.problems
    assert problem.key == "deciders"
    assert expected in str(problem)


class Once:
    """Proposes v1 on h2 in its first pass."""

    def propose(self, snapshot: Snapshot) -> Proposal:
        there = snapshot.vms[V1].host == "h2"
        intent = Intent(id=StepId("1"), action=MOVE, duration_ms=5000)
        intents = () if there else (intent,)
        return Proposal(decider="once", purpose=Purpose.BALANCE, intents=intents, reason="so")


def test_own_deciders_can_be_passed() -> None:
    result, journal = played(a_scenario(), deciders=[Once()])
    assert result.truth.vms[V1].host == "h2"
    accepted = [event for event in journal.events() if isinstance(event, PlanAccepted)]
    assert [step.action for step in accepted[0].plan.steps] == [MOVE]


def test_deciders_run_at_the_pass_interval_of_the_scenario() -> None:
    _, journal = played(a_scenario(pass_s=250, deciders=("restart",)))
    passes = [line for line in journal_lines(journal) if "restart proposed" in line]
    assert [int(line.split()[0]) for line in passes] == [0, 250, 500]


def test_a_hanging_power_on_is_cancelled_and_retried() -> None:
    scenario = a_scenario(
        cluster=an_inventory(a_host("h1"), a_host("h2", state=HostState.STANDBY)),
        physics=Physics(switching=PowerPhysics(power_on_s=30, jitter_pct=0)),
        events=(PowerOnStuck(at_ms=1, host=H2),),
    )
    journal = MemoryJournal()
    play = ScenarioRunner(scenario, journal, deciders=[Waker()])
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
        intent = Intent(id=StepId("1"), action=PowerOn(host=H2), duration_ms=30_000)
        return Proposal(decider="waker", purpose=Purpose.WAKE, intents=(intent,) if late else ())


def test_a_replaced_loop_finds_its_migration_running() -> None:
    scenario = a_scenario(physics=Physics(migration=MigrationPhysics(link_mbps=838.8608)))
    world, journal = SimulatedWorld(scenario), MemoryJournal()
    ControlLoop(world, journal, deciders=[Once()]).run(5000)
    second = ControlLoop(world, journal, deciders=[Once()])
    assert not second.idle
    second.run(600_000)
    ends = [event for event in journal.events() if isinstance(event, PlanEnded)]
    assert [(event.outcome, event.at_ms) for event in ends] == [(PlanOutcome.DONE, 10_340)]
    assert world.observe().vms[V1].host == "h2"
    moves = [event for event in journal.events() if isinstance(event, ActionStarted)]
    assert len(moves) == 1


def test_an_answer_during_a_controller_outage_is_repeated() -> None:
    scenario = a_scenario(a_plan(a_step("m", MOVE, 0, 5000)))
    world, journal = SimulatedWorld(scenario), MemoryJournal()
    first = ControlLoop(world, journal)
    assert scenario.plan is not None
    first.submit(scenario.plan.but(base_version=first.snapshot().version))
    first.run(1000)
    assert world.next_event(10_000) is not None, "the loop crashed before it could record the event"
    second = ControlLoop(world, journal)
    second.run(20_000)
    assert second.idle
    assert second.snapshot().vms[V1].host == "h2"
    finished = [event for event in journal.events() if isinstance(event, ActionFinished)]
    assert [event.at_ms for event in finished] == [5000]


def test_observing_a_run_does_not_change_it() -> None:
    """Results can be read during the run, any number of times."""
    wave = Load(cpu_mhz=(CyclicLoad(high=1000, high_s=170, low=100, low_s=90),))
    scenario = a_scenario(loads={"wave": wave}, vm_loads={"v1": "wave"}, duration_s=1500)
    quiet, journal = played(scenario)
    curious = MemoryJournal()
    play = ScenarioRunner(scenario, curious)
    for until_ms in (100_000, 450_000, 1_500_000):
        play.run(until_ms)
        play.result()
    assert list(curious.lines()) == list(journal.lines())
    assert play.result().record.cluster["at_s"].tolist() == quiet.record.cluster["at_s"].tolist()


def test_the_result_has_the_true_state_beside_the_known_one() -> None:
    gap = MonitoringLost(at_ms=1, for_ms=10**9)
    fault = HostFailed(at_ms=599_000, host=H1)
    result, _ = played(a_scenario(events=(gap, fault)))
    assert result.truth.vms[V1].state is result.snapshot.vms[V1].state is VmState.READY
    assert result.truth.hosts == result.snapshot.hosts


def test_actions_are_counted_by_kind() -> None:
    steps = [
        a_step("m", MOVE, 0, 5000),
        a_step("off", PowerOff(host=H1), 5000, 10_000, "m"),
        a_step("b", Boot(vm=VmId("v2"), target=H2), 0, 5000),
    ]
    cluster = an_inventory(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2")])
    result, _ = played(a_scenario(a_plan(*steps), cluster=cluster))
    assert dict(result.finished) == {Migrate: 1, PowerOff: 1, PowerOn: 0, Boot: 1}
