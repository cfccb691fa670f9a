"""Small problems with obvious answers: what rules, capacity and schedules mean to the planner."""

from __future__ import annotations

from typing import Any

import pytest

import planning
from builders import a_host, a_vm
from equipoise.model.action import Allocate, Migrate, PowerOff, Resume, Suspend, describe
from equipoise.model.host import Host, HostState, RequestedHostState
from equipoise.model.plan import ConcurrencyLimits, Plan, Step
from equipoise.model.problem import (
    ActionDuration,
    DesiredHostState,
    DesiredVmState,
    ObjectiveMeasure,
    PlanningProblem,
)
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepTogether, Rule, StayOff
from equipoise.model.vm import CpuSettings, Vm, VmState
from equipoise.plan.exact.result import PlanningResult, PlanningStatus
from equipoise.plan.exact.solve import solve, solve_scope
from equipoise.plan.exact.solver import SearchBudget
from equipoise.plan.exact.task import PlanningTask, SearchScope
from plain_planner import PlainPlanner, faults
from planning import SECOND, a_rule, fence

LICENCES = "licences"


def a_problem(hosts: list[Host], vms: list[Vm], /, *rules: Rule, **fields: Any) -> PlanningProblem:
    """Return a problem in which every action takes a second, with a horizon of ten seconds."""
    return planning.a_problem(hosts, vms, *rules, **{"horizon_s": 10, **fields})


def taking(name: str, host: str | None = None, amount: int = 1, **fields: Any) -> Vm:
    """Return a VM that takes licences."""
    return a_vm(name, host, consumption={LICENCES: amount}, **fields)


def offering(name: str, amount: int = 1, **fields: Any) -> Host:
    """Return a host that has licences."""
    return a_host(name, capacity={LICENCES: amount}, **fields)


def solved(problem: PlanningProblem) -> PlanningResult:
    """Return the answer of the widest scope; the narrow scopes must have the same status."""
    scope = SearchScope(problem.moves_max)
    answer = solve_scope(PlanningTask.of(problem), scope, SearchBudget(), optimise=True)
    assert solve(problem).status is answer.status
    assert solve(problem, repair=True).status is answer.status
    return answer


def plan_of(problem: PlanningProblem) -> Plan:
    """Return the best plan, which has no violations."""
    answer = solved(problem)
    assert answer.status is PlanningStatus.SOLVED
    assert answer.plan is not None
    assert answer.goals == (PlainPlanner(problem).least(problem.objective[0]),)  # type: ignore[arg-type]
    assert not faults(problem, answer.plan)
    return answer.plan


def has_no_plan(problem: PlanningProblem) -> bool:
    assert PlainPlanner(problem).plan() is None, "the plain planner finds a plan"
    return solved(problem).status is PlanningStatus.UNSAT


def actions_of(plan: Plan) -> list[str]:
    return [describe(step.action) for step in plan.steps]


def the_step(plan: Plan, kind: type, vm: str) -> Step:
    steps = [step for step in plan.steps if isinstance(step.action, kind)]
    (found,) = [step for step in steps if step.footprint.vm == vm]
    return found


# Swaps

SWAP = ([taking("v1", "h1"), taking("v2", "h2")], fence("v1", "h2"), fence("v2", "h1"))
TIGHT = [offering("h1"), offering("h2")]


def test_two_vms_swap_hosts_over_a_third_host() -> None:
    vms, *rules = SWAP
    problem = a_problem(
        [*TIGHT, offering("h3")], vms, *rules, objective=(ObjectiveMeasure.MIGRATIONS,)
    )
    plan = plan_of(problem)
    assert len(plan.steps) == 3
    assert {host for step in plan.steps for host in step.footprint.hosts} == {"h1", "h2", "h3"}


def test_two_vms_do_not_swap_hosts_if_each_may_move_only_once() -> None:
    vms, *rules = SWAP
    assert has_no_plan(a_problem([*TIGHT, offering("h3")], vms, *rules, moves_max=1))


