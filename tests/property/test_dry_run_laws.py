"""Laws of the dry run: what ``recommend`` says of a state is what the control loop does in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from builders import a_cluster, a_host, a_vm
from equipoise.api.advice import recommend
from equipoise.balance.run_pass import measure_imbalance
from equipoise.files import parse_plan, to_yaml
from equipoise.model.action import Migrate
from equipoise.model.event import PlanAccepted
from equipoise.model.policy.balance import Automation, BalancePolicy
from equipoise.model.policy.power import PowerPolicy
from equipoise.model.quantity import RuleId, VmId
from equipoise.model.rule import KeepApart
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import VerifiedPlan, verify
from equipoise.sim.builtin import builtin_scenario
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal
from uneven_clusters import clusters

ACTIONS_MAX = 3


def first_plan(scenario: Scenario) -> set[object]:
    """The actions of the first plan that the loop executes."""
    journal = MemoryJournal()
    ScenarioRunner(scenario, journal).run(0)
    plans = [event.plan for event in journal.events() if isinstance(event, PlanAccepted)]
    return {step.action for plan in plans for step in plan.steps}


@pytest.mark.parametrize("name", ["drs-testbed", "drs-table1", "drs-table2-1", "chaos"])
def test_advice_for_a_scenario_is_what_its_first_pass_does(name: str) -> None:
    scenario = builtin_scenario(name).but(deciders=("balance",))
    advice = recommend(scenario)
    assert {step.action for step in advice.plan.steps} == first_plan(scenario)


def test_advice_for_a_scenario_with_power_is_what_its_first_pass_does() -> None:
    scenario = builtin_scenario("nightly").but(deciders=("balance", "power"))
    advice = recommend(scenario, power=True)
    assert {step.action for step in advice.plan.steps} == first_plan(scenario)


@settings(max_examples=15)
@given(clusters(), st.booleans())
def test_advice_for_a_small_cluster_is_what_the_loop_does(state: Snapshot, powered: bool) -> None:
    cluster = state.inventory().but(power=PowerPolicy(observe_s=0, cooldown_s=0))
    deciders = ("balance", "power") if powered else ("balance",)
    scenario = Scenario(name="now", duration_s=1, cluster=cluster, deciders=deciders)
    advice = recommend(scenario, power=powered)
    assert {step.action for step in advice.plan.steps} == first_plan(scenario)


@settings(max_examples=15)
@given(clusters(), st.integers(1, ACTIONS_MAX))
def test_a_written_plan_passes_the_gate_and_keeps_its_promise(state: Snapshot, top: int) -> None:
    for most in (None, top):
        advice = recommend(state, power=True, top=most)
        plan = parse_plan(to_yaml(advice.plan).encode(), "plan.yaml")
        assert plan == advice.plan
        assert isinstance(verify(Snapshot.of(state.inventory()), plan), VerifiedPlan)
        assert most is None or len(plan.steps) <= most
        assert advice.actions is not None
        promised = measure_imbalance(advice.actions.after, advice.estimates)
        assert advice.imbalance[1] == pytest.approx(promised, rel=0.01, abs=1e-9)


@settings(max_examples=15)
@given(clusters())
def test_the_most_useful_actions_are_some_if_there_are_any(state: Snapshot) -> None:
    every = recommend(state)
    if not every.moves:
        return
    size = len(every.plan.steps)
    assert len(recommend(state, top=size).plan.steps) == size
    # Some group of actions fits, unless all wait for each other.
    groups = [step for step in every.plan.steps if not step.after]
    alone = any(isinstance(step.action, Migrate) for step in groups)
    some = recommend(state, top=max(1, size - 1)).plan.steps
    assert some or not alone or every.balance.repairs


def test_advice_that_needs_approval_repairs_a_continuous_rule() -> None:
    """Nothing runs by itself, and the plan of the advice is complete all the same."""
    apart = KeepApart(id=RuleId("r"), vms=(VmId("a"), VmId("b")), continuous=True)
    state = a_cluster(
        a_host("h1"),
        a_host("h2"),
        vms=[a_vm("a", "h1"), a_vm("b", "h1")],
        rules=(apart,),
        balance=BalancePolicy(automation=Automation.MANUAL),
    )
    advice = recommend(state)
    assert len(advice.plan.steps) == 1
    assert isinstance(verify(state, advice.plan), VerifiedPlan)
    assert advice.actions is not None
    assert not advice.actions.worth[0].automatic


def test_a_history_file_gives_the_advice_of_the_loop(tmp_path: Path) -> None:
    """The demand of the last hour, as the simulated monitor saw it, in a file."""
    scenario = builtin_scenario("drs-testbed").but(deciders=(), duration_s=3600)
    runner = ScenarioRunner(scenario, MemoryJournal())
    runner.run(1_500_000)
    state = runner.snapshot()
    lines = ["time;vm;memory_mib;cpu_mhz"]
    for sample in state.history:
        lines += [
            f"{sample.at_ms / 1000};{vm};{demand.memory_mib};{demand.cpu_mhz}"
            for vm, demand in sample.demand.items()
        ]
    file = tmp_path / "demand.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    advice = recommend(eq.Snapshot.of(state.inventory()), history=file)
    assert advice.snapshot.history == state.history
    assert advice.snapshot.at_ms == state.at_ms
    assert advice.plan.steps == recommend(state).plan.steps


def test_a_journal_gives_the_advice_of_the_loop() -> None:
    journal = MemoryJournal()
    scenario = builtin_scenario("drs-testbed").but(deciders=("balance",), duration_s=3600)
    runner = ScenarioRunner(scenario, journal)
    runner.run(400_000)
    state = runner.snapshot()
    advice = recommend(eq.Snapshot.of(state.inventory()), journal=journal)
    assert (advice.snapshot.history, advice.snapshot.moves) == (state.history, state.moves)
    assert advice.plan.steps == recommend(state).plan.steps
    # Without the past, the moves of the last minutes could go back.
    assert advice.snapshot.moves
