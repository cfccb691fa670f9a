"""The judge of a specification: which moments it judges, what it reports, and formulas without a
value.
"""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.errors import InvalidInput
from equipoise.model.action import Migrate
from equipoise.model.plan import Step, Violation
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import Satisfy
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import Refusal, verify
from equipoise.plan.existing_faults import existing_faults
from equipoise.spec.judge import SpecificationJudge
from equipoise.spec.requirement import Case, Requirement, judge_case
from equipoise.spec.specification import Specification

SPEC = Specification.read(
    """
    Spread(vs <: vms) ::= !(x, y : vs) x /= y & vmState(x) = running & vmState(y) = running
                          --> host(x) /= host(y)
    Root(v : vms) ::= host(v) = ^host(v)
    Comes(v : vms, n : hosts) ::= sometime host(v) = n
    Never(v : vms, n : hosts) ::= always host(v) /= n
    Ends(v : vms, n : hosts) ::= $host(v) = n
    EndsToo(v : vms, n : hosts) ::= Ends(v, n)
    Early(v : vms) ::= !(a : actions(v)) begin(a) < 1000
    """
)
BOTH = {"vs": frozenset(["v1", "v2"])}


def move(source: str, target: str) -> Migrate:
    return Migrate(vm=VmId("v1"), source=HostId(source), target=HostId(target))


VISIT = (a_step("a", move("h1", "h2"), 0, 700), a_step("b", move("h2", "h3"), 1500, 2000))


def cluster() -> Snapshot:
    hosts = [a_host("h1"), a_host("h2"), a_host("h3")]
    return a_cluster(*hosts, vms=[a_vm("v1", "h1"), a_vm("v2", "h2")])


def broken(
    name: str, arguments: dict[str, Any], *steps: Step, continuous: bool = False
) -> list[tuple[str, int]]:
    """Return where the gate, with a specification as a judge, finds violations in a plan."""
    snapshot = cluster()
    values = SPEC.arguments(name, arguments, snapshot)
    judge = SpecificationJudge([Requirement(SPEC, name, values, continuous)], steps)
    verdict = verify(snapshot, a_plan(*steps), [judge])
    if not isinstance(verdict, Refusal):
        return []
    return [(violation.constraint, violation.at_ms) for violation in verdict.violations]


def test_the_gate_refuses_a_plan_that_passes_through_a_violation() -> None:
    assert broken("Spread", BOTH, *VISIT) == []
    assert broken("Spread", BOTH, *VISIT, continuous=True) == [("Spread({v1, v2})", 700)]


def test_a_discrete_constraint_is_judged_on_the_final_state() -> None:
    assert broken("Spread", BOTH, VISIT[0]) == [("Spread({v1, v2})", 700)]


def test_the_initial_state_is_the_one_before_the_plan() -> None:
    assert broken("Root", {"v": "v1"}, *VISIT) == [("Root(v1)", 2000)]
    assert broken("Root", {"v": "v1"}, *VISIT, continuous=True) == [("Root(v1)", 700)]
    assert broken("Root", {"v": "v2"}, *VISIT, continuous=True) == []


@pytest.mark.parametrize(
    ("name", "host", "holds"),
    [
        ("Comes", "h2", True),
        ("Never", "h2", False),
        ("Ends", "h3", True),
        ("Ends", "h2", False),
        ("EndsToo", "h3", True),
        ("EndsToo", "h2", False),
    ],
)
def test_formulas_about_the_whole_plan_are_judged_at_its_end(
    name: str, host: str, holds: bool
) -> None:
    assert (broken(name, {"v": "v1", "n": host}, *VISIT) == []) is holds
    assert (broken(name, {"v": "v1", "n": host}, *VISIT, continuous=True) == []) is holds


def test_formulas_can_read_the_actions_of_the_plan() -> None:
    assert broken("Early", {"v": "v1"}, VISIT[0]) == []
    assert broken("Early", {"v": "v1"}, *VISIT) == [("Early(v1)", 2000)]


def test_an_initial_violation_is_reported_at_the_start() -> None:
    assert broken("Never", {"v": "v1", "n": "h1"}, continuous=True) == [("Never(v1, h1)", 0)]


# Formulas without a value

