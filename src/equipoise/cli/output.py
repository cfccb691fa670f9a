"""Output of the command line: tables and text by Rich, or one JSON document; progress goes to
standard error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from equipoise.documents.json_document import Document
    from equipoise.errors import InputProblem
    from equipoise.model.plan import Violation


T = TypeVar("T")

EXIT_OK: Final = 0
EXIT_REFUSED: Final = 1
EXIT_BAD_INPUT: Final = 2
EXIT_WORLD_FAILED: Final = 3
EXIT_BUG: Final = 70
EXIT_INTERRUPTED: Final = 130

GIB_IN_MIB = 1024
PIPE_WIDTH = 400
_WHOLE_FROM: Final = 1_000_000
"""The decimals of a larger figure, such as joules, say nothing and do not fit a terminal."""


def print_json(document: Any) -> None:
    """Print one JSON value on standard output."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


def print_document(document: Document | Sequence[Document]) -> None:
    """Print a document, or a list of them, as JSON on standard output."""
    from equipoise.documents.json_document import to_plain

    print_json(to_plain(document))


def console() -> Console:
    """Return the console of standard output; it prints plain text into a pipe or a file."""
    from rich.console import Console

    # Tables in a pipe or a file are not wrapped, so that grep finds whole rows.
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def progress_console() -> Console:
    """Return the console of standard error, which has progress and notes."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def print_warnings(source: str, warnings: Iterable[InputProblem]) -> None:
    """Print warnings about a file on standard error."""
    for warning in warnings:
        text = printable(f"{source}: warning: {warning}")
        progress_console().print(text, soft_wrap=True)


def with_progress_bar(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Yield the items; show a progress bar if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.progress import track

    yield from track(items, what, total=total, console=progress_console(), transient=True)


def write_note(text: str) -> None:
    """Write a line to standard error at once, before the program waits for others."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@contextmanager
def show_spinner(what: str) -> Iterator[None]:
    """Show a spinner while the block runs, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with progress_console().status(what):
        yield


def make_table(*columns: str, right: tuple[str, ...] = (), title: str | None = None) -> Table:
    """Return an empty table; the columns in ``right`` hold numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", padding=(0, 1, 0, 0))
    for column in columns:
        side: Literal["left", "right"] = "right" if column in right else "left"
        table.add_column(column, justify=side, no_wrap=True, overflow="ellipsis")
    return table


def fit_to_terminal(table: Table, *, wrap: bool = True) -> Table:
    """Fix the width of all columns but the last, which wraps or is cut off."""
    from rich.cells import cell_len

    for column in table.columns[:-1]:
        cells = [str(column.header), *(str(cell) for cell in column.cells)]
        column.min_width = max(map(cell_len, cells))
    table.columns[-1].no_wrap = not wrap
    if wrap:
        # A word that is wider than the column continues on the next line.
        table.columns[-1].overflow = "fold"
    return table


def keep_figures(table: Table) -> Table:
    """Never cut a number: its column is as wide as it needs, and texts beside it wrap."""
    from rich.cells import cell_len

    for column in table.columns:
        column.no_wrap, column.overflow = False, "fold"
        if column.justify == "right":
            lines = [line for cell in column.cells for line in str(cell).split("\n")]
            column.min_width = max(map(cell_len, lines), default=0)
    return table


def figure_text(value: float) -> str:
    """Return a figure of a run: whole numbers as they are, large ones without decimals."""
    if isinstance(value, int) or abs(value) >= _WHOLE_FROM:
        return f"{value:,.0f}"
    return f"{value:,.3f}"


def text_table(
    columns: Sequence[str], rows: Iterable[Iterable[str]], *, right: tuple[str, ...] = ()
) -> Table:
    """Return a table of plain text whose last column wraps."""
    table = make_table(*columns, right=right)
    for row in rows:
        table.add_row(*map(printable, row))
    return fit_to_terminal(table)


def format_time_ms(at_ms: int) -> str:
    """Return a time such as ``0:01:05.250``; a fraction of zero is left out."""
    seconds, ms = divmod(at_ms, 1000)
    hours, rest = divmod(seconds, 3600)
    fraction = f".{ms:03d}" if ms else ""
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}{fraction}"


def printable(text: str) -> str:
    """Return text from a file without control characters and with Rich markup escaped."""
    from rich.markup import escape

    return escape("".join(character if character.isprintable() else "?" for character in text))


def format_mib(amount: int) -> str:
    """Return an amount of memory in MiB or GiB."""
    if amount >= GIB_IN_MIB and amount % GIB_IN_MIB == 0:
        return f"{amount // GIB_IN_MIB:,} GiB"
    few = amount < 10 * GIB_IN_MIB
    return f"{amount:,} MiB" if few else f"{amount / GIB_IN_MIB:,.1f} GiB"


def show_existing_faults(faults: Sequence[Violation]) -> None:
    """Print what was wrong before a plan; nothing if all was well."""
    if faults:
        console().print("existing faults, which no plan is charged with:")
        rows = ((fault.code, fault.constraint, fault.detail) for fault in faults)
        console().print(text_table(("code", "constraint", "fault"), rows))