def test_two_vms_do_not_swap_hosts_without_a_third_host() -> None:
    vms, *rules = SWAP
    assert has_no_plan(a_problem(TIGHT, vms, *rules, moves_max=4))


def test_two_vms_swap_hosts_at_once_if_both_hosts_have_capacity_for_both() -> None:
    vms, *rules = SWAP
    plan = plan_of(a_problem([offering("h1", 2), offering("h2", 2)], vms, *rules))
    assert [(step.start_ms, step.end_ms) for step in plan.steps] == [(0, 1000), (0, 1000)]


# Together, at every moment


def together(*, continuous: bool) -> Rule:
    return KeepTogether(id=RuleId("pair"), vms=(VmId("v1"), VmId("v2")), continuous=continuous)


def leaving(*rules: Rule, **fields: Any) -> PlanningProblem:
    """Return a problem in which two VMs must leave a host; the second takes twice as long."""
    durations = {**SECOND, ActionKind.MIGRATE: ActionDuration(ms=1000, of={"v2": 2000})}
    off = StayOff(id=RuleId("off"), vms=(VmId("v1"), VmId("v2")), hosts=(HostId("h1"),))
    vms = [a_vm("v1", "h1"), a_vm("v2", "h1")]
    return a_problem([a_host("h1"), a_host("h2")], vms, off, *rules, durations=durations, **fields)


def test_two_vms_that_are_always_together_arrive_at_the_same_instant() -> None:
    plan = plan_of(leaving(together(continuous=True)))
    ends = {step.end_ms for step in plan.steps}
    assert ends == {2000}
    assert the_step(plan, Migrate, "v1").start_ms == 1000


def test_two_vms_that_are_together_at_the_end_arrive_as_soon_as_they_can() -> None:
    plan = plan_of(leaving(together(continuous=False)))
    assert sorted(step.end_ms for step in plan.steps) == [1000, 2000]


def test_two_vms_that_are_always_together_cannot_leave_one_by_one() -> None:
    assert has_no_plan(
        leaving(together(continuous=True), limits=ConcurrencyLimits(actions_total=1))
    )
    one_at_a_time = a_rule("MaxDisturbed", vs=("v1", "v2"), nb=1, continuous=True)
    assert has_no_plan(leaving(together(continuous=True), one_at_a_time))


@pytest.mark.parametrize(("continuous", "at_once"), [(True, False), (False, True)])
def test_an_arriving_vm_counts_from_its_start(continuous: bool, at_once: bool) -> None:
    pods = {"pods": 1}
    hosts = [a_host(name, capacity=pods) for name in ("h1", "h2", "h3")]
    vms = [a_vm("v1", "h1"), a_vm("v2", "h2")]
    rules = fence("v1", "h2"), fence("v2", "h3"), a_rule("MaxPods", continuous=continuous)
    plan = plan_of(a_problem(hosts, vms, *rules, moves_max=1))
    assert (the_step(plan, Migrate, "v1").start_ms == 0) == at_once


# Hosts that are switched


def test_a_host_with_a_sleeping_vm_is_not_switched_off() -> None:
    hosts, vms = [a_host("h1"), a_host("h2")], [a_vm("v1", "h1", state=VmState.SLEEPING)]
    assert has_no_plan(a_problem(hosts, vms, hosts={"h1": DesiredHostState.OFFLINE}))


def test_a_host_is_switched_off_once_its_sleeping_vm_runs_elsewhere() -> None:
    hosts, vms = [a_host("h1"), a_host("h2")], [a_vm("v1", "h1", state=VmState.SLEEPING)]
    aims = {"vms": {"v1": DesiredVmState.RUNNING}, "hosts": {"h1": DesiredHostState.OFFLINE}}
    assert actions_of(plan_of(a_problem(hosts, vms, **aims))) == [
        "resume v1 from h1 on h2",
        "power off h1",
    ]


