"""The page of a plan: its goals, a Gantt chart and its steps; or why no plan exists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from equipoise.documents.plan import GoalRow
from equipoise.model.action import Move, describe
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import ObjectiveMeasure, PlanningProblem
from equipoise.model.quantity import format_count
from equipoise.plan.exact.result import PlanningResult, PlanningStatus
from equipoise.report.chart.frame import empty_note
from equipoise.report.chart.markup import EMPTY, Markup, Section, concat, html_table, tag, text
from equipoise.report.format import format_duration, format_instant, shorten_end
from equipoise.report.plan.gantt import plan_gantt
from equipoise.report.run.head import tile
from equipoise.report.run.page import html_document

ROWS_MAX: Final = 500
_AFTER_MAX: Final = 200
_BROKEN_MAX: Final = 600
_UNKNOWN: Final = "No plan was found; one may exist."


def plan_page(problem: PlanningProblem, result: PlanningResult, goals: Sequence[GoalRow]) -> str:
    """Return the page of a result."""
    if result.plan is None:
        sections = [_conflict_section(result)]
    else:
        sections = [plan_gantt(result.plan, problem.cluster), _steps_section(result.plan)]
    return html_document(
        f"{problem.cluster.name}: Equipoise", _head(problem, result, goals), sections
    )


def _head(problem: PlanningProblem, result: PlanningResult, goals: Sequence[GoalRow]) -> Markup:
    cluster = problem.cluster
    size = f"{format_count(len(cluster.hosts), 'host')}, {format_count(len(cluster.vms), 'VM')}"
    broken = ", ".join(condition.rule.id for condition in result.broken)
    note = shorten_end(f"Soft rules violated: {broken}", _BROKEN_MAX)
    return tag(
        "header",
        tag("h1", text(cluster.name)),
        tag("p", text(size), class_="facts"),
        tag("ul", *_tiles(result, goals), class_="tiles"),
        tag("p", text(note), class_="about") if broken else EMPTY,
    )


def _tiles(result: PlanningResult, goals: Sequence[GoalRow]) -> list[Markup]:
    look = None if result.plan is not None else "bad"
    status = tile("status", result.status.value, _meaning(result), look)
    if result.plan is None:
        conditions = [] if result.conflict is None else result.conflict.conditions
        conflict = tile("conflict", f"{len(conditions):,}", "conditions, see below")
        return [status, conflict] if conditions else [status]
    steps = result.plan.steps
    migrations = sum(isinstance(step.action, Move) for step in steps)
    lasts = max((step.end_ms for step in steps), default=0) / 1000
    makespan = tile("makespan", format_duration(lasts), "end of the last step")
    is_goal = any(goal.goal == ObjectiveMeasure.MAKESPAN for goal in goals)
    return [
        status,
        tile("steps", f"{len(steps):,}", format_count(migrations, "migration")),
        *([] if is_goal else [makespan]),
        *(tile(goal.goal, _amount(goal.value, goal), _bound(goal)) for goal in goals),
    ]


def _meaning(result: PlanningResult) -> str:
    match result.status, result.plan is not None:
        case PlanningStatus.UNSAT, _:
            return "proved: no plan exists"
        case _, False:
            return "a plan may exist"
        case PlanningStatus.TIMEOUT, _:
            return "a plan; a better one may exist"
    return "no plan is better" if result.optimal else "verified at every moment"


def _bound(goal: GoalRow) -> str:
    if goal.bound is None:
        return ""
    if goal.bound == goal.value:
        return "the lowest value of any plan"
    return f"any plan: at least {_amount(goal.bound, goal)}"


def _amount(value: float, goal: GoalRow) -> str:
    written = f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{written} {goal.unit}".rstrip()


def _conflict_section(result: PlanningResult) -> Section:
    if result.conflict is None:
        caption = "The search ended without a proof."
        return Section("why", "No plan found", caption, empty_note(_UNKNOWN))
    rest = "without any one of them a plan exists."
    if not result.conflict.minimal:
        rest = "some of them may not be part of the conflict."
    lines = tag("ul", *(tag("li", text(line)) for line in result.conflict.why))
    return Section(
        "why", "Why no plan exists", f"These conditions cannot be satisfied together; {rest}", lines
    )


def _steps_section(plan: Plan) -> Section:
    columns = ("step", "start", "end", "action", "after")
    table = html_table(columns, [_row(step) for step in plan.steps[:ROWS_MAX]], right=columns[1:3])
    hidden = len(plan.steps) - ROWS_MAX
    words = f"The table shows the first {ROWS_MAX} steps; there are {hidden:,} more."
    note = tag("p", text(words), class_="note") if hidden > 0 else EMPTY
    caption = "Every step with its times, and the steps that must end before it starts."
    return Section("steps", "Steps", caption, concat([note, table]))


def _row(step: Step) -> list[Markup]:
    after = shorten_end(", ".join(step.after), _AFTER_MAX)
    cells = (
        step.id,
        format_instant(step.start_ms),
        format_instant(step.end_ms),
        describe(step.action),
        after,
    )
    return [text(cell) for cell in cells]
