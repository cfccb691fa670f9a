"""Trials: a cluster, a plan and a constraint, put before a scheduler to be accepted or refused.

Enter by ``Trial``. Never decides by itself whether a scheduler is right: the specification does.
"""

from equipoise.fuzz.trial.shrink import shrink
from equipoise.fuzz.trial.trial import Trial
from equipoise.fuzz.trial.verdict import OracleBroke, Outcome, Verdict, judge, verdict_on

__all__ = ["OracleBroke", "Outcome", "Trial", "Verdict", "judge", "shrink", "verdict_on"]
