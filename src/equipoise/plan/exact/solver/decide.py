"""Deciding: the solver is asked, watched and stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from ortools.sat.python import cp_model

from equipoise.plan.exact.solver.circuit import Circuit, Truth, as_number
from equipoise.plan.exact.solver.number import Number, Sum


class Verdict(StrEnum):
    """What came of asking the solver."""

    BEST = "best"
    """There is a solution, and none is better."""
    FOUND = "found"
    """There is a solution; there may be a better one."""
    NONE = "none"
    """There is no solution, and that is proved."""
    UNKNOWN = "unknown"
    """It was stopped before it knew."""


class TooLarge(Exception):
    """The solver cannot count that far."""


class Decisions:
    """What the solver has decided."""

    def __init__(self, values: Sequence[int]) -> None:
        self.values = values

    def number(self, number: Number) -> int:
        """The value of a number."""
        if isinstance(number, int):
            return number
        known = (factor * self.values[index] for index, factor in number.terms.items())
        return number.constant + sum(known)

    def holds(self, truth: Truth) -> bool:
        """Whether something was decided to hold."""
        return bool(self.number(as_number(truth)))


@dataclass(slots=True)
class Progress:
    """How far the search for the best has come."""

    best: int
    bound: int
    seconds: float

    @property
    def gap_pct(self) -> float:
        """How much better a solution could be at the most, of what the best costs."""
        return 100 * abs(self.best - self.bound) / (abs(self.best) or 1)


Watch = Callable[[Progress, Decisions], None]


@dataclass(slots=True)
class Effort:
    """How long the planner may search, and who may stop it. Time comes from whoever asks."""

    clock: Callable[[], float] = field(default=lambda: 0.0)
    """Tells the seconds that have passed, since whenever."""
    until: float | None = None
    """When it must stop, by the clock."""
    seed: int = 0
    stopped: bool = False
    _running: list[Any] = field(default_factory=list)

    @classmethod
    def of(
        cls, seconds: float | None, clock: Callable[[], float] = lambda: 0.0, seed: int = 0
    ) -> Effort:
        """An effort of some seconds from now on; without a clock, for each time of asking."""
        until = None if seconds is None else clock() + seconds
        return cls(clock=clock, until=until, seed=seed)

    def left_s(self) -> float | None:
        """How many seconds are left."""
        return None if self.until is None else max(0.0, self.until - self.clock())

    @property
    def is_over(self) -> bool:
        """Whether there is no time left, or nobody wants to know any more."""
        return self.stopped or self.left_s() == 0.0

    def stop(self) -> None:
        """Stop the search at once; from any thread."""
        self.stopped = True
        for solver in self._running:
            solver.stop_search()


@dataclass(frozen=True, slots=True)
class Care:
    """How good a solution has to be."""

    work: float | None = None
    """After how much work it is good enough, counted in the solver's own steps: with a clock, the
    same question would not always have the same answer."""
    first: bool = False
    """Whether any will do."""
    presolves: int | None = None
    """How often the model is simplified before it is solved."""


BEST: Final = Care()
GOOD: Final = Care(work=5.0)
FAIR: Final = Care(work=0.1, presolves=1)
ANY: Final = Care(first=True)


@dataclass(slots=True)
class Outcome:
    """What came of asking."""

    verdict: Verdict
    decided: Decisions | None = None
    bound: int | None = None


def decide(
    circuit: Circuit,
    effort: Effort,
    goal: Number | None = None,
    watch: Watch | None = None,
    care: Care = BEST,
) -> Outcome:
    """Find decisions under which everything holds that must, with the goal as small as possible."""
    if circuit.refuted:
        return Outcome(Verdict.NONE)
    if circuit.is_empty:
        return Outcome(Verdict.BEST, Decisions(()), None if goal is None else _known(goal))
    if effort.is_over:
        return Outcome(Verdict.UNKNOWN)
    if isinstance(goal, Sum):
        if max(map(abs, circuit.bounds(goal))) > _COUNTED_MAX:
            raise TooLarge
        circuit.model.minimize(circuit.expression(goal))
    else:
        circuit.model.clear_objective()  # type: ignore[no-untyped-call]
        watch = None
    solver = cp_model.CpSolver()
    _set(solver, effort, care)
    effort._running.append(solver)
    try:
        looker = None if watch is None else _Looker(circuit, watch)
        status = solver.solve(circuit.model, looker)
    finally:
        effort._running.remove(solver)
    if status == cp_model.MODEL_INVALID and "overflow" in circuit.model.validate():
        raise TooLarge
    verdict = _VERDICTS.get(status)
    assert verdict is not None, f"the solver does not understand the model: {status}"
    if verdict in (Verdict.NONE, Verdict.UNKNOWN):
        return Outcome(verdict)
    bound = round(solver.best_objective_bound) if isinstance(goal, Sum) else None
    return Outcome(verdict, Decisions(circuit.values(solver)), bound)


_COUNTED_MAX: Final = 2**60


def _set(solver: Any, effort: Effort, care: Care) -> None:
    parameters = solver.parameters
    parameters.num_workers = 1  # several would make the answer depend on who is first
    parameters.random_seed = effort.seed
    parameters.catch_sigint_signal = False  # who asks has a way to stop it, ``Effort.stop``
    left_s = effort.left_s()
    if left_s is not None:
        parameters.max_time_in_seconds = left_s
    if care.work is not None:
        parameters.max_deterministic_time = care.work
    if care.presolves is not None:
        parameters.max_presolve_iterations = care.presolves
    parameters.stop_after_first_solution = care.first


def _known(goal: Number) -> int:
    assert isinstance(goal, int), "nothing is undecided"
    return goal


class _Looker(cp_model.CpSolverSolutionCallback):
    """Shows each better solution to whoever watches."""

    def __init__(self, circuit: Circuit, watch: Watch) -> None:
        super().__init__()
        self._circuit = circuit
        self._watch = watch

    def on_solution_callback(self) -> None:
        """Pass it on."""
        progress = Progress(
            round(self.objective_value), round(self.best_objective_bound), self.wall_time
        )
        self._watch(progress, Decisions(self._circuit.values(self)))


_VERDICTS: Final[dict[Any, Verdict]] = {
    cp_model.OPTIMAL: Verdict.BEST,
    cp_model.FEASIBLE: Verdict.FOUND,
    cp_model.INFEASIBLE: Verdict.NONE,
    cp_model.UNKNOWN: Verdict.UNKNOWN,
}
