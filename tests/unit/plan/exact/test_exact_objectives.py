"""Goals: the first goal counts most, and no plan has a useless action."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.errors import InvalidInput
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.model.host import HostState, PowerProfile
from equipoise.model.problem import ActionDuration, ObjectiveMeasure
from equipoise.model.problem.problem import ActionKind
from equipoise.model.vm import CpuSettings, MemorySettings
from equipoise.plan.exact.solve import solve
from planning import SECOND, a_problem, a_rule, apart, does, fence, hosts, moves


def test_the_first_goal_counts_before_the_second() -> None:
    """Fewest hosts first: both VMs end on one; then fewest migrations: one of them moves."""
    vms = [a_vm("v1", "h1"), a_vm("v2", "h2")]
    problem = a_problem(hosts("h1", "h2"), vms)
    together = problem.but(objective=(ObjectiveMeasure.HOSTS_USED, ObjectiveMeasure.MIGRATIONS))
    answer = solve(together, optimise=True)
    assert (answer.optimal, answer.goals, moves(answer)) == (True, (1, 1), 1)
    lazy = problem.but(objective=(ObjectiveMeasure.MIGRATIONS, ObjectiveMeasure.HOSTS_USED))
    answer = solve(lazy, optimise=True)
    assert (answer.goals, moves(answer)) == ((0, 2), 0)


def test_goals_with_weights_count_together() -> None:
    vms = [a_vm("v1", "h1"), a_vm("v2", "h2")]
    problem = a_problem(hosts("h1", "h2"), vms)
    dear = problem.but(
        objective=({ObjectiveMeasure.HOSTS_USED: 1, ObjectiveMeasure.MIGRATIONS: 2},)
    )
    assert moves(solve(dear, optimise=True)) == 0
    cheap = problem.but(
        objective=({ObjectiveMeasure.HOSTS_USED: 2, ObjectiveMeasure.MIGRATIONS: 1},)
    )
    assert moves(solve(cheap, optimise=True)) == 1


def test_moved_memory_may_be_less_with_more_migrations() -> None:
    vms = [a_vm("large", "h1", memory_mib=4096), a_vm("s1", "h2"), a_vm("s2", "h2")]
    rule = a_rule("Gather", vs=["large", "s1", "s2"])
    problem = a_problem(hosts("h1", "h2"), vms, rule)
    least = solve(problem.but(objective=(ObjectiveMeasure.MOVED_MEMORY,)), optimise=True)
    assert (least.goals, moves(least)) == ((2048,), 2)
    fewest = solve(problem.but(objective=(ObjectiveMeasure.MIGRATIONS,)), optimise=True)
    assert (fewest.goals, does(fewest)) == ((1,), ["migrate large from h1 to h2"])


def test_energy_is_saved_by_switching_off_unused_hosts() -> None:
    power = PowerProfile(idle_watts=100, peak_watts=200, standby_watts=5)
    vms = [a_vm("v1", "h1", cpu=CpuSettings(reservation_mhz=1000)), a_vm("v2", "h2")]
    problem = a_problem(
        hosts("h1", "h2", power=power), vms, objective=(ObjectiveMeasure.ENERGY,), horizon_s=60
    )
    answer = solve(problem, optimise=True)
    assert answer.plan is not None
    assert any(isinstance(step.action, PowerOff) for step in answer.plan.steps)
    assert answer.goals == ((100 + 25 + 5) * 1000,)


def test_the_fullest_host_is_relieved() -> None:
    half: dict[str, Any] = {"memory": MemorySettings(reservation_mib=8192)}
    vms = [a_vm("v1", "h1", **half), a_vm("v2", "h1", **half)]
    problem = a_problem(hosts("h1", "h2"), vms, objective=(ObjectiveMeasure.IMBALANCE,))
    answer = solve(problem, optimise=True)
    assert (answer.goals, moves(answer)) == ((500,), 1)


def test_many_small_shares_add_up() -> None:
    machines = [a_host(name, capacity={"x": 10_000}) for name in ("h1", "h2")]
    vms = [a_vm(f"v{number}", "h1", consumption={"x": 9}) for number in range(20)]
    problem = a_problem(machines, vms, objective=(ObjectiveMeasure.IMBALANCE,))
    answer = solve(problem, optimise=True)
    assert (answer.goals, moves(answer)) == ((9,), 10)


def test_a_growing_vm_counts_with_its_final_size() -> None:
    vm = a_vm("v1", "h1", consumption={"x": 1})
    grown = a_rule("Preserve", v="v1", id="x", amount=8)
    problem = a_problem(
        [a_host("h1", capacity={"x": 10})], [vm], grown, objective=(ObjectiveMeasure.IMBALANCE,)
    )
    assert solve(problem, optimise=True).goals == (800,)


def test_the_imbalance_of_an_overfull_host_is_counted() -> None:
    machines = [a_host("h1", capacity={"x": 1}), a_host("h2")]
    vms = [a_vm("v1", "h1", consumption={"x": 1001}), a_vm("v2", "h1")]
    problem = a_problem(machines, vms, fence("v2", "h2"), objective=(ObjectiveMeasure.IMBALANCE,))
    assert solve(problem, optimise=True).goals == (1_001_000,)


def test_an_objective_that_is_too_large_is_refused() -> None:
    slow = SECOND | {ActionKind.MIGRATE: ActionDuration(ms=10**12)}
    problem = a_problem(
        hosts("h1", "h2"),
        [a_vm("v1", "h1")],
        fence("v1", "h2"),
        durations=slow,
        objective=({ObjectiveMeasure.MTTR: 10**7},),
    )
    with pytest.raises(InvalidInput) as caught:
        solve(problem)
    assert [mistake.code for mistake in caught.value.problems] == ["number-too-large"]


HOSTS = [
    *(a_host(name) for name in ("h1", "h2", "h3")),
    *(a_host(name, state=HostState.STANDBY) for name in ("h4", "h5")),
]
VMS = [a_vm("v1", "h1"), a_vm("v2", "h2")]
ABOUT_ACTIONS = [
    ObjectiveMeasure.MTTR,
    ObjectiveMeasure.MIGRATIONS,
    ObjectiveMeasure.MOVED_MEMORY,
    ObjectiveMeasure.MAKESPAN,
]
OPTIONS: list[dict[str, Any]] = [{}, {"optimise": True}, {"repair": True}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("measure", ABOUT_ACTIONS)
def test_a_satisfied_problem_has_an_empty_plan(
    measure: ObjectiveMeasure, options: dict[str, Any]
) -> None:
    problem = a_problem(HOSTS, VMS, apart("v1", "v2", hard=False), objective=(measure,))
    answer = solve(problem, **options)
    assert answer.plan is not None
    assert answer.plan.steps == ()


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("measure", list(ObjectiveMeasure))
def test_only_a_vm_that_must_move_moves(measure: ObjectiveMeasure, options: dict[str, Any]) -> None:
    soft = apart("v1", "v2", hard=False)
    problem = a_problem(HOSTS, VMS, fence("v1", "h3"), soft, objective=(measure,))
    answer = solve(problem, **options)
    assert answer.plan is not None
    moves = [step.action for step in answer.plan.steps if isinstance(step.action, Migrate)]
    assert not [step for step in answer.plan.steps if isinstance(step.action, PowerOn)]
    assert len(moves) == 1
    assert all(step.start_ms == 0 for step in answer.plan.steps if step.action in moves)


def test_a_host_is_emptied_with_one_migration() -> None:
    problem = a_problem(HOSTS, VMS, objective=(ObjectiveMeasure.HOSTS_USED,))
    answer = solve(problem, optimise=True)
    assert answer.goals == (1,)
    assert answer.plan is not None
    assert len(answer.plan.steps) == 1
