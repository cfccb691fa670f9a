"""Verdicts: whether a scheduler and the specification say the same about a trial."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from equipoise.errors import EquipoiseError
from equipoise.fuzz.schedulers.scheduler import Answer, Crash, Scheduler, TooLate, Unsupported, ask
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.plan import Step


class OracleBroke(EquipoiseError):
    """The specification could not judge a trial, or judges it in two ways: a bug of ours."""

    def __init__(self, trial: Trial, why: str) -> None:
        name = trial.demand.name
        super().__init__(f"the specification of {name} is at fault, not the target: {why}")
        self.trial = trial
        self.why = why

    def __reduce__(self) -> tuple[type[OracleBroke], tuple[Trial, str]]:
        return OracleBroke, (self.trial, self.why)


class Outcome(StrEnum):
    """What came of a trial."""

    AGREE = "agree"
    OVER = "over-filtering"
    """It refuses a plan that is right."""
    UNDER = "under-filtering"
    """It accepts a plan that is wrong, or makes one."""
    CRASH = "crash"
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"
    """It has no words for the trial."""

    @property
    def is_defect(self) -> bool:
        """Whether somebody has to look at it."""
        return self in (Outcome.OVER, Outcome.UNDER, Outcome.CRASH)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a scheduler said, and what it should have said."""

    outcome: Outcome
    message: str = ""
    """What went wrong: in the scheduler's own words, or what machines have against its plan."""
    input_valid: bool = True
    """Whether machines could carry the plan of the trial out."""
    broken_at_first: bool = False
    """Whether the constraint was broken before the plan began."""
    steps: tuple[Step, ...] | None = None
    """The plan that it made, if it was asked for one."""

    @property
    def harm(self) -> str:
        """Of a wrong plan: whether it introduces what is wrong, or leaves it in place."""
        if self.outcome is not Outcome.UNDER:
            return ""
        return "left in place" if self.broken_at_first else "introduced"


def judge(scheduler: Scheduler, trial: Trial) -> Verdict:
    """Ask a scheduler and the specification about a trial.

    An exception of the specification is a bug of ours: ``OracleBroke``.
    """
    (answer,) = ask(scheduler, [trial])
    return verdict_on(trial, answer)


def verdict_on(trial: Trial, answer: Answer) -> Verdict:
    """Compare an answer with what the specification says; ``OracleBroke`` if that cannot be."""
    try:
        return _compared(trial, answer)
    except Exception as error:  # whatever it is, it is ours
        raise OracleBroke(trial, f"{type(error).__name__}: {error}") from error


def _compared(trial: Trial, answer: Answer) -> Verdict:
    valid, broken = not trial.objections, trial.is_broken_at_first
    match answer:
        case Unsupported():
            return Verdict(Outcome.UNSUPPORTED, str(answer), valid, broken)
        case TooLate():
            return Verdict(Outcome.TIMEOUT, "", valid, broken)
        case Crash():
            return Verdict(Outcome.CRASH, str(answer), valid, broken)
        case tuple():
            made = replace(trial, steps=answer)
            outcome = Outcome.AGREE if made.is_right else Outcome.UNDER
            return Verdict(outcome, _first_objection(made), valid, broken, answer)
    if answer == trial.is_right:
        return Verdict(Outcome.AGREE, "", valid, broken)
    if answer:
        return Verdict(Outcome.UNDER, _first_objection(trial), valid, broken)
    return Verdict(Outcome.OVER, "", valid, broken)


def _first_objection(trial: Trial) -> str:
    """What machines have against a plan, by its name; nothing if they could carry it out."""
    return trial.objections[0].constraint if trial.objections else ""
