"""Repair on against off: the same trials, with a plan imposed and with one to be made.

Who repairs moves nobody but those whom some constraint takes for misplaced, so that there is less
to decide. With a plan imposed this can hardly matter, as whom the plan moves is misplaced by that
alone; it was so in the paper as well. So the scheduler is also asked to get by itself to where the
plan leads. If that plan is right there is a way, and who finds one only without repair was misled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final, Protocol, runtime_checkable

from equipoise.fuzz.experiments.subject import Subject
from equipoise.fuzz.experiments.table import Cell, Result, Table
from equipoise.fuzz.schedulers import Crash, TooLate, Unsupported
from equipoise.fuzz.trial import Outcome, Trial, Verdict
from equipoise.model.action import Migrate
from equipoise.model.plan import Step

Own = tuple[Step, ...] | Unsupported | TooLate | Crash | None
"""A plan that a scheduler made itself; nothing if it found none."""
REPAIR: Final = "repair"
ARMS: Final = ("off", "on")
PAPER: Final = (
    "The paper (BtrPlace 1.6.0, 10,000 trials): 578 disagree with repair and 578 without; its "
    "program had repair on in both arms."
)


class Way(StrEnum):
    """What came of asking a scheduler to get somewhere by itself, where there is a way."""

    RIGHT = "makes a right plan"
    WRONG = "makes a wrong plan"
    NONE = "finds none"
    CRASH = "crash"
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"


@runtime_checkable
class Replanning(Protocol):
    """Can be asked to get by itself to where a plan leads."""

    def plans_many(self, trials: Sequence[Trial]) -> Sequence[Own]:
        """The plan that it would make for each, or nothing if it finds none."""
        ...


def compare_repair(subject: Subject) -> Result:
    """Ask about every trial in both ways, with repair and without."""
    right = [trial for trial in subject.trials if trial.is_right]
    imposed: dict[str, list[Verdict]] = {}
    own: dict[str, list[Own]] = {}
    for arm in ARMS:
        with subject.scheduler(repair=arm) as scheduler:
            imposed[arm] = subject.verdicts(scheduler, subject.trials, f"repair {arm}")
            if isinstance(scheduler, Replanning):
                own[arm] = subject.each(scheduler.plans_many, right, f"repair {arm}, by itself")
    outcomes = {arm: [one.outcome for one in said] for arm, said in imposed.items()}
    tables = [
        _by_arm("The plan is imposed", "verdict", outcomes, Outcome),
        _apart("The plan is imposed: trials on which it matters", subject.trials, outcomes),
    ]
    notes = [f"{len(right):,} of {len(subject.trials):,} trials have a plan that is right."]
    if own:
        ways = {
            arm: [_way(trial, one) for trial, one in zip(right, made, strict=True)]
            for arm, made in own.items()
        }
        notes.append(_moves(own))
        tables += [
            _by_arm("It gets there by itself, where there is a way", "what comes of it", ways, Way),
            _apart("It gets there by itself: trials on which it matters", right, ways),
        ]
    return Result(tables, (*notes, PAPER))


def _moves(own: Mapping[str, Sequence[Own]]) -> str:
    """How much is moved where a plan is made with repair and without."""
    pairs = zip(*(own[arm] for arm in ARMS), strict=True)
    made = [pair for pair in pairs if all(isinstance(one, tuple) for one in pair)]
    off, on = (sum(_migrations(pair[place]) for pair in made) for place in range(len(ARMS)))
    return (
        f"On {len(made):,} of these it makes a plan by itself either way: with {off:,} migrations "
        f"in all without repair, and {on:,} with it."
    )


def _migrations(answer: Own) -> int:
    steps = answer if isinstance(answer, tuple) else ()
    return sum(isinstance(step.action, Migrate) for step in steps)


def _way(trial: Trial, answer: Own) -> Way:
    match answer:
        case Unsupported():
            return Way.UNSUPPORTED
        case TooLate():
            return Way.TIMEOUT
        case Crash():
            return Way.CRASH
        case None:
            return Way.NONE
    return Way.RIGHT if replace(trial, steps=answer).is_right else Way.WRONG


def _by_arm(
    title: str,
    what: str,
    said: dict[str, list[Outcome]] | dict[str, list[Way]],
    kinds: Iterable[StrEnum],
) -> Table:
    counts = {arm: Counter(map(str, some)) for arm, some in said.items()}
    rows: list[dict[str, Cell]] = [
        {what: str(kind), **{f"repair {arm}": counts[arm][str(kind)] for arm in ARMS}}
        for kind in kinds
    ]
    return Table(title, (what, *(f"repair {arm}" for arm in ARMS)), rows)


def _apart(
    title: str, trials: Sequence[Trial], said: dict[str, list[Outcome]] | dict[str, list[Way]]
) -> Table:
    """The trials of which something else comes with repair than without."""
    off, on = (list(map(str, said[arm])) for arm in ARMS)
    found = Counter(
        (trial.demand.name, "continuous" if trial.demand.continuous else "discrete", one, other)
        for trial, one, other in zip(trials, off, on, strict=True)
        if one != other
    )
    columns = ("constraint", "mode", "repair off", "repair on", "trials")
    rows: list[dict[str, Cell]] = [
        dict(zip(columns, (*key, count), strict=True)) for key, count in sorted(found.items())
    ]
    return Table(title, columns, rows)
