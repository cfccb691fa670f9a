"""What a variable may stand for, and elements of lists, for many cases at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from equipoise.spec.batch.cases import Array, Unbatchable
from equipoise.spec.batch.values import (
    Bits,
    Entries,
    Mask,
    Plain,
    Value,
    as_bits,
    both,
    entries_of,
    is_bits,
    length,
    members,
    opposite,
    positions,
    subset,
)
from equipoise.spec.choose import CHOICES_MAX, packings, subsets
from equipoise.spec.language.syntax import Binding

PACKED_MAX: Final = 5
"""Of how many members all packings are tried: 5 have 203."""


def is_in_order(some: Value) -> bool:
    """Whether the order is the one in which the language looks at the members."""
    if isinstance(some, Bits):
        return some.kind != "host state"  # all others are numbered in the order of their names
    return isinstance(some, Entries) and some.is_list and some.in_order


def choices(binding: Binding, domain: Value) -> Iterator[tuple[Mask, Value]]:
    """What a variable may stand for, each with where it may."""
    if binding is Binding.MEMBER:
        yield from members(domain) if isinstance(domain, Bits) else entries_of(domain)
        return
    bits = as_bits(domain)
    some = [value.value for _, value in members(bits) if isinstance(value, Plain)]
    if len(some) > (CHOICES_MAX if binding is Binding.SUBSET else PACKED_MAX):
        raise Unbatchable("there are too many groups to choose from")
    if binding is Binding.SUBSET:
        for group in subsets(some):
            chosen = _as_set(bits.kind, group)
            yield subset(chosen, bits), chosen
        return
    for groups in packings(some):
        sets = [_as_set(bits.kind, group) for group in groups]
        union = _as_set(bits.kind, frozenset().union(*groups))
        yield subset(union, bits), Entries(tuple((True, one) for one in sets), is_list=False)


def _as_set(kind: str, group: frozenset[int]) -> Bits:
    return Bits(kind, np.uint64(sum(1 << one for one in group)))


def picked(some: Entries, at: Plain) -> tuple[Value, Array]:
    """One element of a list, and where there is none at this position."""
    if not some.in_order or not some.items:
        raise Unbatchable("the order of a list is not known, or it has no elements")
    outside = np.asarray((at.value < 0) | (at.value >= length(some)))
    found: Value | None = None
    for place, mask, value in positions(some.items):
        here = both(mask, np.asarray(place == at.value))
        found = value if found is None else _chosen(here, value, found)
    assert found is not None
    return found, outside


def _chosen(mask: Mask, one: Value, other: Value) -> Value:
    """One value where the mask is true, the other where it is not."""
    if isinstance(one, Plain) and isinstance(other, Plain):
        most = max(one.most, other.most)
        return Plain(one.kind, np.where(mask, one.value, other.value), most)
    if is_bits(one, other):
        mine, yours = as_bits(one), as_bits(other)
        return Bits(mine.kind, np.where(mask, mine.value, yours.value))
    assert isinstance(one, Entries)
    assert isinstance(other, Entries)
    items = [(both(mask, there), value) for there, value in one.items]
    items += [(both(opposite(mask), there), value) for there, value in other.items]
    return Entries(tuple(items), one.is_list, one.in_order and other.in_order)
