"""Tables of figures on a terminal: a number is never cut."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from equipoise.cli.output import figure_text, keep_figures, make_table


@pytest.mark.parametrize("width", [60, 80, 200])
def test_every_figure_is_whole_at_any_width_that_holds_the_figures(width: int) -> None:
    names = ("easy", "a-folder-with-a-long-name", "difference")
    rows = [
        ("mean waiting time", "17 min 7 s", "34 min 59 s", "+17 min 52 s"),
        ("consumed_joules_of_all_hosts", "15,382,400", "117 min 40 s", "0.001"),
    ]
    table = make_table("measure", *names, right=names)
    for row in rows:
        table.add_row(*row)
    out = StringIO()
    Console(file=out, width=width, highlight=False).print(keep_figures(table))
    for row in rows:
        assert all(figure in out.getvalue() for figure in row[1:])
    assert all(len(line) <= width for line in out.getvalue().splitlines())


def test_large_figures_have_no_decimals() -> None:
    figures = [0, 1_234_567, 0.5, 999_999.4, 15_382_400.25, -2e6]
    texts = ["0", "1,234,567", "0.500", "999,999.400", "15,382,400", "-2,000,000"]
    assert list(map(figure_text, figures)) == texts


def test_a_figure_of_two_lines_needs_the_width_of_the_longer_one() -> None:
    out = StringIO()
    table = make_table("workload", "makespan s", "wait s", right=("makespan s", "wait s"))
    table.add_row("a-long-name.json", "2,248.3\n± 1,346.0", "9.4\n± 15.3")
    Console(file=out, width=34, highlight=False).print(keep_figures(table))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 34
    assert all(figure in out.getvalue() for figure in ("2,248.3", "± 1,346.0", "± 15.3"))
