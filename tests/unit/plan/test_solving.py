"""The door of the exact planner: plans, reasons, goals, and what it does with odd problems."""

from __future__ import annotations

from itertools import combinations
from threading import Timer
from time import perf_counter
from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.errors import InvalidInput
from equipoise.model.action import Boot, PowerOn
from equipoise.model.host import HostState
from equipoise.model.plan import Plan
from equipoise.model.problem import Duration, HostAim, Measure, Problem, VmAim
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.vm import MemorySettings, VmState
from equipoise.plan.exact.answer import Status
from equipoise.plan.exact.judging import judge_plan
from equipoise.plan.exact.search import is_possible
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.solver.decide import Effort, Progress
from equipoise.plan.exact.statement import Statement
from equipoise.plan.exact.task import Task
from equipoise.plan.exact.timeline.reach import Reach
from planning import a_problem, a_rule, apart, does, fence, hosts, moves, off

# Reasons


def test_a_conflict_says_how_many_hosts_are_needed_and_how_many_are_left() -> None:
    vms = [a_vm("db1", "h1"), a_vm("db2", "h2"), a_vm("db3", "h3")]
    rules = [apart("db1", "db2", "db3"), *(fence(vm, "h1", "h2") for vm in ("db1", "db2", "db3"))]
    answer = solve(a_problem(hosts("h1", "h2", "h3"), vms, *rules))
    assert answer.status is Status.UNSAT
    assert answer.conflict is not None
    assert answer.conflict.minimal
    assert answer.conflict.why[0] == (
        "apart needs 3 hosts for {db1, db2, db3}, db1-within, db2-within, db3-within leave 2: "
        "{h1, h2}"
    )


def test_of_a_conflict_no_part_is_one() -> None:
    vms = [a_vm("v1", "h1"), a_vm("v2", "h2"), a_vm("v3")]
    rules = [
        apart("v1", "v2", "v3"),
        fence("v1", "h1"),
        off("v2", "h2"),
        off("v3", "h1", "h2"),
        a_rule("MaxOnline", "few", ns=["h1", "h2"], nb=1),
    ]
    problem = a_problem(
        hosts("h1", "h2"), vms, *rules, vms={VmId("v3"): VmAim.RUNNING}, horizon_s=20
    )
    answer = solve(problem)
    assert answer.conflict is not None
    claims = answer.conflict.claims
    task, reach = Task.of(problem), Reach(problem.moves_max)
    assert is_possible(task.with_only(claims), reach, Effort()) is False
    for size in range(len(claims)):
        for some in combinations(claims, size):
            assert is_possible(task.with_only(some), reach, Effort()), [one.title for one in some]


def test_a_lack_of_room_is_told() -> None:
    full: dict[str, Any] = {"memory": MemorySettings(reservation_mib=10_000)}
    vms = [a_vm("v1", "h1", **full), a_vm("v2", **full)]
    answer = solve(a_problem(hosts("h1"), vms, vms={VmId("v2"): VmAim.RUNNING}))
    assert answer.conflict is not None
    assert answer.conflict.why == (
        "v2 is to be running",
        "there is not enough room on the hosts for that",
    )


def test_a_lack_of_time_is_told() -> None:
    problem = a_problem(hosts("h1"), [a_vm("v1")], vms={VmId("v1"): VmAim.RUNNING})
    slow = problem.but(durations={ActionKind.BOOT: Duration(ms=10_000)}, horizon_s=5)
    answer = solve(slow)
    assert answer.conflict is not None
    assert answer.conflict.why[-1] == "it cannot be done within the horizon of 5 s"


# Odd problems have answers too


def test_a_problem_without_vms_has_an_empty_plan() -> None:
    answer = solve(a_problem(hosts("h1"), []))
    assert (answer.status, does(answer)) == (Status.SOLVED, [])


def test_a_problem_without_hosts_has_an_empty_plan_unless_somebody_is_to_run() -> None:
    assert does(solve(a_problem([], [a_vm("v1")]))) == []
    answer = solve(a_problem([], [a_vm("v1")], vms={VmId("v1"): VmAim.RUNNING}))
    assert answer.status is Status.UNSAT


