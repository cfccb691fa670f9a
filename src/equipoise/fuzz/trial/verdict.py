"""Verdicts: whether a scheduler and the specification agree about a trial."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from equipoise.adapters.targets.scheduler import (
    Scheduler,
    SchedulerAnswer,
    SchedulerCrash,
    SchedulerTimeout,
    UnsupportedTrial,
    ask,
)
from equipoise.adapters.targets.trial import Trial
from equipoise.errors import EquipoiseError
from equipoise.model.plan import Step


class OracleFailure(EquipoiseError):
    """The specification fails on a trial or judges it in two ways: a bug of Equipoise."""

    def __init__(self, trial: Trial, why: str) -> None:
        name = trial.demand.name
        super().__init__(f"the specification of {name} failed, not the scheduler: {why}")
        self.trial = trial
        self.why = why

    # Workers send it to the main process. By default an exception is rebuilt from its message.
    def __reduce__(self) -> tuple[type[OracleFailure], tuple[Trial, str]]:
        return OracleFailure, (self.trial, self.why)


class TrialOutcome(StrEnum):
    """The comparison of the scheduler with the specification on one trial."""

    AGREE = "agree"
    OVER = "over-filtering"
    """The scheduler rejects a right plan."""
    UNDER = "under-filtering"
    """The scheduler accepts or makes a wrong plan."""
    CRASH = "crash"
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"
    """The scheduler cannot express the trial."""

    @property
    def is_defect(self) -> bool:
        """Whether the outcome is a defect of the scheduler."""
        return self in (TrialOutcome.OVER, TrialOutcome.UNDER, TrialOutcome.CRASH)


@dataclass(frozen=True, slots=True)
class TrialVerdict:
    """The answer of a scheduler, compared with the specification."""

    outcome: TrialOutcome
    message: str = ""
    """The message of the scheduler, or the name of the first objection to its plan."""
    input_valid: bool = True
    """Whether the plan of the trial can be executed."""
    broken_at_first: bool = False
    """Whether the constraint is violated before the plan starts."""
    steps: tuple[Step, ...] | None = None
    """The plan of a scheduler that makes plans."""
    code: str = ""
    """A key of ``errors.CODES``; empty if the scheduler and the specification agree."""

    @property
    def harm(self) -> str:
        """Whether a wrong plan introduces the violation or leaves it in place."""
        if self.outcome is not TrialOutcome.UNDER:
            return ""
        return "left in place" if self.broken_at_first else "introduced"


def judge(scheduler: Scheduler, trial: Trial) -> TrialVerdict:
    """Compare the answer of a scheduler to a trial with the specification.

    An exception of the specification is a bug of Equipoise: ``OracleFailure``.
    """
    (answer,) = ask(scheduler, [trial])
    return verdict_on(trial, answer)


def verdict_on(trial: Trial, answer: SchedulerAnswer) -> TrialVerdict:
    """Compare an answer with the specification; ``OracleFailure`` if that raises."""
    try:
        return _compare(trial, answer)
    except Exception as error:  # any exception here is a bug of Equipoise
        raise OracleFailure(trial, f"{type(error).__name__}: {error}") from error


def _compare(trial: Trial, answer: SchedulerAnswer) -> TrialVerdict:
    valid, broken = not trial.objections, trial.is_broken_at_first
    match answer:
        case UnsupportedTrial():
            outcome, message, code = TrialOutcome.UNSUPPORTED, str(answer), answer.code
        case SchedulerTimeout():
            outcome, message, code = TrialOutcome.TIMEOUT, "", "scheduler-timeout"
        case SchedulerCrash():
            outcome, message, code = TrialOutcome.CRASH, str(answer), "scheduler-crashed"
        case tuple():
            made = replace(trial, steps=answer)
            outcome = TrialOutcome.AGREE if made.is_acceptable else TrialOutcome.UNDER
            code = outcome.value if outcome.is_defect else ""
            message = _first_objection(made)
            return TrialVerdict(outcome, message, valid, broken, answer, code)
        case _ if answer == trial.is_acceptable:
            outcome, message, code = TrialOutcome.AGREE, "", ""
        case _ if answer:
            outcome, message = TrialOutcome.UNDER, _first_objection(trial)
            code = outcome.value
        case _:
            outcome, message, code = TrialOutcome.OVER, "", TrialOutcome.OVER.value
    return TrialVerdict(outcome, message, valid, broken, code=code)


def _first_objection(trial: Trial) -> str:
    """The name of the first objection to a plan; empty if it can be executed."""
    return trial.objections[0].constraint if trial.objections else ""
