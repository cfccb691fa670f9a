"""What defects come from, by constraint and by the letters of the paper's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from equipoise.fuzz.campaign.cause import Cause
from equipoise.fuzz.experiments.subject import Subject, is_answered
from equipoise.fuzz.experiments.table import ALL, Cell, Result, Row, Table
from equipoise.fuzz.trial import Outcome, Trial, Verdict

PAPER_CAUSES: Final[Mapping[Cause, tuple[int, int]]] = {
    Cause.BROKEN: (704, 7),
    Cause.UNUSUAL: (642, 4),
    Cause.BETWEEN: (45, 3),
    Cause.TOGETHER: (20, 4),
    Cause.MEANING: (16, 1),
    Cause.STATE: (4, 1),
}
"""Trials and constraints in the SafePlace paper, table 5b."""
PAPER_OUTCOMES: Final[Mapping[Outcome, tuple[int, int]]] = {
    Outcome.UNDER: (938, 10),
    Outcome.CRASH: (459, 3),
    Outcome.OVER: (244, 6),
}
"""The same by what comes of them, table 5a."""
NOTES: Final = (
    "A cause is guessed from the smallest case of each trial; the paper's were found by hand.",
    "The paper's: BtrPlace 1.6.0, 22 constraints, 1,000 trials each.",
    "Its two tables have different sums: 1,641 by verdict, 1,431 by cause.",
)


def count_causes(subject: Subject) -> Result:
    """Make every defect as small as it can be, and count what it looks like."""
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
    return Result((_by_cause(found), _by_outcome(subject.trials, verdicts)), (note, *NOTES))


def _by_cause(found: Counter[tuple[str, Cause]]) -> Table:
    names = list(dict.fromkeys(name for name, _ in found))
    rows = [_row(name, {cause: found[name, cause] for cause in Cause}) for name in sorted(names)]
    seen = {cause: [name for name in names if found[name, cause]] for cause in Cause}
    sums = {cause: sum(found[name, cause] for name in names) for cause in Cause}
    rows += [
        _row(ALL, sums),
        _row("constraints", {cause: len(some) for cause, some in seen.items()}, names),
        _row("paper: trials", {cause: count for cause, (count, _) in PAPER_CAUSES.items()}),
        _row(
            "paper: constraints", {cause: count for cause, (_, count) in PAPER_CAUSES.items()}, ()
        ),
    ]
    columns = ("constraint", *(one.letter or "none" for one in Cause), "sum")
    return Table("Trials that disagree, by constraint and cause", columns, rows)


def _row(first: str, counts: Mapping[Cause, int], distinct: Sequence[str] | None = None) -> Row:
    """A row; the sum of constraints is how many different ones there are, if that is known."""
    cells: dict[str, Cell] = {"constraint": first}
    for cause in Cause:
        cells[cause.letter or "none"] = counts.get(cause, "")
    cells["sum"] = sum(counts.values()) if distinct is None else len(distinct) or ""
    return cells


def _by_outcome(trials: Sequence[Trial], verdicts: Sequence[Verdict]) -> Table:
    rows: list[Row] = []
    for outcome, (paper_trials, paper_constraints) in PAPER_OUTCOMES.items():
        names = [
            trial.demand.name
            for trial, one in zip(trials, verdicts, strict=True)
            if one.outcome is outcome
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
    return Table("Trials that disagree, by verdict", tuple(rows[0]), rows)
