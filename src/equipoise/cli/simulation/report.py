"""``equipoise report``: compares two runs, measure by measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from equipoise.cli.file_io import print_page_written, write_file
from equipoise.cli.output import console, keep_figures, make_table, print_document, printable
from equipoise.documents.simulation import CompareDocument, DifferenceRow
from equipoise.errors import InvalidInput
from equipoise.report import MeasureDifference, compare_page, differences, read_run
from equipoise.report.compare_runs import measure_differences
from equipoise.report.jobs import (
    compare_jobs_page,
    is_jobs_folder,
    jobs_measures,
    jobs_page,
    read_jobs_folder,
)

Comparison = tuple[tuple[str, str], Sequence[MeasureDifference], Callable[[], str]]
"""The names of two runs, their differences, and the maker of the page."""


def run(folder_a: Path, folder_b: Path | None, *, out: Path | None, as_json: bool) -> int:
    """Print the differences; write a page if ``out`` names a file."""
    compare = _compare_jobs if is_jobs_folder(folder_a) else _compare_runs
    names, rows, page = compare(folder_a, folder_b)
    if out is not None:
        write_file(out, page().encode())
        print_page_written(out)
    if as_json:
        documents = tuple(map(DifferenceRow.of, rows))
        print_document(CompareDocument(a=names[0], b=names[1], differences=documents))
    elif folder_b is None:
        table = make_table("measure", "value", right=("value",))
        for row in rows:
            table.add_row(printable(row.measure), printable(row.words[0]))
        console().print(keep_figures(table))
    else:
        show_differences(names, rows)
    return 0


def _compare_runs(folder_a: Path, folder_b: Path | None) -> Comparison:
    if folder_b is None:
        what, cure = "is compared with nothing", "name the folder of a second run"
        raise InvalidInput.of(str(folder_a), what, key="RUN_B", cure=cure, code="missing-key")
    run_a, run_b = read_run(folder_a), read_run(folder_b)
    page = partial(compare_page, run_a, run_b)
    return (run_a.name, run_b.name), differences(run_a, run_b), page


def _compare_jobs(folder_a: Path, folder_b: Path | None) -> Comparison:
    """Compare two runs of jobs; without a second run, one with itself."""
    run_a = read_jobs_folder(folder_a)
    run_b = run_a if folder_b is None else read_jobs_folder(folder_b)
    rows = measure_differences(jobs_measures(run_a.result), jobs_measures(run_b.result))
    page = (
        partial(jobs_page, run_a)
        if folder_b is None
        else partial(compare_jobs_page, [run_a, run_b])
    )
    return (run_a.name, run_b.name), rows, page


def show_differences(names: tuple[str, str], rows: Sequence[MeasureDifference]) -> None:
    """Print the differences of two named runs as a table."""
    numbers = (*map(printable, names), "difference")
    table = make_table("measure", *numbers, "better", right=numbers)
    for row in rows:
        table.add_row(printable(row.measure), *map(printable, row.words), row.better)
    console().print(keep_figures(table))
