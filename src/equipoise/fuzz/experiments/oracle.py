"""Experiment: the defects that the specification finds, and those of a scheduler's own checker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from equipoise.adapters.targets.scheduler import (
    AcceptanceAnswer,
    SchedulerAnswer,
    SchedulerCrash,
    ask,
)
from equipoise.fuzz.experiments.subject import (
    Cell,
    ExperimentResult,
    ResultTable,
    Subject,
    with_sum,
)
from equipoise.fuzz.trial import Trial, TrialOutcome

FOUND_BY: Final = ("specification", "checker", "both", "only the specification", "only the checker")
AT_RUN_TIME: Final = "both, at run time"
NOTES: Final = (
    "A defect is a trial on which the solver crashes or contradicts its judge.",
    "The checker replaces the specification as judge, and here it also judges rejected plans.",
    "At run time the checker would judge only plans that the solver made.",
    "On defects that only the checker finds, the solver and the specification agree.",
    "The paper (BtrPlace 1.6.0): 556 by the specification, 249 by checkers, 0 by checkers only.",
)


@runtime_checkable
class OwnChecker(Protocol):
    """A scheduler with a checker beside its solver."""

    def checks_many(self, trials: Sequence[Trial]) -> Sequence[AcceptanceAnswer]:
        """Whether the checker accepts the plan of each trial."""
        ...


class OracleComparison(NamedTuple):
    """The defects that two judges find in one trial, and the one that shows at run time."""

    constraint: str
    by_specification: TrialOutcome | None
    by_checker: TrialOutcome | None
    at_run_time: bool
    contradict: bool
    """Whether the two judges contradict each other about the plan."""


def compare_oracles(subject: Subject) -> ExperimentResult:
    """Judge every trial by the solver, the specification and the checker."""
    with subject.scheduler() as scheduler:
        assert isinstance(scheduler, OwnChecker), "the catalog checks has_checker"
        solver: list[SchedulerAnswer] = subject.each(
            lambda batch: ask(scheduler, batch), subject.trials, "solver"
        )
        checker: list[AcceptanceAnswer] = subject.each(
            scheduler.checks_many, subject.trials, "checker"
        )
    trials = list(zip(subject.trials, solver, checker, strict=True))
    compared = [_comparison(*answers) for answers in trials if _is_comparable(*answers[1:])]
    crashes = sum(isinstance(answer, SchedulerCrash) for answer in checker)
    contradictions = sum(comparison.contradict for comparison in compared)
    notes = (
        f"{len(compared):,} of {len(trials):,} trials are answered by the solver and the checker.",
        f"The checker contradicts the specification {contradictions:,} times.",
        f"The checker crashes {crashes:,} times.",
        *NOTES,
    )
    return ExperimentResult((_table_by_outcome(compared), _table_by_constraint(compared)), notes)


def _is_comparable(solver: SchedulerAnswer, checker: AcceptanceAnswer) -> bool:
    return isinstance(solver, bool | SchedulerCrash) and isinstance(checker, bool | SchedulerCrash)


def _comparison(
    trial: Trial, solver: SchedulerAnswer, checker: AcceptanceAnswer
) -> OracleComparison:
    right = trial.is_acceptable
    checked = checker if isinstance(checker, bool) else None
    return OracleComparison(
        trial.demand.name,
        _outcome(solver, right),
        _outcome(solver, checked),
        # At run time a rejected plan does not exist, so a checker cannot complain about
        # over-filtering.
        isinstance(solver, SchedulerCrash) or (solver is True and checked is False),
        checked is not None and checked != right,
    )


def _outcome(solver: SchedulerAnswer, right: bool | None) -> TrialOutcome | None:
    """The defect that a judge finds if ``right`` is its verdict on the plan."""
    if isinstance(solver, SchedulerCrash):
        return TrialOutcome.CRASH
    if right is None or solver == right:
        return None
    return TrialOutcome.OVER if right else TrialOutcome.UNDER


def _table_by_outcome(compared: Sequence[OracleComparison]) -> ResultTable:
    columns = ("verdict", *FOUND_BY, AT_RUN_TIME)
    rows = (
        {
            "verdict": outcome.value,
            **_counts(compared, outcome),
            AT_RUN_TIME: sum(
                comparison.at_run_time
                and comparison.by_specification is comparison.by_checker is outcome
                for comparison in compared
            ),
        }
        for outcome in (TrialOutcome.OVER, TrialOutcome.UNDER, TrialOutcome.CRASH)
    )
    return ResultTable("Defects found, by verdict", columns, with_sum(rows, columns))


def _table_by_constraint(compared: Sequence[OracleComparison]) -> ResultTable:
    by_name: dict[str, list[OracleComparison]] = {}
    for comparison in compared:
        if comparison.by_specification or comparison.by_checker:
            by_name.setdefault(comparison.constraint, []).append(comparison)
    columns = ("constraint", *FOUND_BY)
    rows = (
        {"constraint": name, **_counts(comparisons)}
        for name, comparisons in sorted(by_name.items())
    )
    return ResultTable("Defects found, by constraint", columns, with_sum(rows, columns))


def _counts(
    compared: Sequence[OracleComparison], outcome: TrialOutcome | None = None
) -> dict[str, Cell]:
    """The number of defects of an outcome, or of any outcome, that each judge finds."""

    def counts(defect: TrialOutcome | None) -> bool:
        return defect is not None and outcome in (defect, None)

    pairs = Counter(
        (counts(comparison.by_specification), counts(comparison.by_checker))
        for comparison in compared
    )
    both, spec_only, checker_only = pairs[True, True], pairs[True, False], pairs[False, True]
    figures = (both + spec_only, both + checker_only, both, spec_only, checker_only)
    return dict(zip(FOUND_BY, figures, strict=True))
