"""Goals: what is to be as small as possible, and what of it counts first."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.errors import InvalidInput
from equipoise.model.action import PowerOff
from equipoise.model.host import PowerFigures
from equipoise.model.problem import Duration, Measure
from equipoise.model.problem.problem import ActionKind
from equipoise.model.vm import CpuSettings, MemorySettings
from equipoise.plan.exact.solve import solve
from planning import SECOND, a_problem, a_rule, does, fence, hosts, moves


def test_the_first_goal_counts_before_the_second() -> None:
    """Fewest hosts first: both VMs end on one; then fewest migrations: one of them moves."""
    vms = [a_vm("v1", "h1"), a_vm("v2", "h2")]
    problem = a_problem(hosts("h1", "h2"), vms)
    together = problem.but(objective=(Measure.HOSTS_USED, Measure.MIGRATIONS))
    answer = solve(together, optimise=True)
    assert (answer.optimal, answer.goals, moves(answer)) == (True, (1, 1), 1)
    lazy = problem.but(objective=(Measure.MIGRATIONS, Measure.HOSTS_USED))
    answer = solve(lazy, optimise=True)
    assert (answer.goals, moves(answer)) == ((0, 2), 0)


def test_goals_with_weights_count_together() -> None:
    vms = [a_vm("v1", "h1"), a_vm("v2", "h2")]
    problem = a_problem(hosts("h1", "h2"), vms)
    dear = problem.but(objective=({Measure.HOSTS_USED: 1, Measure.MIGRATIONS: 2},))
    assert moves(solve(dear, optimise=True)) == 0
    cheap = problem.but(objective=({Measure.HOSTS_USED: 2, Measure.MIGRATIONS: 1},))
    assert moves(solve(cheap, optimise=True)) == 1


def test_memory_that_moves_is_counted_where_moves_are_not() -> None:
    vms = [a_vm("large", "h1", memory_mib=4096), a_vm("s1", "h2"), a_vm("s2", "h2")]
    rule = a_rule("Gather", vs=["large", "s1", "s2"])
    problem = a_problem(hosts("h1", "h2"), vms, rule)
    least = solve(problem.but(objective=(Measure.MOVED_MEMORY,)), optimise=True)
    assert (least.goals, moves(least)) == ((2048,), 2)
    fewest = solve(problem.but(objective=(Measure.MIGRATIONS,)), optimise=True)
    assert (fewest.goals, does(fewest)) == ((1,), ["migrate large from h1 to h2"])


def test_energy_is_saved_by_switching_off_what_is_not_needed() -> None:
    power = PowerFigures(idle_watts=100, peak_watts=200, standby_watts=5)
    vms = [a_vm("v1", "h1", cpu=CpuSettings(reservation_mhz=1000)), a_vm("v2", "h2")]
    problem = a_problem(
        hosts("h1", "h2", power=power), vms, objective=(Measure.ENERGY,), horizon_s=60
    )
    answer = solve(problem, optimise=True)
    assert answer.plan is not None
    assert any(isinstance(step.action, PowerOff) for step in answer.plan.steps)
    assert answer.goals == ((100 + 25 + 5) * 1000,)


def test_the_fullest_host_is_relieved() -> None:
    half: dict[str, Any] = {"memory": MemorySettings(reservation_mib=8192)}
    vms = [a_vm("v1", "h1", **half), a_vm("v2", "h1", **half)]
    problem = a_problem(hosts("h1", "h2"), vms, objective=(Measure.IMBALANCE,))
    answer = solve(problem, optimise=True)
    assert (answer.goals, moves(answer)) == ((500,), 1)


def test_many_small_shares_are_a_large_one() -> None:
    machines = [a_host(name, capacity={"x": 10_000}) for name in ("h1", "h2")]
    vms = [a_vm(f"v{place}", "h1", consumption={"x": 9}) for place in range(20)]
    problem = a_problem(machines, vms, objective=(Measure.IMBALANCE,))
    answer = solve(problem, optimise=True)
    assert (answer.goals, moves(answer)) == ((9,), 10)


def test_who_grows_counts_as_large_as_he_ends() -> None:
    vm = a_vm("v1", "h1", consumption={"x": 1})
    grown = a_rule("Preserve", v="v1", id="x", amount=8)
    problem = a_problem(
        [a_host("h1", capacity={"x": 10})], [vm], grown, objective=(Measure.IMBALANCE,)
    )
    assert solve(problem, optimise=True).goals == (800,)


def test_a_host_may_be_too_full_by_far() -> None:
    machines = [a_host("h1", capacity={"x": 1}), a_host("h2")]
    vms = [a_vm("v1", "h1", consumption={"x": 1001}), a_vm("v2", "h1")]
    problem = a_problem(machines, vms, fence("v2", "h2"), objective=(Measure.IMBALANCE,))
    assert solve(problem, optimise=True).goals == (1_001_000,)


def test_what_cannot_be_counted_is_refused() -> None:
    slow = SECOND | {ActionKind.MIGRATE: Duration(ms=10**12)}
    problem = a_problem(
        hosts("h1", "h2"),
        [a_vm("v1", "h1")],
        fence("v1", "h2"),
        durations=slow,
        objective=({Measure.MTTR: 10**7},),
    )
    with pytest.raises(InvalidInput, match="more than can be counted exactly"):
        solve(problem)
