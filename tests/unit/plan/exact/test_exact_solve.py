"""The entry point of the exact planner: plans, reasons, goals and unusual problems."""

from __future__ import annotations

from itertools import combinations
from threading import Timer
from time import perf_counter
from typing import Any

import pytest

from builders import a_host, a_vm, facts
from equipoise.errors import InvalidInput
from equipoise.model.action import Boot, PowerOn
from equipoise.model.host import HostState
from equipoise.model.plan import Plan
from equipoise.model.problem import (
    ActionDuration,
    DesiredHostState,
    DesiredVmState,
    ObjectiveMeasure,
    PlanningProblem,
)
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.vm import MemorySettings, VmState
from equipoise.plan.exact.judge import judge_plan
from equipoise.plan.exact.model import PlanningModel
from equipoise.plan.exact.result import PlanningStatus
from equipoise.plan.exact.solve import is_possible, solve
from equipoise.plan.exact.solver import SearchBudget, SearchProgress
from equipoise.plan.exact.task import PlanningTask, SearchScope, VmCondition
from planning import a_problem, a_rule, apart, does, fence, hosts, moves, off

# Reasons


def test_a_conflict_says_how_many_hosts_are_needed_and_how_many_are_left() -> None:
    vms = [a_vm("db1", "h1"), a_vm("db2", "h2"), a_vm("db3", "h3")]
    rules = [apart("db1", "db2", "db3"), *(fence(vm, "h1", "h2") for vm in ("db1", "db2", "db3"))]
    answer = solve(a_problem(hosts("h1", "h2", "h3"), vms, *rules))
    assert answer.status is PlanningStatus.UNSAT
    assert answer.conflict is not None
    assert answer.conflict.minimal
    assert answer.conflict.codes[0] == "too-few-hosts"
    assert answer.conflict.why[0].startswith("apart ")
    assert facts(answer.conflict.why[0]) == [
        "3",
        "{db1, db2, db3}",
        "db1",
        "db2",
        "db3",
        "2",
        "{h1, h2}",
    ]


def test_no_subset_of_a_conflict_is_a_conflict() -> None:
    vms = [a_vm("v1", "h1"), a_vm("v2", "h2"), a_vm("v3")]
    rules = [
        apart("v1", "v2", "v3"),
        fence("v1", "h1"),
        off("v2", "h2"),
        off("v3", "h1", "h2"),
        a_rule("MaxOnline", "few", ns=["h1", "h2"], nb=1),
    ]
    problem = a_problem(
        hosts("h1", "h2"), vms, *rules, vms={VmId("v3"): DesiredVmState.RUNNING}, horizon_s=20
    )
    answer = solve(problem)
    assert answer.conflict is not None
    conditions = answer.conflict.conditions
    task, scope = PlanningTask.of(problem), SearchScope(problem.moves_max)
    assert is_possible(task.with_only(conditions), scope, SearchBudget()) is False
    for size in range(len(conditions)):
        for subset in combinations(conditions, size):
            assert is_possible(task.with_only(subset), scope, SearchBudget()), [
                condition.title for condition in subset
            ]


def test_missing_capacity_is_a_reason() -> None:
    full: dict[str, Any] = {"memory": MemorySettings(reservation_mib=10_000)}
    vms = [a_vm("v1", "h1", **full), a_vm("v2", **full)]
    answer = solve(a_problem(hosts("h1"), vms, vms={VmId("v2"): DesiredVmState.RUNNING}))
    assert answer.conflict is not None
    assert answer.conflict.codes == ("condition-conflict", "no-capacity")
    (condition,) = answer.conflict.conditions
    assert isinstance(condition, VmCondition)
    assert (condition.vm, condition.state) == ("v2", VmState.RUNNING)


def test_a_short_horizon_is_a_reason() -> None:
    problem = a_problem(hosts("h1"), [a_vm("v1")], vms={VmId("v1"): DesiredVmState.RUNNING})
    slow = problem.but(durations={ActionKind.BOOT: ActionDuration(ms=10_000)}, horizon_s=5)
    answer = solve(slow)
    assert answer.conflict is not None
    assert answer.conflict.codes[-1] == "past-horizon"
    assert "5 s" in answer.conflict.why[-1]


