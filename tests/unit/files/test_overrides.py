"""Overrides of a scenario, as ``--set KEY=VALUE`` gives them."""

from __future__ import annotations

import pytest

from equipoise.errors import InputProblem, InvalidInput
from equipoise.files import override_scenario
from equipoise.model.policy.power import PowerAutomation
from equipoise.sim.builtin import builtin_scenario
from unit.files.sample_files import brief


def test_values_of_a_scenario_can_be_changed() -> None:
    changed = override_scenario(
        builtin_scenario("dpm-table3"),
        [
            "cluster.power.hosts_on_min=4",
            'cluster.power.windows=[{"start":"08:00","end":"18:00","automation":"off"}]',
            "fleet.hosts.0.count=3",
            "cluster.name=three of them",
        ],
        "dpm-table3",
    )
    assert changed.cluster.power.hosts_on_min == 4
    assert changed.cluster.power.windows[0].automation is PowerAutomation.OFF
    assert changed.fleet.hosts[0].count == 3
    assert changed.cluster.name == "three of them"
    assert changed.but(
        cluster=builtin_scenario("dpm-table3").cluster, fleet=builtin_scenario("dpm-table3").fleet
    ) == (builtin_scenario("dpm-table3"))


@pytest.mark.parametrize(
    ("change", "expected", "cure"),
    [
        ("cluster.powr.threshold=3", "unknown-key", "did you mean power?"),
        ("cluster.power.treshold=3", "unknown-key", "did you mean threshold?"),
        ("fleet.hosts.7.count=3", "unknown-key 7 0 0", "from 0 to 0"),
        ("cluster.power.threshold", "syntax-error", "KEY=VALUE"),
        ("fleet.hosts.²=1", "unknown-key 0 0", "from 0 to 0"),
        ("seed.s.seed=1", "unknown-key 1", "seed=VALUE"),
        ("duration_s.x=3", "unknown-key 14400", "duration_s=VALUE"),
        ("name.name=x", 'unknown-key "dpm-table3"', "name=VALUE"),
        ("cluster.pools.0=1", "unknown-key 0 cluster.pools cluster.pools", "cluster.pools=[...]"),
        ("plan.plan.id=1", "unknown-key", "plan={...}"),
    ],
)
def test_an_override_with_an_unknown_key_is_rejected(change: str, expected: str, cure: str) -> None:
    problem = only_override_problem(change)
    assert brief(problem) == f"--set {change.partition('=')[0]}: {expected}"
    assert cure in problem.cure


def test_the_overridden_scenario_is_checked_like_a_file() -> None:
    assert brief(only_override_problem("cluster.power.threshold=nine")) == (
        'line 1: cluster.power.threshold: wrong-type "nine" 1 5'
    )
    assert brief(only_override_problem("duration=5")) == "line 1: duration: unknown-key"


def only_override_problem(change: str) -> InputProblem:
    with pytest.raises(InvalidInput) as caught:
        override_scenario(builtin_scenario("dpm-table3"), [change], "dpm-table3")
    (problem,) = caught.value.problems
    return problem
