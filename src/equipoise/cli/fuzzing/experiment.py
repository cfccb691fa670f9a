"""``equipoise fuzz experiment``: what the SafePlace paper has measured, measured again."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from equipoise.cli.answer import console, plain, print_json, progress_console, table
from equipoise.cli.fuzzing.wishes import the_target
from equipoise.errors import InvalidInput, Problem
from equipoise.fuzz.experiments import EXPERIMENTS, Experiment, Result, Subject, Table, subject_of
from equipoise.fuzz.schedulers.known import Known

if TYPE_CHECKING:
    from rich.table import Table as RichTable


def run_list(*, as_json: bool) -> int:
    """List the experiments."""
    if as_json:
        print_json([{"name": name, "about": one.about} for name, one in EXPERIMENTS.items()])
        return 0
    rows = table("experiment", "what it compares")
    for name, one in EXPERIMENTS.items():
        rows.add_row(name, one.about)
    console().print(rows)
    return 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asks an experiment for besides its name."""

    target: str
    tests: int
    seed: int
    sizes: Mapping[str, tuple[int, int]]
    """How many hosts and VMs, where somebody has said so."""


def run(name: str, asked: Asked, *, as_json: bool) -> int:
    """Make an experiment with a scheduler."""
    experiment, known = _found(name), the_target(asked.target)
    for trouble in (known.missing(), experiment.lacks(known)):
        if trouble:
            raise InvalidInput(asked.target, [Problem(key="", what=trouble)])
    known = replace(known, options=known.options.but(**asked.sizes))
    subject = subject_of(
        known, experiment.constraints(known), tests=asked.tests, seed=asked.seed,
        tell=_tell_progress,
    )  # fmt: skip
    result = experiment.run(subject)
    if as_json:
        print_json(_document(name, subject, result))
    else:
        _show(name, experiment, subject, result)
    return 0


def _found(name: str) -> Experiment:
    found = EXPERIMENTS.get(name)
    if found is None:
        close = get_close_matches(name, EXPERIMENTS, n=1)
        cure = f"did you mean {close[0]}?" if close else f"one of {', '.join(EXPERIMENTS)}"
        raise InvalidInput(name, [Problem(key="", what="is no experiment", cure=cure)])
    return found


def _tell_progress(what: str, done: int, of: int) -> None:
    if sys.stderr.isatty():
        progress_console().print(f"{what}: {done:,} of {of:,}")


def _document(name: str, subject: Subject, result: Result) -> dict[str, object]:
    return {
        "experiment": name,
        "target": subject.known.name,
        "version": subject.known.version,
        "seed": subject.seed,
        "tests": len(subject.trials),
        "tables": [
            {
                "title": one.title,
                "columns": list(one.columns),
                "rows": [dict(row) for row in one.rows],
            }
            for one in result.tables
        ],
        "notes": list(result.notes),
    }


def _show(name: str, experiment: Experiment, subject: Subject, result: Result) -> None:
    out = console()
    out.print(f"{name}: {experiment.about}", markup=False)
    out.print(
        f"{plain(_called(subject.known))}, {len(subject.trials):,} trials, seed {subject.seed}"
    )
    for one in result.tables:
        out.print()
        out.print(one.title if one.rows else f"{one.title}: none", markup=False)
        if one.rows:
            out.print(_drawn(one))
    for note in result.notes:
        out.print(note, markup=False, soft_wrap=True)


def _called(known: Known) -> str:
    return f"{known.name} {known.version}".strip()


def _drawn(made: Table) -> RichTable:
    rows = table(*made.columns, right=made.numbers)
    for row in made.rows:
        cells = (row[name] for name in made.columns)
        rows.add_row(*(f"{one:,}" if isinstance(one, int) else plain(one) for one in cells))
    return rows
