"""The syntax tree of a specification, and the source text that error messages quote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

from equipoise.errors import InputProblem, InvalidInput


class SourcePosition(NamedTuple):
    """A position in a file; lines and columns count from 1."""

    line: int
    column: int
    width: int = 1


NO_POSITION = SourcePosition(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SyntaxNode:
    # Not compared: a printed and parsed formula equals the original, wherever it stands.
    place: SourcePosition = field(default=NO_POSITION, compare=False, repr=False)


class StateRef(StrEnum):
    """The state that a call reads."""

    NOW = ""
    """The judged state."""
    INITIAL = "^"
    """The state before the plan."""
    FINAL = "$"
    """The state after the plan."""


class Binding(StrEnum):
    """How a variable ranges over a collection."""

    MEMBER = ":"
    """Over its members."""
    SUBSET = "<:"
    """Over its subsets."""
    PACKING = "<<:"
    """Over its packings: sets of non-empty, disjoint subsets."""


@dataclass(frozen=True, slots=True)
class Name(_SyntaxNode):
    """A variable, a predefined set, or a state such as ``running``."""

    name: str


@dataclass(frozen=True, slots=True)
class Number(_SyntaxNode):
    """A whole number."""

    value: int


@dataclass(frozen=True, slots=True)
class Text(_SyntaxNode):
    """A text in quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class Boolean(_SyntaxNode):
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True, slots=True)
class Call(_SyntaxNode):
    """A call of a function or a constraint, in the judged, the initial or the final state."""

    function: str
    arguments: tuple[Term, ...]
    moment: StateRef = StateRef.NOW


@dataclass(frozen=True, slots=True)
class Operation(_SyntaxNode):
    """A binary operation."""

    operator: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Not(_SyntaxNode):
    """A negation."""

    term: Term


@dataclass(frozen=True, slots=True)
class Minus(_SyntaxNode):
    """A number with its sign changed."""

    term: Term


@dataclass(frozen=True, slots=True)
class Index(_SyntaxNode):
    """One element of a list, counted from 0."""

    sequence: Term
    position: Term


@dataclass(frozen=True, slots=True)
class SetOf(_SyntaxNode):
    """A set, member by member: ``{a, b}``."""

    members: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class ListOf(_SyntaxNode):
    """A list, element by element: ``[a, b]``. It keeps order and repetition."""

    elements: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Binder(_SyntaxNode):
    """Variables that range over one collection: ``x, y : vms``."""

    names: tuple[str, ...]
    binding: Binding
    domain: Term


@dataclass(frozen=True, slots=True)
class SetWhere(_SyntaxNode):
    """A set by a rule: ``{host(v) . v : vs, runs(v)}``."""

    term: Term
    binders: tuple[Binder, ...]
    conditions: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class ListWhere(_SyntaxNode):
    """A list by a rule; unlike a set it keeps equal values."""

    term: Term
    binders: tuple[Binder, ...]
    conditions: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class ForAll(_SyntaxNode):
    """The body holds for all values: ``!(x : S) p``."""

    binders: tuple[Binder, ...]
    body: Term


@dataclass(frozen=True, slots=True)
class Exists(_SyntaxNode):
    """The body holds for some value: ``?(x : S) p``."""

    binders: tuple[Binder, ...]
    body: Term


@dataclass(frozen=True, slots=True)
class Let(_SyntaxNode):
    """A name for a term: ``let x = t in p``."""

    name: str
    value: Term
    body: Term


@dataclass(frozen=True, slots=True)
class Always(_SyntaxNode):
    """The body holds at every moment of the plan."""

    body: Term


@dataclass(frozen=True, slots=True)
class Sometime(_SyntaxNode):
    """The body holds at some moment of the plan."""

    body: Term


Term = (
    Name
    | Number
    | Text
    | Boolean
    | Call
    | Operation
    | Not
    | Minus
    | Index
    | SetOf
    | ListOf
    | SetWhere
    | ListWhere
    | ForAll
    | Exists
    | Let
    | Always
    | Sometime
)


@dataclass(frozen=True, slots=True)
class Parameter(_SyntaxNode):
    """An argument of a constraint and what it ranges over: ``vs <: vms``."""

    name: str
    binding: Binding
    domain: Term


@dataclass(frozen=True, slots=True)
class Constraint(_SyntaxNode):
    """A declaration: a name, its arguments, and the formula that must hold."""

    name: str
    parameters: tuple[Parameter, ...]
    formula: Term
    marks: tuple[str, ...] = ()
    """``hard`` or ``soft``, ``discrete``, ``continuous`` and so on, as written."""
    doc: str = ""


@cache
def field_names(kind: type[_SyntaxNode]) -> tuple[str, ...]:
    """Return the fields of a kind of term, without its position in the source."""
    return tuple(item.name for item in fields(kind) if item.name != "place")


def subterms(term: Term) -> Iterator[Term]:
    """Yield a term and every term inside it."""
    yield term
    for name in field_names(type(term)):  # type: ignore[arg-type]
        value = getattr(term, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Binder):
                yield from subterms(part.domain)
            elif isinstance(part, _SyntaxNode):
                yield from subterms(part)  # type: ignore[arg-type]


def calls_in(term: Term) -> Iterator[str]:
    """Yield the names of all functions and constraints that a term calls."""
    return (part.function for part in subterms(term) if isinstance(part, Call))


def names_in(term: Term) -> frozenset[str]:
    """Return every name in a term."""
    return frozenset(part.name for part in subterms(term) if isinstance(part, Name))


EXCERPT_MAX: Final = 100
"""Longest excerpt; of a longer line only the part around the position is shown."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of a file and its name."""

    name: str
    text: str

    def problem(
        self, place: SourcePosition, what: str, cure: str = "", code: str = "syntax-error"
    ) -> InputProblem:
        """Return a problem at a position, with an excerpt of the text."""
        return InputProblem(
            key="",
            what=what,
            cure=cure,
            line=place.line,
            column=place.column,
            excerpt=self.excerpt(place),
            code=code,
        )

    def refused(
        self, place: SourcePosition, what: str, cure: str = "", code: str = "syntax-error"
    ) -> InvalidInput:
        """Return an error with this single problem."""
        return InvalidInput(self.name, [self.problem(place, what, cure, code)])

    def excerpt(self, place: SourcePosition) -> str:
        """Return the line with a caret under the position."""
        lines = self.text.splitlines()
        line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
        start = max(0, place.column - 1 - EXCERPT_MAX // 2) if len(line) > EXCERPT_MAX else 0
        shown = line[start : start + EXCERPT_MAX]
        before = line[start : place.column - 1]
        # Tabs stay tabs, so that the caret stands below the character on any terminal.
        indent = "".join("\t" if character == "\t" else " " for character in before)
        width = max(1, min(place.width, len(shown) - len(indent)))
        return f"{shown}\n{indent}{'^' * width}"

    def end(self) -> SourcePosition:
        """Return the position after the last character."""
        lines = self.text.rstrip().splitlines() or [""]
        return SourcePosition(len(lines), len(lines[-1]) + 1)
