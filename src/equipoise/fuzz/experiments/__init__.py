"""Experiments: what the SafePlace paper has measured, measured again, with all arms on one sample.

Enter by ``EXPERIMENTS``. Never says which of two schedulers is the better one: it counts.
"""

from equipoise.fuzz.experiments.every import EXPERIMENTS, Experiment
from equipoise.fuzz.experiments.subject import Subject, subject_of
from equipoise.fuzz.experiments.table import Result, Table

__all__ = ["EXPERIMENTS", "Experiment", "Result", "Subject", "Table", "subject_of"]
