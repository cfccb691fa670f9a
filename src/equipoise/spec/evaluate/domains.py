"""The values of a variable: the members, the subsets or the packings of a collection."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import combinations
from typing import Any, Final

from equipoise.model.plan import Step
from equipoise.spec.language.syntax import Binding

CHOICES_MAX: Final = 12
"""Largest number of members from which groups are chosen: 12 have 4,096 subsets."""


def choices(binding: Binding, domain: Collection[Any]) -> Iterator[Any]:
    """Yield every value of a variable, in a fixed order."""
    ordered = members(domain)
    if binding is Binding.MEMBER:
        yield from ordered
        return
    if len(ordered) > CHOICES_MAX:
        raise ValueError(
            f"{len(ordered)} members are too many to choose groups from; at most {CHOICES_MAX}"
        )
    if binding is Binding.SUBSET:
        yield from subsets(ordered)
    else:
        yield from packings(ordered)


def members(domain: Collection[Any]) -> tuple[Any, ...]:
    """Return the members of a collection, in a fixed order."""
    return domain if isinstance(domain, tuple) else in_order(domain)


def cached_members(domain: Collection[Any]) -> tuple[Any, ...]:
    """Return the members like ``members``; cached, for a collection that is used many times."""
    return domain if isinstance(domain, tuple) else _cached_order(frozenset(domain))


@lru_cache(maxsize=8192)
def _cached_order(domain: frozenset[Any]) -> tuple[Any, ...]:
    return in_order(domain)


def subsets(members: Collection[Any]) -> Iterator[frozenset[Any]]:
    """Yield all subsets, the empty one first."""
    for size in range(len(members) + 1):
        yield from map(frozenset, combinations(members, size))


def packings(members: Collection[Any]) -> Iterator[frozenset[Any]]:
    """Yield all sets of non-empty, disjoint groups."""
    yield from (frozenset(groups) for groups in _packings(tuple(members)))


def _packings(members: tuple[Any, ...]) -> Iterator[tuple[frozenset[Any], ...]]:
    if not members:
        yield ()
        return
    first, rest = members[0], members[1:]
    # The first member is in no group, in a group of its own, or in one of the existing groups.
    for groups in _packings(rest):
        yield groups
        yield (frozenset({first}), *groups)
        for index, group in enumerate(groups):
            yield (*groups[:index], group | {first}, *groups[index + 1 :])


# Explanations name the first value that fails, so that the order must be the same in every run.
def in_order(values: Collection[Any]) -> tuple[Any, ...]:
    """Return values in an order that does not depend on Python's hashes."""
    return tuple(sorted(values, key=_order_key))


def _order_key(value: Any) -> Any:
    """Return a sort key; members have one type, except for the missing host, which comes last."""
    match value:
        case None:
            return (1,)
        case Step():
            return (0, value.start_ms, value.end_ms, value.id)
        case frozenset():
            return (0, tuple(sorted(map(_order_key, value))))
        case tuple():
            return (0, tuple(map(_order_key, value)))
        case _:
            return (0, value)


def is_packing(groups: Collection[frozenset[Any]], domain: Collection[Any]) -> bool:
    """Whether the groups are disjoint and within the domain; empty groups are allowed."""
    seen: set[Any] = set()
    for group in groups:
        if not seen.isdisjoint(group):
            return False
        seen |= group
    return seen <= set(domain)