# Unusual problems


def test_a_problem_without_vms_has_an_empty_plan() -> None:
    answer = solve(a_problem(hosts("h1"), []))
    assert (answer.status, does(answer)) == (PlanningStatus.SOLVED, [])


def test_a_problem_without_hosts_has_an_empty_plan_unless_a_vm_must_run() -> None:
    assert does(solve(a_problem([], [a_vm("v1")]))) == []
    answer = solve(a_problem([], [a_vm("v1")], vms={VmId("v1"): DesiredVmState.RUNNING}))
    assert answer.status is PlanningStatus.UNSAT


def test_a_capacity_of_zero_holds_nothing() -> None:
    vms = [a_vm("v1", consumption={"gpu": 1}), a_vm("v2", consumption={"gpu": 0})]
    running = {VmId("v1"): DesiredVmState.RUNNING, VmId("v2"): DesiredVmState.RUNNING}
    nothing = [a_host("h1", capacity={"gpu": 0})]
    assert solve(a_problem(nothing, vms, vms=running)).status is PlanningStatus.UNSAT
    only = {VmId("v2"): DesiredVmState.RUNNING}
    assert does(solve(a_problem(nothing, vms, vms=only))) == ["boot v2 on h1"]


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        (a_rule("Spread", vs=[]), PlanningStatus.SOLVED),
        (a_rule("Gather", vs=[]), PlanningStatus.SOLVED),
        (a_rule("Lonely", vs=[]), PlanningStatus.SOLVED),
        (a_rule("Split", parts=[]), PlanningStatus.SOLVED),
        (a_rule("Among", vs=["v1"], parts=[]), PlanningStatus.UNSAT),
        (a_rule("Among", vs=[], parts=[]), PlanningStatus.SOLVED),
        (a_rule("SplitAmong", vs=[], parts=[]), PlanningStatus.SOLVED),
        (a_rule("Fence", v="v1", ns=[]), PlanningStatus.UNSAT),
        (a_rule("Ban", v="v1", ns=[]), PlanningStatus.SOLVED),
        (a_rule("MaxOnline", ns=[], nb=0), PlanningStatus.SOLVED),
        (a_rule("RunningCapacity", ns=[], nb=0), PlanningStatus.SOLVED),
        (a_rule("RunningCapacity", ns=["h1", "h2"], nb=0), PlanningStatus.UNSAT),
        (a_rule("Seq", vs=[]), PlanningStatus.SOLVED),
        (a_rule("Sync", vs=[]), PlanningStatus.SOLVED),
    ],
    ids=lambda parameter: str(getattr(parameter, "constraint", parameter)),
)
@pytest.mark.parametrize("continuous", [False, True])
def test_empty_arguments_have_an_answer(
    rule: Any, status: PlanningStatus, continuous: bool
) -> None:
    problem = a_problem(hosts("h1", "h2"), [a_vm("v1", "h1")], rule.but(continuous=continuous))
    assert solve(problem).status is status


def test_a_rule_without_a_constraint_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        solve(a_problem(hosts("h1"), [], a_rule("Sprad", vs=[])))
    assert [problem.code for problem in caught.value.problems] == ["invalid-rule"]


def test_reservations_are_not_allocated() -> None:
    """``Preserve`` of memory requires a reservation, and no action changes one."""
    problem = a_problem(
        hosts("h1"), [a_vm("v1", "h1")], a_rule("Preserve", v="v1", id="memory", amount=5)
    )
    assert solve(problem).status is PlanningStatus.UNSAT


# Soft rules