UNDEFINED = Specification.read(
    """
    Guarded(n : int) ::= n /= 0 & 10 / n > 1
    Unguarded(n : hosts) ::= 10 / card(running(n)) > 1
    Neither(n : int) ::= not (n = 0 | 10 / n > 1)
    Stays ::= always !(v : vms) host(v) = ^host(v)
    """
)


def found(name: str, arguments: dict[str, Any], *steps: Step) -> tuple[Violation, ...]:
    """Return what the gate finds in a plan, with a constraint of ``UNDEFINED`` as a judge."""
    snapshot = cluster()
    values = UNDEFINED.arguments(name, arguments, snapshot)
    judge = SpecificationJudge([Requirement(UNDEFINED, name, values, continuous=True)], steps)
    verdict = verify(snapshot, a_plan(*steps), [judge])
    return verdict.violations if isinstance(verdict, Refusal) else ()


def test_the_right_side_is_evaluated_only_if_the_left_one_is_true() -> None:
    (violation,) = found("Guarded", {"n": 0})
    assert (violation.at_ms, violation.code, violation.step) == (0, "rule-violated", None)
    assert found("Guarded", {"n": 5}) == ()
    assert found("Neither", {"n": 0})[0].at_ms == 0


def test_a_formula_without_a_value_is_a_violation() -> None:
    (first, *_) = found("Unguarded", {"n": "h1"}, *VISIT)
    assert (first.at_ms, first.code) == (700, "evaluation-failed")


def test_a_violation_of_always_has_the_moment_of_its_cause() -> None:
    (violation,) = found("Stays", {}, *VISIT)
    assert (violation.at_ms, violation.step, violation.code) == (700, "a", "rule-violated")


@pytest.mark.parametrize("name", ["runs", "nodes", "vms", "running", "let", "nodeState"])
def test_a_word_of_the_language_names_no_constraint(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Specification.read(f"{name} ::= card(vms) = 1")
    assert [problem.code for problem in caught.value.problems] == ["reserved-word"]


def test_a_text_is_shown_in_quotes() -> None:
    spec = Specification.read('In(v : vms, rack : string) ::= label(host(v), "rack") = rack')
    violation = judge_case(Requirement(spec, "In", {"v": "v1", "rack": "north"}), Case(cluster()))
    assert violation is not None
    assert str(violation.why) == 'label(host(v1), "rack") is "", not "north"'
    assert violation.why.formula == 'label(host(v1), "rack") = "north"'


@pytest.mark.parametrize(
    ("formula", "sentence"),
    [
        ("host(x) /= host(x)", "v1 and v1 are both on h1"),
        ("host(x) = host(y)", "v1 is on h1, v2 is on h2"),
        ("host(x) : {host(y)}", "v1 is on h1, which is not in {h2}"),
        ("host(x) /: hosts", "v1 is on h1, which is in {h1, h2, h3}"),
        ("card(vms) <= 1", "card(vms) is 2, more than 1"),
        ("card(vms) < card({x})", "card(vms) is 2, not less than card({v1}) = 1"),
        ("vmState(x) = ready", "vmState(v1) is running, not ready"),
        ("vmState(x) /= running", "vmState(v1) is running"),
        ("running(host(x)) <: {y}", "running(host(v1)) contains {v1}, which is not in {v2}"),
        ("x = y", "v1 = v2 is false"),
    ],
)
def test_a_false_comparison_is_explained_in_a_sentence(formula: str, sentence: str) -> None:
    spec = Specification.read(f"Pair(x : vms, y : vms) ::= x = x & y = y --> {formula}")
    violation = judge_case(Requirement(spec, "Pair", {"x": "v1", "y": "v2"}), Case(cluster()))
    assert violation is not None
    assert str(violation.why) == sentence


NOWHERE = "Odd discrete ::= !(x : vms - [vms, vms][3]) runs(x)"


@pytest.mark.parametrize("continuous", [False, True])
def test_a_rule_without_a_value_before_the_plan_is_not_charged(continuous: bool) -> None:
    rule = Satisfy(id=RuleId("odd"), constraint="Odd", continuous=continuous)
    odd = a_cluster(a_host("h1"), vms=[a_vm("v1", "h1")], rules=(rule,), specification=NOWHERE)
    assert not isinstance(verify(odd, a_plan()), Refusal)
    assert [fault.code for fault in existing_faults(odd)] == ["already-violated"]
