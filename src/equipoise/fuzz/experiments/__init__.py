"""Experiments: the measurements of the SafePlace paper, repeated with one sample for all arms.

Entry point: ``EXPERIMENTS``. Experiments count; they do not rank schedulers.
"""

from equipoise.fuzz.experiments.catalog import EXPERIMENTS, Experiment
from equipoise.fuzz.experiments.subject import ExperimentResult, ResultTable, Subject, subject_of

__all__ = ["EXPERIMENTS", "Experiment", "ExperimentResult", "ResultTable", "Subject", "subject_of"]
