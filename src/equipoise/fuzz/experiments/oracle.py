"""The specification against a scheduler's own checker: who would have found which defect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from equipoise.fuzz.experiments.subject import Subject
from equipoise.fuzz.experiments.table import Cell, Result, Table, with_sum
from equipoise.fuzz.schedulers.scheduler import Answer, Crash, YesOrNo, ask
from equipoise.fuzz.trial import Outcome, Trial

FOUND: Final = ("specification", "checker", "both", "only the specification", "only the checker")
AT_RUN_TIME: Final = "both, at run time"
NOTES: Final = (
    "A defect is a trial on which the solver breaks, or its judge says the opposite of it.",
    "The checker judges in the specification's place, and here sees refused plans as well.",
    "At run time it would see only plans that the solver has made.",
    "On what only the checker finds, the solver and the specification agree with each other.",
    "The paper (BtrPlace 1.6.0): 556 by the specification, 249 by checkers, none by those only.",
)


@runtime_checkable
class Checking(Protocol):
    """Has a checker of its own besides what decides."""

    def checks_many(self, trials: Sequence[Trial]) -> Sequence[YesOrNo]:
        """Whether it has nothing against the plan of each."""
        ...


class Seen(NamedTuple):
    """What two judges make of one trial, and what is seen at run time."""

    constraint: str
    by_specification: Outcome | None
    by_checker: Outcome | None
    at_run_time: bool
    contradict: bool
    """Whether the two judges say opposite things of the plan, whatever the solver says."""


def compare_oracles(subject: Subject) -> Result:
    """Ask the solver, the specification and the checker about every trial."""
    with subject.scheduler() as scheduler:
        assert isinstance(scheduler, Checking), "it was said to have a checker"
        solver: list[Answer] = subject.each(
            lambda some: ask(scheduler, some), subject.trials, "solver"
        )
        checker: list[YesOrNo] = subject.each(scheduler.checks_many, subject.trials, "checker")
    trials = list(zip(subject.trials, solver, checker, strict=True))
    seen = [_seen(*one) for one in trials if _is_comparable(*one[1:])]
    broken = sum(isinstance(one, Crash) for one in checker)
    contradicted = sum(one.contradict for one in seen)
    notes = (
        f"{len(seen):,} of {len(trials):,} trials are answered by the solver and by the checker.",
        f"On {contradicted:,} the checker contradicts the specification; on {broken:,} it breaks.",
        *NOTES,
    )
    return Result((_by_outcome(seen), _by_constraint(seen)), notes)


def _is_comparable(solver: Answer, checker: YesOrNo) -> bool:
    return isinstance(solver, bool | Crash) and isinstance(checker, bool | Crash)


def _seen(trial: Trial, solver: Answer, checker: YesOrNo) -> Seen:
    right = trial.is_right
    checked = checker if isinstance(checker, bool) else None
    return Seen(
        trial.demand.name,
        _outcome(solver, right),
        _outcome(solver, checked),
        isinstance(solver, Crash) or (solver is True and checked is False),
        checked is not None and checked != right,
    )


def _outcome(solver: Answer, right: bool | None) -> Outcome | None:
    """Which defect somebody finds who says this of the plan; nothing if there is none."""
    if isinstance(solver, Crash):
        return Outcome.CRASH
    if right is None or solver == right:
        return None
    return Outcome.OVER if right else Outcome.UNDER


def _by_outcome(seen: Sequence[Seen]) -> Table:
    columns = ("verdict", *FOUND, AT_RUN_TIME)
    rows = (
        {
            "verdict": outcome.value,
            **_counts(seen, outcome),
            AT_RUN_TIME: sum(
                one.at_run_time and one.by_specification is one.by_checker is outcome
                for one in seen
            ),
        }
        for outcome in (Outcome.OVER, Outcome.UNDER, Outcome.CRASH)
    )
    return Table("Defects found, by verdict", columns, with_sum(rows, columns))


def _by_constraint(seen: Sequence[Seen]) -> Table:
    by_name: dict[str, list[Seen]] = {}
    for one in seen:
        if one.by_specification or one.by_checker:
            by_name.setdefault(one.constraint, []).append(one)
    columns = ("constraint", *FOUND)
    rows = ({"constraint": name, **_counts(some)} for name, some in sorted(by_name.items()))
    return Table("Defects found, by constraint", columns, with_sum(rows, columns))


def _counts(seen: Sequence[Seen], outcome: Outcome | None = None) -> dict[str, Cell]:
    """How many defects of a class, or of any, each of the two finds."""

    def finds(found: Outcome | None) -> bool:
        return found is not None and outcome in (found, None)

    pairs = Counter((finds(one.by_specification), finds(one.by_checker)) for one in seen)
    both, mine, other = pairs[True, True], pairs[True, False], pairs[False, True]
    return dict(zip(FOUND, (both + mine, both + other, both, mine, other), strict=True))
