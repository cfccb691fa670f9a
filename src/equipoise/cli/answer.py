"""How answers are printed: for people with Rich, for programs as one JSON document."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


T = TypeVar("T")

GIB_IN_MIB = 1024
LONG_LINE = 400


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


def console() -> Console:
    """Where people read: plain text when it is not a terminal."""
    from rich.console import Console

    # Into a pipe or a file, lines are as long as they are: nobody wants to grep a wrapped table.
    return Console(highlight=False, width=None if sys.stdout.isatty() else LONG_LINE)


def progress_console() -> Console:
    """Where progress and notes go, so that standard output holds answers only."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def watched(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Pass items on, with a progress bar for whoever watches on a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.progress import track

    yield from track(items, what, total=total, console=progress_console(), transient=True)


@contextmanager
def patience(what: str) -> Iterator[None]:
    """Show whoever watches on a terminal that something is being done."""
    if not sys.stderr.isatty():
        yield
        return
    with progress_console().status(what):
        yield


def table(*columns: str, right: tuple[str, ...] = (), title: str | None = None) -> Table:
    """Make a table in the style of the house; the columns in ``right`` hold numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left", padding=(0, 1, 0, 0))
    for column in columns:
        side: Literal["left", "right"] = "right" if column in right else "left"
        made.add_column(column, justify=side, no_wrap=True, overflow="ellipsis")
    return made


def fitted(made: Table, *, wrap: bool = True) -> Table:
    """Let only the last column give way when the terminal is narrow: wrap it, or cut it off."""
    from rich.cells import cell_len

    for column in made.columns[:-1]:
        cells = [str(column.header), *(str(cell) for cell in column.cells)]
        column.min_width = max(map(cell_len, cells))
    made.columns[-1].no_wrap = not wrap
    return made


def clock(at_ms: int) -> str:
    """Write a time as people read it: ``0:01:05.250``, without the fraction where it is zero."""
    seconds, ms = divmod(at_ms, 1000)
    hours, rest = divmod(seconds, 3600)
    fraction = f".{ms:03d}" if ms else ""
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}{fraction}"


def plain(text: str) -> str:
    """Text of somebody else's, fit for a terminal: no control characters, no markup."""
    from rich.markup import escape

    return escape("".join(one if one.isprintable() else "?" for one in text))


def mib(amount: int) -> str:
    """Write an amount of memory in the unit that reads best."""
    if amount >= GIB_IN_MIB and amount % GIB_IN_MIB == 0:
        return f"{amount // GIB_IN_MIB:,} GiB"
    few = amount < 10 * GIB_IN_MIB
    return f"{amount:,} MiB" if few else f"{amount / GIB_IN_MIB:,.1f} GiB"
