"""Whom an experiment is about: a scheduler, and trials that are the same for every arm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from equipoise.errors import WorldError
from equipoise.fuzz.campaign.block import finding_of
from equipoise.fuzz.campaign.cause import Cause
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.generate.generator import draw_in_turn
from equipoise.fuzz.schedulers import Scheduler, TooLate
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.schedulers.scheduler import ask
from equipoise.fuzz.trial import Outcome, Trial, Verdict, verdict_on
from equipoise.spec.library import library_constraints

TOGETHER: Final = 128
"""How many trials are asked about in one go."""
Many = Callable[[Sequence[Trial]], Sequence[Any]]
"""A question about some trials: an answer for each."""
Tell = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is done and how much there is."""


def _tell_nobody(_what: str, _done: int, _of: int) -> None:
    return


@dataclass(frozen=True, slots=True)
class Subject:
    """A scheduler that can be put to the test, and the trials that it is put to."""

    known: Known
    trials: Sequence[Trial]
    seed: int = 0
    tell: Tell = _tell_nobody

    @contextmanager
    def scheduler(self, **settings: str) -> Iterator[Scheduler]:
        """The scheduler, with these settings and else as usual; it is closed afterwards."""
        usual = {name: values[0] for name, values in self.known.settings.items()}
        made = self.known.make(**{**usual, **settings})
        try:
            yield made
        finally:
            close = getattr(made, "close", None)
            if close is not None:
                close()

    def verdicts(self, scheduler: Scheduler, trials: Sequence[Trial], arm: str) -> list[Verdict]:
        """What comes of asking a scheduler about trials, and the specification as well."""
        answers = self.each(lambda some: ask(scheduler, some), trials, arm)
        return [verdict_on(trial, one) for trial, one in zip(trials, answers, strict=True)]

    def each(self, many: Many, trials: Sequence[Trial], arm: str) -> list[Any]:
        """Ask a question about trials, many at a time; where one takes too long, that is told."""
        found: list[Any] = []
        for first in range(0, len(trials), TOGETHER):
            some = trials[first : first + TOGETHER]
            try:
                found += many(some)
            except (TooLate, WorldError):  # one of them: asked one by one, it is found
                found += [_alone(many, trial) for trial in some]
            self.tell(arm, len(found), len(trials))
        return found

    def causes(
        self, scheduler: Scheduler, trials: Sequence[Trial], verdicts: Sequence[Verdict], arm: str
    ) -> list[Cause | None]:
        """What each defect looks like when it is made as small as it can be; nothing if none."""
        found: list[Cause | None] = []
        for number, (trial, verdict) in enumerate(zip(trials, verdicts, strict=True)):
            is_defect = verdict.outcome.is_defect
            found.append(finding_of(scheduler, number, trial).cause if is_defect else None)
            if number % TOGETHER == 0:
                self.tell(f"{arm}: making defects small", number, len(trials))
        return found


def _alone(many: Many, trial: Trial) -> Any:
    try:
        (answer,) = many([trial])
    except TooLate as late:
        return late
    return answer


def subject_of(
    known: Known, constraints: Sequence[str], *, tests: int, seed: int, tell: Tell = _tell_nobody
) -> Subject:
    """Draw so many trials for a scheduler, of some constraints in turn."""
    homes, options = library_constraints(), known.options
    makers = [Generator(homes[name], name, options, seed) for name in constraints]
    drawn = {
        number: trial
        for numbers, some in draw_in_turn(makers, options, seed, range(tests))
        for number, trial in zip(numbers, some.trials, strict=True)
    }
    return Subject(known, tuple(drawn[number] for number in range(tests)), seed, tell)


def is_answered(verdict: Verdict) -> bool:
    """Whether the scheduler has said something about a trial, right or wrong."""
    return verdict.outcome not in (Outcome.UNSUPPORTED, Outcome.TIMEOUT)


def both_modes(known: Known) -> tuple[str, ...]:
    """The constraints that may count in the end only, or at every moment."""
    homes = library_constraints()
    able = known.constraints or tuple(homes)
    return tuple(
        name
        for name in able
        if {"discrete", "continuous"} <= set(homes[name].constraints[name].marks)
    )


def all_of(known: Known) -> tuple[str, ...]:
    """All constraints that a scheduler can be asked about."""
    return known.constraints or tuple(library_constraints())
