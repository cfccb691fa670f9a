"""A replaceable VM is reinstantiated on another host where that is better than a migration."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.model.action import Migrate, Reinstantiate
from equipoise.model.action_durations import Estimates
from equipoise.model.problem import ActionDuration, Network, ObjectiveMeasure, PlanningProblem
from equipoise.model.problem.problem import ActionKind, NetworkLink, NetworkSwitch, ProblemDurations
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.vm import CpuSettings
from equipoise.plan.exact.accept import accepts_plan
from equipoise.plan.exact.result import PlanningResult, PlanningStatus
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.task import PlanningTask
from equipoise.plan.exact.timeline.schedules import move_kinds_of
from planning import SECOND, a_problem, a_rule, fence

NOT_CREATED = 'NotCreated(v : vms) discrete ::= !(a : actions(v)) kind(a) /= "reinstantiate"'
V1, H1, H2 = VmId("v1"), HostId("h1"), HostId("h2")


def leaving(migrate_s: int = 1, create_s: int = 1, *rules: Any, **fields: Any) -> PlanningProblem:
    """Return a problem with a replaceable VM that must leave its host."""
    lasting = {
        ActionKind.MIGRATE: ActionDuration(ms=1000 * migrate_s),
        ActionKind.REINSTANTIATE: ActionDuration(ms=1000 * create_s),
    }
    vm = a_vm("v1", "h1", template="debian", replaceable=fields.pop("replaceable", True))
    given = {"durations": SECOND | lasting} | fields
    return a_problem([a_host("h1"), a_host("h2")], [vm], fence("v1", "h2"), *rules, **given)


def only_action(answer: PlanningResult) -> Any:
    assert answer.status is PlanningStatus.SOLVED
    assert answer.plan is not None
    (step,) = answer.plan.steps
    return step.action


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (leaving(migrate_s=5, create_s=4), Reinstantiate),
        (leaving(migrate_s=4, create_s=5), Migrate),
        (leaving(migrate_s=4, create_s=4), Migrate),
        (leaving(migrate_s=5, create_s=4, replaceable=False), Migrate),
        (leaving(1, 2, objective=(ObjectiveMeasure.MOVED_MEMORY,)), Reinstantiate),
        (leaving(1, 2, a_rule("MaxMoves", v="v1", nb=0)), Reinstantiate),
        (leaving(2, 1, a_rule("NotCreated", v="v1"), specification=NOT_CREATED), Migrate),
    ],
)
def test_the_better_kind_of_move_is_chosen(problem: PlanningProblem, kind: type[Any]) -> None:
    answer = solve(problem, optimise=True)
    assert only_action(answer) == kind(vm=V1, source=H1, target=H2)
    assert answer.plan is not None
    assert accepts_plan(PlanningTask.of(problem), answer.plan)


def test_by_default_it_takes_as_long_as_its_parts() -> None:
    lasting = {
        ActionKind.MIGRATE: ActionDuration(ms=9000),
        ActionKind.FORGE: ActionDuration(ms=1000, of={"v1": 3000}),
        ActionKind.BOOT: ActionDuration(ms=2000),
        ActionKind.SHUTDOWN: ActionDuration(ms=1000),
    }
    answer = solve(leaving(durations=lasting), optimise=True)
    assert answer.plan is not None
    assert [(step.start_ms, step.end_ms) for step in answer.plan.steps] == [(0, 6000)]


def test_a_reinstantiation_counts_as_a_migration() -> None:
    vms = [a_vm(name, "h1", template="debian", replaceable=True) for name in ("v1", "v2")]
    hosts = [a_host("h1"), a_host("h2")]
    apart = a_rule("Spread", vs=["v1", "v2"])
    answer = solve(
        a_problem(hosts, vms, apart, objective=(ObjectiveMeasure.MIGRATIONS,)), optimise=True
    )
    assert answer.goals == (1,)


def test_over_a_slow_link_one_vm_is_reinstantiated_while_another_migrates() -> None:
    vms = [
        a_vm("v1", "h1", memory_mib=1192, template="debian", replaceable=True),
        a_vm("v2", "h1", memory_mib=1192),
    ]
    links = tuple(
        NetworkLink(
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
        network=Network(switches=(NetworkSwitch(id=ResourceName("core")),), links=links),
        durations={ActionKind.REINSTANTIATE: ActionDuration(ms=15_000)},
        estimates=Estimates(migration_ms=1, migration_mib_per_s=10**6),
        grid_ms=1000,
        objective=(ObjectiveMeasure.MAKESPAN,),
    )
    answer = solve(problem, optimise=True)
    assert answer.plan is not None
    kinds = {step.footprint.vm: type(step.action) for step in answer.plan.steps}
    assert kinds == {"v1": Reinstantiate, "v2": Migrate}
    assert answer.goals == (15_000,)


def test_two_vms_swap_hosts_although_they_do_not_fit_together() -> None:
    """They use a third host, whether they migrate or are reinstantiated."""
    cpu = CpuSettings(reservation_mhz=900)
    vms = [
        a_vm("v1", "h1", template="debian", replaceable=True, cpu=cpu),
        a_vm("v2", "h2", template="debian", replaceable=True, cpu=cpu),
    ]
    hosts = [a_host(name, cores=1, mhz_per_core=1000) for name in ("h1", "h2", "h3")]
    rules = [fence("v1", "h2"), fence("v2", "h1")]
    durations = SECOND | {ActionKind.MIGRATE: ActionDuration(ms=3000)}
    answer = solve(a_problem(hosts, vms, *rules, durations=durations), optimise=True)
    assert answer.plan is not None
    kinds = [type(step.action) for step in answer.plan.steps]
    assert kinds == [Reinstantiate] * 3


def test_both_kinds_of_move_are_searched_only_where_either_may_be_better() -> None:
    def kinds(problem: PlanningProblem) -> int:
        task = PlanningTask.of(problem)
        durations = ProblemDurations(problem, task.snapshot)
        return len(move_kinds_of(task.snapshot.vms[V1], task, durations, over_links=False))

    assert kinds(leaving(2, 1)) == kinds(leaving(1, 2)) == kinds(leaving(replaceable=False)) == 1
    assert kinds(leaving(1, 2, objective=(ObjectiveMeasure.MOVED_MEMORY,))) == 2
    assert kinds(leaving(1, 2, a_rule("MaxMoves", v="v1", nb=0))) == 2
