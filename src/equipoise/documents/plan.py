"""The JSON document of ``solve``: the plan, its goals, or the conflict that rules a plan out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from equipoise.documents.json_document import Document
from equipoise.model.action import Move, describe
from equipoise.model.plan import Step, Violation
from equipoise.model.problem import ObjectiveMeasure, PlanningProblem
from equipoise.plan.exact.result import PlanningResult
from equipoise.plan.exact.task import measures_of

SOFT_RULES: Final = "soft rules"
_IN_MS: Final = frozenset({ObjectiveMeasure.MTTR, ObjectiveMeasure.MAKESPAN})


class GoalRow(Document):
    """A goal, the value of the plan, and the lowest value of any plan."""

    goal: str
    value: float
    bound: float | None

    @property
    def unit(self) -> str:
        """``s`` for a goal that is a sum of times, otherwise empty."""
        return "s" if _is_time(self.goal) else ""


class StepRow(Document):
    """One step of a plan."""

    id: str
    start_ms: int
    end_ms: int
    action: str
    after: tuple[str, ...]


class SolveDocument(Document):
    """The JSON document of ``equipoise solve``."""

    status: str
    optimal: bool
    objective: float | None
    goals: tuple[GoalRow, ...]
    actions: int
    migrations: int
    makespan_s: float
    verified: bool
    broken: tuple[str, ...]
    """Soft rules that the plan violates."""
    explanation: tuple[str, ...]
    conflict: tuple[str, ...]
    """Conditions that cannot be satisfied together."""
    build_s: float
    solve_s: float
    steps: tuple[StepRow, ...]
    load_s: float
    wall_s: float


def solve_document(
    result: PlanningResult, problem: PlanningProblem, *, load_s: float, wall_s: float
) -> SolveDocument:
    """Return the result of the exact planner."""
    steps = () if result.plan is None else result.plan.steps
    goals = goal_rows(result, problem)
    conflict = result.conflict
    return SolveDocument(
        status=result.status.value,
        optimal=result.optimal,
        objective=next((goal.value for goal in goals if goal.goal != SOFT_RULES), None),
        goals=goals,
        actions=len(steps),
        migrations=sum(isinstance(step.action, Move) for step in steps),
        makespan_s=max((step.end_ms for step in steps), default=0) / 1000,
        verified=result.plan is not None,
        broken=tuple(condition.rule.id for condition in result.broken),
        explanation=() if conflict is None else conflict.why,
        conflict=()
        if conflict is None
        else tuple(condition.title for condition in conflict.conditions),
        build_s=round(result.build_s, 4),
        solve_s=round(result.solve_s, 4),
        steps=tuple(map(_step_row, steps)),
        load_s=round(load_s, 4),
        wall_s=round(wall_s, 4),
    )


def goal_rows(result: PlanningResult, problem: PlanningProblem) -> tuple[GoalRow, ...]:
    """Return the goals in the order of their importance; times are in seconds."""
    names = [" + ".join(measures_of(goal)) for goal in problem.objective]
    if len(result.goals) > len(names):  # soft rules are the first goal, before the objective
        names.insert(0, SOFT_RULES)
    bounds = [*result.bounds, *[None] * len(names)]
    return tuple(
        GoalRow(
            goal=name,
            value=_scaled(name, value),
            bound=None if bound is None else _scaled(name, bound),
        )
        for name, value, bound in zip(names, result.goals, bounds, strict=False)
    )


def _step_row(step: Step) -> StepRow:
    return StepRow(
        id=step.id,
        start_ms=step.start_ms,
        end_ms=step.end_ms,
        action=describe(step.action),
        after=step.after,
    )


def _scaled(name: str, value: int) -> float:
    """Return seconds for a goal that is a sum of times in milliseconds."""
    return value / 1000 if _is_time(name) else value


def _is_time(name: str) -> bool:
    return all(measure in _IN_MS for measure in name.split(" + "))


class ViolationRow(Document):
    """One constraint that a plan breaks."""

    constraint: str = ""
    at: int | None = None
    """Milliseconds since the start of the plan."""
    step: str | None = None
    detail: str = ""
    code: str = ""
    """A key of ``equipoise.errors.CODES``."""


class CheckDocument(Document):
    """The JSON document of ``equipoise check``."""

    accepted: bool
    violations: tuple[ViolationRow, ...]


def violation_rows(violations: Iterable[Violation]) -> tuple[ViolationRow, ...]:
    """Return one row per violation."""
    return tuple(
        ViolationRow(
            constraint=violation.constraint,
            at=violation.at_ms,
            step=violation.step,
            detail=violation.detail,
            code=violation.code,
        )
        for violation in violations
    )


def check_document(violations: tuple[Violation, ...]) -> CheckDocument:
    """Return the verdict of the gate about a plan."""
    return CheckDocument(accepted=not violations, violations=violation_rows(violations))