def test_soft_rules_come_before_goals_and_by_weight() -> None:
    vms = [a_vm("v1", "h1")]
    rules = [off("v1", "h1", hard=False), fence("v1", "h1", hard=False)]
    problem = a_problem(hosts("h1", "h2"), vms, *rules, objective=(ObjectiveMeasure.MIGRATIONS,))
    light = solve(problem.but(weights={RuleId("v1-within"): 2}), optimise=True)
    assert (moves(light), [soft.rule.id for soft in light.broken]) == (0, ["v1-off"])
    heavy = solve(problem.but(weights={RuleId("v1-off"): 2}), optimise=True)
    assert (moves(heavy), [soft.rule.id for soft in heavy.broken]) == (1, ["v1-within"])


# Formulas that cannot be translated


SUBSETS = "Quiet(n : hosts, nb : int) discrete ::= !(s <: running(n)) card(s) <= nb"


@pytest.mark.parametrize("hard", [True, False])
def test_a_rule_without_a_translation_is_satisfied_by_refinement(hard: bool) -> None:
    vms = [a_vm(f"v{number}", "h1") for number in (1, 2, 3)]
    rule = a_rule("Quiet", n="h1", nb=1, hard=hard)
    problem = a_problem(hosts("h1", "h2"), vms, rule, specification=SUBSETS)
    assert PlanningModel.of(PlanningTask.of(problem), SearchScope(1)).left_to_judge, (
        "the rule must be one without a translation"
    )
    answer = solve(problem, optimise=True)
    assert (answer.status, moves(answer), answer.broken) == (PlanningStatus.SOLVED, 2, ())


def test_a_rule_without_a_translation_may_have_no_plan() -> None:
    vms = [a_vm("v1", "h1"), a_vm("v2", "h1")]
    rule = a_rule("Quiet", n="h1", nb=1)
    problem = a_problem(hosts("h1"), vms, rule, specification=SUBSETS)
    answer = solve(problem)
    assert answer.conflict is not None
    assert [condition.title for condition in answer.conflict.conditions] == ["r1"]


def test_a_continuous_rule_is_refined_moment_by_moment() -> None:
    """At most one VM is on h2 at any time, and both must leave h1."""
    text = "Quiet(n : hosts, nb : int) continuous ::= !(s <: running(n)) card(s) <= nb"
    vms = [a_vm("v1", "h1"), a_vm("v2", "h1")]
    rules = [a_rule("Quiet", n="h2", nb=1, continuous=True), fence("v1", "h2", "h3")]
    problem = a_problem(hosts("h1", "h2"), vms, *rules, off("v2", "h1"), specification=text)
    assert solve(problem).status is PlanningStatus.UNSAT
    wide = a_problem(hosts("h1", "h2", "h3"), vms, *rules, off("v2", "h1"), specification=text)
    assert solve(wide).status is PlanningStatus.SOLVED


# Narrow scopes first


def test_repair_moves_only_misplaced_vms_if_that_is_enough() -> None:
    vms = [a_vm("v1", "h1"), a_vm("v2", "h1"), a_vm("v3", "h2")]
    problem = a_problem(hosts("h1", "h2", "h3"), vms, apart("v1", "v2"))
    answer = solve(problem, repair=True)
    assert moves(answer) == 1
    assert not any("v3" in action for action in does(answer))


def test_repair_moves_other_vms_if_it_must() -> None:
    """v1 must go to h2, which is full of v2; no rule makes v2 misplaced."""
    full: dict[str, Any] = {"memory": MemorySettings(reservation_mib=16_384)}
    vms = [a_vm("v1", "h1", **full), a_vm("v2", "h2", **full)]
    problem = a_problem(hosts("h1", "h2", "h3"), vms, fence("v1", "h2"))
    answer = solve(problem, repair=True)
    assert does(answer) == ["migrate v2 from h2 to h3", "migrate v1 from h1 to h2"]


def test_a_host_is_powered_on_if_no_other_has_capacity() -> None:
    full: dict[str, Any] = {"memory": MemorySettings(reservation_mib=16_384)}
    machines = [a_host("h1"), a_host("h2", state=HostState.STANDBY)]
    vms = [a_vm("v1", "h1", **full), a_vm("v2", **full)]
    answer = solve(a_problem(machines, vms, vms={VmId("v2"): DesiredVmState.RUNNING}))
    assert answer.plan is not None
    assert [type(step.action) for step in answer.plan.steps] == [PowerOn, Boot]
    assert answer.plan.steps[1].after == (answer.plan.steps[0].id,)


