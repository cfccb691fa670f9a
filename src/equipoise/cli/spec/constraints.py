"""``equipoise spec``: checks specification files, lists and shows constraints, judges cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from equipoise.api.loading import read_case
from equipoise.cli.file_io import read_text
from equipoise.cli.output import console, format_time_ms, print_document, text_table
from equipoise.documents.spec import (
    VerdictDocument,
    constraint_document,
    constraint_rows,
    function_rows,
    spec_check_document,
)
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.problem.problem import CaseFile
from equipoise.model.quantity import format_count
from equipoise.model.state.snapshot import Snapshot
from equipoise.spec.language.syntax import SourceText
from equipoise.spec.library import library, library_constraints, origin_of
from equipoise.spec.requirement import Case, Requirement, judge_case
from equipoise.spec.specification import Specification
from equipoise.spec.vacuity import constant_answer


def run_check(path: Path, *, as_json: bool) -> int:
    """Print the constraints of a specification file, or all its errors."""
    source = SourceText(str(path), read_text(path))
    specification = Specification.read(source.text, source.name, library_constraints())
    warnings = [*specification.warnings, *_vacuity_warnings(specification, source)]
    names = list(specification.constraints)
    if as_json:
        print_document(spec_check_document(names, warnings))
        return 0
    out = console()
    for warning in warnings:
        out.print(f"{source.name}: warning: {warning}", markup=False)
    declared = f": {', '.join(names)}" if names else ""
    out.print(f"{format_count(len(names), 'constraint')}{declared}", markup=False)
    return 0


def _vacuity_warnings(specification: Specification, source: SourceText) -> Iterator[InputProblem]:
    for name, constraint in specification.constraints.items():
        answer = constant_answer(specification, name)
        if answer is not None:
            value = "true" if answer else "false"
            what = f"{name} is {value} on every small cluster and plan"
            yield source.problem(constraint.place, what, "check the formula", "constant-formula")


def run_list(*, as_json: bool) -> int:
    """List the constraints of the library."""
    rows = constraint_rows()
    if as_json:
        print_document(rows)
        return 0
    lines = (
        (
            row.name,
            ", ".join(row.arguments),
            ", ".join(row.modes),
            f"{row.origin}, {row.variant}" if row.variant else row.origin,
            row.doc,
        )
        for row in rows
    )
    columns = ("constraint", "arguments", "modes", "origin", "meaning")
    console().print(text_table(columns, lines))
    console().print(format_count(len(rows), "constraint"))
    return 0


def run_judge(name: str, case_path: Path, spec_path: Path | None, *, as_json: bool) -> int:
    """Judge a case by a constraint; print the time and the cause of a violation."""
    case_file = read_case(case_path)
    snapshot = Snapshot.of(case_file.cluster)
    specification = _specification_with(name, case_file, spec_path)
    try:
        values = specification.arguments(name, case_file.arguments, snapshot)
    except InvalidInput as error:
        problems = [replace(problem, key=f"arguments.{problem.key}") for problem in error.problems]
        raise InvalidInput(str(case_path), problems) from None
    requirement = Requirement(specification, name, values, case_file.continuous)
    fault = judge_case(requirement, Case(snapshot, case_file.plan.steps if case_file.plan else ()))
    if as_json:
        at, why = (None, None) if fault is None else (fault.happened_ms, str(fault.why))
        print_document(
            VerdictDocument(constraint=str(requirement), holds=fault is None, at=at, detail=why)
        )
    elif fault is None:
        how = "at every moment" if case_file.continuous else "at the end"
        console().print(f"{requirement} holds {how}", markup=False)
    else:
        console().print(
            f"{requirement} is violated at {format_time_ms(fault.happened_ms)}: {fault.why}",
            markup=False,
        )
    return 0 if fault is None else 1


def _specification_with(name: str, case_file: CaseFile, spec_path: Path | None) -> Specification:
    """Return the specification that declares a constraint: the file, the case or the library."""
    known = library_constraints()
    texts = [(case_file.cluster.specification, "specification")]
    if spec_path is not None:
        texts.insert(0, (read_text(spec_path), str(spec_path)))
    for text, source in texts:
        own = Specification.read(text, source, known)
        if name in own.constraints:
            return own
    if name not in known:
        raise unknown_constraint(name)
    return known[name]


def unknown_constraint(name: str) -> InvalidInput:
    """Return the error about a constraint that the library does not have."""
    close = get_close_matches(name, library_constraints(), n=1)
    cure = f"did you mean {close[0]}?" if close else "'equipoise spec list' lists them"
    return InvalidInput.of(name, "is not in the library", cure=cure, code="unknown-constraint")


def run_show(name: str, *, as_json: bool) -> int:
    """Print the source text of a library constraint."""
    origin = origin_of(name)
    if origin is None:
        raise unknown_constraint(name)
    document = constraint_document(origin, library()[origin].constraints[name])
    if as_json:
        print_document(document)
    else:
        console().print(document.text, markup=False, end="")
    return 0


def run_functions(*, as_json: bool) -> int:
    """List the functions that a formula can call."""
    functions = function_rows()
    if as_json:
        print_document(functions)
        return 0
    rows = ((function.name, function.signature, function.doc) for function in functions)
    console().print(text_table(("function", "signature", "meaning"), rows))
    return 0
