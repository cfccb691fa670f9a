"""``equipoise report``: compares two runs, measure by measure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from equipoise.cli.file_io import print_page_written, write_file
from equipoise.cli.output import console, make_table, print_document, printable
from equipoise.documents.simulation import CompareDocument, DifferenceRow
from equipoise.report import MeasureDifference, SavedRun, compare_page, differences, read_run


def run(folder_a: Path, folder_b: Path, *, out: Path | None, as_json: bool) -> int:
    """Print the differences; write a page if ``out`` names a file."""
    run_a, run_b = read_run(folder_a), read_run(folder_b)
    rows = differences(run_a, run_b)
    if out is not None:
        write_file(out, compare_page(run_a, run_b).encode())
        print_page_written(out)
    if as_json:
        documents = tuple(map(difference_row, rows))
        print_document(CompareDocument(a=run_a.name, b=run_b.name, differences=documents))
        return 0
    show_differences(run_a, run_b, rows)
    return 0


def show_differences(run_a: SavedRun, run_b: SavedRun, rows: Sequence[MeasureDifference]) -> None:
    """Print the differences as a table."""
    numbers = (printable(run_a.name), printable(run_b.name), "difference")
    table = make_table("measure", *numbers, "better", right=numbers)
    for row in rows:
        table.add_row(printable(row.measure), *map(printable, row.words), row.better)
    console().print(table)


def difference_row(row: MeasureDifference) -> DifferenceRow:
    """Return one measure of the JSON document of ``equipoise report``."""
    return DifferenceRow(
        measure=row.measure, a=row.a, b=row.b, difference=row.difference, better=row.better
    )
