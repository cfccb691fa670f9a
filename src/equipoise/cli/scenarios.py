"""``equipoise scenarios``: what can be simulated or upgraded without writing a file."""

from __future__ import annotations

from equipoise.cli.answer import console, fitted, plain, print_json, table
from equipoise.sim.builtin import all_builtin
from equipoise.sim.upgrading.builtin import all_campaigns


def run(*, as_json: bool) -> int:
    """List the built-in scenarios."""
    found = [{"name": one.name, "about": one.about} for one in all_builtin()]
    found += [{"name": one.name, "about": one.about} for one in all_campaigns()]
    if as_json:
        print_json(found)
        return 0
    rows = table("name", "about")
    for one in found:
        rows.add_row(plain(one["name"]), plain(one["about"]))
    console().print(fitted(rows))
    return 0
