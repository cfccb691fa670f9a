"""Discrete against continuous: the same trials, once by their end and once by every moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from equipoise.fuzz.campaign.cause import Cause
from equipoise.fuzz.experiments.subject import Subject, is_answered
from equipoise.fuzz.experiments.table import Result, Row, Table, with_sum
from equipoise.fuzz.trial import Outcome, Trial, Verdict

MODES: Final = {"discrete": False, "continuous": True}
DEFECTS: Final = (Outcome.OVER, Outcome.UNDER, Outcome.CRASH)
PAPER: Final = (
    "The paper (BtrPlace 1.6.0, 500 trials of each of 9 constraints): 236 disagree in the discrete "
    "mode and 987 in the continuous one, of these 854 by under-filtering."
)


def compare_modes(subject: Subject) -> Result:
    """Ask about every trial in both modes; those that are answered in one only do not count."""
    arms = {name: [_in_mode(one, mode) for one in subject.trials] for name, mode in MODES.items()}
    with subject.scheduler() as scheduler:
        said = {name: subject.verdicts(scheduler, arms[name], name) for name in MODES}
        counted = [
            place
            for place in range(len(subject.trials))
            if all(is_answered(said[name][place]) for name in MODES)
        ]
        trials = {name: [arms[name][place] for place in counted] for name in MODES}
        verdicts = {name: [said[name][place] for place in counted] for name in MODES}
        causes = {
            name: Counter(subject.causes(scheduler, trials[name], verdicts[name], name))
            for name in MODES
        }
    tables = (
        _by_constraint(trials["discrete"], verdicts),
        _by_outcome(verdicts),
        _by_cause(causes),
    )
    return Result(tables, (*_left_out(subject, trials["discrete"]), PAPER))


def _in_mode(trial: Trial, mode: bool) -> Trial:
    return replace(trial, demand=replace(trial.demand, continuous=mode))


def _by_constraint(trials: Sequence[Trial], verdicts: dict[str, list[Verdict]]) -> Table:
    counts = Counter(one.demand.name for one in trials)
    defects = {
        name: Counter(
            trial.demand.name
            for trial, one in zip(trials, said, strict=True)
            if one.outcome.is_defect
        )
        for name, said in verdicts.items()
    }
    columns = ("constraint", "trials", *MODES)
    rows: list[Row] = [
        {"constraint": one, "trials": count, **{name: defects[name][one] for name in MODES}}
        for one, count in counts.items()
    ]
    return Table("Trials that disagree, by constraint", columns, with_sum(rows, columns))


def _by_outcome(verdicts: dict[str, list[Verdict]]) -> Table:
    counts = {name: Counter(one.outcome for one in said) for name, said in verdicts.items()}
    columns = ("verdict", *MODES)
    rows: list[Row] = [
        {"verdict": one.value, **{name: counts[name][one] for name in MODES}} for one in DEFECTS
    ]
    return Table("Trials that disagree, by verdict", columns, with_sum(rows, columns))


def _by_cause(causes: dict[str, Counter[Cause | None]]) -> Table:
    columns = ("cause", *MODES, "looks like")
    rows: list[Row] = [
        {
            "cause": one.letter or "none",
            **{name: causes[name][one] for name in MODES},
            "looks like": one.words,
        }
        for one in Cause
    ]
    return Table("Trials that disagree, by cause, guessed from the smallest case", columns, rows)


def _left_out(subject: Subject, counted: Sequence[Trial]) -> Sequence[str]:
    """Who has no part in the comparison, because the scheduler has no words for it."""
    present = {one.demand.name for one in counted}
    missing = list(
        dict.fromkeys(one.demand.name for one in subject.trials if one.demand.name not in present)
    )
    notes = [f"{len(counted):,} of {len(subject.trials):,} trials are answered in both modes."]
    if missing:
        notes.append(f"Never answered in both modes: {', '.join(missing)}.")
    return notes