# Stopping, streaming, repeating


def hard_problem() -> PlanningProblem:
    """Forty VMs that barely fit on twelve hosts, and must move as little as possible."""
    machines = [a_host(f"h{number}", capacity={"x": 100}) for number in range(12)]
    sizes = [17 + 7 * number % 23 for number in range(40)]
    vms = [
        a_vm(f"v{number}", f"h{number % 12}", consumption={"x": size})
        for number, size in enumerate(sizes)
    ]
    return a_problem(
        machines,
        vms,
        a_rule("ShareableResource", id="x"),
        objective=(ObjectiveMeasure.IMBALANCE, ObjectiveMeasure.MIGRATIONS),
    )


def test_the_search_stops_at_once() -> None:
    budget = SearchBudget()  # without the stop it searches for hours
    Timer(1.0, budget.stop).start()
    answer = solve(hard_problem(), budget, optimise=True)
    assert (answer.status, answer.optimal) == (PlanningStatus.TIMEOUT, False)


def test_a_conflict_is_not_minimised_when_the_budget_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    budget = SearchBudget()
    calls: list[object] = []

    def and_stop(task: PlanningTask, scope: SearchScope, budget: SearchBudget) -> bool:
        calls.append(task)
        budget.stop()
        return False

    monkeypatch.setattr("equipoise.plan.exact.solve.is_possible", and_stop)
    vms = [a_vm(f"v{number}", "h1") for number in range(9)]
    rules = [fence(vm.id, "h2") for vm in vms] + [off(vm.id, "h2") for vm in vms]
    answer = solve(a_problem(hosts("h1", "h2"), vms, *rules), budget)
    assert answer.status is PlanningStatus.UNSAT
    assert answer.conflict is not None
    assert (len(calls), answer.conflict.minimal) == (1, False)


def test_without_time_the_answer_is_a_timeout() -> None:
    answer = solve(hard_problem(), SearchBudget.of(0.0, perf_counter), optimise=True)
    assert (answer.status, answer.plan, answer.conflict) == (PlanningStatus.TIMEOUT, None, None)


def test_each_better_plan_is_streamed_and_valid() -> None:
    vms = [a_vm(f"v{number}", "h1") for number in range(6)]
    problem = a_problem(
        hosts("h1", "h2", "h3"), vms, a_rule("MaxPerHost", vs=[vm.id for vm in vms], nb=2)
    )
    shown: list[tuple[SearchProgress, Plan | None]] = []
    answer = solve(
        problem, optimise=True, stream=lambda progress, plan: shown.append((progress, plan()))
    )
    assert shown
    costs = [progress.best for progress, _ in shown]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == answer.goals[0]
    assert all(progress.bound <= progress.best for progress, _ in shown)
    for _, plan in shown:
        assert plan is not None
        assert judge_plan(PlanningTask.of(problem), plan) == ()


def test_offline_hosts_are_emptied_first() -> None:
    problem = a_problem(
        hosts("h1", "h2"), [a_vm("v1", "h1")], hosts={HostId("h1"): DesiredHostState.OFFLINE}
    )
    assert does(solve(problem)) == ["migrate v1 from h1 to h2", "power off h1"]


def test_a_vm_is_forged_then_booted() -> None:
    vm = a_vm("v1", state=VmState.INIT, template="small")
    problem = a_problem(hosts("h1"), [vm], vms={VmId("v1"): DesiredVmState.RUNNING})
    assert does(solve(problem)) == ["forge v1", "boot v1 on h1"]
    forged = a_problem(hosts("h1"), [vm], vms={VmId("v1"): DesiredVmState.FORGED})
    assert does(solve(forged)) == ["forge v1"]
