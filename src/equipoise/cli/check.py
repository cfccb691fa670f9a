"""``equipoise check``: judge a plan against the cluster it is made for."""

from __future__ import annotations

from pathlib import Path

from equipoise.cli.answer import clock, console, fitted, plain, print_json, table
from equipoise.cli.read import read_plan, read_problem
from equipoise.model.plan import Plan, Violation
from equipoise.model.problem import Problem
from equipoise.model.snapshot import Snapshot
from equipoise.model.words import counted
from equipoise.plan import Refusal, verify


def run(plan_path: Path, instance_path: Path, *, as_json: bool) -> int:
    """Say whether the plan is accepted, and where it goes wrong."""
    problem = read_problem(instance_path)
    snapshot = Snapshot.of(problem.cluster)
    plan = read_plan(plan_path, problem).but(base_version=snapshot.version)
    violations = _violations(problem, snapshot, plan)
    if as_json:
        print_json({"accepted": not violations, "violations": as_rows(violations)})
    elif violations:
        show_violations(violations)
    else:
        lasts = clock(max((step.end_ms for step in plan.steps), default=0))
        steps = counted(len(plan.steps), "step")
        console().print(f"accepted: {steps} in {lasts}, at no moment does it break anything")
    return 1 if violations else 0


def _violations(problem: Problem, snapshot: Snapshot, plan: Plan) -> tuple[Violation, ...]:
    """What the gate says about a plan for a cluster; for a problem, its wishes count as well."""
    if problem == Problem(cluster=problem.cluster):
        verdict = verify(snapshot, plan)
        return verdict.violations if isinstance(verdict, Refusal) else ()
    from equipoise.plan.exact.judging import judge_plan
    from equipoise.plan.exact.task import Task

    return judge_plan(Task.of(problem), plan)


def as_rows(violations: tuple[Violation, ...]) -> list[dict[str, object]]:
    """The violations as the JSON contract wants them; times in milliseconds of the plan."""
    return [
        {"constraint": one.constraint, "at": one.at_ms, "step": one.step, "detail": one.detail}
        for one in violations
    ]


def show_violations(violations: tuple[Violation, ...]) -> None:
    """The same for people."""
    rows = table("at", "step", "breaks", "because", right=("at",))
    for one in violations:
        rows.add_row(clock(one.at_ms), one.step or "", one.constraint, plain(one.detail))
    console().print(f"refused: {counted(len(violations), 'reason')}")
    console().print(fitted(rows))