def test_capacities_of_nothing_hold_nothing() -> None:
    vms = [a_vm("v1", consumption={"gpu": 1}), a_vm("v2", consumption={"gpu": 0})]
    wishes = {VmId("v1"): VmAim.RUNNING, VmId("v2"): VmAim.RUNNING}
    nothing = [a_host("h1", capacity={"gpu": 0})]
    assert solve(a_problem(nothing, vms, vms=wishes)).status is Status.UNSAT
    only = {VmId("v2"): VmAim.RUNNING}
    assert does(solve(a_problem(nothing, vms, vms=only))) == ["boot v2 on h1"]


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        (a_rule("Spread", vs=[]), Status.SOLVED),
        (a_rule("Gather", vs=[]), Status.SOLVED),
        (a_rule("Lonely", vs=[]), Status.SOLVED),
        (a_rule("Split", parts=[]), Status.SOLVED),
        (a_rule("Among", vs=["v1"], parts=[]), Status.UNSAT),
        (a_rule("Among", vs=[], parts=[]), Status.SOLVED),
        (a_rule("SplitAmong", vs=[], parts=[]), Status.SOLVED),
        (a_rule("Fence", v="v1", ns=[]), Status.UNSAT),
        (a_rule("Ban", v="v1", ns=[]), Status.SOLVED),
        (a_rule("MaxOnline", ns=[], nb=0), Status.SOLVED),
        (a_rule("RunningCapacity", ns=[], nb=0), Status.SOLVED),
        (a_rule("RunningCapacity", ns=["h1", "h2"], nb=0), Status.UNSAT),
        (a_rule("Seq", vs=[]), Status.SOLVED),
        (a_rule("Sync", vs=[]), Status.SOLVED),
    ],
    ids=lambda one: str(getattr(one, "constraint", one)),
)
@pytest.mark.parametrize("continuous", [False, True])
def test_empty_arguments_have_an_answer(rule: Any, status: Status, continuous: bool) -> None:
    problem = a_problem(hosts("h1", "h2"), [a_vm("v1", "h1")], rule.but(continuous=continuous))
    assert solve(problem).status is status


def test_a_rule_that_nobody_understands_is_refused() -> None:
    with pytest.raises(InvalidInput, match="there is no such constraint"):
        solve(a_problem(hosts("h1"), [], a_rule("Sprad", vs=[])))


def test_reservations_are_not_allocated() -> None:
    """``Preserve`` of memory asks for a reservation, and no action changes one."""
    problem = a_problem(
        hosts("h1"), [a_vm("v1", "h1")], a_rule("Preserve", v="v1", id="memory", amount=5)
    )
    assert solve(problem).status is Status.UNSAT


# Soft rules


def test_soft_rules_are_kept_before_any_goal_and_by_weight() -> None:
    vms = [a_vm("v1", "h1")]
    rules = [off("v1", "h1", hard=False), fence("v1", "h1", hard=False)]
    problem = a_problem(hosts("h1", "h2"), vms, *rules, objective=(Measure.MIGRATIONS,))
    light = solve(problem.but(weights={RuleId("v1-within"): 2}), optimise=True)
    assert (moves(light), [one.rule.id for one in light.broken]) == (0, ["v1-off"])
    heavy = solve(problem.but(weights={RuleId("v1-off"): 2}), optimise=True)
    assert (moves(heavy), [one.rule.id for one in heavy.broken]) == (1, ["v1-within"])


# What cannot be said to the solver


SUBSETS = "Quiet(n : hosts, nb : int) discrete ::= !(s <: running(n)) card(s) <= nb"


@pytest.mark.parametrize("hard", [True, False])
def test_what_cannot_be_said_to_the_solver_is_learnt_from_the_judge(hard: bool) -> None:
    vms = [a_vm(f"v{place}", "h1") for place in (1, 2, 3)]
    rule = a_rule("Quiet", n="h1", nb=1, hard=hard)
    problem = a_problem(hosts("h1", "h2"), vms, rule, specification=SUBSETS)
    assert Statement.of(Task.of(problem), Reach(1)).left_to_judge, "this is what it is about"
    answer = solve(problem, optimise=True)
    assert (answer.status, moves(answer), answer.broken) == (Status.SOLVED, 2, ())


def test_what_cannot_be_said_to_the_solver_has_no_plan_if_there_is_none() -> None:
    vms = [a_vm("v1", "h1"), a_vm("v2", "h1")]
    rule = a_rule("Quiet", n="h1", nb=1)
    problem = a_problem(hosts("h1"), vms, rule, specification=SUBSETS)
    answer = solve(problem)
    assert answer.conflict is not None
    assert [one.title for one in answer.conflict.claims] == ["r1"]


def test_a_continuous_rule_is_learnt_moment_by_moment() -> None:
    """At most one on h2 at any time, and both have to go through it to h3 and back."""
    text = "Quiet(n : hosts, nb : int) continuous ::= !(s <: running(n)) card(s) <= nb"
    vms = [a_vm("v1", "h1"), a_vm("v2", "h1")]
    rules = [a_rule("Quiet", n="h2", nb=1, continuous=True), fence("v1", "h2", "h3")]
    problem = a_problem(hosts("h1", "h2"), vms, *rules, off("v2", "h1"), specification=text)
    assert solve(problem).status is Status.UNSAT
    wide = a_problem(hosts("h1", "h2", "h3"), vms, *rules, off("v2", "h1"), specification=text)
    assert solve(wide).status is Status.SOLVED


# Looking near first


