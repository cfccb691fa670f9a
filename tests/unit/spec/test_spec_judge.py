from __future__ import annotations

from typing import Any

import pytest

from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.model.action import Migrate
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.plan import Refusal, verify
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
