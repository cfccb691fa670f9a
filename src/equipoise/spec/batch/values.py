"""The values of the language for many cases at once.

A plain value is an array, or a number that is the same everywhere. A set of VMs, hosts or states is
an array of bits. Every other collection is a row of entries, each with a mask that says in which
cases and moments it is there. Arrays have the axes (moment, case) and stretch where they can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from equipoise.spec.batch.cases import NOWHERE, Unbatchable

ELEMENTS: Final = frozenset({"vm", "host", "vm state", "host state"})
"""The kinds of which sets are bits."""
SAFE: Final = 1 << 62
"""Sums below this are exact; larger ones are left to Python."""
ENTRIES_MAX: Final = 200
"""Rows of more entries cost more than judging the cases one by one."""

Mask = Any
"""True, False, or an array of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """A number, a truth, a text, an element, a state or an action."""

    kind: str
    value: Any
    """A Python number if it is the same everywhere, else an array."""
    most: int = 0
    """For numbers: none is larger than this, of either sign."""

    @property
    def constant(self) -> bool:
        """Whether it is the same everywhere."""
        return not isinstance(self.value, np.ndarray)


@dataclass(frozen=True, slots=True, eq=False)
class Bits:
    """A set of VMs, hosts or states."""

    kind: str
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Any other collection; as a set it may hold equal entries twice."""

    items: Sequence[tuple[Mask, Value]]
    is_list: bool
    in_order: bool = True
    """Whether the order of a list can be relied on."""


Value = Plain | Bits | Entries


def number(value: Any, most: int) -> Plain:
    """A number, if it is small enough to be counted with."""
    if most >= SAFE:
        raise Unbatchable("the numbers are too large")
    return Plain("int", value, most)


def truth(value: Any) -> Plain:
    """True or false."""
    return Plain("bool", value)


def bit_of(value: Any) -> Any:
    """The bit of an element."""
    if isinstance(value, np.ndarray):
        return np.left_shift(np.uint64(1), value.astype(np.uint64))
    return np.uint64(1 << value)


def both(one: Mask, other: Mask) -> Mask:
    """Where both are true, without arrays where none is needed."""
    if one is True:
        return other
    if other is True:
        return one
    return one & other


def opposite(one: Mask) -> Mask:
    """Where it is false."""
    return (not one) if isinstance(one, bool) else ~one


def either(one: Mask, other: Mask) -> Mask:
    """Where one of them is true."""
    if one is False:
        return other
    if other is False:
        return one
    return one | other


def nowhere_true(mask: Mask) -> bool:
    """Whether a mask is false everywhere."""
    return mask is False or (mask is not True and not mask.any())


def as_bits(value: Value, kind: str = "vm") -> Bits:
    """A set as bits; the empty set, of which nobody knows the kind, has none."""
    if isinstance(value, Bits):
        return value
    if isinstance(value, Entries) and not value.items:
        return Bits(kind, np.uint64(0))
    raise Unbatchable("not a set of elements")


def is_bits(one: Value, other: Value) -> bool:
    """Whether two sets can be compared bit by bit."""
    return isinstance(one, Bits) or isinstance(other, Bits)


def entries_of(value: Value) -> Sequence[tuple[Mask, Value]]:
    """The entries of a collection, those of a set each once."""
    if isinstance(value, Bits):
        return list(members(value))
    assert isinstance(value, Entries)
    return value.items if value.is_list else distinct(value.items)


def members(bits: Bits) -> Iterator[tuple[Mask, Value]]:
    """The members that a set has somewhere, in order."""
    union = int(np.bitwise_or.reduce(np.asarray(bits.value, np.uint64), axis=None))
    for place in range(union.bit_length()):
        if union >> place & 1:
            mask = (bits.value >> np.uint64(place)) & np.uint64(1)
            here = mask.astype(bool) if isinstance(mask, np.ndarray) else bool(mask)
            yield here, Plain(bits.kind, place)


def distinct(items: Sequence[tuple[Mask, Value]]) -> list[tuple[Mask, Value]]:
    """The entries of a set without those that are there already."""
    found: list[tuple[Mask, Value]] = []
    for mask, value in items:
        fresh = mask
        for earlier, other in found:
            fresh = both(fresh, opposite(both(earlier, equal(value, other))))
        if not nowhere_true(fresh):
            found.append((fresh, value))
    return found


def equal(one: Value, other: Value) -> Mask:
    """Where two values are equal."""
    if isinstance(one, Plain) and isinstance(other, Plain):
        same = one.value == other.value
        return same if isinstance(same, np.ndarray) else bool(same)
    if is_bits(one, other):
        return _truth(as_bits(one).value == as_bits(other).value)
    assert isinstance(one, Entries)
    assert isinstance(other, Entries)
    if one.is_list and other.is_list:
        return _same_list(one, other)
    return both(subset(one, other), subset(other, one))


def _truth(value: Any) -> Mask:
    return value if isinstance(value, np.ndarray) else bool(value)


def subset(one: Value, other: Value) -> Mask:
    """Where every member of one is a member of the other."""
    if is_bits(one, other):
        return _truth((as_bits(one).value & ~as_bits(other).value) == 0)
    found: Mask = True
    for mask, value in entries_of(one):
        found = both(found, either(opposite(mask), member(value, other)))
    return found


def member(one: Value, other: Value) -> Mask:
    """Where one is among the members of the other."""
    if isinstance(other, Bits):
        assert isinstance(one, Plain)
        return _truth((other.value & bit_of(one.value)) != 0)
    assert isinstance(other, Entries)
    found: Mask = False
    for mask, value in other.items:
        found = either(found, both(mask, equal(one, value)))
    return found


def packing(groups: Value, domain: Value) -> Mask:
    """Where groups have nothing in common and lie within a domain."""
    taken: Any = np.uint64(0)
    apart: Mask = True
    for mask, group in entries_of(groups):
        bits = as_bits(group).value
        here = np.where(mask, bits, np.uint64(0))
        apart = both(apart, _truth((taken & here) == 0))
        taken = taken | here
    return both(apart, _truth((taken & ~as_bits(domain).value) == 0))


def length(value: Value) -> Any:
    """How many members or elements there are."""
    if isinstance(value, Bits):
        counted = np.bitwise_count(value.value)
        return counted.astype(np.int64) if isinstance(counted, np.ndarray) else int(counted)
    return count([mask for mask, _ in entries_of(value)])


def count(masks: Sequence[Mask]) -> Any:
    """In how many of the masks each case is."""
    total: Any = 0
    for mask in masks:
        total = total + (int(mask) if isinstance(mask, bool) else mask.astype(np.int64))
    return total


def positions(items: Sequence[tuple[Mask, Value]]) -> Iterator[tuple[Any, Mask, Value]]:
    """Each entry of a list with its position, where it is there."""
    before: Any = 0
    for mask, value in items:
        yield before, mask, value
        before = before + (int(mask) if isinstance(mask, bool) else mask.astype(np.int64))


def _same_list(one: Entries, other: Entries) -> Mask:
    if not (one.in_order and other.in_order):
        raise Unbatchable("the order of a list is not known")
    same = _truth(np.asarray(length(one) == length(other)))
    for place, mask, value in positions(one.items):
        found: Mask = False
        for there, is_there, candidate in positions(other.items):
            at = both(is_there, _truth(np.asarray(place == there)))
            found = either(found, both(at, equal(value, candidate)))
        same = both(same, either(opposite(mask), found))
    return same


def gathered(found: Sequence[tuple[Mask, Value]], *, is_list: bool, in_order: bool) -> Value:
    """A collection of what a rule gave; a set of elements becomes bits."""
    first = found[0][1] if found else None
    if not is_list and isinstance(first, Plain) and first.kind in ELEMENTS:
        bits: Any = np.uint64(0)
        for mask, value in found:
            assert isinstance(value, Plain)
            bits = bits | np.where(mask, bit_of(value.value), np.uint64(0))
        return Bits(first.kind, bits)
    if len(found) > ENTRIES_MAX:
        raise Unbatchable("the collection is too large")
    return Entries(tuple(found), is_list, in_order)


def nowhere(kind: str) -> Plain:
    """The element that is none."""
    return Plain(kind, NOWHERE)