def test_repair_moves_only_who_is_misplaced_if_that_will_do() -> None:
    vms = [a_vm("v1", "h1"), a_vm("v2", "h1"), a_vm("v3", "h2")]
    problem = a_problem(hosts("h1", "h2", "h3"), vms, apart("v1", "v2"))
    answer = solve(problem, repair=True)
    assert moves(answer) == 1
    assert not any("v3" in one for one in does(answer))


def test_repair_moves_others_if_it_must() -> None:
    """v1 must go to h2, which is full of v2, who is not misplaced by any rule."""
    full: dict[str, Any] = {"memory": MemorySettings(reservation_mib=16_384)}
    vms = [a_vm("v1", "h1", **full), a_vm("v2", "h2", **full)]
    problem = a_problem(hosts("h1", "h2", "h3"), vms, fence("v1", "h2"))
    answer = solve(problem, repair=True)
    assert does(answer) == ["migrate v2 from h2 to h3", "migrate v1 from h1 to h2"]


def test_a_host_is_woken_if_there_is_no_room_else() -> None:
    full: dict[str, Any] = {"memory": MemorySettings(reservation_mib=16_384)}
    machines = [a_host("h1"), a_host("h2", state=HostState.STANDBY)]
    vms = [a_vm("v1", "h1", **full), a_vm("v2", **full)]
    answer = solve(a_problem(machines, vms, vms={VmId("v2"): VmAim.RUNNING}))
    assert answer.plan is not None
    assert [type(step.action) for step in answer.plan.steps] == [PowerOn, Boot]
    assert answer.plan.steps[1].after == (answer.plan.steps[0].id,)


# Stopping, streaming, repeating


def hard_problem() -> Problem:
    """Forty VMs that only just fit on twelve hosts, and are to move as little as possible."""
    machines = [a_host(f"h{place}", capacity={"x": 100}) for place in range(12)]
    sizes = [17 + 7 * place % 23 for place in range(40)]
    vms = [
        a_vm(f"v{place}", f"h{place % 12}", consumption={"x": size})
        for place, size in enumerate(sizes)
    ]
    return a_problem(
        machines,
        vms,
        a_rule("ShareableResource", id="x"),
        objective=(Measure.IMBALANCE, Measure.MIGRATIONS),
    )


def test_the_search_stops_at_once_when_asked_to() -> None:
    effort = Effort()  # it would search for hours
    Timer(1.0, effort.stop).start()
    answer = solve(hard_problem(), effort, optimise=True)
    assert (answer.status, answer.optimal) == (Status.TIMEOUT, False)


def test_nobody_asks_why_when_there_is_no_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    effort = Effort()
    asked: list[object] = []

    def and_stop(task: Task, reach: Reach, effort: Effort) -> bool:
        asked.append(task)
        effort.stop()
        return False

    monkeypatch.setattr("equipoise.plan.exact.solve.is_possible", and_stop)
    vms = [a_vm(f"v{place}", "h1") for place in range(9)]
    rules = [fence(vm.id, "h2") for vm in vms] + [off(vm.id, "h2") for vm in vms]
    answer = solve(a_problem(hosts("h1", "h2"), vms, *rules), effort)
    assert answer.status is Status.UNSAT
    assert answer.conflict is not None
    assert (len(asked), answer.conflict.minimal) == (1, False)


def test_without_time_nobody_knows() -> None:
    answer = solve(hard_problem(), Effort.of(0.0, perf_counter), optimise=True)
    assert (answer.status, answer.plan, answer.conflict) == (Status.TIMEOUT, None, None)


def test_each_better_plan_is_shown_and_each_is_sound() -> None:
    vms = [a_vm(f"v{place}", "h1") for place in range(6)]
    problem = a_problem(
        hosts("h1", "h2", "h3"), vms, a_rule("MaxPerHost", vs=[vm.id for vm in vms], nb=2)
    )
    shown: list[tuple[Progress, Plan | None]] = []
    answer = solve(problem, optimise=True, stream=lambda one, plan: shown.append((one, plan())))
    assert shown
    costs = [progress.best for progress, _ in shown]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == answer.goals[0]
    assert all(progress.bound <= progress.best for progress, _ in shown)
    for _, plan in shown:
        assert plan is not None
        assert judge_plan(Task.of(problem), plan) == ()


def test_offline_hosts_are_emptied_first() -> None:
    problem = a_problem(
        hosts("h1", "h2"), [a_vm("v1", "h1")], hosts={HostId("h1"): HostAim.OFFLINE}
    )
    assert does(solve(problem)) == ["migrate v1 from h1 to h2", "power off h1"]


def test_a_vm_is_forged_then_booted() -> None:
    vm = a_vm("v1", state=VmState.INIT, template="small")
    problem = a_problem(hosts("h1"), [vm], vms={VmId("v1"): VmAim.RUNNING})
    assert does(solve(problem)) == ["forge v1", "boot v1 on h1"]
    forged = a_problem(hosts("h1"), [vm], vms={VmId("v1"): VmAim.FORGED})
    assert does(solve(forged)) == ["forge v1"]
