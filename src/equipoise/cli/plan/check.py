"""``equipoise check``: verifies a plan against its cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from equipoise.api.loading import read_plan, read_problem
from equipoise.cli.output import (
    console,
    format_time_ms,
    print_document,
    show_existing_faults,
    text_table,
)
from equipoise.documents.plan import check_document
from equipoise.model.plan import Plan, Violation
from equipoise.model.problem import PlanningProblem
from equipoise.model.quantity import format_count
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import Refusal, verify
from equipoise.plan.existing_faults import existing_faults


def run(plan_path: Path, instance_path: Path, *, as_json: bool) -> int:
    """Print whether the gate accepts the plan, and its violations; 1 if it is refused.

    Faults from before the plan are named and not charged to it.
    """
    problem = read_problem(instance_path)
    snapshot = Snapshot.of(problem.cluster)
    # A plan in a file belongs to the cluster that is named with it, not to a version of a snapshot.
    plan = read_plan(plan_path, problem).but(base_version=snapshot.version)
    violations, faults = _violations(problem, snapshot, plan), existing_faults(snapshot)
    if as_json:
        print_document(check_document(violations, faults))
    elif violations:
        show_violations(violations)
    else:
        lasts = format_time_ms(max((step.end_ms for step in plan.steps), default=0))
        steps = format_count(len(plan.steps), "step")
        rest = "no constraint is violated more than before" if faults else EVERYTHING_HOLDS
        console().print(f"accepted: {steps} in {lasts}, {rest}")
    if not as_json:
        show_existing_faults(faults)
    return 1 if violations else 0


EVERYTHING_HOLDS: Final = "every constraint holds at every moment"


def _violations(problem: PlanningProblem, snapshot: Snapshot, plan: Plan) -> tuple[Violation, ...]:
    """Return the violations of a plan; for a planning problem, its goals count as well."""
    # A problem without goals needs the gate only; the planner is slow to import.
    if problem == PlanningProblem(cluster=problem.cluster):
        verdict = verify(snapshot, plan)
        return verdict.violations if isinstance(verdict, Refusal) else ()
    from equipoise.plan.exact.broken_rules import judge_with_broken_rules

    return judge_with_broken_rules(problem, plan)


def show_violations(violations: tuple[Violation, ...]) -> None:
    """Print the violations as a table."""
    rows = (
        (format_time_ms(row.at_ms), row.step or "", row.constraint, row.detail)
        for row in violations
    )
    console().print(f"refused: {format_count(len(violations), 'violation')}")
    columns = ("time", "step", "constraint", "violation")
    console().print(text_table(columns, rows, right=("time",)))
