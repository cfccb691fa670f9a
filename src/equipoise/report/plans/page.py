"""The page of a plan: what it costs, its picture and its steps; or why there is no plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from equipoise.model.action import Move, describe
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import Measure, Problem
from equipoise.model.words import counted
from equipoise.plan.exact.answer import Answer, Status
from equipoise.report.chart.frame import nothing
from equipoise.report.chart.markup import EMPTY, Markup, joined, tag, text
from equipoise.report.head import worded
from equipoise.report.page import document
from equipoise.report.plans.gantt import gantt
from equipoise.report.section import Section, listed
from equipoise.report.words import duration, instant, shortened

ROWS_MAX: Final = 500
_AFTER_MAX: Final = 200
_BROKEN_MAX: Final = 600
_UNKNOWN: Final = "No plan was found, and none is ruled out."


class Goal(NamedTuple):
    """What a plan costs, in the unit that people count in."""

    name: str
    value: float
    bound: float | None
    """What any plan costs at the least, if that is known."""
    unit: str = ""


def plan_page(problem: Problem, answer: Answer, goals: Sequence[Goal]) -> str:
    """Make the page of an answer."""
    if answer.plan is None:
        sections = [_why(answer)]
    else:
        sections = [gantt(answer.plan, problem.cluster), _steps(answer.plan)]
    return document(f"{problem.cluster.name}: Equipoise", _head(problem, answer, goals), sections)


def _head(problem: Problem, answer: Answer, goals: Sequence[Goal]) -> Markup:
    cluster = problem.cluster
    size = f"{counted(len(cluster.hosts), 'host')}, {counted(len(cluster.vms), 'VM')}"
    broken = ", ".join(claim.rule.id for claim in answer.broken)
    note = shortened(f"Not kept, as it is soft: {broken}", _BROKEN_MAX)
    return tag(
        "header",
        tag("h1", text(cluster.name)),
        tag("p", text(size), class_="facts"),
        tag("ul", *_tiles(answer, goals), class_="tiles"),
        tag("p", text(note), class_="about") if broken else EMPTY,
    )


def _tiles(answer: Answer, goals: Sequence[Goal]) -> list[Markup]:
    look = None if answer.plan is not None else "bad"
    status = worded("status", answer.status.value, _meaning(answer), look)
    if answer.plan is None:
        claims = [] if answer.conflict is None else answer.conflict.claims
        odds = worded("at odds", f"{len(claims):,}", "wishes and rules, see below")
        return [status, odds] if claims else [status]
    steps = answer.plan.steps
    migrations = sum(isinstance(step.action, Move) for step in steps)
    lasts = max((step.end_ms for step in steps), default=0) / 1000
    makespan = worded("makespan", duration(lasts), "when the last step ends")
    is_goal = any(goal.name == Measure.MAKESPAN for goal in goals)
    return [
        status,
        worded("steps", f"{len(steps):,}", counted(migrations, "migration")),
        *([] if is_goal else [makespan]),
        *(worded(goal.name, _amount(goal.value, goal), _bound(goal)) for goal in goals),
    ]


def _meaning(answer: Answer) -> str:
    match answer.status, answer.plan is not None:
        case Status.UNSAT, _:
            return "proved: there is no plan"
        case _, False:
            return "whether there is a plan is not known"
        case Status.TIMEOUT, _:
            return "a plan; a better one may exist"
    return "no plan is better" if answer.optimal else "judged at every moment"


def _bound(goal: Goal) -> str:
    if goal.bound is None:
        return ""
    if goal.bound == goal.value:
        return "the least that any plan costs"
    return f"any plan: at least {_amount(goal.bound, goal)}"


def _amount(value: float, goal: Goal) -> str:
    written = f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{written} {goal.unit}".rstrip()


def _why(answer: Answer) -> Section:
    if answer.conflict is None:
        see = "The search ended before anything was proved."
        return Section("why", "No plan yet", see, nothing(_UNKNOWN))
    rest = "without any one of them there is a plan."
    if not answer.conflict.minimal:
        rest = "whether all of them are needed is not known."
    lines = tag("ul", *(tag("li", text(line)) for line in answer.conflict.why))
    return Section("why", "Why there is no plan", f"These cannot all be kept; {rest}", lines)


def _steps(plan: Plan) -> Section:
    columns = ("step", "start", "end", "does", "after")
    table = listed(columns, [_row(step) for step in plan.steps[:ROWS_MAX]], right=columns[1:3])
    left = len(plan.steps) - ROWS_MAX
    words = f"The first {ROWS_MAX} steps are shown; there are {left:,} more."
    note = tag("p", text(words), class_="note") if left > 0 else EMPTY
    see = "Every step with its times, and the steps that must have ended before it begins."
    return Section("steps", "Steps", see, joined([note, table]))


def _row(step: Step) -> list[Markup]:
    after = shortened(", ".join(step.after), _AFTER_MAX)
    cells = (step.id, instant(step.start_ms), instant(step.end_ms), describe(step.action), after)
    return [text(cell) for cell in cells]
