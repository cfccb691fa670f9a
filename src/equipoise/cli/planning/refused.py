"""A plan that the judge refuses is a bug of the planner: the case is kept, for whoever mends it."""

from __future__ import annotations

from pathlib import Path

from equipoise.model.files import to_json
from equipoise.model.problem import Problem
from equipoise.plan.exact.judging import RefusedPlan


def keep_case(problem: Problem, error: RefusedPlan) -> AssertionError:
    """Write the problem and the plan beside each other; the error that says where."""
    folder = Path.cwd()
    problem_path = folder / "refused.problem.json"
    plan_path = folder / "refused.plan.json"
    try:
        problem_path.write_text(to_json(problem))
        plan_path.write_text(to_json(error.plan))
    except OSError:
        return AssertionError(str(error))
    return AssertionError(f"{error}; the case is kept in {problem_path.name}, {plan_path.name}")
