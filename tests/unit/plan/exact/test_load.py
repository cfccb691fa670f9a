"""Plans know load: a drain spreads VMs over the less loaded hosts."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_vm, an_inventory
from equipoise.documents.plan import fullest_hosts, solve_document
from equipoise.model.host import HostState, RequestedHostState
from equipoise.model.plan import ConcurrencyLimits
from equipoise.model.problem import ObjectiveMeasure, PlanningProblem
from equipoise.model.vm import Demand
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.solver import SearchBudget, SolverResult, SolverStatus, solve_model
from planning import a_rule, hosts, moves


def a_drain(vms: int, mhz: int = 760, large: int = 10) -> PlanningProblem:
    """A host is drained; two hosts of its size and large idle ones could take its VMs."""
    hosts = [
        a_host("h0", cores=32, memory_mib=65536, requested=RequestedHostState.MAINTENANCE),
        *(a_host(f"s{n}", cores=8, memory_mib=65536) for n in range(2)),
        *(a_host(f"x{n}", cores=32, memory_mib=262144) for n in range(large)),
    ]
    demand = Demand(cpu_mhz=mhz, memory_mib=512)
    leaving = [a_vm(f"v{n}", "h0", demand=demand) for n in range(vms)]
    # All moves may run at once, so that the search has nothing but the hosts to decide.
    limits = ConcurrencyLimits(actions_per_host=64, actions_total=64)
    return PlanningProblem(cluster=an_inventory(*hosts, vms=leaving, limits=limits))


@pytest.mark.parametrize("repair", [True, False])
def test_a_drain_fills_no_host_while_others_idle(repair: bool) -> None:
    problem = a_drain(40)
    result = solve(problem, SearchBudget(work=20.0), repair=repair)
    rows = fullest_hosts(result, problem, 13)
    assert rows[0].host == "h0"
    assert rows[0].cpu_before == pytest.approx(0.95)
    assert rows[0].cpu_after == 0.0
    assert max(row.cpu_after for row in rows) < 0.5
    assert result.overload == 0


def test_the_document_names_the_fullest_hosts_before_and_after() -> None:
    problem = a_drain(4, large=0)
    result = solve(problem, optimise=True)
    document = solve_document(result, problem, load_s=0.0, wall_s=0.0)
    assert document.overload == 0
    shares = {row.host: (row.cpu_before, row.cpu_after) for row in document.fullest}
    assert shares == {"h0": (0.095, 0.0), "s0": (0.0, 0.19), "s1": (0.0, 0.19)}
    idle = an_inventory(*problem.cluster.hosts, vms=[a_vm("v", "h0")])
    quiet = problem.but(cluster=idle)
    assert solve_document(solve(quiet), quiet, load_s=0.0, wall_s=0.0).fullest == ()


def test_an_overload_that_no_plan_avoids_is_reported() -> None:
    problem = a_drain(3, mhz=9000, large=0)
    result = solve(problem)
    assert result.plan is not None
    # Two hosts of 8,000 MHz: one takes one VM of 9,000 MHz, the other one two of them.
    assert result.overload == 125 + 1250


def test_a_standby_host_is_not_woken_for_load_alone() -> None:
    """The goals of the problem are primary: a wake ends later than the moves alone."""
    hosts = [
        a_host("a", requested=RequestedHostState.MAINTENANCE),
        a_host("b"),
        a_host("c", state=HostState.STANDBY),
    ]
    demand = Demand(cpu_mhz=3000)
    vms = [a_vm("v", "a", demand=demand), a_vm("w", "b", demand=demand)]
    problem = PlanningProblem(cluster=an_inventory(*hosts, vms=vms))
    assert solve(problem, optimise=True).overload == 500
    woken = problem.but(objective=(ObjectiveMeasure.MIGRATIONS,))
    assert solve(woken, optimise=True).overload == 0


def test_a_plan_stays_if_the_searches_after_its_goals_find_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their goals have variables that the plan's own solution does not know."""

    def without_results(*given: Any) -> SolverResult:
        is_for_a_goal = given[3] is not None
        return solve_model(*given) if is_for_a_goal else SolverResult(SolverStatus.UNKNOWN)

    monkeypatch.setattr("equipoise.plan.exact.solve.solve_model", without_results)
    demanding = [a_vm(f"v{n}", "h0", demand=Demand(cpu_mhz=100)) for n in range(3)]
    at_most_two = a_rule("MaxPerHost", vs=["v0", "v1", "v2"], nb=2)
    cluster = an_inventory(*hosts("h0", "h1"), vms=demanding, rules=[at_most_two])
    goal = (ObjectiveMeasure.MIGRATIONS,)
    assert moves(solve(PlanningProblem(cluster=cluster, objective=goal))) == 1
