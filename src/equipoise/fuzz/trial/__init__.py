"""Trials: verdicts about them, their files, and shrinking.

Entry points: ``judge`` and ``shrink``. Whether a scheduler is right is decided by the specification
only.
"""

from equipoise.adapters.targets.trial import Trial
from equipoise.fuzz.trial.shrink import shrink
from equipoise.fuzz.trial.verdict import (
    OracleFailure,
    TrialOutcome,
    TrialVerdict,
    judge,
    verdict_on,
)

__all__ = [
    "OracleFailure",
    "Trial",
    "TrialOutcome",
    "TrialVerdict",
    "judge",
    "shrink",
    "verdict_on",
]
