"""Experiment: repair on and off, with an imposed plan and with a plan of the scheduler.

With repair, only VMs that violate a constraint may move, so the search is smaller. An imposed plan
hardly shows the difference, because every VM that it moves counts as misplaced; the paper has the
same limit. So the scheduler also makes its own plan for the same final state. If the imposed plan
is right, a plan exists, and a scheduler that finds one only without repair is misled by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final, Protocol, runtime_checkable

from equipoise.adapters.targets.scheduler import (
    SchedulerCrash,
    SchedulerTimeout,
    SelfMadePlan,
    UnsupportedTrial,
)
from equipoise.fuzz.experiments.subject import Cell, ExperimentResult, ResultTable, Subject
from equipoise.fuzz.trial import Trial, TrialOutcome, TrialVerdict
from equipoise.model.action import Migrate

REPAIR: Final = "repair"
ARMS: Final = ("off", "on")
PAPER: Final = (
    "The paper (BtrPlace 1.6.0, 10,000 trials): 578 disagree with repair and 578 without; its "
    "program had repair on in both arms."
)


class OwnPlanOutcome(StrEnum):
    """The outcome of planning for a final state that can be reached."""

    RIGHT = "makes a right plan"
    WRONG = "makes a wrong plan"
    NONE = "finds none"
    CRASH = "crash"
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"


@runtime_checkable
class OwnPlanner(Protocol):
    """A scheduler that makes its own plan for the final state of a trial."""

    def plans_many(self, trials: Sequence[Trial]) -> Sequence[SelfMadePlan]:
        """The plan for each trial; ``None`` if it finds no plan."""
        ...


def compare_repair(subject: Subject) -> ExperimentResult:
    """Judge every trial with repair and without, with imposed and with own plans."""
    # A right imposed plan proves that a plan exists, so a scheduler that finds none is wrong.
    right = [trial for trial in subject.trials if trial.is_acceptable]
    imposed: dict[str, list[TrialVerdict]] = {}
    own: dict[str, list[SelfMadePlan]] = {}
    for arm in ARMS:
        with subject.scheduler(repair=arm) as scheduler:
            imposed[arm] = subject.verdicts(scheduler, subject.trials, f"repair {arm}")
            if isinstance(scheduler, OwnPlanner):
                own[arm] = subject.each(scheduler.plans_many, right, f"repair {arm}, own plans")
    outcomes = {arm: [verdict.outcome for verdict in verdicts] for arm, verdicts in imposed.items()}
    tables = [
        _by_arm("Imposed plans", "verdict", outcomes, TrialOutcome),
        _differences("Imposed plans: trials with different verdicts", subject.trials, outcomes),
    ]
    notes = [f"{len(right):,} of {len(subject.trials):,} trials have a right plan."]
    if own:
        own_outcomes = {
            arm: [_own_plan_outcome(trial, plan) for trial, plan in zip(right, plans, strict=True)]
            for arm, plans in own.items()
        }
        notes.append(_migrations_note(own))
        tables += [
            _by_arm("Own plans, where a plan exists", "outcome", own_outcomes, OwnPlanOutcome),
            _differences("Own plans: trials with different outcomes", right, own_outcomes),
        ]
    return ExperimentResult(tables, (*notes, PAPER))


def _migrations_note(own: Mapping[str, Sequence[SelfMadePlan]]) -> str:
    """The number of migrations on trials with a plan in both arms."""
    pairs = zip(*(own[arm] for arm in ARMS), strict=True)
    made = [pair for pair in pairs if all(isinstance(plan, tuple) for plan in pair)]
    off, on = (sum(_migrations(pair[arm]) for pair in made) for arm in range(len(ARMS)))
    return (
        f"On {len(made):,} of these trials it makes a plan in both arms: {off:,} migrations "
        f"without repair, {on:,} with repair."
    )


def _migrations(answer: SelfMadePlan) -> int:
    steps = answer if isinstance(answer, tuple) else ()
    return sum(isinstance(step.action, Migrate) for step in steps)


def _own_plan_outcome(trial: Trial, answer: SelfMadePlan) -> OwnPlanOutcome:
    match answer:
        case UnsupportedTrial():
            return OwnPlanOutcome.UNSUPPORTED
        case SchedulerTimeout():
            return OwnPlanOutcome.TIMEOUT
        case SchedulerCrash():
            return OwnPlanOutcome.CRASH
        case None:
            return OwnPlanOutcome.NONE
    return (
        OwnPlanOutcome.RIGHT if replace(trial, steps=answer).is_acceptable else OwnPlanOutcome.WRONG
    )


def _by_arm(
    title: str,
    what: str,
    outcomes: dict[str, list[TrialOutcome]] | dict[str, list[OwnPlanOutcome]],
    kinds: Iterable[StrEnum],
) -> ResultTable:
    counts = {arm: Counter(map(str, of_arm)) for arm, of_arm in outcomes.items()}
    rows: list[dict[str, Cell]] = [
        {what: str(kind), **{f"repair {arm}": counts[arm][str(kind)] for arm in ARMS}}
        for kind in kinds
    ]
    return ResultTable(title, (what, *(f"repair {arm}" for arm in ARMS)), rows)


def _differences(
    title: str,
    trials: Sequence[Trial],
    outcomes: dict[str, list[TrialOutcome]] | dict[str, list[OwnPlanOutcome]],
) -> ResultTable:
    """The trials with different outcomes with repair and without."""
    off, on = (list(map(str, outcomes[arm])) for arm in ARMS)
    different = Counter(
        (
            trial.demand.name,
            "continuous" if trial.demand.continuous else "discrete",
            without,
            with_repair,
        )
        for trial, without, with_repair in zip(trials, off, on, strict=True)
        if without != with_repair
    )
    columns = ("constraint", "mode", "repair off", "repair on", "trials")
    rows: list[dict[str, Cell]] = [
        dict(zip(columns, (*key, count), strict=True)) for key, count in sorted(different.items())
    ]
    return ResultTable(title, columns, rows)
