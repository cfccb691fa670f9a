"""``equipoise spec``: the specification language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from equipoise.cli.answer import clock, console, fitted, print_json, table
from equipoise.cli.read import read_case, read_text
from equipoise.errors import InvalidInput, Problem
from equipoise.model.case import CaseFile
from equipoise.model.snapshot import Snapshot
from equipoise.model.words import counted
from equipoise.spec.case import Case, judge_case
from equipoise.spec.demand import Demand
from equipoise.spec.extend import signatures
from equipoise.spec.language.place import Source
from equipoise.spec.language.print import print_constraint, print_term
from equipoise.spec.library import library, library_constraints, origin_of
from equipoise.spec.specification import Specification
from equipoise.spec.vacuity import always

MODES = ("discrete", "continuous")
VARIANTS = ("documented", "as_coded")


def run_check(path: Path, *, as_json: bool) -> int:
    """Say what a specification file declares, or all that is wrong with it."""
    source = Source(str(path), read_text(path))
    specification = Specification.read(source.text, source.name, library_constraints())
    warnings = [*specification.warnings, *_vacuous(specification, source)]
    names = list(specification.constraints)
    if as_json:
        print_json({"constraints": names, "warnings": [_row(one) for one in warnings]})
        return 0
    out = console()
    for warning in warnings:
        out.print(f"{source.name}: warning: {warning}", markup=False)
    declared = f": {', '.join(names)}" if names else ""
    out.print(f"{counted(len(names), 'constraint')}{declared}", markup=False)
    return 0


def _vacuous(specification: Specification, source: Source) -> Iterator[Problem]:
    for name, constraint in specification.constraints.items():
        answer = always(specification, name)
        if answer is not None:
            said = "true" if answer else "false"
            what = f"{name} is {said} on every small cluster and plan"
            yield source.problem(constraint.place, what, "is that what it should say?")


def run_list(*, as_json: bool) -> int:
    """List the constraints of the library."""
    found: list[dict[str, Any]] = [
        {
            "name": one.name,
            "arguments": [f"{p.name} {p.binding} {print_term(p.domain)}" for p in one.parameters],
            "modes": [mark for mark in one.marks if mark in MODES],
            "strength": next((mark for mark in one.marks if mark in ("hard", "soft")), "hard"),
            "variant": next((mark for mark in one.marks if mark in VARIANTS), None),
            "origin": origin,
            "doc": " ".join(one.doc.split()),
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
        origin = f"{row['origin']}, {row['variant']}" if row["variant"] else str(row["origin"])
        rows.add_row(str(row["name"]), arguments, modes, origin, str(row["doc"]))
    console().print(fitted(rows))
    console().print(counted(len(found), "constraint"))
    return 0


def run_judge(name: str, case_path: Path, spec_path: Path | None, *, as_json: bool) -> int:
    """Judge a case by a constraint, and say where and why it is broken."""
    given = read_case(case_path)
    snapshot = Snapshot.of(given.cluster)
    home = _home(name, given, spec_path)
    try:
        values = home.arguments(name, given.arguments, snapshot)
    except InvalidInput as error:
        said = [replace(one, key=f"arguments.{one.key}") for one in error.problems]
        raise InvalidInput(str(case_path), said) from None
    demand = Demand(home, name, values, given.continuous)
    fault = judge_case(demand, Case(snapshot, given.plan.steps if given.plan else ()))
    if as_json:
        at, why = (None, None) if fault is None else (fault.told_ms, str(fault.why))
        print_json({"constraint": str(demand), "holds": fault is None, "at": at, "detail": why})
    elif fault is None:
        how = "at every moment" if given.continuous else "at the end"
        console().print(f"{demand} holds {how}", markup=False)
    else:
        console().print(f"{demand} is broken at {clock(fault.told_ms)}: {fault.why}", markup=False)
    return 0 if fault is None else 1


def _home(name: str, given: CaseFile, spec_path: Path | None) -> Specification:
    """The specification that declares a constraint: of the file, of the case, or of the library."""
    known = library_constraints()
    texts = [(given.cluster.specification, "specification")]
    if spec_path is not None:
        texts.insert(0, (read_text(spec_path), str(spec_path)))
    for text, source in texts:
        own = Specification.read(text, source, known)
        if name in own.constraints:
            return own
    if name not in known:
        raise not_in_library(name)
    return known[name]


def not_in_library(name: str) -> InvalidInput:
    """What is said of a constraint that there is not."""
    close = get_close_matches(name, library_constraints(), n=1)
    cure = f"did you mean {close[0]}?" if close else "'equipoise spec list' lists them"
    return InvalidInput(name, [Problem(key="", what="is not in the library", cure=cure)])


def run_show(name: str, *, as_json: bool) -> int:
    """Show one constraint of the library as it is written."""
    origin = origin_of(name)
    if origin is None:
        raise not_in_library(name)
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
