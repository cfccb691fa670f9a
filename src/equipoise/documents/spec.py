"""The JSON documents of ``spec``: constraints, functions, warnings and verdicts."""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.documents.json_document import Document
from equipoise.errors import InputProblem
from equipoise.spec.functions import signatures
from equipoise.spec.language.print import print_constraint, print_term
from equipoise.spec.language.syntax import Constraint
from equipoise.spec.library import library

_MODES = ("discrete", "continuous")
_STRENGTHS = ("hard", "soft")
_VARIANTS = ("documented", "as_coded")


class ConstraintRow(Document):
    """A constraint of the library."""

    name: str
    arguments: tuple[str, ...]
    modes: tuple[str, ...]
    strength: str
    variant: str | None
    """``documented`` or ``as_coded``, where the original does not do what it documents."""
    origin: str
    doc: str


class ConstraintDocument(Document):
    """The JSON document of ``equipoise spec show``."""

    name: str
    origin: str
    doc: str
    text: str


class FunctionRow(Document):
    """A function that a formula can call."""

    name: str
    signature: str
    doc: str


class WarningRow(Document):
    """A doubtful place of a specification."""

    line: int | None
    column: int | None
    what: str
    cure: str
    code: str


class SpecCheckDocument(Document):
    """The JSON document of ``equipoise spec check``."""

    constraints: tuple[str, ...]
    warnings: tuple[WarningRow, ...]


class VerdictDocument(Document):
    """The JSON document of ``equipoise spec judge``."""

    constraint: str
    holds: bool
    at: int | None
    """The time of the violation in milliseconds."""
    detail: str | None


def constraint_rows() -> tuple[ConstraintRow, ...]:
    """Return the constraints of the library, origin by origin."""
    return tuple(
        ConstraintRow(
            name=constraint.name,
            arguments=tuple(
                f"{parameter.name} {parameter.binding} {print_term(parameter.domain)}"
                for parameter in constraint.parameters
            ),
            modes=tuple(mark for mark in constraint.marks if mark in _MODES),
            strength=_mark_of(constraint, _STRENGTHS) or "hard",
            variant=_mark_of(constraint, _VARIANTS),
            origin=origin,
            doc=" ".join(constraint.doc.split()),
        )
        for origin, specification in library().items()
        for constraint in specification.constraints.values()
    )


def _mark_of(constraint: Constraint, marks: tuple[str, ...]) -> str | None:
    return next((mark for mark in constraint.marks if mark in marks), None)


def constraint_document(origin: str, constraint: Constraint) -> ConstraintDocument:
    """Return the source text of a constraint."""
    return ConstraintDocument.of(constraint, origin=origin, text=print_constraint(constraint))


def function_rows() -> tuple[FunctionRow, ...]:
    """Return the functions of the language and of installed packages."""
    return tuple(
        FunctionRow(name=name, signature=str(signature), doc=signature.doc)
        for name, signature in signatures().items()
    )


def spec_check_document(
    names: Iterable[str], warnings: Iterable[InputProblem]
) -> SpecCheckDocument:
    """Return the constraints of a file and its warnings."""
    rows = tuple(map(WarningRow.of, warnings))
    return SpecCheckDocument(constraints=tuple(names), warnings=rows)
