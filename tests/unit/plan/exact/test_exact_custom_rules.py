"""Custom rules: their formula counts and not their name; and the times that they refer to."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.model.problem import PlanningProblem
from equipoise.plan.exact.narrowing import SMALL_MAX
from equipoise.plan.exact.result import PlanningStatus
from equipoise.plan.exact.solve import solve
from planning import a_problem, a_rule, fence

HOSTS = [a_host(name) for name in ("h1", "h2", "h3")]


def owned(text: str, rule: Any, *others: Any, vms: int = 2, **fields: Any) -> PlanningProblem:
    machines = [a_vm(f"v{n}", "h1") for n in range(1, vms + 1)]
    return a_problem(HOSTS, machines, rule, *others, specification=text, **fields)


# Names of the library


@pytest.mark.parametrize("name", ["Running", "Idle"])
def test_a_rule_means_its_formula_and_not_its_name(name: str) -> None:
    text = f"{name}(v : vms) discrete ::= vmState(v) /= running"
    answer = solve(owned(text, a_rule(name, v="v1")))
    assert answer.status is PlanningStatus.UNSAT
    assert answer.conflict is not None
    assert [condition.title for condition in answer.conflict.conditions] == ["r1"]


@pytest.mark.parametrize("name", ["Running", "Preserve", "Fence", "Spread", "ResourceCapacity"])
def test_a_rule_that_hides_one_of_the_library_may_have_other_arguments(name: str) -> None:
    text = f"{name}(some <: vms, where : hosts) discrete ::= !(v : some) host(v) = where"
    rule = a_rule(name, some=["v1"], where="h2")
    answer = solve(owned(text, rule))
    assert answer.plan is not None
    assert [step.footprint.target for step in answer.plan.steps] == ["h2"]
    both = solve(owned(text, rule, fence("v1", "h3")))
    assert both.conflict is not None
    assert {condition.title for condition in both.conflict.conditions} == {"r1", "v1-within"}


@pytest.mark.parametrize("name", ["Fence", "ResourceCapacity", "Preserve"])
def test_a_large_problem_may_hide_a_constraint_of_the_library_too(name: str) -> None:
    text = f"{name}(some <: vms, where : hosts) discrete ::= !(v : some) host(v) = where"
    hosts = [a_host(f"h{n}") for n in range(50)]
    vms = [a_vm(f"v{n}", f"h{n}") for n in range(50)]
    assert len(hosts) * len(vms) > SMALL_MAX
    rule = a_rule(name, some=["v1"], where="h7")
    answer = solve(a_problem(hosts, vms, rule, specification=text), repair=True)
    assert answer.plan is not None
    assert [step.footprint.target for step in answer.plan.steps] == ["h7"]


# Times

LATER = "Later(x : vms, y : vms, t : int) discrete ::= !(a : actions(x)) !(b : actions(y))"


def test_times_may_add_up() -> None:
    text = f"{LATER} begin(b) >= end(a) + t"
    rules = [a_rule("Later", f"r{n}", x=f"v{n}", y=f"v{n + 1}", t=5000) for n in range(1, 4)]
    moves = [fence(f"v{n}", "h2") for n in range(1, 5)]
    answer = solve(owned(text, *rules, *moves, vms=4), optimise=True)
    assert answer.plan is not None
    begins = {step.footprint.vm: step.start_ms for step in answer.plan.steps}
    assert begins == {"v1": 0, "v2": 6000, "v3": 12_000, "v4": 18_000}


@pytest.mark.parametrize(
    ("formula", "begins_ms"),
    [
        ("begin(x) >= 10000", 10_000),
        ("begin(x) >= 5000 + 5000", 10_000),
        ("(let t = 10000 in begin(x) >= t)", 10_000),
        ("begin(x) - 10000 >= 0", 10_000),
        ("(!(t : {20000}) begin(x) >= t)", 20_000),
    ],
)
def test_a_formula_may_require_a_time_in_many_ways(formula: str, begins_ms: int) -> None:
    text = f"Late(v : vms) discrete ::= !(x : actions(v)) {formula}"
    through = "Through(v : vms) discrete ::= Late(v)"
    for specification, name in ((text, "Late"), (f"{text}\n\n{through}", "Through")):
        rule = a_rule(name, v="v1")
        answer = solve(owned(specification, rule, fence("v1", "h2")), optimise=True)
        assert answer.plan is not None
        assert [step.start_ms for step in answer.plan.steps] == [begins_ms]


def test_unsat_is_claimed_only_within_a_given_horizon() -> None:
    """The planner cannot know how late a formula may require an action."""
    text = "Late(v : vms) discrete ::= !(x : actions(v)) begin(x) / 1000 >= 60"
    rules = [a_rule("Late", v="v1"), fence("v1", "h2")]
    assert solve(owned(text, *rules)).status is PlanningStatus.TIMEOUT
    assert solve(owned(text, *rules, horizon_s=30)).status is PlanningStatus.UNSAT
    answer = solve(owned(text, *rules, horizon_s=90), optimise=True)
    assert answer.plan is not None
    assert [step.start_ms for step in answer.plan.steps] == [60_000]


# Unusual formulas


def test_a_let_of_an_undecided_value_may_precede_a_quantifier() -> None:
    text = (
        "Near(vs <: vms, ns <: hosts) discrete ::= let used = {host(v) . v : vs, runs(v)} in "
        "!(x : vs) runs(x) --> host(x) : used /\\ ns"
    )
    rule = a_rule("Near", vs=["v1", "v2"], ns=["h2"])
    answer = solve(owned(text, rule), repair=True)
    assert answer.plan is not None
    assert {step.footprint.target for step in answer.plan.steps} == {"h2"}


def test_capacity_is_no_reason_where_only_the_judge_understands_the_rule() -> None:
    text = "Crowd(ns <: hosts) discrete ::= sum(largest([card(running(n)) . n : ns], 1)) > 5"
    answer = solve(owned(text, a_rule("Crowd", ns=["h1", "h2"])))
    assert answer.status is PlanningStatus.UNSAT
    assert answer.conflict is not None
    assert "no-capacity" not in answer.conflict.codes
