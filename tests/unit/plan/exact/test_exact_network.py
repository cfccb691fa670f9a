"""Migrations over a network: their speed, and which of them wait for others."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.model.action import Migrate
from equipoise.model.action_durations import Estimates
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import ActionDuration, Network, PlanningProblem
from equipoise.model.problem.problem import ActionKind, NetworkLink, NetworkSwitch
from equipoise.model.quantity import HostId, PlanId, ResourceName, StepId, VmId
from equipoise.plan.exact.judge import judge_plan
from equipoise.plan.exact.result import PlanningResult, PlanningStatus
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.task import PlanningTask
from equipoise.plan.exact.timeline.schedules import Routes
from planning import a_problem, fence


def a_link(name: str, switch: str, mbps: int = 1000, **end: str) -> NetworkLink:
    ends: dict[str, Any] = end
    return NetworkLink(
        id=ResourceName(name), switch=ResourceName(switch), capacity_mbps=mbps, **ends
    )


def star(*hosts: str, **capacity: int) -> Network:
    """Return a network with all hosts at one switch; links have 1,000 Mbit/s by default."""
    links = tuple(
        a_link(f"l-{host}", "core", capacity.get(host, 1000), host=host) for host in hosts
    )
    return Network(switches=(NetworkSwitch(id=ResourceName("core")),), links=links)


def moving(network: Network, *moves: tuple[str, str, str], **fields: Any) -> PlanningProblem:
    """Return VMs of 1,250 MB that must move; each copy takes ten seconds at 1,000 Mbit/s."""
    hosts = [a_host(name) for name in ("h1", "h2", "h3", "h4")]
    vms = [a_vm(vm, source, memory_mib=1192) for vm, source, _ in moves]
    rules = [fence(vm, target) for vm, _, target in moves]
    estimates = Estimates(migration_ms=1, migration_mib_per_s=10**6)
    given = {"durations": {}, "estimates": estimates, "grid_ms": 1000, "network": network}
    return a_problem(hosts, vms, *rules, **given | fields)


def times(answer: PlanningResult) -> dict[str, tuple[int, int]]:
    assert answer.plan is not None
    return {
        step.action.vm: (step.start_ms // 1000, step.end_ms // 1000)
        for step in answer.plan.steps
        if isinstance(step.action, Migrate)
    }


def test_a_migration_is_as_fast_as_the_narrowest_link() -> None:
    wide = solve(moving(star("h1", "h2", "h3", "h4"), ("v1", "h1", "h2")), optimise=True)
    assert times(wide) == {"v1": (0, 10)}
    narrow = star("h1", "h2", "h3", "h4", h2=100)
    assert times(solve(moving(narrow, ("v1", "h1", "h2")), optimise=True)) == {"v1": (0, 100)}


def test_migrations_on_one_link_wait_for_each_other() -> None:
    problem = moving(star("h1", "h2", "h3", "h4"), ("v1", "h1", "h2"), ("v2", "h1", "h3"))
    answer = solve(problem, optimise=True)
    assert sorted(times(answer).values()) == [(0, 10), (10, 20)]


def test_a_link_carries_both_directions_at_once() -> None:
    problem = moving(star("h1", "h2", "h3", "h4"), ("v1", "h1", "h2"), ("v2", "h2", "h1"))
    assert set(times(solve(problem, optimise=True)).values()) == {(0, 10)}


def test_two_narrow_migrations_share_a_wide_link() -> None:
    network = star("h1", "h2", "h3", "h4", h2=500, h3=500)
    problem = moving(network, ("v1", "h1", "h2"), ("v2", "h1", "h3"))
    assert set(times(solve(problem, optimise=True)).values()) == {(0, 20)}


def test_a_switch_may_be_the_bottleneck() -> None:
    links = star("h1", "h2", "h3", "h4").links
    slow = Network(
        switches=(NetworkSwitch(id=ResourceName("core"), capacity_mbps=1000),), links=links
    )
    problem = moving(slow, ("v1", "h1", "h2"), ("v2", "h3", "h4"))
    assert sorted(times(solve(problem, optimise=True)).values()) == [(0, 10), (10, 20)]


def test_no_migration_goes_where_no_links_lead() -> None:
    islands = Network(
        switches=(NetworkSwitch(id=ResourceName("a")), NetworkSwitch(id=ResourceName("b"))),
        links=(
            *(a_link(f"l-{host}", "a", host=host) for host in ("h1", "h2")),
            *(a_link(f"l-{host}", "b", host=host) for host in ("h3", "h4")),
        ),
    )
    assert solve(moving(islands, ("v1", "h1", "h3"))).status is PlanningStatus.UNSAT
    joined = Network(
        switches=islands.switches, links=(*islands.links, a_link("trunk", "a", 100, to="b"))
    )
    assert times(solve(moving(joined, ("v1", "h1", "h3")), optimise=True)) == {"v1": (0, 100)}


def test_a_route_names_every_lane_on_it_once() -> None:
    routes = Routes(star("h1", "h2", "h3", "h4", h2=300))
    route = routes.between(HostId("h1"), HostId("h2"))
    assert route is not None
    assert route.lanes == (("l-h1", "up"), ("l-h2", "down"))
    assert route.mbps == 300


def test_a_vm_may_have_a_given_duration() -> None:
    problem = moving(star("h1", "h2", "h3", "h4"), ("v1", "h1", "h2"))
    given = {ActionKind.MIGRATE: ActionDuration(of={"v1": 3000})}
    assert times(solve(problem.but(durations=given), optimise=True)) == {"v1": (0, 3)}


def test_a_given_duration_adds_to_the_copying() -> None:
    problem = moving(star("h1", "h2", "h3", "h4"), ("v1", "h1", "h2"))
    given = {ActionKind.MIGRATE: ActionDuration(ms=5000, of={"v2": 1})}
    assert times(solve(problem.but(durations=given), optimise=True)) == {"v1": (0, 15)}


@pytest.mark.parametrize(("second", "refused"), [(0, True), (9_999, True), (10_000, False)])
def test_the_judge_checks_the_links_with_its_own_code(second: int, refused: bool) -> None:
    problem = moving(star("h1", "h2", "h3", "h4"), ("v1", "h1", "h2"), ("v2", "h1", "h3"))
    steps = (
        a_move("s1", "v1", "h1", "h2", 0),
        a_move("s2", "v2", "h1", "h3", second),
    )
    found = judge_plan(PlanningTask.of(problem), Plan(id=PlanId("p"), steps=steps))
    assert [(violation.constraint, violation.code) for violation in found] == (
        [("network", "network-overloaded")] if refused else []
    )


def a_move(name: str, vm: str, source: str, target: str, start_ms: int) -> Step:
    action = Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
    return Step(id=StepId(name), action=action, start_ms=start_ms, end_ms=start_ms + 10_000)
