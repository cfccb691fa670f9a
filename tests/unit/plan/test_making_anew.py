"""Who may be made anew elsewhere is, where that is better than to move him."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.model.action import Migrate, Reinstantiate
from equipoise.model.estimate import Estimates
from equipoise.model.problem import Duration, Measure, Network, Problem
from equipoise.model.problem.durations import Durations
from equipoise.model.problem.network import Link, Switch
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.vm import CpuSettings
from equipoise.plan.exact.answer import Answer, Status
from equipoise.plan.exact.impose import accepts
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.task import Task
from equipoise.plan.exact.timeline.moves import ways_to_move
from planning import SECOND, a_problem, a_rule, fence

NOT_ANEW = 'NotAnew(v : vms) discrete ::= !(a : actions(v)) kind(a) /= "reinstantiate"'
V1, H1, H2 = VmId("v1"), HostId("h1"), HostId("h2")


def leaving(migrate_s: int = 1, anew_s: int = 1, *rules: Any, **fields: Any) -> Problem:
    """A replaceable VM that has to leave its host."""
    lasting = {
        ActionKind.MIGRATE: Duration(ms=1000 * migrate_s),
        ActionKind.REINSTANTIATE: Duration(ms=1000 * anew_s),
    }
    vm = a_vm("v1", "h1", template="debian", replaceable=fields.pop("replaceable", True))
    given = {"durations": SECOND | lasting} | fields
    return a_problem([a_host("h1"), a_host("h2")], [vm], fence("v1", "h2"), *rules, **given)


def only_action(answer: Answer) -> Any:
    assert answer.status is Status.SOLVED
    assert answer.plan is not None
    (step,) = answer.plan.steps
    return step.action


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (leaving(migrate_s=5, anew_s=4), Reinstantiate),
        (leaving(migrate_s=4, anew_s=5), Migrate),
        (leaving(migrate_s=4, anew_s=4), Migrate),
        (leaving(migrate_s=5, anew_s=4, replaceable=False), Migrate),
        (leaving(1, 2, objective=(Measure.MOVED_MEMORY,)), Reinstantiate),
        (leaving(1, 2, a_rule("MaxMoves", v="v1", nb=0)), Reinstantiate),
        (leaving(2, 1, a_rule("NotAnew", v="v1"), specification=NOT_ANEW), Migrate),
    ],
)
def test_the_better_way_is_chosen(problem: Problem, kind: type[Any]) -> None:
    answer = solve(problem, optimise=True)
    assert only_action(answer) == kind(vm=V1, source=H1, target=H2)
    assert answer.plan is not None
    assert accepts(Task.of(problem), answer.plan)


def test_without_a_time_of_its_own_it_takes_what_its_parts_take() -> None:
    lasting = {
        ActionKind.MIGRATE: Duration(ms=9000),
        ActionKind.FORGE: Duration(ms=1000, of={"v1": 3000}),
        ActionKind.BOOT: Duration(ms=2000),
        ActionKind.SHUTDOWN: Duration(ms=1000),
    }
    answer = solve(leaving(durations=lasting), optimise=True)
    assert answer.plan is not None
    assert [(one.start_ms, one.end_ms) for one in answer.plan.steps] == [(0, 6000)]


def test_few_migrations_are_not_had_by_making_everybody_anew() -> None:
    vms = [a_vm(name, "h1", template="debian", replaceable=True) for name in ("v1", "v2")]
    hosts = [a_host("h1"), a_host("h2")]
    apart = a_rule("Spread", vs=["v1", "v2"])
    answer = solve(a_problem(hosts, vms, apart, objective=(Measure.MIGRATIONS,)), optimise=True)
    assert answer.goals == (1,)


def test_over_a_slow_link_one_is_made_anew_while_another_migrates() -> None:
    vms = [
        a_vm("v1", "h1", memory_mib=1192, template="debian", replaceable=True),
        a_vm("v2", "h1", memory_mib=1192),
    ]
    links = tuple(
        Link(
            id=ResourceName(f"l-{host}"),
            switch=ResourceName("core"),
            host=host,
            capacity_mbps=1000,
        )
        for host in (H1, H2)
    )
    problem = a_problem(
        [a_host("h1"), a_host("h2")],
        vms,
        fence("v1", "h2"),
        fence("v2", "h2"),
        network=Network(switches=(Switch(id=ResourceName("core")),), links=links),
        durations={ActionKind.REINSTANTIATE: Duration(ms=15_000)},
        estimates=Estimates(migration_ms=1, migration_mib_per_s=10**6),
        grid_ms=1000,
        objective=(Measure.MAKESPAN,),
    )
    answer = solve(problem, optimise=True)
    assert answer.plan is not None
    kinds = {step.footprint.vm: type(step.action) for step in answer.plan.steps}
    assert kinds == {"v1": Reinstantiate, "v2": Migrate}
    assert answer.goals == (15_000,)


def test_two_swap_places_though_neither_fits_beside_the_other() -> None:
    """By way of a third host, whether they migrate or are made anew."""
    cpu = CpuSettings(reservation_mhz=900)
    vms = [
        a_vm("v1", "h1", template="debian", replaceable=True, cpu=cpu),
        a_vm("v2", "h2", template="debian", replaceable=True, cpu=cpu),
    ]
    hosts = [a_host(name, cores=1, mhz_per_core=1000) for name in ("h1", "h2", "h3")]
    rules = [fence("v1", "h2"), fence("v2", "h1")]
    durations = SECOND | {ActionKind.MIGRATE: Duration(ms=3000)}
    answer = solve(a_problem(hosts, vms, *rules, durations=durations), optimise=True)
    assert answer.plan is not None
    kinds = [type(step.action) for step in answer.plan.steps]
    assert kinds == [Reinstantiate] * 3


def test_both_ways_are_looked_at_only_where_either_may_be_the_better_one() -> None:
    def ways(problem: Problem) -> int:
        task = Task.of(problem)
        durations = Durations(problem, task.snapshot)
        return len(ways_to_move(task.snapshot.vms[V1], task, durations, over_links=False))

    assert ways(leaving(2, 1)) == ways(leaving(1, 2)) == ways(leaving(replaceable=False)) == 1
    assert ways(leaving(1, 2, objective=(Measure.MOVED_MEMORY,))) == 2
    assert ways(leaving(1, 2, a_rule("MaxMoves", v="v1", nb=0))) == 2