def test_a_host_is_switched_off_once_its_sleeping_vm_is_killed() -> None:
    aims = {"vms": {"v1": DesiredVmState.KILLED}, "hosts": {"h1": DesiredHostState.OFFLINE}}
    plan = plan_of(a_problem([a_host("h1")], [a_vm("v1", "h1", state=VmState.SLEEPING)], **aims))
    assert actions_of(plan) == ["kill v1", "power off h1"]


def test_a_vm_that_must_sleep_moves_before_its_host_is_switched_off() -> None:
    aims = {"vms": {"v1": DesiredVmState.SLEEPING}, "hosts": {"h1": DesiredHostState.OFFLINE}}
    plan = plan_of(a_problem([a_host("h1"), a_host("h2")], [a_vm("v1", "h1")], **aims))
    assert the_step(plan, Migrate, "v1").end_ms == 1000
    assert the_step(plan, Suspend, "v1").action == Suspend(vm=VmId("v1"), source=HostId("h2"))


def test_a_standby_host_is_powered_on_for_its_sleeping_vm() -> None:
    hosts = [a_host("h1", state=HostState.STANDBY)]
    vms = [a_vm("v1", "h1", state=VmState.SLEEPING)]
    plan = plan_of(a_problem(hosts, vms, vms={"v1": DesiredVmState.RUNNING}))
    assert actions_of(plan) == ["power on h1", "resume v1 on h1"]


def test_a_host_is_switched_off_so_that_its_agent_sleeps() -> None:
    vms = [a_vm("v1", "h1", agent=True)]
    assert actions_of(
        plan_of(a_problem([a_host("h1")], vms, vms={"v1": DesiredVmState.SLEEPING}))
    ) == ["power off h1"]
    rule = a_rule("AvailabilityZone", v="v1", zone="b")
    plan = plan_of(a_problem([a_host("h1")], vms, rule))
    assert [step.action for step in plan.steps] == [PowerOff(host=HostId("h1"))]


# Capacity


def test_a_vm_moves_before_it_grows() -> None:
    rule = a_rule("Preserve", v="v1", id=LICENCES, amount=2)
    plan = plan_of(a_problem([offering("h1", 1), offering("h2", 2)], [taking("v1", "h1")], rule))
    assert actions_of(plan) == ["migrate v1 from h1 to h2", "allocate 2 licences to v1"]
    assert [step.start_ms for step in plan.steps] == [0, 1000]


def test_a_vm_grows_once_another_has_left() -> None:
    rule = a_rule("Preserve", v="v1", id=LICENCES, amount=2)
    vms = [taking("v1", "h1"), taking("v2", "h1")]
    problem = a_problem([offering("h1", 2)], vms, rule, vms={"v2": DesiredVmState.READY})
    plan = plan_of(problem)
    assert the_step(plan, Allocate, "v1").start_ms == 1000


def test_a_vm_grows_on_a_host_that_is_overfull_of_another_resource() -> None:
    rule = a_rule("Preserve", v="v1", id=LICENCES, amount=2)
    host = offering("h1", 2, cores=1, mhz_per_core=1)
    vm = taking("v1", "h1", cpu=CpuSettings(reservation_mhz=2))
    assert actions_of(plan_of(a_problem([host], [vm], rule))) == ["allocate 2 licences to v1"]


def test_the_vms_of_an_overfull_host_may_stay() -> None:
    vms = [taking("v1", "h1"), taking("v2", "h1")]
    assert plan_of(a_problem(TIGHT, vms)).steps == ()


def test_no_vm_arrives_on_an_overfull_host_before_enough_have_left() -> None:
    vms = [taking("v1", "h1"), taking("v2", "h1"), taking("v3", "h2")]
    hosts = [offering("h1"), offering("h2"), offering("h3", 2)]
    plan = plan_of(a_problem(hosts, vms, fence("v3", "h1")))
    assert len(plan.steps) == 3
    assert the_step(plan, Migrate, "v3").start_ms == 1000
    assert has_no_plan(a_problem([*hosts[:2], offering("h3")], vms, fence("v3", "h1"), moves_max=1))


