from __future__ import annotations

from typing import Any

import pytest

from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.errors import InvalidInput
from equipoise.model.action import Migrate
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.plan import Refusal, verify
from equipoise.spec.case import Case, judge_case
from equipoise.spec.demand import Demand
from equipoise.spec.judge import SpecificationJudge
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
    """Where the gate, with a specification, says a plan breaks it."""
    snapshot = cluster()
    values = SPEC.arguments(name, arguments, snapshot)
    judge = SpecificationJudge([Demand(SPEC, name, values, continuous)], steps)
    verdict = verify(snapshot, a_plan(*steps), [judge])
    if not isinstance(verdict, Refusal):
        return []
    return [(one.constraint, one.at_ms) for one in verdict.violations]


def test_the_gate_refuses_what_passes_through_a_broken_state_and_says_the_millisecond() -> None:
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


def test_formulas_can_ask_for_the_actions_of_the_plan() -> None:
    assert broken("Early", {"v": "v1"}, VISIT[0]) == []
    assert broken("Early", {"v": "v1"}, *VISIT) == [("Early(v1)", 2000)]


def test_what_is_broken_from_the_start_is_told_at_the_start() -> None:
    assert broken("Never", {"v": "v1", "n": "h1"}, continuous=True) == [("Never(v1, h1)", 0)]


# What has no value

TROUBLE = Specification.read(
    """
    Guarded(n : int) ::= n /= 0 & 10 / n > 1
    Unguarded(n : hosts) ::= 10 / card(running(n)) > 1
    Neither(n : int) ::= not (n = 0 | 10 / n > 1)
    Stays ::= always !(v : vms) host(v) = ^host(v)
    """
)


def told(name: str, arguments: dict[str, Any], *steps: Step) -> list[tuple[int, str, str | None]]:
    snapshot = cluster()
    values = TROUBLE.arguments(name, arguments, snapshot)
    judge = SpecificationJudge([Demand(TROUBLE, name, values, continuous=True)], steps)
    verdict = verify(snapshot, a_plan(*steps), [judge])
    found = verdict.violations if isinstance(verdict, Refusal) else ()
    return [(one.at_ms, one.detail, one.step) for one in found]


def test_the_right_side_is_only_looked_at_if_the_left_one_is_true() -> None:
    assert told("Guarded", {"n": 0}) == [(0, "not so: 0 /= 0", None)]
    assert told("Guarded", {"n": 5}) == []
    assert told("Neither", {"n": 0})[0][0] == 0


def test_a_formula_without_a_value_is_a_violation_that_says_so() -> None:
    (first, *_) = told("Unguarded", {"n": "h1"}, *VISIT)
    assert first[0] == 700
    assert "10 divided by zero" in first[1]


def test_always_tells_the_moment_at_which_it_was_not_so() -> None:
    (violation,) = told("Stays", {}, *VISIT)
    assert (violation[0], violation[2]) == (700, "a")
    assert "host(v1) = h2" in violation[1]


@pytest.mark.parametrize("name", ["runs", "nodes", "vms", "running", "let", "nodeState"])
def test_a_word_of_the_language_names_no_constraint(name: str) -> None:
    with pytest.raises(InvalidInput, match="is a word of the language"):
        Specification.read(f"{name} ::= card(vms) = 1")


def test_a_text_is_shown_in_quotes() -> None:
    spec = Specification.read('In(v : vms, rack : string) ::= label(host(v), "rack") = rack')
    why = judge_case(Demand(spec, "In", {"v": "v1", "rack": "north"}), Case(cluster()))
    assert why is not None
    assert str(why.why) == (
        'not so: label(host(v1), "rack") = "north", with label(host(v1), "rack") = ""'
    )
