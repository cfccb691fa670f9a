"""Planning with rules that are broken before the plan.

A campaign demands that a continuous rule holds from the start, so no plan exists if it does not.
An operator wants the rule repaired, and unrelated work done where no plan repairs it. So a plan
first has to repair every broken rule. Where that is impossible, the broken rules of the conflict
are kept: the plan need not repair them and must not make them worse.
"""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.plan import Plan, Violation
from equipoise.model.problem import PlanningProblem
from equipoise.model.quantity import RuleId
from equipoise.plan.exact.judge import RefusedPlan, judge_plan
from equipoise.plan.exact.result import PlanningResult, PlanningStatus
from equipoise.plan.exact.solve import PlanListener, solve
from equipoise.plan.exact.solver import SearchBudget
from equipoise.plan.exact.task import PlanningTask, RuleCondition


def solve_with_broken_rules(
    problem: PlanningProblem,
    budget: SearchBudget | None = None,
    *,
    repair: bool = False,
    optimise: bool = False,
    stream: PlanListener | None = None,
) -> PlanningResult:
    """Find a plan that repairs the broken rules, without those that no plan can repair.

    The plan names the continuous rules that it repairs, because they may be worse on the way.
    """
    kept: frozenset[RuleId] = frozenset()
    first: PlanningResult | None = None
    while True:
        try:
            answer = solve(
                problem, budget, repair=repair, optimise=optimise, stream=stream, kept=kept
            )
        except RefusedPlan:
            if first is None:
                raise
            return first  # it makes a kept rule worse in a way that the model does not know
        first = first or answer
        if answer.plan is not None:
            return _named(answer, problem, kept)
        more = _broken_in_conflict(answer, problem) - kept
        if answer.status is not PlanningStatus.UNSAT or not more:
            return first
        kept |= more


def judge_with_broken_rules(problem: PlanningProblem, plan: Plan) -> tuple[Violation, ...]:
    """Return what a plan for a problem violates.

    The rules of a problem are goals, so the plan has to repair those that are broken before it. A
    rule that it declares unrepaired must only not become worse.
    """
    return judge_plan(PlanningTask.of(problem, frozenset(plan.unrepaired)), plan)


def _broken_in_conflict(answer: PlanningResult, problem: PlanningProblem) -> frozenset[RuleId]:
    """Return the rules of a conflict that are broken before the plan."""
    if answer.conflict is None:
        return frozenset()
    broken = PlanningTask.of(problem, frozenset()).broken_rules
    conditions = answer.conflict.conditions
    named = {condition.rule.id for condition in conditions if isinstance(condition, RuleCondition)}
    return frozenset(named & broken)


def _named(
    answer: PlanningResult, problem: PlanningProblem, kept: frozenset[RuleId]
) -> PlanningResult:
    """Return the answer with the rules that its plan repairs and those that it leaves broken."""
    task = PlanningTask.of(problem, kept)
    repairs = tuple(
        condition.rule.id
        for condition in task.hard
        if isinstance(condition, RuleCondition) and condition.requirement.repaired
    )
    assert answer.plan is not None
    left = tuple(rule.id for rule in problem.cluster.rules if rule.id in kept)
    plan = answer.plan.but(repairs=repairs, unrepaired=left)
    return replace(answer, plan=plan, unrepaired=left)