def test_a_vm_arrives_with_one_of_two_moves_on_a_host_that_was_overfull() -> None:
    hosts = [
        a_host("h1"),
        a_host("h2", requested=RequestedHostState.STANDBY),
        offering("h3", cores=1, mhz_per_core=1),
    ]
    vms = [
        taking("v1", "h2", cpu=CpuSettings(reservation_mhz=1)),
        a_vm("v2", "h3", cpu=CpuSettings(reservation_mhz=2)),
    ]
    assert actions_of(plan_of(a_problem(hosts, vms))) == [
        "migrate v2 from h3 to h1",
        "migrate v1 from h2 to h3",
        "power off h2",
    ]


def test_a_vm_does_not_return_to_a_host_with_too_few_cores() -> None:
    twice = '"""It acts twice."""\nTwice(v : vms) discrete ::= card({a . a : actions(v)}) >= 2\n'
    hosts, vms = [a_host("h1"), a_host("h2", cores=1)], [a_vm("v1", "h2", vcpus=2)]
    rules = fence("v1", "h2"), a_rule("Twice", v="v1")
    problem = a_problem(hosts, vms, *rules, specification=twice)
    assert solved(problem).status is PlanningStatus.UNSAT


def test_limits_count_where_all_times_are_known() -> None:
    aims = {"v1": DesiredVmState.SLEEPING, "v2": DesiredVmState.SLEEPING}
    vms = [a_vm("v1", "h1"), a_vm("v2", "h1")]
    limits = ConcurrencyLimits(actions_total=1)
    assert has_no_plan(
        a_problem([a_host("h1")], vms, vms=aims, horizon_s=1, moves_max=1, limits=limits)
    )
    assert plan_of(a_problem([a_host("h1")], vms, vms=aims, horizon_s=2, limits=limits)).steps


# Pairs


def test_a_pair_that_is_together_may_stay_so() -> None:
    vms = [a_vm("v1", "h1", ft_pair="v2"), a_vm("v2", "h1", ft_pair="v1")]
    assert plan_of(a_problem([a_host("h1"), a_host("h2")], vms)).steps == ()


def test_a_sleeping_vm_of_a_pair_does_not_count_as_running() -> None:
    vms = [
        a_vm("v1", "h1", ft_pair="v2"),
        a_vm("v2", "h1", ft_pair="v1", state=VmState.SLEEPING),
        a_vm("v3"),
    ]
    rules = a_rule("FtApart", continuous=True), a_rule("Seq", "r2", vs=("v3", "v2"))
    aims = {"v2": DesiredVmState.KILLED, "v3": DesiredVmState.RUNNING}
    assert actions_of(plan_of(a_problem([a_host("h1")], vms, *rules, vms=aims))) == [
        "boot v3 on h1",
        "kill v2",
    ]


def test_a_vm_does_not_move_to_the_host_of_its_pair_even_if_that_is_a_sleeping_agent() -> None:
    asleep = a_vm("v2", "h1", ft_pair="v1", agent=True, state=VmState.SLEEPING)
    hosts = [a_host("h1"), a_host("h2", requested=RequestedHostState.STANDBY)]
    assert has_no_plan(a_problem(hosts, [a_vm("v1", "h2", ft_pair="v2"), asleep]))


# Violated rules and contradictory states


@pytest.mark.parametrize("kind", ["KeepApart", "Spread", "SpreadOver"])
def test_a_continuous_rule_that_is_violated_at_the_start_has_no_plan(kind: str) -> None:
    hosts = [a_host("h1", labels={"rack": "a"}), a_host("h2", labels={"rack": "b"})]
    vms = [a_vm("v1", "h1"), a_vm("v2", "h1")]
    given: dict[str, Any] = {"vs": ("v1", "v2")}
    if kind == "SpreadOver":
        given["key"] = "rack"
    assert has_no_plan(a_problem(hosts, vms, a_rule(kind, continuous=True, **given)))
    assert len(plan_of(a_problem(hosts, vms, a_rule(kind, **given))).steps) == 1


