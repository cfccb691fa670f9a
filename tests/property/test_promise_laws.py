"""Laws of promises: what advice promises is what the next pass and the simulator measure."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from builders import a_cluster, a_host, a_vm
from equipoise.api.advice import recommend
from equipoise.balance.advice import BalanceAdvice
from equipoise.balance.run_pass import measure_fall, measure_imbalance, run_balance_pass
from equipoise.model.action_durations import Estimates
from equipoise.model.event import PlanOutcome
from equipoise.model.plan import Plan
from equipoise.model.scenario.scenario import MeasurementSettings, Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import snapshot_after_actions, with_contention
from equipoise.model.vm import Demand
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal
from uneven_clusters import clusters

ESTIMATES = Estimates()
DURATION_S = 3000
"""Long enough for every plan, and within the hour in which a contention is remembered."""


def simulated_imbalance(state: Snapshot, plan: Plan) -> tuple[float, float]:
    """What the simulator measures before and after a plan; the demand stays as it is."""
    # Samples at the start and at the end: on the way, a VM may wait for room on its target.
    measuring = MeasurementSettings(sample_s=DURATION_S)
    scenario = Scenario(
        name="now",
        duration_s=DURATION_S,
        cluster=state.inventory(),
        plan=plan if plan.steps else None,
        measuring=measuring,
    )
    runner = ScenarioRunner(scenario, MemoryJournal())
    runner.run(1000 * DURATION_S - 1)
    result = runner.result()
    assert [ended.outcome for ended in result.plans] == [PlanOutcome.DONE] * bool(plan.steps)
    before, after = result.record.cluster["imbalance"].tolist()
    return before, after


def after_pass(state: Snapshot, advice: BalanceAdvice) -> Snapshot:
    """What the next pass finds: all actions done, and the memory of what was contended."""
    return with_contention(snapshot_after_actions(state, advice.actions), advice.contended)


@settings(max_examples=60)
@given(clusters())
def test_the_next_pass_reads_what_a_pass_promises(state: Snapshot) -> None:
    advice = run_balance_pass(state, ESTIMATES).advice
    then = after_pass(state, advice)
    assert advice.before == pytest.approx(measure_imbalance(state, ESTIMATES), abs=1e-9)
    assert advice.after == pytest.approx(measure_imbalance(then, ESTIMATES), rel=0.01, abs=1e-9)
    assert run_balance_pass(then, ESTIMATES).advice.before == pytest.approx(advice.after, abs=1e-9)


@settings(max_examples=25)
@given(clusters())
def test_the_simulator_measures_what_a_pass_promises(state: Snapshot) -> None:
    advice = recommend(state)
    before, after = simulated_imbalance(state, advice.plan)
    assert before == pytest.approx(advice.imbalance[0], rel=0.01, abs=1e-9)
    assert after == pytest.approx(advice.imbalance[1], rel=0.01, abs=1e-9)


@settings(max_examples=40)
@given(clusters())
def test_the_gain_is_the_fall_in_the_weights_of_the_start(state: Snapshot) -> None:
    advice = run_balance_pass(state, ESTIMATES).advice
    if advice.switches or advice.ignored:
        return  # entitlements change with the capacity, and ignored rules change the hosts
    then = snapshot_after_actions(state, advice.actions)
    assert advice.gain == pytest.approx(measure_fall(state, then, ESTIMATES), abs=1e-9)
    if not advice.repairs and all(move.priority > 1 for move in advice.moves):
        assert advice.gain > 0 or not advice.moves


def test_a_scarcity_that_ends_changes_the_weights_and_the_promise_says_so() -> None:
    """Half of the CPU is on one host, so it counts three times as much, until the moves."""
    hosts = [a_host(f"h{n}", cores=4, mhz_per_core=2500, memory_mib=16384) for n in range(3)]
    vms = [
        a_vm(f"v{n}", "h0", memory_mib=1024, demand=Demand(cpu_mhz=3000, memory_mib=200))
        for n in range(4)
    ]
    vms += [
        a_vm(f"m{n}", "h1", memory_mib=4096, demand=Demand(cpu_mhz=100, memory_mib=3900))
        for n in range(2)
    ]
    state = a_cluster(*hosts, vms=vms)
    advice = run_balance_pass(state, ESTIMATES).advice
    assert advice.moves
    then = after_pass(state, advice)
    assert advice.after == pytest.approx(measure_imbalance(then, ESTIMATES))
    assert advice.before - advice.after != pytest.approx(advice.gain, rel=0.01)
