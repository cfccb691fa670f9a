"""``equipoise report``: two runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from equipoise.cli.answer import console, plain, print_json, table
from equipoise.cli.write import say_written, write_file
from equipoise.report import Difference, Run, compare, differences, read_run


def run(folder_a: Path, folder_b: Path, *, out: Path | None, as_json: bool) -> int:
    """Say what differs, and make a page of it if one is wanted."""
    run_a, run_b = read_run(folder_a), read_run(folder_b)
    found = differences(run_a, run_b)
    if out is not None:
        write_file(out, compare(run_a, run_b).encode())
        say_written(out)
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
