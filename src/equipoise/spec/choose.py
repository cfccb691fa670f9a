"""What a variable may stand for: the members, the subsets or the packings of a collection."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import combinations
from typing import Any, Final

from equipoise.model.plan import Step
from equipoise.spec.language.syntax import Binding

CHOICES_MAX: Final = 12
"""From how many members subsets and packings are chosen: 12 have 4,096 subsets."""


def choices(binding: Binding, domain: Collection[Any]) -> Iterator[Any]:
    """Everything a variable may stand for, in a fixed order."""
    some = members(domain)
    if binding is Binding.MEMBER:
        yield from some
        return
    if len(some) > CHOICES_MAX:
        raise ValueError(f"{len(some)} members are too many to choose groups from")
    if binding is Binding.SUBSET:
        yield from subsets(some)
    else:
        yield from packings(some)


def members(domain: Collection[Any]) -> tuple[Any, ...]:
    """The members of a collection, in a fixed order."""
    return domain if isinstance(domain, tuple) else in_order(domain)


def known_members(domain: Collection[Any]) -> tuple[Any, ...]:
    """The same, for a collection that is asked for again and again: an argument, or a group."""
    return domain if isinstance(domain, tuple) else _remembered(frozenset(domain))


@lru_cache(maxsize=8192)
def _remembered(domain: frozenset[Any]) -> tuple[Any, ...]:
    return in_order(domain)


def subsets(members: Collection[Any]) -> Iterator[frozenset[Any]]:
    """All subsets, the empty one first."""
    for size in range(len(members) + 1):
        yield from map(frozenset, combinations(members, size))


def packings(members: Collection[Any]) -> Iterator[frozenset[Any]]:
    """All sets of non-empty groups that have nothing in common."""
    yield from (frozenset(groups) for groups in _packings(tuple(members)))


def _packings(members: tuple[Any, ...]) -> Iterator[tuple[frozenset[Any], ...]]:
    if not members:
        yield ()
        return
    first, rest = members[0], members[1:]
    for groups in _packings(rest):
        yield groups
        yield (frozenset({first}), *groups)
        for place, group in enumerate(groups):
            yield (*groups[:place], group | {first}, *groups[place + 1 :])


def in_order(some: Collection[Any]) -> tuple[Any, ...]:
    """Members in an order that does not depend on how Python hashes."""
    return tuple(sorted(some, key=_key))


def _key(value: Any) -> Any:
    """Members of one set are of one kind, but for the host that is none, which comes last."""
    match value:
        case None:
            return (1,)
        case Step():
            return (0, value.start_ms, value.end_ms, value.id)
        case frozenset():
            return (0, tuple(sorted(map(_key, value))))
        case tuple():
            return (0, tuple(map(_key, value)))
        case _:
            return (0, value)


def is_packing(groups: Collection[frozenset[Any]], domain: Collection[Any]) -> bool:
    """Whether the groups have nothing in common and lie within the domain; empty ones may be."""
    seen: set[Any] = set()
    for group in groups:
        if not seen.isdisjoint(group):
            return False
        seen |= group
    return seen <= set(domain)
