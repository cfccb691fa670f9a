"""Values of the language that are not decided yet.

A known value is an int, str, frozenset or tuple. Undecided are a literal of the solver
(``SymbolicBool``), a ``LinearSum``, a ``OneOf``, a ``SymbolicSet`` and a ``SymbolicList``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.plan.exact.solver import FALSE, TRUE, LinearSum, Literal
from equipoise.spec.evaluate.domains import in_order


class UnsupportedFormula(Exception):
    """A formula that cannot be translated for the solver; the judge checks it instead."""


@dataclass(frozen=True, slots=True)
class SymbolicBool:
    """A literal of the model, as a value of the language."""

    literal: Literal


@dataclass(frozen=True, slots=True)
class OneOf:
    """Exactly one of some values, each with the literal that it is that one."""

    options: Mapping[Any, Literal]


@dataclass(frozen=True, slots=True)
class SymbolicSet:
    """A set: possible members, each with the literal that it is in the set."""

    members: Mapping[Any, Literal]


@dataclass(frozen=True, slots=True)
class SymbolicList:
    """A list whose elements are present or not; the elements may be undecided themselves."""

    elements: tuple[tuple[Any, Literal], ...]


def literal_of(value: Any) -> Literal:
    """Return the literal of a truth value."""
    if isinstance(value, SymbolicBool):
        return value.literal
    return TRUE if value else FALSE


def value_of_literal(literal: Literal) -> Any:
    """Return a literal as a value of the language; a known one is a plain bool."""
    if literal == TRUE:
        return True
    return False if literal == FALSE else SymbolicBool(literal)


def options_of(value: Any) -> Mapping[Any, Literal]:
    """Return the possible values, each with its literal."""
    if isinstance(value, OneOf):
        return value.options
    if isinstance(value, SymbolicBool):
        return {True: value.literal, False: -value.literal}
    return {value: TRUE}


def one_of(options: Mapping[Any, Literal]) -> Any:
    """Return a choice, or the value itself if only one is possible."""
    possible = {value: literal for value, literal in options.items() if literal != FALSE}
    for value, literal in possible.items():
        if literal == TRUE:
            return value
    return OneOf(possible)


def members_of(value: Any) -> Mapping[Any, Literal]:
    """Return the possible members of a set, each with its literal."""
    if isinstance(value, SymbolicSet):
        return value.members
    if isinstance(value, SymbolicList):
        raise UnsupportedFormula("an undecided list is used as a set")
    return dict.fromkeys(_in_order(value), TRUE)


def membership_literal(value: Any, collection: Any) -> Literal:
    """Return the literal that a known value is in a set."""
    if isinstance(collection, SymbolicSet):
        return collection.members.get(value, FALSE)
    if isinstance(collection, SymbolicList):
        raise UnsupportedFormula("an undecided list is used as a set")
    return TRUE if value in collection else FALSE


def symbolic_set(members: Mapping[Any, Literal]) -> Any:
    """Return a set; a plain one if all its members are known."""
    possible = {value: literal for value, literal in members.items() if literal != FALSE}
    if all(literal == TRUE for literal in possible.values()):
        return frozenset(possible)
    return SymbolicSet(possible)


def elements_of(value: Any) -> Iterable[tuple[Any, Literal]]:
    """Return the possible elements of a list or a set, each with its literal."""
    if isinstance(value, SymbolicList):
        return value.elements
    if isinstance(value, SymbolicSet):
        return value.members.items()
    return ((element, TRUE) for element in _in_order(value))


def _in_order(collection: Any) -> Any:
    """Return sets in a fixed order: the same problem must give the same model."""
    if isinstance(collection, frozenset) and len(collection) > 1:
        return in_order(collection)
    return collection


def symbolic_list(elements: Iterable[tuple[Any, Literal]]) -> Any:
    """Return a list; a plain one if all its elements are known."""
    possible = tuple((value, literal) for value, literal in elements if literal != FALSE)
    if all(literal == TRUE and is_known(value) for value, literal in possible):
        return tuple(value for value, _ in possible)
    return SymbolicList(possible)


def is_known(value: Any) -> bool:
    """Whether a value is decided."""
    return not isinstance(value, SymbolicBool | OneOf | SymbolicSet | SymbolicList | LinearSum)
