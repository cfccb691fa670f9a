"""The worst that many actions together may do to a count, without trying all orders of ends.

``sum([...]) <= nb`` over a large collection changes by what each action changes of its share. Where
actions touch different shares, their effects add up; so the worst of all orders is the sum of the
worst of each group of actions that have a share in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, Final

from equipoise.model.quantity import StepId
from equipoise.spec.language.syntax import (
    Call,
    ListWhere,
    Minus,
    Name,
    Number,
    Operation,
    SetWhere,
    Term,
)

GROUP_MAX: Final = 5
"""Of how many actions with common shares all orders are tried."""

Shares = frozenset[Any]
Spare = Callable[[frozenset[StepId]], int]
"""How far a comparison is from being broken once some actions have ended."""


def sides(term: Term) -> tuple[Term, Term] | None:
    """What must be at least, and at most, the other, if both are counts that add up."""
    if not isinstance(term, Operation) or not (_adds_up(term.left) and _adds_up(term.right)):
        return None
    match term.operator:
        case "<=":
            return term.right, term.left
        case ">=":
            return term.left, term.right
        case _:
            return None


def _adds_up(term: Term) -> bool:
    """Whether a number is a sum over shares, so that changes of different shares add up."""
    match term:
        case Number() | Name():
            return True
        case Minus(term=inner):
            return _adds_up(inner)
        case Operation(operator="+" | "-"):
            return _adds_up(term.left) and _adds_up(term.right)
        case Operation(operator="*"):
            plain = isinstance(term.left, Number | Name) or isinstance(term.right, Number | Name)
            return plain and _adds_up(term.left) and _adds_up(term.right)
        case Call(function="sum" | "card", arguments=(ListWhere(),)):
            return True
        case Call(function="card", arguments=(SetWhere(term=Name(name=name), binders=(one,)),)):
            return one.names == (name,)  # each member counts once, and only for itself
        case _:
            return False


def worst(spare: Spare, shares: Mapping[StepId, Shares]) -> int:
    """The least that may be left over, whichever of some actions have ended; or less than that."""
    before = spare(frozenset())
    least = before
    for group in _groups(shares):
        if len(group) > GROUP_MAX:
            return -1
        least += min(spare(done) - before for done in _subsets(group))
    return least


def _groups(shares: Mapping[StepId, Shares]) -> list[list[StepId]]:
    """Actions that have shares in common, directly or through others."""
    found: list[tuple[list[StepId], set[Any]]] = []
    for step, own in shares.items():
        joined, touched = [step], set(own)
        apart = []
        for group, theirs in found:
            if touched.isdisjoint(theirs):
                apart.append((group, theirs))
            else:
                joined, touched = [*group, *joined], touched | theirs
        found = [*apart, (joined, touched)]
    return [group for group, _ in found]


def _subsets(names: Iterable[StepId]) -> Iterator[frozenset[StepId]]:
    some = list(names)
    for size in range(len(some) + 1):
        yield from map(frozenset, combinations(some, size))
