"""Running the solver: budget, progress, and the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from ortools.sat.python import cp_model

from equipoise.plan.exact.solver.builder import (
    CpModelBuilder,
    IntExpression,
    LinearSum,
    Literal,
    as_number,
)


class SolverStatus(StrEnum):
    """How a run of the solver ended."""

    BEST = "best"
    """There is a solution, and none is better."""
    FOUND = "found"
    """There is a solution; there may be a better one."""
    NONE = "none"
    """There is no solution, and that is proved."""
    UNKNOWN = "unknown"
    """The budget ended before an answer was known."""


class ObjectiveOverflow(Exception):
    """The objective exceeds what the solver can compute."""


class Solution:
    """The values that the solver has decided."""

    def __init__(self, values: Sequence[int]) -> None:
        self.values = values

    def number(self, number: IntExpression) -> int:
        """Return the value of a number."""
        if isinstance(number, int):
            return number
        known = (factor * self.values[index] for index, factor in number.terms.items())
        return number.constant + sum(known)

    def holds(self, literal: Literal) -> bool:
        """Return whether a literal holds in the solution."""
        return bool(self.number(as_number(literal)))


@dataclass(slots=True)
class SearchProgress:
    """The best value and the bound of an optimisation that is still running."""

    best: int
    bound: int
    seconds: float

    @property
    def gap_pct(self) -> float:
        """The possible improvement, in percent of the best value."""
        return 100 * abs(self.best - self.bound) / (abs(self.best) or 1)


ProgressCallback = Callable[[SearchProgress, Solution], None]


@dataclass(slots=True)
class SearchBudget:
    """How long the planner may search. The caller provides the clock and may stop the search."""

    clock: Callable[[], float] = field(default=lambda: 0.0)
    """Returns the time in seconds."""
    until: float | None = None
    """When the search must stop, by the clock."""
    seed: int = 0
    work: float | None = None
    """The solver work left, in the solver's own unit. Unlike time, it is the same in every run."""
    stopped: bool = False
    _running: list[Any] = field(default_factory=list)

    @classmethod
    def of(
        cls, seconds: float | None, clock: Callable[[], float] = lambda: 0.0, seed: int = 0
    ) -> SearchBudget:
        """Return a budget of some seconds from now; without a clock, for each run of the solver."""
        until = None if seconds is None else clock() + seconds
        return cls(clock=clock, until=until, seed=seed)

    def left_s(self) -> float | None:
        """Return the remaining seconds; ``None`` without a limit."""
        return None if self.until is None else max(0.0, self.until - self.clock())

    @property
    def is_over(self) -> bool:
        """Whether no time and no work is left, or the caller has stopped the search."""
        return self.stopped or self.left_s() == 0.0 or self.work == 0.0

    def stop(self) -> None:
        """Stop the search at once; from any thread."""
        self.stopped = True
        for solver in self._running:
            solver.stop_search()


@dataclass(frozen=True, slots=True)
class SolutionQuality:
    """How good a solution must be."""

    work: float | None = None
    """The deterministic time after which a solution is good enough. With wall-clock time, the same
    problem would not always have the same answer."""
    first: bool = False
    """Whether any solution will do."""
    presolves: int | None = None
    """Number of simplifications of the model before it is solved."""


OPTIMAL: Final = SolutionQuality()
GOOD: Final = SolutionQuality(work=5.0)
FAIR: Final = SolutionQuality(work=0.1, presolves=1)
FIRST: Final = SolutionQuality(first=True)


@dataclass(slots=True)
class SolverResult:
    """The result of one run of the solver."""

    status: SolverStatus
    solution: Solution | None = None
    bound: int | None = None


def solve_model(
    builder: CpModelBuilder,
    budget: SearchBudget,
    goal: IntExpression | None = None,
    watch: ProgressCallback | None = None,
    quality: SolutionQuality = OPTIMAL,
) -> SolverResult:
    """Find values that satisfy all constraints and minimise the goal."""
    if builder.infeasible:
        return SolverResult(SolverStatus.NONE)
    if builder.is_empty:
        return SolverResult(
            SolverStatus.BEST, Solution(()), None if goal is None else _known_value(goal)
        )
    if budget.is_over:
        return SolverResult(SolverStatus.UNKNOWN)
    if isinstance(goal, LinearSum):
        # CP-SAT computes in 64 bits; a larger objective would overflow.
        if max(map(abs, builder.bounds(goal))) > _OBJECTIVE_MAX:
            raise ObjectiveOverflow
        builder.model.minimize(builder.expression(goal))
    else:
        builder.model.clear_objective()  # type: ignore[no-untyped-call]
        watch = None
    solver = cp_model.CpSolver()
    _configure(solver, budget, quality)
    budget._running.append(solver)
    try:
        callback = None if watch is None else _SolutionCallback(builder, watch)
        cp_status = solver.solve(builder.model, callback)
    finally:
        budget._running.remove(solver)
    if budget.work is not None:
        budget.work = max(0.0, budget.work - solver.response_proto.deterministic_time)
    if cp_status == cp_model.MODEL_INVALID and "overflow" in builder.model.validate():
        raise ObjectiveOverflow
    status = _SOLVER_STATUS.get(cp_status)
    assert status is not None, f"the solver rejects the model: {cp_status}"
    if status in (SolverStatus.NONE, SolverStatus.UNKNOWN):
        return SolverResult(status)
    bound = round(solver.best_objective_bound) if isinstance(goal, LinearSum) else None
    return SolverResult(status, Solution(builder.values(solver)), bound)


_OBJECTIVE_MAX: Final = 2**60


def _configure(solver: Any, budget: SearchBudget, quality: SolutionQuality) -> None:
    parameters = solver.parameters
    parameters.num_workers = 1  # with several workers the answer depends on which one is first
    parameters.random_seed = budget.seed
    parameters.catch_sigint_signal = False  # the caller stops it with ``SearchBudget.stop``
    left_s = budget.left_s()
    if left_s is not None:
        parameters.max_time_in_seconds = left_s
    limits = [work for work in (quality.work, budget.work) if work is not None]
    if limits:
        parameters.max_deterministic_time = min(limits)
    if quality.presolves is not None:
        parameters.max_presolve_iterations = quality.presolves
    parameters.stop_after_first_solution = quality.first


def _known_value(goal: IntExpression) -> int:
    assert isinstance(goal, int), "the model has no unknowns"
    return goal


class _SolutionCallback(cp_model.CpSolverSolutionCallback):
    """Passes each better solution to a callback."""

    def __init__(self, builder: CpModelBuilder, watch: ProgressCallback) -> None:
        super().__init__()
        self._builder = builder
        self._watch = watch

    def on_solution_callback(self) -> None:
        """Report the current solution."""
        progress = SearchProgress(
            round(self.objective_value), round(self.best_objective_bound), self.wall_time
        )
        self._watch(progress, Solution(self._builder.values(self)))


_SOLVER_STATUS: Final[dict[Any, SolverStatus]] = {
    cp_model.OPTIMAL: SolverStatus.BEST,
    cp_model.FEASIBLE: SolverStatus.FOUND,
    cp_model.INFEASIBLE: SolverStatus.NONE,
    cp_model.UNKNOWN: SolverStatus.UNKNOWN,
}
