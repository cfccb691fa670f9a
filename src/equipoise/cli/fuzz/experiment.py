"""``equipoise fuzz experiment``: repeats the experiments of the SafePlace paper."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from equipoise.cli.fuzz.options import find_target
from equipoise.cli.output import console, make_table, print_document, printable, progress_console
from equipoise.documents.fuzz import ExperimentDocument, ExperimentRow, ExperimentTable
from equipoise.errors import InvalidInput
from equipoise.fuzz.experiments import (
    EXPERIMENTS,
    Experiment,
    ExperimentResult,
    ResultTable,
    Subject,
    subject_of,
)

if TYPE_CHECKING:
    from rich.table import Table as RichTable


def run_list(*, as_json: bool) -> int:
    """List the experiments."""
    if as_json:
        print_document(
            [ExperimentRow.of(experiment, name=name) for name, experiment in EXPERIMENTS.items()]
        )
        return 0
    rows = make_table("experiment", "comparison")
    for name, experiment in EXPERIMENTS.items():
        rows.add_row(name, experiment.about)
    console().print(rows)
    return 0


def run(
    name: str,
    *,
    target: str,
    tests: int,
    seed: int,
    sizes: Mapping[str, tuple[int, int]],
    as_json: bool,
) -> int:
    """Run an experiment with a scheduler and print its tables.

    ``sizes`` are numbers of hosts and VMs that replace those of the scheduler.
    """
    experiment, known = _find_experiment(name), find_target(target)
    for what, code in (
        (known.missing(), "scheduler-missing"),
        (experiment.lacks(known), "unsupported-experiment"),
    ):
        if what:
            raise InvalidInput.of(target, what, code=code)
    known = replace(known, options=known.options.but(**sizes))
    subject = subject_of(
        known, experiment.constraints(known), tests=tests, seed=seed,
        tell=_print_progress,
    )  # fmt: skip
    result = experiment.run(subject)
    if as_json:
        print_document(_experiment_document(name, subject, result))
    else:
        _show(name, experiment, subject, result)
    return 0


def _find_experiment(name: str) -> Experiment:
    experiment = EXPERIMENTS.get(name)
    if experiment is None:
        close = get_close_matches(name, EXPERIMENTS, n=1)
        cure = f"did you mean {close[0]}?" if close else f"use one of {', '.join(EXPERIMENTS)}"
        raise InvalidInput.of(name, "is no experiment", cure=cure, code="unknown-name")
    return experiment


def _print_progress(what: str, done: int, of: int) -> None:
    if sys.stderr.isatty():
        progress_console().print(f"{what}: {done:,} of {of:,}")


def _experiment_document(
    name: str, subject: Subject, result: ExperimentResult
) -> ExperimentDocument:
    return ExperimentDocument(
        experiment=name,
        target=subject.known.name,
        version=subject.known.version,
        seed=subject.seed,
        tests=len(subject.trials),
        tables=tuple(map(ExperimentTable.of, result.tables)),
        notes=tuple(result.notes),
    )


def _show(name: str, experiment: Experiment, subject: Subject, result: ExperimentResult) -> None:
    out = console()
    out.print(f"{name}: {experiment.about}", markup=False)
    target = printable(f"{subject.known.name} {subject.known.version}".strip())
    out.print(f"{target}, {len(subject.trials):,} trials, seed {subject.seed}")
    for table in result.tables:
        out.print()
        out.print(table.title if table.rows else f"{table.title}: none", markup=False)
        if table.rows:
            out.print(_as_rich_table(table))
    for note in result.notes:
        out.print(note, markup=False, soft_wrap=True)


def _as_rich_table(table: ResultTable) -> RichTable:
    rows = make_table(*table.columns, right=table.numbers)
    for row in table.rows:
        cells = (row[name] for name in table.columns)
        rows.add_row(*(f"{cell:,}" if isinstance(cell, int) else printable(cell) for cell in cells))
    return rows
