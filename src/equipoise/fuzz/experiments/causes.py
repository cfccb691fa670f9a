"""Experiment: the causes of defects, by constraint and by the letters of the paper's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from equipoise.fuzz.campaign.findings import DefectCause
from equipoise.fuzz.experiments.subject import (
    TOTAL,
    Cell,
    ExperimentResult,
    ResultTable,
    Row,
    Subject,
    is_answered,
)
from equipoise.fuzz.trial import Trial, TrialOutcome, TrialVerdict

PAPER_CAUSES: Final[Mapping[DefectCause, tuple[int, int]]] = {
    DefectCause.BROKEN: (704, 7),
    DefectCause.UNUSUAL: (642, 4),
    DefectCause.BETWEEN: (45, 3),
    DefectCause.TOGETHER: (20, 4),
    DefectCause.MEANING: (16, 1),
    DefectCause.STATE: (4, 1),
}
"""Trials and constraints in the SafePlace paper, table 5b."""
PAPER_OUTCOMES: Final[Mapping[TrialOutcome, tuple[int, int]]] = {
    TrialOutcome.UNDER: (938, 10),
    TrialOutcome.CRASH: (459, 3),
    TrialOutcome.OVER: (244, 6),
}
"""The same by verdict, table 5a."""
NOTES: Final = (
    "The cause is a guess from the smallest case of each trial; the paper found causes by hand.",
    "The paper: BtrPlace 1.6.0, 22 constraints, 1,000 trials each.",
    "The two tables of the paper have different sums: 1,641 by verdict, 1,431 by cause.",
)


def count_causes(subject: Subject) -> ExperimentResult:
    """Shrink every defect and count its guessed cause."""
    with subject.scheduler() as scheduler:
        verdicts = subject.verdicts(scheduler, subject.trials, "asking")
        causes = subject.causes(scheduler, subject.trials, verdicts, "defects")
    found = Counter(
        (trial.demand.name, cause)
        for trial, cause in zip(subject.trials, causes, strict=True)
        if cause is not None
    )
    answered = sum(map(is_answered, verdicts))
    note = f"{answered:,} of {len(subject.trials):,} trials are answered."
    return ExperimentResult(
        (_by_cause(found), _by_outcome(subject.trials, verdicts)), (note, *NOTES)
    )


def _by_cause(found: Counter[tuple[str, DefectCause]]) -> ResultTable:
    names = list(dict.fromkeys(name for name, _ in found))
    rows = [
        _row(name, {cause: found[name, cause] for cause in DefectCause}) for name in sorted(names)
    ]
    seen = {cause: [name for name in names if found[name, cause]] for cause in DefectCause}
    sums = {cause: sum(found[name, cause] for name in names) for cause in DefectCause}
    rows += [
        _row(TOTAL, sums),
        _row(
            "constraints", {cause: len(constraints) for cause, constraints in seen.items()}, names
        ),
        _row("paper: trials", {cause: count for cause, (count, _) in PAPER_CAUSES.items()}),
        _row(
            "paper: constraints", {cause: count for cause, (_, count) in PAPER_CAUSES.items()}, ()
        ),
    ]
    columns = ("constraint", *(cause.letter or "none" for cause in DefectCause), "sum")
    return ResultTable("Trials that disagree, by constraint and cause", columns, rows)


def _row(
    first: str, counts: Mapping[DefectCause, int], distinct: Sequence[str] | None = None
) -> Row:
    """A row of counts; with ``distinct``, the sum column has the number of distinct constraints."""
    cells: dict[str, Cell] = {"constraint": first}
    for cause in DefectCause:
        cells[cause.letter or "none"] = counts.get(cause, "")
    cells["sum"] = sum(counts.values()) if distinct is None else len(distinct) or ""
    return cells


def _by_outcome(trials: Sequence[Trial], verdicts: Sequence[TrialVerdict]) -> ResultTable:
    rows: list[Row] = []
    for outcome, (paper_trials, paper_constraints) in PAPER_OUTCOMES.items():
        names = [
            trial.demand.name
            for trial, verdict in zip(trials, verdicts, strict=True)
            if verdict.outcome is outcome
        ]
        rows.append(
            {
                "verdict": outcome.value,
                "trials": len(names),
                "constraints": len(set(names)),
                "paper: trials": paper_trials,
                "paper: constraints": paper_constraints,
            }
        )
    return ResultTable("Trials that disagree, by verdict", tuple(rows[0]), rows)
