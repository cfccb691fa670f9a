"""``equipoise check``: verifies a plan against its cluster."""

from __future__ import annotations

from pathlib import Path

from equipoise.api.loading import read_plan, read_problem
from equipoise.cli.output import (
    console,
    fit_to_terminal,
    format_time_ms,
    make_table,
    print_document,
    printable,
)
from equipoise.documents.plan import check_document
from equipoise.model.plan import Plan, Violation
from equipoise.model.problem import PlanningProblem
from equipoise.model.quantity import format_count
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import Refusal, verify


def run(plan_path: Path, instance_path: Path, *, as_json: bool) -> int:
    """Print whether the gate accepts the plan, and its violations; 1 if it is refused."""
    problem = read_problem(instance_path)
    snapshot = Snapshot.of(problem.cluster)
    plan = read_plan(plan_path, problem).but(base_version=snapshot.version)
    violations = _violations(problem, snapshot, plan)
    if as_json:
        print_document(check_document(violations))
    elif violations:
        show_violations(violations)
    else:
        lasts = format_time_ms(max((step.end_ms for step in plan.steps), default=0))
        steps = format_count(len(plan.steps), "step")
        console().print(f"accepted: {steps} in {lasts}, every constraint holds at every moment")
    return 1 if violations else 0


def _violations(problem: PlanningProblem, snapshot: Snapshot, plan: Plan) -> tuple[Violation, ...]:
    """Return the violations of a plan; for a planning problem, its goals count as well."""
    if problem == PlanningProblem(cluster=problem.cluster):
        verdict = verify(snapshot, plan)
        return verdict.violations if isinstance(verdict, Refusal) else ()
    from equipoise.plan.exact.judge import judge_plan
    from equipoise.plan.exact.task import PlanningTask

    return judge_plan(PlanningTask.of(problem), plan)


def show_violations(violations: tuple[Violation, ...]) -> None:
    """Print the violations as a table."""
    rows = make_table("time", "step", "constraint", "violation", right=("time",))
    for violation in violations:
        rows.add_row(
            format_time_ms(violation.at_ms),
            violation.step or "",
            violation.constraint,
            printable(violation.detail),
        )
    console().print(f"refused: {format_count(len(violations), 'violation')}")
    console().print(fit_to_terminal(rows))
