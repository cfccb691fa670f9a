"""Verdicts: whether a scheduler and the specification say the same about a trial."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from equipoise.fuzz.schedulers.scheduler import Scheduler, TooLate, Unsupported
from equipoise.fuzz.trial.trial import Trial


class Outcome(StrEnum):
    """What came of a trial."""

    AGREE = "agree"
    OVER = "over-filtering"
    """It refuses a plan that is right."""
    UNDER = "under-filtering"
    """It accepts a plan that is wrong."""
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
    """What went wrong, in the scheduler's own words."""
    input_valid: bool = True
    """Whether machines could carry the plan out."""
    broken_at_first: bool = False
    """Whether the constraint was broken before the plan began."""


def judge(scheduler: Scheduler, trial: Trial) -> Verdict:
    """Ask a scheduler and the specification about a trial.

    An exception of the specification is a bug of ours and is not caught.
    """
    valid = not trial.objections
    right = valid and trial.fault is None
    broken = trial.is_broken_at_first
    try:
        accepted = scheduler.accepts(trial)
    except Unsupported as error:
        return Verdict(Outcome.UNSUPPORTED, str(error), valid, broken)
    except TooLate:
        return Verdict(Outcome.TIMEOUT, "", valid, broken)
    except Exception as error:  # whatever it is, the scheduler has crashed
        return Verdict(Outcome.CRASH, f"{type(error).__name__}: {error}", valid, broken)
    if accepted == right:
        return Verdict(Outcome.AGREE, "", valid, broken)
    return Verdict(Outcome.UNDER if accepted else Outcome.OVER, "", valid, broken)
