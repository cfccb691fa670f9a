"""What the power decider saves: the published rows of the DRS paper, and a week that repeats."""

from __future__ import annotations

from itertools import pairwise

import pytest

from command import answer
from equipoise.model.policy.power import PowerPolicy
from equipoise.sim.builtin import builtin_scenario
from equipoise.sim.runner import ScenarioRunner, SimulationResult
from equipoise.store import MemoryJournal

DAY_MS = 86_400_000
SURGE_S, PASS_S, POWER_ON_S = 1800, 300, 200


def test_table_3() -> None:
    without = answer("simulate", "dpm-table3")
    found = answer("simulate", "dpm-table3", "--with", "power")
    assert without["energy_kwh"] == pytest.approx(31.65, rel=0.01)
    assert found["energy_kwh"] <= (1 - 0.62) * without["energy_kwh"]
    assert found["migrations"] <= 273
    for resource in ("cpu", "memory"):
        assert abs(found["payload_pct"][resource] - without["payload_pct"][resource]) <= 0.1
    energy = found["energy"]
    assert energy["saved_kwh"] + energy["kwh"] == pytest.approx(without["energy_kwh"], rel=0.01)
    assert energy["saved_price"] == pytest.approx(0.30 * energy["saved_kwh"], rel=0.01)


def played(name: str, *deciders: str) -> SimulationResult:
    scenario = builtin_scenario(name)
    play = ScenarioRunner(scenario.but(deciders=(*scenario.deciders, *deciders)), MemoryJournal())
    play.run(1000 * scenario.duration_s)
    return play.result()


def test_the_power_testbed() -> None:
    alone, both = played("dpm-testbed"), played("dpm-testbed", "power")
    cluster = both.record.cluster
    on = dict(zip(cluster["at_s"].tolist(), cluster["hosts_on"].tolist(), strict=True))
    watts = dict(zip(cluster["at_s"].tolist(), cluster["watts"].tolist(), strict=True))
    assert on[SURGE_S] == 2, "six of eight are off in the idle phase"
    assert watts[SURGE_S - 60] < 0.4 * alone.record.cluster["watts"][0]
    assert on[SURGE_S + 2 * PASS_S + POWER_ON_S // 60 * 60] == 8, "all are back within two passes"
    only = played("dpm-testbed-no-hpm", "power")
    energy = [result.measures.energy_kwh for result in (both, only, alone)]
    assert energy == sorted(energy), "both together save most"


def test_a_forecast_covers_the_morning_peak() -> None:
    """On the fourth day, when habits are known; the days before are for learning."""
    scenario = builtin_scenario("nightly")
    lacking, energy = [], []
    for foresight_s in (0, 1800):
        policy = PowerPolicy(foresight_s=foresight_s)
        ahead = scenario.but(
            cluster=scenario.cluster.but(power=policy), deciders=("balance", "power")
        )
        play = ScenarioRunner(ahead, MemoryJournal())
        measures = []
        for day in (3, 4):
            play.run(day * DAY_MS)
            measures.append(play.result().measures)
        lacking += [
            b.unsatisfied.cpu_mhz_h - a.unsatisfied.cpu_mhz_h for a, b in pairwise(measures)
        ]
        energy += [b.energy_kwh - a.energy_kwh for a, b in pairwise(measures)]
    assert lacking[1] <= 0.5 * lacking[0]
    assert energy[1] <= 1.03 * energy[0]
