"""The shape of a specification: what the parser makes and everybody else reads.

Every node knows where it stood in its file; two nodes are equal if they say the same, wherever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from typing import NamedTuple


class Place(NamedTuple):
    """A place in a file, counted from 1."""

    line: int
    column: int
    width: int = 1


NOWHERE = Place(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    place: Place = field(default=NOWHERE, compare=False, repr=False)


class Moment(StrEnum):
    """Which state a call looks at."""

    NOW = ""
    """The state that is being judged."""
    INITIAL = "^"
    """The state before the plan."""
    FINAL = "$"
    """The state the plan leads to."""


class Binding(StrEnum):
    """How a variable ranges over a collection."""

    MEMBER = ":"
    """Over its members."""
    SUBSET = "<:"
    """Over its subsets."""
    PACKING = "<<:"
    """Over its packings: sets of non-empty subsets that have nothing in common."""


@dataclass(frozen=True, slots=True)
class Name(_Node):
    """A variable, a predefined set or a state."""

    name: str


@dataclass(frozen=True, slots=True)
class Number(_Node):
    """A whole number."""

    value: int


@dataclass(frozen=True, slots=True)
class Text(_Node):
    """Words in quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class Truth(_Node):
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True, slots=True)
class Call(_Node):
    """A function or another constraint, asked now, of the initial or of the final state."""

    function: str
    arguments: tuple[Term, ...]
    moment: Moment = Moment.NOW


@dataclass(frozen=True, slots=True)
class Operation(_Node):
    """Two terms with an operator between them."""

    operator: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Not(_Node):
    """The opposite."""

    term: Term


@dataclass(frozen=True, slots=True)
class Minus(_Node):
    """A number below zero."""

    term: Term


@dataclass(frozen=True, slots=True)
class Index(_Node):
    """One element of a list, counted from 0."""

    sequence: Term
    position: Term


@dataclass(frozen=True, slots=True)
class SetOf(_Node):
    """A set, member by member: ``{a, b}``."""

    members: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class ListOf(_Node):
    """A list, element by element: ``[a, b]``. It keeps order and repetition."""

    elements: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Binder(_Node):
    """Variables that range over one collection: ``x, y : vms``."""

    names: tuple[str, ...]
    binding: Binding
    domain: Term


@dataclass(frozen=True, slots=True)
class SetWhere(_Node):
    """A set by its rule: ``{host(v). v : vs, vmState(v) = running}``."""

    term: Term
    binders: tuple[Binder, ...]
    conditions: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class ListWhere(_Node):
    """A list by its rule; unlike a set it keeps equal values apart."""

    term: Term
    binders: tuple[Binder, ...]
    conditions: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class ForAll(_Node):
    """It holds for all: ``!(x : S) p``."""

    binders: tuple[Binder, ...]
    body: Term


@dataclass(frozen=True, slots=True)
class Exists(_Node):
    """It holds for some: ``?(x : S) p``."""

    binders: tuple[Binder, ...]
    body: Term


@dataclass(frozen=True, slots=True)
class Let(_Node):
    """A name for a term: ``let x = t in p``."""

    name: str
    value: Term
    body: Term


@dataclass(frozen=True, slots=True)
class Always(_Node):
    """It holds at every moment of the plan."""

    body: Term


@dataclass(frozen=True, slots=True)
class Sometime(_Node):
    """It holds at some moment of the plan."""

    body: Term


Term = (
    Name
    | Number
    | Text
    | Truth
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
class Parameter(_Node):
    """An argument of a constraint and what it ranges over: ``vs <: vms``."""

    name: str
    binding: Binding
    domain: Term


@dataclass(frozen=True, slots=True)
class Constraint(_Node):
    """One declaration: a name, its arguments, and the formula that must hold."""

    name: str
    parameters: tuple[Parameter, ...]
    formula: Term
    marks: tuple[str, ...] = ()
    """``hard`` or ``soft``, ``discrete``, ``continuous``, as written."""
    doc: str = ""


@cache
def field_names(kind: type[_Node]) -> tuple[str, ...]:
    """The names of what terms of a kind consist of; where they stand is no part of them."""
    return tuple(one.name for one in fields(kind) if one.name != "place")


def parts_of(term: Term) -> Iterator[Term]:
    """Give a term and everything in it."""
    yield term
    for name in field_names(type(term)):  # type: ignore[arg-type]
        value = getattr(term, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Binder):
                yield from parts_of(part.domain)
            elif isinstance(part, _Node):
                yield from parts_of(part)  # type: ignore[arg-type]


def calls_in(term: Term) -> Iterator[str]:
    """Give the names of everything a term calls."""
    return (part.function for part in parts_of(term) if isinstance(part, Call))


def names_in(term: Term) -> frozenset[str]:
    """Every name that is written somewhere in a term."""
    return frozenset(part.name for part in parts_of(term) if isinstance(part, Name))
