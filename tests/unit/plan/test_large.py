"""Problems too large to be looked at whole: plans that need others, and proofs by a part."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.model.problem import HostAim, Problem, VmAim
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.answer import Answer, Status
from equipoise.plan.exact.near.reach import is_too_large
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.task import Task
from planning import a_problem, a_rule, apart, fence, moves, off

COUNT = 720


def large(*rules: Any, more: tuple[Vm, ...] = (), taken: int = 5, **fields: Any) -> Problem:
    """Hosts with room for ten, each with a VM that takes five, if nothing else is said."""
    hosts = [a_host(f"h{n}", capacity={"x": 10}) for n in range(COUNT)]
    vms = [a_vm(f"v{n}", f"h{n}", consumption={"x": taken}) for n in range(COUNT)]
    room = a_rule("ShareableResource", "room", id="x")
    problem = a_problem(hosts, [*vms, *more], room, *rules, **fields)
    assert is_too_large(Task.of(problem))
    return problem


def conflict(answer: Answer) -> set[str]:
    assert answer.status is Status.UNSAT
    assert answer.conflict is not None
    return {claim.title for claim in answer.conflict.claims}


# Who has no business here makes way


@pytest.mark.parametrize("repair", [True, False])
def test_somebody_who_is_well_placed_makes_way(repair: bool) -> None:
    big = a_vm("big", state=VmState.READY, consumption={"x": 8})
    problem = large(more=(big,), vms={VmId("big"): VmAim.RUNNING})
    answer = solve(problem, repair=repair)
    assert answer.status is Status.SOLVED
    assert moves(answer) == 1


def test_two_make_way_for_one_who_takes_a_whole_host() -> None:
    big = a_vm("big", state=VmState.READY, consumption={"x": 10})
    small = tuple(a_vm(f"s{n}", f"h{n}", consumption={"x": 5}) for n in range(COUNT - 2))
    problem = large(more=(big, *small), vms={VmId("big"): VmAim.RUNNING})
    answer = solve(problem)
    assert answer.status is Status.SOLVED
    assert moves(answer) >= 1


# No plan, and that is proved by a part


def test_two_rules_about_one_vm_are_at_odds() -> None:
    answer = solve(large(fence("v0", "h1", "h2"), off("v0", "h1", "h2")))
    assert conflict(answer) == {"v0-within", "v0-off"}
    assert answer.conflict is not None
    assert answer.conflict.minimal


def test_too_few_hosts_for_some_who_keep_apart() -> None:
    fences = [fence(f"v{n}", "h1", "h2") for n in range(3)]
    answer = solve(large(apart("v0", "v1", "v2"), *fences), repair=True)
    assert conflict(answer) == {"apart", "v0-within", "v1-within", "v2-within"}
    assert answer.conflict is not None
    assert "apart needs 3 hosts" in answer.conflict.why[0]


def test_a_host_that_is_to_sleep_cannot_be_lived_on() -> None:
    problem = large(fence("v1", "h1"), hosts={HostId("h1"): HostAim.OFFLINE})
    assert conflict(solve(problem)) == {"h1 is to be offline", "v1-within"}


def test_there_is_too_little_of_something_on_all_hosts_together() -> None:
    comers = tuple(a_vm(f"c{n}", state=VmState.READY, consumption={"x": 9}) for n in range(300))
    aims = {vm.id: VmAim.RUNNING for vm in comers}
    answer = solve(large(more=comers, taken=7, vms=aims))
    assert answer.status is Status.UNSAT
    assert answer.conflict is not None
    assert "7,209 of x are needed on all hosts together, and there are 7,200" in answer.conflict.why
    assert len(answer.conflict.claims) == 241


def test_what_a_part_cannot_tell_is_not_claimed() -> None:
    """How many run somewhere is about everybody."""
    empty = a_rule("RunningCapacity", ns=["h0", "h1"], nb=0)
    answer = solve(large(empty, fence("v0", "h0", "h1")))
    assert (answer.status, answer.conflict) == (Status.TIMEOUT, None)
