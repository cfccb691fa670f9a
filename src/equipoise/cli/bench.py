"""``equipoise bench``: runs the benchmark suites and prints them as ratios within one run.

Machines are noisy, so one time alone says little; the ratio of two times from one run says more.
Each row is the best of several tries.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from equipoise.bench.suites import SUITES
from equipoise.cli.output import console, make_table, print_document, printable, with_progress_bar
from equipoise.documents.fuzz import BenchDocument, MeasurementRow
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

WIDTH = 110
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def run(name: str | None, *, as_json: bool) -> int:
    """Run the benchmarks and print the rows."""
    if name is not None and name not in SUITES:
        raise InvalidInput.of(
            "bench",
            "there is no such benchmark",
            key=name,
            cure=", ".join(SUITES),
            code="unknown-name",
        )
    suites = [name] if name else list(SUITES)
    rows = [
        row
        for suite in with_progress_bar(suites, "measuring", len(suites))
        for row in SUITES[suite]()
    ]
    if as_json:
        print_document(BenchDocument(rows=tuple(map(MeasurementRow.of, rows))))
        return 0
    numbers = ("time", "per second", "times faster than")
    table = make_table("benchmark", *numbers, "", right=numbers)
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:,.1f}"
        rate = "" if row.per_second is None else f"{row.per_second:,.0f}"
        table.add_row(row.what, _format_duration(row.seconds), rate, ratio, row.plain)
        if row.figures:
            words = (f"{name} {value:,.4g}" for name, value in row.figures.items())
            _add_detail_lines(
                table,
                # A figure and its name must not be wrapped onto two lines.
                ", ".join(
                    figure.replace("_", NO_BREAK_SPACE).replace(" ", NO_BREAK_SPACE)
                    for figure in words
                ),
            )
        _add_detail_lines(table, row.note)
    console().print(table)
    return 0


def _add_detail_lines(table: Table, words: str) -> None:
    """Add details of the last row as lines that do not widen the first column."""
    for line in wrap(words, WIDTH):
        table.add_row(f"  {printable(line.replace(NO_BREAK_SPACE, ' '))}")


def _format_duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.0f} µs"
