"""Problems on which BtrPlace fails, by the numbers of its issues; the planner solves them all."""

from __future__ import annotations

from builders import a_host, a_vm
from equipoise.model.action import Migrate, PowerOff
from equipoise.model.host import HostState
from equipoise.model.problem import ActionDuration, DesiredHostState
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import VmState
from equipoise.plan.exact.judge import judge_plan
from equipoise.plan.exact.result import PlanningStatus
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.task import HostCondition, PlanningTask
from planning import SECOND, a_problem, a_rule, fence, off


def test_25_a_host_with_sleeping_vms_is_not_shut_down() -> None:
    asleep = a_vm("v1", "h1", state=VmState.SLEEPING)
    problem = a_problem(
        [a_host("h1"), a_host("h2")], [asleep], hosts={HostId("h1"): DesiredHostState.OFFLINE}
    )
    answer = solve(problem)
    assert answer.status is PlanningStatus.UNSAT
    assert answer.conflict is not None
    (condition,) = answer.conflict.conditions
    assert isinstance(condition, HostCondition)
    assert (condition.host, condition.state) == ("h1", HostState.STANDBY)
    assert answer.conflict.codes[0] == "condition-conflict"


def test_44_a_vm_changes_its_group_of_hosts_under_a_continuous_rule() -> None:
    rules = [
        a_rule("Among", vs=["v1", "v2"], parts=[["h1"], ["h2"]], continuous=True),
        off("v1", "h1"),
    ]
    vms = [a_vm("v1", "h1"), a_vm("v2")]
    answer = solve(a_problem([a_host("h1"), a_host("h2")], vms, *rules))
    assert answer.status is PlanningStatus.SOLVED
    both = [a_vm("v1", "h1"), a_vm("v2", "h1")]
    apart_for_a_moment = solve(a_problem([a_host("h1"), a_host("h2")], both, *rules))
    assert apart_for_a_moment.plan is not None
    ends = {step.end_ms for step in apart_for_a_moment.plan.steps}
    assert len(ends) == 1, "both arrive at the same instant, so the rule holds at every moment"


def test_170_sixteen_vms_on_four_hosts_are_solved() -> None:
    hosts = [a_host(f"h{place}", capacity={"x": 40}) for place in range(4)]
    vms = [a_vm(f"v{place}", "h0", consumption={"x": 2}) for place in range(16)]
    rules = [a_rule("RunningCapacity", f"c{place}", ns=[f"h{place}"], nb=4) for place in range(4)]
    problem = a_problem(hosts, vms, *rules)
    answer = solve(problem)
    assert answer.plan is not None
    assert len(answer.plan.steps) == 12
    assert judge_plan(PlanningTask.of(problem), answer.plan) == ()


def test_248_and_362_two_full_hosts_swap_their_vms_over_a_third() -> None:
    hosts = [a_host(name, capacity={"x": 10}) for name in ("h1", "h2", "h3")]
    vms = [a_vm("v1", "h1", consumption={"x": 7}), a_vm("v2", "h2", consumption={"x": 7})]
    answer = solve(a_problem(hosts, vms, fence("v1", "h2"), fence("v2", "h1")))
    assert answer.plan is not None
    assert [type(step.action) for step in answer.plan.steps] == [Migrate] * 3


def test_248_a_placement_without_a_feasible_order_has_a_reason() -> None:
    hosts = [a_host(name, capacity={"x": 10}) for name in ("h1", "h2")]
    vms = [a_vm("v1", "h1", consumption={"x": 7}), a_vm("v2", "h2", consumption={"x": 7})]
    answer = solve(a_problem(hosts, vms, fence("v1", "h2"), fence("v2", "h1")))
    assert answer.conflict is not None
    assert answer.conflict.codes[-1] == "no-capacity"


def test_314_a_count_of_running_vms_holds_at_every_moment() -> None:
    """A migrating VM runs on its source until its end, so it is never counted twice."""
    rules = [
        a_rule("RunningCapacity", "few", ns=["h1", "h2"], nb=2, continuous=True),
        off("v1", "h1"),
    ]
    vms = [a_vm("v1", "h1"), a_vm("v2", "h2")]
    answer = solve(a_problem([a_host("h1"), a_host("h2")], vms, *rules))
    assert answer.status is PlanningStatus.SOLVED
    one_each = [
        a_rule("RunningCapacity", "one", ns=["h2"], nb=1, continuous=True),
        fence("v1", "h2"),
        off("v2", "h2"),
    ]
    slow = SECOND | {ActionKind.MIGRATE: ActionDuration(ms=1000, of={"v2": 5000})}
    swapped = solve(a_problem([a_host("h1"), a_host("h2")], vms, *one_each, durations=slow))
    assert swapped.plan is not None
    ends = {step.footprint.vm: step.end_ms for step in swapped.plan.steps}
    assert ends[VmId("v2")] <= ends[VmId("v1")], "v2 leaves h2 before v1 arrives"


def test_25_a_host_is_shut_down_once_its_sleeping_vm_is_killed() -> None:
    asleep = a_vm("v1", "h1", state=VmState.SLEEPING)
    rule = a_rule("Killed", v="v1")
    problem = a_problem(
        [a_host("h1"), a_host("h2")], [asleep], rule, hosts={HostId("h1"): DesiredHostState.OFFLINE}
    )
    answer = solve(problem)
    assert answer.plan is not None
    assert isinstance(answer.plan.steps[-1].action, PowerOff)
