"""Power in files: policies that cannot be meant, and figures changed from outside."""

from __future__ import annotations

import pytest

from equipoise.errors import InvalidInput
from equipoise.model.files import assigned
from equipoise.model.policy.power import PowerAutomation
from equipoise.sim.builtin import builtin
from unit.model.files.file_texts import the_problem, with_hosts


@pytest.mark.parametrize(
    ("policy", "key", "what"),
    [
        ("{hosts: {h9: stays_on}}", "power.hosts.h9", 'there is no host "h9"'),
        ("{hosts: {h1: never}}", "power.hosts.h1", '"never" is not one of the allowed words'),
        ("{observe_s: 7200}", "power.observe_s", "7200 is above the allowed range"),
        ("{off_window_s: 86400}", "power.off_window_s", "86400 is above the allowed range"),
        ("{threshold: 6}", "power.threshold", "6 is above the allowed range"),
        (
            "{windows: [{start: '08:00', end: '08:00', automation: off}]}",
            "power.windows[0].end",
            "it ends when it begins, at 08:00",
        ),
        (
            "{windows: [{start: '24:00', end: '08:00', automation: off}]}",
            "power.windows[0].start",
            "no day begins at its end",
        ),
        (
            "{windows: [{start: '08:00', end: '9:00', automation: off}]}",
            "power.windows[0].end",
            '"9:00" is not an allowed time of the day',
        ),
        (
            "{windows: [{start: '08:00', end: '09:00', automation: off, days: []}]}",
            "power.windows[0].days",
            "it begins on no day",
        ),
        ("{tariff: {currency: doubloons}}", "power.tariff.currency", "has 9 letters"),
        ("{order: [size, beauty]}", "power.order[1]", "beauty"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(policy: str, key: str, what: str) -> None:
    problem = the_problem(with_hosts(f"power: {policy}\n"))
    assert problem.key == key
    assert what in problem.what
    assert problem.cure


def test_figures_of_a_scenario_can_be_changed() -> None:
    found = assigned(
        builtin("dpm-table3"),
        [
            "cluster.power.hosts_on_min=4",
            'cluster.power.windows=[{"start":"08:00","end":"18:00","automation":"off"}]',
            "fleet.hosts.0.count=3",
            "cluster.name=three of them",
        ],
        "dpm-table3",
    )
    assert found.cluster.power.hosts_on_min == 4
    assert found.cluster.power.windows[0].automation is PowerAutomation.OFF
    assert found.fleet.hosts[0].count == 3
    assert found.cluster.name == "three of them"
    assert found.but(cluster=builtin("dpm-table3").cluster, fleet=builtin("dpm-table3").fleet) == (
        builtin("dpm-table3")
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("cluster.powr.threshold=3", "did you mean power?"),
        ("cluster.power.treshold=3", "did you mean threshold?"),
        ("fleet.hosts.7.count=3", "there is no '7'"),
        ("cluster.power.threshold", "KEY=VALUE"),
        ("cluster.power.threshold=nine", "cluster.power.threshold"),
        ("duration=5", "duration"),
        ("fleet.hosts.²=1", "there is no '²'"),
        ("seed.s.seed=1", "seed is the number 1, with nothing in it (seed=VALUE)"),
        ("duration_s.x=3", "duration_s is the number 14400, with nothing in it (duration_s=VALUE)"),
        ("name.name=x", 'name is the text "dpm-table3", with nothing in it (name=VALUE)'),
        ("cluster.pools.0=1", "give cluster.pools as a whole, as cluster.pools=[...]"),
        ("plan.plan.id=1", "give plan as a whole, as plan={...}"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(change: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        assigned(builtin("dpm-table3"), [change], "dpm-table3")
    assert words in str(refused.value)
