"""Migrations over a network: how fast they are, and who waits for whom."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.model.action import Migrate
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import Duration, Network, Problem
from equipoise.model.problem.network import Link, Switch
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, PlanId, ResourceName, StepId, VmId
from equipoise.plan.exact.answer import Answer, Status
from equipoise.plan.exact.judging import judge_plan
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.task import Task
from equipoise.plan.exact.timeline.routes import Routes
from planning import a_problem, fence


def a_link(name: str, switch: str, mbps: int = 1000, **end: str) -> Link:
    ends: dict[str, Any] = end
    return Link(id=ResourceName(name), switch=ResourceName(switch), capacity_mbps=mbps, **ends)


def star(*hosts: str, **capacity: int) -> Network:
    """All hosts at one switch, with links of 1,000 Mbit/s or as said."""
    links = tuple(
        a_link(f"l-{host}", "core", capacity.get(host, 1000), host=host) for host in hosts
    )
    return Network(switches=(Switch(id=ResourceName("core")),), links=links)


def moving(network: Network, *moves: tuple[str, str, str], **fields: Any) -> Problem:
    """VMs of 1,250 MB, each of which takes ten seconds at 1,000 Mbit/s and has to move."""
    hosts = [a_host(name) for name in ("h1", "h2", "h3", "h4")]
    vms = [a_vm(vm, source, memory_mib=1192) for vm, source, _ in moves]
    rules = [fence(vm, target) for vm, _, target in moves]
    estimates = Estimates(migration_ms=1, migration_mib_per_s=10**6)
    given = {"durations": {}, "estimates": estimates, "grid_ms": 1000, "network": network}
    return a_problem(hosts, vms, *rules, **given | fields)


def times(answer: Answer) -> dict[str, tuple[int, int]]:
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


def test_those_who_share_a_link_wait_for_each_other() -> None:
    problem = moving(star("h1", "h2", "h3", "h4"), ("v1", "h1", "h2"), ("v2", "h1", "h3"))
    answer = solve(problem, optimise=True)
    assert sorted(times(answer).values()) == [(0, 10), (10, 20)]


def test_those_who_share_nothing_go_at_once_and_a_link_has_two_directions() -> None:
    problem = moving(star("h1", "h2", "h3", "h4"), ("v1", "h1", "h2"), ("v2", "h2", "h1"))
    assert set(times(solve(problem, optimise=True)).values()) == {(0, 10)}


def test_two_narrow_migrations_share_a_wide_link() -> None:
    network = star("h1", "h2", "h3", "h4", h2=500, h3=500)
    problem = moving(network, ("v1", "h1", "h2"), ("v2", "h1", "h3"))
    assert set(times(solve(problem, optimise=True)).values()) == {(0, 20)}


def test_a_switch_may_be_the_bottleneck() -> None:
    links = star("h1", "h2", "h3", "h4").links
    slow = Network(switches=(Switch(id=ResourceName("core"), capacity_mbps=1000),), links=links)
    problem = moving(slow, ("v1", "h1", "h2"), ("v2", "h3", "h4"))
    assert sorted(times(solve(problem, optimise=True)).values()) == [(0, 10), (10, 20)]


def test_nobody_goes_where_no_links_lead() -> None:
    islands = Network(
        switches=(Switch(id=ResourceName("a")), Switch(id=ResourceName("b"))),
        links=(
            *(a_link(f"l-{host}", "a", host=host) for host in ("h1", "h2")),
            *(a_link(f"l-{host}", "b", host=host) for host in ("h3", "h4")),
        ),
    )
    assert solve(moving(islands, ("v1", "h1", "h3"))).status is Status.UNSAT
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


def test_a_vm_has_its_own_time_if_it_is_given_one() -> None:
    problem = moving(star("h1", "h2", "h3", "h4"), ("v1", "h1", "h2"))
    given = {ActionKind.MIGRATE: Duration(of={"v1": 3000})}
    assert times(solve(problem.but(durations=given), optimise=True)) == {"v1": (0, 3)}


def test_what_comes_on_top_of_copying_can_be_given() -> None:
    problem = moving(star("h1", "h2", "h3", "h4"), ("v1", "h1", "h2"))
    given = {ActionKind.MIGRATE: Duration(ms=5000, of={"v2": 1})}
    assert times(solve(problem.but(durations=given), optimise=True)) == {"v1": (0, 15)}


@pytest.mark.parametrize(("second", "refused"), [(0, True), (9_999, True), (10_000, False)])
def test_the_judge_looks_at_the_links_by_itself(second: int, refused: bool) -> None:
    problem = moving(star("h1", "h2", "h3", "h4"), ("v1", "h1", "h2"), ("v2", "h1", "h3"))
    steps = (
        a_move("s1", "v1", "h1", "h2", 0),
        a_move("s2", "v2", "h1", "h3", second),
    )
    wrong = judge_plan(Task.of(problem), Plan(id=PlanId("p"), steps=steps))
    assert [one.constraint for one in wrong] == (["network"] if refused else [])


def a_move(name: str, vm: str, source: str, target: str, start_ms: int) -> Step:
    action = Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
    return Step(id=StepId(name), action=action, start_ms=start_ms, end_ms=start_ms + 10_000)
