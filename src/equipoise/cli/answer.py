"""How answers are printed: for people with Rich, for programs as one JSON document."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

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


def table(*columns: str, right: tuple[str, ...] = (), title: str | None = None) -> Table:
    """Make a table in the style of the house; the columns in ``right`` hold numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left")
    return made


def clock(at_ms: int) -> str:
    """Write a time as people read it: ``0:01:05.250``, without the fraction where it is zero."""
    seconds, ms = divmod(at_ms, 1000)
    hours, rest = divmod(seconds, 3600)
    fraction = f".{ms:03d}" if ms else ""
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}{fraction}"


def counted(number: int, word: str) -> str:
    """Write ``1 host`` or ``2 hosts``."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def mib(amount: int) -> str:
    """Write an amount of memory in the unit that reads best."""
    if amount >= GIB_IN_MIB and amount % GIB_IN_MIB == 0:
        return f"{amount // GIB_IN_MIB:,} GiB"
    few = amount < 10 * GIB_IN_MIB
    return f"{amount:,} MiB" if few else f"{amount / GIB_IN_MIB:,.1f} GiB"
