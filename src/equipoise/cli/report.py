"""``equipoise report``: two runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from equipoise.cli.answer import console, plain, print_json, progress_console, table
from equipoise.errors import InvalidInput, Problem
from equipoise.report import Difference, Run, compare, differences, read_run


def run(folder_a: Path, folder_b: Path, *, out: Path | None, as_json: bool) -> int:
    """Say what differs, and make a page of it if one is wanted."""
    run_a, run_b = read_run(folder_a), read_run(folder_b)
    found = differences(run_a, run_b)
    if out is not None:
        _write(out, compare(run_a, run_b))
    if as_json:
        print_json({"a": run_a.name, "b": run_b.name, "differences": [_row(one) for one in found]})
        return 0
    show(run_a, run_b, found)
    return 0


def show(run_a: Run, run_b: Run, found: Sequence[Difference]) -> None:
    """Print what differs."""
    numbers = (plain(run_a.name), plain(run_b.name), "difference")
    rows = table("measure", *numbers, "better", right=numbers)
    for one in found:
        rows.add_row(plain(one.measure), *map(plain, one.words), one.better)
    console().print(rows)


def _row(one: Difference) -> dict[str, object]:
    return {
        "measure": one.measure,
        "a": one.a,
        "b": one.b,
        "difference": one.difference,
        "better": one.better,
    }


def _write(out: Path, page: str) -> None:
    try:
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        what = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise InvalidInput(str(out), [Problem(key="", what=what, cure="name a file")]) from error
    note = f"written: open {plain(str(out))} in a browser"
    progress_console().print(note, soft_wrap=True)
