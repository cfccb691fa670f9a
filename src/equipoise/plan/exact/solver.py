"""The interface to CP-SAT: literals, numbers and constraints, the budget and the runs.

A literal is an integer: ``TRUE`` and ``FALSE`` are known, any other is undecided, and ``-x`` is the
negation of ``x``. Known values never reach the solver: a model without unknowns needs no solver.
Nothing outside this module knows CP-SAT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from ortools.sat.python import cp_model


class LinearSum:
    """A constant and variables with their factors. It is immutable."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int, terms: Mapping[int, int]) -> None:
        self.constant = constant
        self.terms = terms

    @classmethod
    def of(cls, number: IntExpression) -> LinearSum:
        """Return a number as a sum."""
        return cls(number, {}) if isinstance(number, int) else number

    @staticmethod
    def plain(constant: int, terms: Mapping[int, int]) -> IntExpression:
        """Return a sum, or a plain number if it has no variables."""
        if all(terms.values()):
            return LinearSum(constant, terms) if terms else constant
        nonzero = {index: factor for index, factor in terms.items() if factor}
        return LinearSum(constant, nonzero) if nonzero else constant

    def __add__(self, other: IntExpression) -> IntExpression:
        if isinstance(other, int):
            return LinearSum(self.constant + other, self.terms)
        terms = dict(self.terms)
        for index, factor in other.terms.items():
            terms[index] = terms.get(index, 0) + factor
        return LinearSum.plain(self.constant + other.constant, terms)

    __radd__ = __add__

    def __neg__(self) -> LinearSum:
        return LinearSum(-self.constant, {index: -factor for index, factor in self.terms.items()})

    def __sub__(self, other: IntExpression) -> IntExpression:
        return self + -other

    def __rsub__(self, other: int) -> IntExpression:
        return -self + other

    def __mul__(self, factor: int) -> IntExpression:
        terms = {index: own_factor * factor for index, own_factor in self.terms.items()}
        return LinearSum.plain(self.constant * factor, terms)

    __rmul__ = __mul__


IntExpression = int | LinearSum
"""A known number, or a sum that the solver decides."""


Literal = int
Interval = tuple[IntExpression, IntExpression, IntExpression]
"""The start, the size and the end of something."""
OptionalUse = tuple[Interval, Literal, int]
"""An interval, the literal that it exists, and the amount that it uses meanwhile."""
TRUE: Final[Literal] = 1
FALSE: Final[Literal] = -1
_FIRST_VARIABLE: Final = 2
"""The index of the first variable; the indices before it stand for known values."""


