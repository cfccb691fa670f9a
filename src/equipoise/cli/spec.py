"""``equipoise spec``: the specification language."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from equipoise.cli.answer import console, counted, fitted, print_json, table
from equipoise.cli.read import read_text
from equipoise.errors import InvalidInput, Problem
from equipoise.spec.check import check
from equipoise.spec.extend import signatures
from equipoise.spec.library import library, origin_of
from equipoise.spec.parse import parse
from equipoise.spec.place import Source
from equipoise.spec.print import print_constraint, print_term

MODES = ("discrete", "continuous")


def run_check(path: Path, *, as_json: bool) -> int:
    """Say what a specification file declares, or all that is wrong with it."""
    source = Source(str(path), read_text(path))
    constraints = parse(source.text, source.name)
    problems, warnings, _ = check(constraints, source)
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


def run_list(*, as_json: bool) -> int:
    """List the constraints of the library."""
    found = [
        {
            "name": one.name,
            "arguments": [f"{p.name} {p.binding} {print_term(p.domain)}" for p in one.parameters],
            "modes": [mark for mark in one.marks if mark in MODES],
            "origin": origin,
            "doc": one.doc,
        }
        for origin, specification in library().items()
        for one in specification.constraints.values()
    ]
    if as_json:
        print_json(found)
        return 0
    rows = table("constraint", "arguments", "modes", "origin", "means")
    for row in found:
        arguments, modes = ", ".join(row["arguments"]), ", ".join(row["modes"])
        rows.add_row(str(row["name"]), arguments, modes, str(row["origin"]), str(row["doc"]))
    console().print(fitted(rows))
    return 0


def run_show(name: str, *, as_json: bool) -> int:
    """Show one constraint of the library as it is written."""
    origin = origin_of(name)
    if origin is None:
        known = [one for spec in library().values() for one in spec.constraints]
        close = get_close_matches(name, known, n=1)
        cure = f"did you mean {close[0]}?" if close else "'equipoise spec list' lists them"
        raise InvalidInput(name, [Problem(key="", what="is not in the library", cure=cure)])
    constraint = library()[origin].constraints[name]
    text = print_constraint(constraint)
    if as_json:
        print_json({"name": name, "origin": origin, "doc": constraint.doc, "text": text})
    else:
        console().print(text, markup=False, end="")
    return 0


def run_functions(*, as_json: bool) -> int:
    """List the functions that a formula may call."""
    if as_json:
        print_json(
            [
                {"name": name, "signature": str(one), "doc": one.doc}
                for name, one in signatures().items()
            ]
        )
        return 0
    rows = table("function", "takes and gives", "means")
    for name, signature in signatures().items():
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