def test_a_desired_state_at_every_moment_must_hold_at_the_start() -> None:
    problem = a_problem([a_host("h1")], [a_vm("v1")], a_rule("Running", v="v1", continuous=True))
    assert has_no_plan(problem)


def test_a_rule_about_actions_under_way_is_satisfied_where_all_times_are_known() -> None:
    vms = [a_vm(name, "h1", state=VmState.SLEEPING) for name in ("v1", "v2")]
    aims = {"v1": DesiredVmState.RUNNING, "v2": DesiredVmState.RUNNING}
    fixed: dict[str, Any] = {"vms": aims, "horizon_s": 1, "moves_max": 1}
    boots = a_rule("IoOpsAsCoded", nb=0, continuous=True)
    plan = plan_of(a_problem([a_host("h1")], vms, boots, **fixed))
    assert {type(step.action) for step in plan.steps} == {Resume}
    one_resume = a_rule("MaxConcurrent", ns=("h1",), kind="resume", nb=1, continuous=True)
    assert has_no_plan(a_problem([a_host("h1")], vms, one_resume, **fixed))


def test_groups_of_vms_that_share_no_host_are_separated() -> None:
    hosts, vms = [a_host("h1"), a_host("h2")], [a_vm("v1", "h1"), a_vm("v2", "h1")]
    split = a_rule("Split", parts=(("v1",), ("v2",)))
    assert len(plan_of(a_problem(hosts, vms, split)).steps) == 1
    assert has_no_plan(a_problem(hosts[:1], vms, split))


def test_a_host_is_powered_on_so_that_enough_hosts_are_on() -> None:
    asleep = a_host("h1", state=HostState.STANDBY)
    rule = a_rule("MinOnline", ns=("h1",), nb=1)
    assert actions_of(plan_of(a_problem([asleep], [], rule))) == ["power on h1"]
    assert has_no_plan(a_problem([asleep], [], rule, hosts={"h1": DesiredHostState.OFFLINE}))


def test_contradictory_states_are_a_conflict() -> None:
    rule = a_rule("Sleeping", v="v1")
    problem = a_problem([a_host("h1")], [a_vm("v1", "h1")], rule, vms={"v1": DesiredVmState.READY})
    answer = solve(problem)
    assert answer.status is PlanningStatus.UNSAT
    assert answer.conflict is not None
    assert sorted(condition.title for condition in answer.conflict.conditions) == [
        "r1: v1 must be sleeping",
        "v1 must be ready",
    ]
    assert set(answer.conflict.codes) == {"condition-conflict"}
    assert has_no_plan_by_trying(problem)


@pytest.mark.parametrize(
    ("before", "aim"),
    [
        (VmState.READY, DesiredVmState.SLEEPING),
        (VmState.TERMINATED, DesiredVmState.RUNNING),
        (VmState.INIT, DesiredVmState.RUNNING),
    ],
)
def test_an_unreachable_state_is_a_conflict(before: VmState, aim: DesiredVmState) -> None:
    problem = a_problem([a_host("h1")], [a_vm("v1", state=before)], vms={"v1": aim})
    answer = solve(problem)
    assert answer.status is PlanningStatus.UNSAT
    assert answer.conflict is not None
    assert [condition.title for condition in answer.conflict.conditions] == [f"v1 must be {aim}"]
    assert answer.conflict.codes[-1] in ("unreachable-state", "no-template")
    assert has_no_plan_by_trying(problem)


def has_no_plan_by_trying(problem: PlanningProblem) -> bool:
    return PlainPlanner(problem).plan() is None
