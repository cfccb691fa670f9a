"""``equipoise spec``: the specification language."""

from __future__ import annotations

from pathlib import Path

from equipoise.cli.answer import console, counted, fitted, print_json, table
from equipoise.cli.read import read_text
from equipoise.errors import InvalidInput, Problem
from equipoise.spec.check import check
from equipoise.spec.parse import parse
from equipoise.spec.place import Source
from equipoise.spec.vocabulary import SIGNATURES


def run_check(path: Path, *, as_json: bool) -> int:
    """Say what a specification file declares, or all that is wrong with it."""
    source = Source(str(path), read_text(path))
    constraints = parse(source.text, source.name)
    problems, warnings = check(constraints, source)
    if problems:
        raise InvalidInput(source.name, problems)
    names = [constraint.name for constraint in constraints]
    if as_json:
        print_json({"constraints": names, "warnings": [_row(one) for one in warnings]})
        return 0
    out = console()
    for warning in warnings:
        out.print(f"{source.name}: warning: {warning}", markup=False)
    declared = f": {', '.join(names)}" if names else ""
    out.print(f"{counted(len(names), 'constraint')}{declared}", markup=False)
    return 0


def run_functions(*, as_json: bool) -> int:
    """List the functions that a formula may call."""
    if as_json:
        print_json(
            [
                {"name": name, "signature": str(one), "doc": one.doc}
                for name, one in SIGNATURES.items()
            ]
        )
        return 0
    rows = table("function", "takes and gives", "means")
    for name, signature in SIGNATURES.items():
        rows.add_row(name, str(signature), signature.doc)
    console().print(fitted(rows))
    return 0


def _row(problem: Problem) -> dict[str, object]:
    return {
        "line": problem.line,
        "column": problem.column,
        "what": problem.what,
        "cure": problem.cure,
    }
