"""Values of the language that are not decided yet.

A value that is known is what it always was: int, str, frozenset, tuple. Not decided are a truth of
the circuit (``Undecided``), a ``Sum``, an ``OneOf``, a ``Maybe`` set and a ``MaybeList``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.plan.exact.solver.circuit import NO, YES, Truth
from equipoise.plan.exact.solver.number import Sum
from equipoise.spec.choose import in_order


class Unsupported(Exception):
    """A formula asks for something that cannot be said to the solver; the judge will have to."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A truth of the circuit, as a value of the language."""

    truth: Truth


@dataclass(frozen=True, slots=True)
class OneOf:
    """Exactly one of some values, by the truth that it is that one."""

    options: Mapping[Any, Truth]


@dataclass(frozen=True, slots=True)
class Maybe:
    """A set, by the truth that something is in it."""

    members: Mapping[Any, Truth]


@dataclass(frozen=True, slots=True)
class MaybeList:
    """A list whose elements are there or not; the elements may be undecided themselves."""

    elements: tuple[tuple[Any, Truth], ...]


def truth_of(value: Any) -> Truth:
    """The truth that a value of the language stands for."""
    if isinstance(value, Undecided):
        return value.truth
    return YES if value else NO


def as_value(truth: Truth) -> Any:
    """A truth as a value of the language: known ones are plain."""
    if truth == YES:
        return True
    return False if truth == NO else Undecided(truth)


def options_of(value: Any) -> Mapping[Any, Truth]:
    """What a value may be."""
    if isinstance(value, OneOf):
        return value.options
    if isinstance(value, Undecided):
        return {True: value.truth, False: -value.truth}
    return {value: YES}


def one_of(options: Mapping[Any, Truth]) -> Any:
    """A choice, or the one value that is left."""
    left = {value: truth for value, truth in options.items() if truth != NO}
    for value, truth in left.items():
        if truth == YES:
            return value
    return OneOf(left)


def members_of(value: Any) -> Mapping[Any, Truth]:
    """What may be in a set, or in a list taken as a set."""
    if isinstance(value, Maybe):
        return value.members
    if isinstance(value, MaybeList):
        raise Unsupported("a list that is not decided is taken for a set")
    return dict.fromkeys(_in_order(value), YES)


def truth_in(value: Any, some: Any) -> Truth:
    """Whether something that is known is in a set."""
    if isinstance(some, Maybe):
        return some.members.get(value, NO)
    if isinstance(some, MaybeList):
        raise Unsupported("a list that is not decided is taken for a set")
    return YES if value in some else NO


def maybe(members: Mapping[Any, Truth]) -> Any:
    """A set, which is plain if all that is in it is known."""
    left = {value: truth for value, truth in members.items() if truth != NO}
    if all(truth == YES for truth in left.values()):
        return frozenset(left)
    return Maybe(left)


def elements_of(value: Any) -> Iterable[tuple[Any, Truth]]:
    """What may be in a list or a set, each with the truth that it is."""
    if isinstance(value, MaybeList):
        return value.elements
    if isinstance(value, Maybe):
        return value.members.items()
    return ((one, YES) for one in _in_order(value))


def _in_order(some: Any) -> Any:
    """Sets have no order of their own, but the same problem must give the same model."""
    return in_order(some) if isinstance(some, frozenset) and len(some) > 1 else some


def maybe_list(elements: Iterable[tuple[Any, Truth]]) -> Any:
    """A list, which is plain if all that is in it is known."""
    left = tuple((value, truth) for value, truth in elements if truth != NO)
    if all(truth == YES and is_known(value) for value, truth in left):
        return tuple(value for value, _ in left)
    return MaybeList(left)


def is_known(value: Any) -> bool:
    """Whether a value is decided."""
    return not isinstance(value, Undecided | OneOf | Maybe | MaybeList | Sum)
