"""The subject of an experiment (a scheduler with its trials), and the tables of its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from equipoise.adapters.targets.scheduler import Scheduler, SchedulerEntry, SchedulerTimeout, ask
from equipoise.errors import WorldError
from equipoise.fuzz.campaign.batch import shrink_to_finding
from equipoise.fuzz.campaign.findings import DefectCause
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.generate.generator import draw_in_turn
from equipoise.fuzz.trial import Trial, TrialOutcome, TrialVerdict, verdict_on
from equipoise.spec.library import library_constraints

Cell = str | int
Row = Mapping[str, Cell]
TOTAL: Final = "all"
"""The name of the row with the sums."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Rows with the same columns; the first column names the row."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that hold numbers."""
        return tuple(
            name for name in self.columns if any(isinstance(row[name], int) for row in self.rows)
        )


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """The tables and notes of an experiment."""

    tables: Sequence[ResultTable]
    notes: Sequence[str] = ()
    """What a reader of the tables must know, and the figures of the paper."""


def with_sum(rows: Iterable[Row], columns: Sequence[str]) -> list[Row]:
    """The rows, and a last one with the sums of all columns but the first."""
    all_rows = list(rows)
    first, *others = columns
    sums: dict[str, Cell] = {first: TOTAL}
    for name in others:
        cells = [row[name] for row in all_rows]
        sums[name] = sum(cell for cell in cells if isinstance(cell, int))
    return [*all_rows, sums]


TRIALS_PER_BATCH: Final = 128
"""The number of trials in one call of a scheduler."""
BatchQuestion = Callable[[Sequence[Trial]], Sequence[Any]]
"""A function of some trials that returns an answer for each."""
ProgressCallback = Callable[[str, int, int], None]
"""Receives the name of the work, its done part and its total."""


def _no_progress(_what: str, _done: int, _of: int) -> None:
    return


@dataclass(frozen=True, slots=True)
class Subject:
    """A scheduler and its trials, which are the same for every arm."""

    known: SchedulerEntry
    trials: Sequence[Trial]
    seed: int = 0
    tell: ProgressCallback = _no_progress

    @contextmanager
    def scheduler(self, **settings: str) -> Iterator[Scheduler]:
        """The scheduler with some settings and defaults for the others; it is closed at the end."""
        defaults = {name: values[0] for name, values in self.known.settings.items()}
        scheduler = self.known.make(**{**defaults, **settings})
        try:
            yield scheduler
        finally:
            close = getattr(scheduler, "close", None)
            if close is not None:
                close()

    def verdicts(
        self, scheduler: Scheduler, trials: Sequence[Trial], arm: str
    ) -> list[TrialVerdict]:
        """The verdicts on the answers of a scheduler to trials."""
        answers = self.each(lambda batch: ask(scheduler, batch), trials, arm)
        return [verdict_on(trial, answer) for trial, answer in zip(trials, answers, strict=True)]

    def each(self, many: BatchQuestion, trials: Sequence[Trial], arm: str) -> list[Any]:
        """The answers to all trials, in batches; a trial over its time has a timeout as answer."""
        answers: list[Any] = []
        for first in range(0, len(trials), TRIALS_PER_BATCH):
            batch = trials[first : first + TRIALS_PER_BATCH]
            try:
                answers += many(batch)
            except (SchedulerTimeout, WorldError):  # single calls find the trial that caused it
                answers += [_alone(many, trial) for trial in batch]
            self.tell(arm, len(answers), len(trials))
        return answers

    def causes(
        self,
        scheduler: Scheduler,
        trials: Sequence[Trial],
        verdicts: Sequence[TrialVerdict],
        arm: str,
    ) -> list[DefectCause | None]:
        """The cause of each defect, guessed from its smallest case; ``None`` without a defect."""
        causes: list[DefectCause | None] = []
        for number, (trial, verdict) in enumerate(zip(trials, verdicts, strict=True)):
            is_defect = verdict.outcome.is_defect
            causes.append(shrink_to_finding(scheduler, number, trial).cause if is_defect else None)
            if number % TRIALS_PER_BATCH == 0:
                self.tell(f"{arm}: shrinking defects", number, len(trials))
        return causes


def _alone(many: BatchQuestion, trial: Trial) -> Any:
    try:
        (answer,) = many([trial])
    except SchedulerTimeout as timeout:
        return timeout
    return answer


def subject_of(
    known: SchedulerEntry,
    constraints: Sequence[str],
    *,
    tests: int,
    seed: int,
    tell: ProgressCallback = _no_progress,
) -> Subject:
    """Draw trials of some constraints in turn, for one scheduler."""
    specifications, options = library_constraints(), known.options
    generators = [Generator(specifications[name], name, options, seed) for name in constraints]
    drawn = {
        number: trial
        for numbers, batch in draw_in_turn(generators, options, seed, range(tests))
        for number, trial in zip(numbers, batch.trials, strict=True)
    }
    return Subject(known, tuple(drawn[number] for number in range(tests)), seed, tell)


def is_answered(verdict: TrialVerdict) -> bool:
    """Whether the scheduler answered a trial, rightly or wrongly."""
    return verdict.outcome not in (TrialOutcome.UNSUPPORTED, TrialOutcome.TIMEOUT)


def constraints_with_both_modes(known: SchedulerEntry) -> tuple[str, ...]:
    """The supported constraints with a discrete and a continuous mode."""
    specifications = library_constraints()
    supported = known.constraints or tuple(specifications)
    return tuple(
        name
        for name in supported
        if {"discrete", "continuous"} <= set(specifications[name].constraints[name].marks)
    )


def all_constraints_of(known: SchedulerEntry) -> tuple[str, ...]:
    """All constraints that a scheduler supports."""
    return known.constraints or tuple(library_constraints())
