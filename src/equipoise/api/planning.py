"""Planning: from a desired state to a verified plan, and a plan before the gate."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from equipoise.api.advice import Cluster, snapshot_of
from equipoise.api.loading import Loaded
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem import PlanningProblem

if TYPE_CHECKING:
    from equipoise.plan import Refusal, VerifiedPlan
    from equipoise.plan.exact.result import PlanningResult


def solve(
    problem: Loaded,
    *,
    repair: bool = False,
    optimise: bool = False,
    time_limit_s: float | None = None,
) -> PlanningResult:
    """Return a plan that satisfies every condition, or the conditions that are in conflict.

    :param repair: move only VMs that may be misplaced, unless no such plan exists.
    :param optimise: search for the best plan by the objective of the problem.
    """
    from equipoise.plan.exact.solve import solve as solve_exactly
    from equipoise.plan.exact.solver import SearchBudget

    if isinstance(problem, Inventory):
        problem = PlanningProblem(cluster=problem)
    if not isinstance(problem, PlanningProblem):
        what = f"a {type(problem).__name__} is no planning problem"
        cure = "load an inventory or a problem"
        raise InvalidInput("solve", [InputProblem(key="", what=what, cure=cure)])
    budget = SearchBudget.of(time_limit_s, perf_counter)
    return solve_exactly(problem, budget, repair=repair, optimise=optimise)


def verify(cluster: Cluster, plan: Plan | Loaded) -> VerifiedPlan | Refusal:
    """Replay a plan through every intermediate state: a ``VerifiedPlan``, or why it is refused."""
    from equipoise.plan import verify as verify_plan

    if not isinstance(plan, Plan):
        what = f"a {type(plan).__name__} is no plan"
        raise InvalidInput("verify", [InputProblem(key="", what=what, cure="load a plan")])
    return verify_plan(snapshot_of(cluster), plan)