class CpModelBuilder:
    """A model under construction."""

    def __init__(self) -> None:
        self._variables: list[Any] = [None, None]
        self._bounds: list[tuple[int, int]] = [(0, 0), (1, 1)]
        self._known: dict[Any, Literal] = {}
        self.infeasible = False
        """Whether the model is contradictory, without running the solver."""

    @cached_property
    def model(self) -> cp_model.CpModel:
        """The CP-SAT model; it is made when there is something to decide."""
        return cp_model.CpModel()

    # Literals

    def literal(self) -> Literal:
        """Return a new literal that the solver decides."""
        self._variables.append(self.model.new_bool_var(""))
        self._bounds.append((0, 1))
        return len(self._variables) - 1

    def all(self, literals: Iterable[Literal]) -> Literal:
        """Return the literal that all of them hold; equal conjunctions share one literal."""
        undecided: set[Literal] = set()
        for literal in literals:
            if literal == FALSE or -literal in undecided:
                return FALSE
            if literal != TRUE:
                undecided.add(literal)
        if len(undecided) <= 1:
            return undecided.pop() if undecided else TRUE
        # The same part of a formula comes back at many moments; equal conjunctions share a literal.
        key = frozenset(undecided)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.literal()
            cp_literals = [self.cp_literal(literal) for literal in undecided]
            whole = self.cp_literal(known)
            for cp_literal in cp_literals:
                self.model.add_implication(whole, cp_literal)
            self.model.add_bool_or([whole, *(cp_literal.negated() for cp_literal in cp_literals)])
        return known

    def any(self, literals: Iterable[Literal]) -> Literal:
        """Return the literal that at least one of them holds."""
        return -self.all(-literal for literal in literals)

    def at_most(self, number: IntExpression, limit: int) -> Literal:
        """Return the literal that a number is at most the limit."""
        if isinstance(number, int):
            return TRUE if number <= limit else FALSE
        least, most = self.bounds(number)
        if most <= limit:
            return TRUE
        if least > limit:
            return FALSE
        # Without its constant, equal comparisons have equal keys and share a literal.
        number, limit = LinearSum(0, number.terms), limit - number.constant
        if len(number.terms) == 1:
            ((index, _),) = number.terms.items()
            if self._bounds[index] == (0, 1):  # a variable of 0 or 1 is a literal itself
                # The lower bound is not 0 if the factor is negative: 1 is below the limit.
                return index if self.bounds(number)[0] != 0 else -index
        key = (tuple(sorted(number.terms.items())), limit)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.literal()
            cp_literal, expression = self.cp_literal(known), self.expression(number)
            # Both directions: a formula may use the literal and its negation.
            self.model.add(expression <= limit).only_enforce_if(cp_literal)
            self.model.add(expression > limit).only_enforce_if(cp_literal.negated())
        return known

    def equal(self, number: IntExpression, other: IntExpression) -> Literal:
        """Return the literal that two numbers are equal."""
        difference = LinearSum.of(number) - LinearSum.of(other)
        return self.all((self.at_most(difference, 0), self.at_most(-difference, 0)))

    # Numbers

    def number(self, least: int, most: int) -> IntExpression:
        """Return a new number that the solver decides."""
        if least == most:
            return least
        self._variables.append(self.model.new_int_var(least, most, ""))
        self._bounds.append((least, most))
        return LinearSum(0, {len(self._variables) - 1: 1})

    def quotient(self, number: IntExpression, divisor: int) -> IntExpression:
        """Return a number divided by a divisor, rounded down."""
        if isinstance(number, int):
            return number // divisor
        if divisor < 0:
            number, divisor = -number, -divisor
        least, most = self.bounds(number)
        # result * divisor <= number < (result + 1) * divisor: rounded down, as Python does, also
        # for negative numbers; CP-SAT's own division rounds towards zero.
        result = self.number(least // divisor, most // divisor)
        self.require_at_most(result * divisor - number, 0)
        self.require_at_most(number - result * divisor, divisor - 1)
        return result

    def bounds(self, number: IntExpression) -> tuple[int, int]:
        """Return a lower and an upper bound of a number, from the bounds of its variables."""
        if isinstance(number, int):
            return number, number
        least = most = number.constant
        for index, factor in number.terms.items():
            low, high = self._bounds[index]
            least += factor * (low if factor > 0 else high)
            most += factor * (high if factor > 0 else low)
        return least, most

    # Constraints

    def require(self, literal: Literal, given: Sequence[Literal] = ()) -> None:
        """Require a literal if all ``given`` literals hold."""
        if literal == TRUE or FALSE in given:
            return
        clause = [-condition for condition in given if condition != TRUE]
        if literal != FALSE:
            clause.append(literal)
        if not clause:
            self.infeasible = True
        elif len(clause) == 1:
            self._fix(clause[0])
        else:
            self.model.add_bool_or([self.cp_literal(member) for member in clause])

    def require_at_most(
        self, number: IntExpression, limit: int, given: Sequence[Literal] = ()
    ) -> None:
        """Require that a number is at most the limit if all ``given`` literals hold."""
        least, most = self.bounds(number)
        if most <= limit or FALSE in given:
            return
        if least > limit:
            self.require(FALSE, given)
            return
        constraint = self.model.add(self.expression(number) <= limit)
        conditions = [self.cp_literal(literal) for literal in given if literal != TRUE]
        if conditions:
            constraint.only_enforce_if(conditions)

    def require_equal(
        self, number: IntExpression, other: IntExpression, given: Sequence[Literal] = ()
    ) -> None:
        """Require that two numbers are equal if all ``given`` literals hold."""
        difference = LinearSum.of(number) - LinearSum.of(other)
        self.require_at_most(difference, 0, given)
        self.require_at_most(-difference, 0, given)

    def require_one(self, literals: Iterable[Literal]) -> None:
        """Require that exactly one literal holds; none of them is known."""
        self.model.add_exactly_one([self.cp_literal(literal) for literal in literals])

    def require_cumulative(self, spans: Sequence[OptionalUse], most: int) -> None:
        """Require that the uses at one time never exceed the capacity."""
        if all(map(_is_known, spans)):
            self.infeasible |= _peak(spans) > most
            return
        intervals = [self._interval(shape, present) for shape, present, _ in spans]
        self.model.add_cumulative(intervals, [need for _, _, need in spans], most)

    def _interval(self, shape: Interval, present: Literal) -> Any:
        start, size, end = map(self.expression, shape)
        return self.model.new_optional_interval_var(start, size, end, self.cp_literal(present), "")

    def _fix(self, literal: Literal) -> None:
        self.model.add_bool_or([self.cp_literal(literal)])

    # The interface to CP-SAT

    def cp_literal(self, literal: Literal) -> Any:
        """Return the CP-SAT form of a literal."""
        if literal in (TRUE, FALSE):
            return self.model.new_constant(int(literal == TRUE))
        return self._variables[literal] if literal > 0 else self._variables[-literal].negated()

    def expression(self, number: IntExpression) -> Any:
        """Return the CP-SAT form of a number."""
        if isinstance(number, int):
            return number
        # One call instead of one addition in Python for each variable.
        variables = [self._variables[index] for index in number.terms]
        weighted = cp_model.LinearExpr.weighted_sum(variables, list(number.terms.values()))
        return weighted + number.constant if number.constant else weighted

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to decide."""
        return "model" not in self.__dict__

    def values(self, solver: Any) -> list[int]:
        """Return the values of a solution, by the indices of the variables."""
        variables = self._variables[_FIRST_VARIABLE:]
        return [0, 1, *(int(solver.value(variable)) for variable in variables)]

    def hint(self, number: IntExpression, value: int) -> None:
        """Give the solver a first value of one variable."""
        # A hint belongs to one variable; a sum of several has no single one to set.
        if isinstance(number, LinearSum) and len(number.terms) == 1:
            ((index, factor),) = number.terms.items()
            self.model.add_hint(self._variables[index], (value - number.constant) // factor)

    def hint_all(self, values: Sequence[int]) -> None:
        """Give the solver an earlier solution as the first values."""
        self.model.clear_hints()  # type: ignore[no-untyped-call]
        for variable, value in zip(
            # Variables that were added after the solution have no value yet.
            self._variables[_FIRST_VARIABLE:],
            values[_FIRST_VARIABLE:],
            strict=False,
        ):
            self.model.add_hint(variable, value)


def _is_known(span: OptionalUse) -> bool:
    shape, present, _ = span
    return present in (TRUE, FALSE) and all(isinstance(time, int) for time in shape)


def _peak(spans: Sequence[OptionalUse]) -> int:
    """Return the largest use at any time, if everything is known."""
    changes: list[tuple[int, int]] = []
    for (start, _, end), present, need in spans:
        if present == TRUE and isinstance(start, int) and isinstance(end, int) and start < end:
            changes += ((start, need), (end, -need))
    level = peak = 0
    # At one instant the negative changes sort first: ends come before starts.
    for _, change in sorted(changes):
        level += change
        peak = max(peak, level)
    return peak


def as_number(literal: Literal) -> IntExpression:
    """Return 1 if the literal holds, else 0."""
    if literal in (TRUE, FALSE):
        return int(literal == TRUE)
    return LinearSum(0, {literal: 1}) if literal > 0 else LinearSum(1, {-literal: -1})


def weighted_sum(weighted: Iterable[tuple[int, Literal]]) -> IntExpression:
    """Return the sum of the amounts whose literals hold."""
    constant, terms = 0, dict[int, int]()
    for amount, literal in weighted:
        if literal == TRUE:
            constant += amount
        elif literal > 1:
            terms[literal] = terms.get(literal, 0) + amount
        elif literal < -1:
            constant += amount
            terms[-literal] = terms.get(-literal, 0) - amount
    return LinearSum.plain(constant, terms)


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
    explains: bool = True
    """Whether a conflict is reduced to a minimal one; that can take more searches than the plan."""
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
POLISHED: Final = SolutionQuality(work=1.0)
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


# An eighth of the range of 64 bits, which leaves room for the solver's own sums.
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
