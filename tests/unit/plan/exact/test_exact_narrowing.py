"""Problems too large to be modelled as a whole: scopes, misplaced VMs, and proofs by a part."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_vm, figures
from equipoise.model.problem import DesiredHostState, DesiredVmState, PlanningProblem
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.narrowing import (
    SMALL_MAX,
    CandidateFinder,
    as_desired,
    is_too_large,
    misplaced_vms,
)
from equipoise.plan.exact.result import PlanningResult, PlanningStatus
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.task import PlanningTask
from planning import a_problem, a_rule, apart, fence, moves, off

COUNT = 720


def large(*rules: Any, more: tuple[Vm, ...] = (), taken: int = 5, **fields: Any) -> PlanningProblem:
    """Hosts with capacity for ten; by default each has a VM that takes five."""
    hosts = [a_host(f"h{n}", capacity={"x": 10}) for n in range(COUNT)]
    vms = [a_vm(f"v{n}", f"h{n}", consumption={"x": taken}) for n in range(COUNT)]
    room = a_rule("ShareableResource", "room", id="x")
    problem = a_problem(hosts, [*vms, *more], room, *rules, **fields)
    assert is_too_large(PlanningTask.of(problem))
    return problem


def conflict(answer: PlanningResult) -> set[str]:
    assert answer.status is PlanningStatus.UNSAT
    assert answer.conflict is not None
    return {condition.title for condition in answer.conflict.conditions}


# Well-placed VMs make way


@pytest.mark.parametrize("repair", [True, False])
def test_a_well_placed_vm_makes_way(repair: bool) -> None:
    big = a_vm("big", state=VmState.READY, consumption={"x": 8})
    problem = large(more=(big,), vms={VmId("big"): DesiredVmState.RUNNING})
    answer = solve(problem, repair=repair)
    assert answer.status is PlanningStatus.SOLVED
    assert moves(answer) == 1


def test_two_vms_make_way_for_one_that_takes_a_whole_host() -> None:
    big = a_vm("big", state=VmState.READY, consumption={"x": 10})
    small = tuple(a_vm(f"s{n}", f"h{n}", consumption={"x": 5}) for n in range(COUNT - 2))
    problem = large(more=(big, *small), vms={VmId("big"): DesiredVmState.RUNNING})
    answer = solve(problem)
    assert answer.status is PlanningStatus.SOLVED
    assert moves(answer) >= 1


# A part proves that there is no plan


def test_two_rules_about_one_vm_are_in_conflict() -> None:
    answer = solve(large(fence("v0", "h1", "h2"), off("v0", "h1", "h2")))
    assert conflict(answer) == {"v0-within", "v0-off"}
    assert answer.conflict is not None
    assert answer.conflict.minimal


def test_too_few_hosts_for_vms_that_keep_apart() -> None:
    fences = [fence(f"v{n}", "h1", "h2") for n in range(3)]
    answer = solve(large(apart("v0", "v1", "v2"), *fences), repair=True)
    assert conflict(answer) == {"apart", "v0-within", "v1-within", "v2-within"}
    assert answer.conflict is not None
    assert answer.conflict.codes[0] == "too-few-hosts"
    assert answer.conflict.why[0].startswith("apart ")
    assert figures(answer.conflict.why[0])[0] == 3


def test_a_host_that_must_be_offline_cannot_run_vms() -> None:
    problem = large(fence("v1", "h1"), hosts={HostId("h1"): DesiredHostState.OFFLINE})
    assert conflict(solve(problem)) == {"h1 must be offline", "v1-within"}


def test_all_hosts_together_have_too_little_of_a_resource() -> None:
    comers = tuple(a_vm(f"c{n}", state=VmState.READY, consumption={"x": 9}) for n in range(300))
    aims = {vm.id: DesiredVmState.RUNNING for vm in comers}
    answer = solve(large(more=comers, taken=7, vms=aims))
    assert answer.status is PlanningStatus.UNSAT
    assert answer.conflict is not None
    assert answer.conflict.codes == ("no-capacity",)
    assert "7,209 of x" in answer.conflict.why[0]
    assert "7,200" in answer.conflict.why[0]
    assert len(answer.conflict.conditions) == 241


def test_a_part_claims_nothing_about_rules_on_all_vms() -> None:
    """The number of running VMs on a host depends on VMs of all parts."""
    empty = a_rule("RunningCapacity", ns=["h0", "h1"], nb=0)
    answer = solve(large(empty, fence("v0", "h0", "h1")))
    assert (answer.status, answer.conflict) == (PlanningStatus.TIMEOUT, None)


def test_a_vm_that_grows_beyond_a_common_limit_makes_all_vms_misplaced() -> None:
    """A cached sum must be computed again for the desired state."""
    names = [f"h{number}" for number in range(20)]
    hosts = [a_host(name, capacity={"x": 10}) for name in (*names, "spare")]
    vms = [a_vm(f"v-{name}", name, consumption={"x": 1}) for name in names]
    rules = [
        a_rule("ResourceCapacity", "few", ns=names, id="x", qty=20),
        a_rule("Preserve", "more", v="v-h3", id="x", amount=2),
    ]
    task = PlanningTask.of(a_problem(hosts, vms, *rules))
    assert misplaced_vms(task, as_desired(task)) == {vm.id for vm in vms}


def test_a_large_problem_without_reservations_has_a_plan() -> None:
    hosts = [a_host(f"h{number}") for number in range(50)]
    vms = [a_vm(f"v{number}", f"h{number}") for number in range(50)]
    assert len(hosts) * len(vms) > SMALL_MAX
    answer = solve(a_problem(hosts, vms, fence("v1", "h7")))
    assert answer.plan is not None
    assert [step.footprint.target for step in answer.plan.steps] == ["h7"]


def test_an_overfull_host_lacks_nothing_for_a_vm_without_needs() -> None:
    hosts = [a_host("h1", capacity={"x": 1}), a_host("h2", capacity={"x": 3})]
    vms = [a_vm("v1", "h1", consumption={"x": 2}), a_vm("v2", "h2"), a_vm("v3", "h2")]
    task = PlanningTask.of(a_problem(hosts, vms))
    finder = CandidateFinder(task, as_desired(task))
    assert finder.closest_fit(vms[1].id, 2) == ["h1", "h2"]
    assert finder.closest_fit(vms[0].id, 2) == ["h2"]
