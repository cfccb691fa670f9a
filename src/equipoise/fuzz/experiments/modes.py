"""Experiment: the same trials in discrete mode (the end) and continuous mode (every moment)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from equipoise.fuzz.campaign.findings import DefectCause
from equipoise.fuzz.experiments.subject import (
    ExperimentResult,
    ResultTable,
    Row,
    Subject,
    is_answered,
    with_sum,
)
from equipoise.fuzz.trial import Trial, TrialOutcome, TrialVerdict

MODES: Final = {"discrete": False, "continuous": True}
DEFECTS: Final = (TrialOutcome.OVER, TrialOutcome.UNDER, TrialOutcome.CRASH)
PAPER: Final = (
    "The paper (BtrPlace 1.6.0, 500 trials of each of 9 constraints): 236 disagree in the discrete "
    "mode and 987 in the continuous one, of these 854 by under-filtering."
)


def compare_modes(subject: Subject) -> ExperimentResult:
    """Judge every trial in both modes; only trials that are answered in both count."""
    arms = {
        name: [_in_mode(trial, mode) for trial in subject.trials] for name, mode in MODES.items()
    }
    with subject.scheduler() as scheduler:
        judged = {name: subject.verdicts(scheduler, arms[name], name) for name in MODES}
        # A trial that one mode cannot express would count as agreement there and bias the
        # comparison.
        counted = [
            i
            for i in range(len(subject.trials))
            if all(is_answered(judged[name][i]) for name in MODES)
        ]
        trials = {name: [arms[name][i] for i in counted] for name in MODES}
        verdicts = {name: [judged[name][i] for i in counted] for name in MODES}
        causes = {
            name: Counter(subject.causes(scheduler, trials[name], verdicts[name], name))
            for name in MODES
        }
    tables = (
        _by_constraint(trials["discrete"], verdicts),
        _by_outcome(verdicts),
        _by_cause(causes),
    )
    return ExperimentResult(tables, (*_coverage_notes(subject, trials["discrete"]), PAPER))


def _in_mode(trial: Trial, mode: bool) -> Trial:
    return replace(trial, demand=replace(trial.demand, continuous=mode))


def _by_constraint(trials: Sequence[Trial], verdicts: dict[str, list[TrialVerdict]]) -> ResultTable:
    counts = Counter(trial.demand.name for trial in trials)
    defects = {
        name: Counter(
            trial.demand.name
            for trial, verdict in zip(trials, of_mode, strict=True)
            if verdict.outcome.is_defect
        )
        for name, of_mode in verdicts.items()
    }
    columns = ("constraint", "trials", *MODES)
    rows: list[Row] = [
        {
            "constraint": constraint,
            "trials": count,
            **{name: defects[name][constraint] for name in MODES},
        }
        for constraint, count in counts.items()
    ]
    return ResultTable("Trials that disagree, by constraint", columns, with_sum(rows, columns))


def _by_outcome(verdicts: dict[str, list[TrialVerdict]]) -> ResultTable:
    counts = {
        name: Counter(verdict.outcome for verdict in of_mode) for name, of_mode in verdicts.items()
    }
    columns = ("verdict", *MODES)
    rows: list[Row] = [
        {"verdict": outcome.value, **{name: counts[name][outcome] for name in MODES}}
        for outcome in DEFECTS
    ]
    return ResultTable("Trials that disagree, by verdict", columns, with_sum(rows, columns))


def _by_cause(causes: dict[str, Counter[DefectCause | None]]) -> ResultTable:
    columns = ("cause", *MODES, "looks like")
    rows: list[Row] = [
        {
            "cause": cause.letter or "none",
            **{name: causes[name][cause] for name in MODES},
            "looks like": cause.words,
        }
        for cause in DefectCause
    ]
    return ResultTable("Trials that disagree, by guessed cause", columns, rows)


def _coverage_notes(subject: Subject, counted: Sequence[Trial]) -> Sequence[str]:
    """How many trials are compared, and which constraints the scheduler does not support."""
    present = {trial.demand.name for trial in counted}
    names = dict.fromkeys(trial.demand.name for trial in subject.trials)
    missing = [name for name in names if name not in present]
    notes = [f"{len(counted):,} of {len(subject.trials):,} trials are answered in both modes."]
    if missing:
        notes.append(f"Never answered in both modes: {', '.join(missing)}.")
    return notes
