"""The values of the language for many cases at once, and what a variable ranges over.

A scalar is an array, or a number that is equal in all cases. A set of VMs, hosts or states is an
array of bits. Every other collection is a list of items, each with a mask that marks the cases and
moments in which it is present. Arrays have the axes (moment, case) and are broadcast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from equipoise.spec.batch.cases import Array, Unbatchable
from equipoise.spec.evaluate.domains import CHOICES_MAX, packings, subsets
from equipoise.spec.language.syntax import Binding

ELEMENTS: Final = frozenset({"vm", "host", "vm state", "host state"})
"""The kinds of elements whose sets are stored as bits."""
EXACT_MAX: Final = 1 << 62
"""Sums below this are exact in 64 bits; the evaluator of single cases computes larger ones."""
ITEMS_MAX: Final = 200
"""Collections of more items cost more than judging the cases one by one."""

Mask = Any
"""True, False, or an array of them."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchScalar:
    """A number, a truth value, a text, an element, a state or an action."""

    kind: str
    value: Any
    """A Python number if it is the same in all cases, else an array."""
    most: int = 0
    """An upper bound of the absolute value, for numbers."""

    @property
    def constant(self) -> bool:
        """Whether it is the same in all cases and moments."""
        return not isinstance(self.value, np.ndarray)


@dataclass(frozen=True, slots=True, eq=False)
class BatchBitSet:
    """A set of VMs, hosts or states."""

    kind: str
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class MaskedItems:
    """Any other collection; a set may hold equal items more than once."""

    items: Sequence[tuple[Mask, BatchValue]]
    is_list: bool
    in_order: bool = True
    """Whether the order of a list is known."""


BatchValue = BatchScalar | BatchBitSet | MaskedItems


def number_value(value: Any, most: int) -> BatchScalar:
    """Return a number; raise if it may be too large for exact arithmetic."""
    if most >= EXACT_MAX:
        raise Unbatchable("the numbers are too large")
    return BatchScalar("int", value, most)


def bool_value(value: Any) -> BatchScalar:
    """Return a truth value."""
    return BatchScalar("bool", value)


def bit_of(value: Any) -> Any:
    """Return the bit of an element."""
    if isinstance(value, np.ndarray):
        return np.left_shift(np.uint64(1), value.astype(np.uint64))
    return np.uint64(1 << value)


def mask_and(left: Mask, right: Mask) -> Mask:
    """Return where both are true; without an array where a constant decides."""
    if left is True:
        return right
    if right is True:
        return left
    return left & right


def mask_not(mask: Mask) -> Mask:
    """Return where a mask is false."""
    return (not mask) if isinstance(mask, bool) else ~mask


def mask_or(left: Mask, right: Mask) -> Mask:
    """Return where at least one of the two is true."""
    if left is False:
        return right
    if right is False:
        return left
    return left | right


def is_never_true(mask: Mask) -> bool:
    """Whether a mask is false everywhere."""
    return mask is False or (mask is not True and not mask.any())


def as_bits(value: BatchValue, kind: str = "vm") -> BatchBitSet:
    """Return a set as bits; the empty set, whose kind is unknown, has none."""
    if isinstance(value, BatchBitSet):
        return value
    if isinstance(value, MaskedItems) and not value.items:
        return BatchBitSet(kind, np.uint64(0))
    raise Unbatchable("the set does not hold VMs, hosts or states")


def is_bits(left: BatchValue, right: BatchValue) -> bool:
    """Whether two sets can be compared as bits."""
    return isinstance(left, BatchBitSet) or isinstance(right, BatchBitSet)


def items_of(value: BatchValue) -> Sequence[tuple[Mask, BatchValue]]:
    """Return the items of a collection; of a set, each member once."""
    if isinstance(value, BatchBitSet):
        return list(members(value))
    assert isinstance(value, MaskedItems)
    return value.items if value.is_list else distinct(value.items)


def members(bits: BatchBitSet) -> Iterator[tuple[Mask, BatchValue]]:
    """Yield the members that a set has in at least one case, in order."""
    # One pass over all cases finds the bits that are set in any of them.
    union = int(np.bitwise_or.reduce(np.asarray(bits.value, np.uint64), axis=None))
    # Elements absent from every case cost nothing.
    for element in range(union.bit_length()):
        if union >> element & 1:
            mask = (bits.value >> np.uint64(element)) & np.uint64(1)
            here = mask.astype(bool) if isinstance(mask, np.ndarray) else bool(mask)
            yield here, BatchScalar(bits.kind, element)


def distinct(items: Sequence[tuple[Mask, BatchValue]]) -> list[tuple[Mask, BatchValue]]:
    """Return the items of a set without repetitions."""
    kept: list[tuple[Mask, BatchValue]] = []
    for mask, value in items:
        fresh = mask
        for earlier, known in kept:
            fresh = mask_and(fresh, mask_not(mask_and(earlier, equal(value, known))))
        if not is_never_true(fresh):
            kept.append((fresh, value))
    return kept


def equal(left: BatchValue, right: BatchValue) -> Mask:
    """Return where two values are equal."""
    if isinstance(left, BatchScalar) and isinstance(right, BatchScalar):
        same = left.value == right.value
        return same if isinstance(same, np.ndarray) else bool(same)
    if is_bits(left, right):
        return _truth(as_bits(left).value == as_bits(right).value)
    assert isinstance(left, MaskedItems)
    assert isinstance(right, MaskedItems)
    if left.is_list and right.is_list:
        return _same_list(left, right)
    return mask_and(subset(left, right), subset(right, left))


def _truth(value: Any) -> Mask:
    return value if isinstance(value, np.ndarray) else bool(value)


def subset(left: BatchValue, right: BatchValue) -> Mask:
    """Return where every member of the left set is a member of the right one."""
    if is_bits(left, right):
        return _truth((as_bits(left).value & ~as_bits(right).value) == 0)
    contained: Mask = True
    for mask, value in items_of(left):
        contained = mask_and(contained, mask_or(mask_not(mask), member(value, right)))
    return contained


def member(value: BatchValue, members: BatchValue) -> Mask:
    """Return where a value is a member of a collection."""
    if isinstance(members, BatchBitSet):
        assert isinstance(value, BatchScalar)
        return _truth((members.value & bit_of(value.value)) != 0)
    assert isinstance(members, MaskedItems)
    contained: Mask = False
    for mask, item in members.items:
        contained = mask_or(contained, mask_and(mask, equal(value, item)))
    return contained


def packing(groups: BatchValue, domain: BatchValue) -> Mask:
    """Return where groups are disjoint and within a domain."""
    taken: Any = np.uint64(0)
    disjoint: Mask = True
    for mask, group in items_of(groups):
        bits = as_bits(group).value
        here = np.where(mask, bits, np.uint64(0))
        disjoint = mask_and(disjoint, _truth((taken & here) == 0))
        taken = taken | here
    return mask_and(disjoint, _truth((taken & ~as_bits(domain).value) == 0))


def length(value: BatchValue) -> Any:
    """Return the number of members or elements."""
    if isinstance(value, BatchBitSet):
        counted = np.bitwise_count(value.value)
        return counted.astype(np.int64) if isinstance(counted, np.ndarray) else int(counted)
    return count([mask for mask, _ in items_of(value)])


def count(masks: Sequence[Mask]) -> Any:
    """Return how many of the masks are true."""
    total: Any = 0
    for mask in masks:
        total = total + (int(mask) if isinstance(mask, bool) else mask.astype(np.int64))
    return total


def positions(items: Sequence[tuple[Mask, BatchValue]]) -> Iterator[tuple[Any, Mask, BatchValue]]:
    """Yield each item of a list with its position where it is present, its mask and its value."""
    before: Any = 0
    for mask, value in items:
        yield before, mask, value
        before = before + (int(mask) if isinstance(mask, bool) else mask.astype(np.int64))


def _same_list(left: MaskedItems, right: MaskedItems) -> Mask:
    if not (left.in_order and right.in_order):
        raise Unbatchable("the order of a list is not known")
    same = _truth(np.asarray(length(left) == length(right)))
    for position, mask, value in positions(left.items):
        matched: Mask = False
        for other_position, present, candidate in positions(right.items):
            at = mask_and(present, _truth(np.asarray(position == other_position)))
            matched = mask_or(matched, mask_and(at, equal(value, candidate)))
        same = mask_and(same, mask_or(mask_not(mask), matched))
    return same


def as_collection(
    items: Sequence[tuple[Mask, BatchValue]], *, is_list: bool, in_order: bool
) -> BatchValue:
    """Return a collection of items; a set of elements becomes bits."""
    # All items of a set have one type, so the first one decides.
    first = items[0][1] if items else None
    if not is_list and isinstance(first, BatchScalar) and first.kind in ELEMENTS:
        bits: Any = np.uint64(0)
        for mask, value in items:
            assert isinstance(value, BatchScalar)
            bits = bits | np.where(mask, bit_of(value.value), np.uint64(0))
        return BatchBitSet(first.kind, bits)
    # Comparing collections is quadratic in the items.
    if len(items) > ITEMS_MAX:
        raise Unbatchable("the collection is too large")
    return MaskedItems(tuple(items), is_list, in_order)


PACKING_MEMBERS_MAX: Final = 5
"""Largest number of members of which all packings are tried: 5 have 203."""


def is_in_order(value: BatchValue) -> bool:
    """Whether the items are in the order in which the language visits the members."""
    if isinstance(value, BatchBitSet):
        return value.kind != "host state"  # elements of other kinds have numbers in name order
    return isinstance(value, MaskedItems) and value.is_list and value.in_order


def choices(binding: Binding, domain: BatchValue) -> Iterator[tuple[Mask, BatchValue]]:
    """Yield the values of a variable, each with the mask in which it is allowed."""
    if binding is Binding.MEMBER:
        yield from members(domain) if isinstance(domain, BatchBitSet) else items_of(domain)
        return
    bits = as_bits(domain)
    elements = [value.value for _, value in members(bits) if isinstance(value, BatchScalar)]
    if len(elements) > (CHOICES_MAX if binding is Binding.SUBSET else PACKING_MEMBERS_MAX):
        raise Unbatchable("there are too many groups to choose from")
    if binding is Binding.SUBSET:
        for group in subsets(elements):
            chosen = _as_set(bits.kind, group)
            yield subset(chosen, bits), chosen
        return
    for groups in packings(elements):
        sets = [_as_set(bits.kind, group) for group in groups]
        union = _as_set(bits.kind, frozenset().union(*groups))
        items = tuple((True, group_bits) for group_bits in sets)
        yield subset(union, bits), MaskedItems(items, is_list=False)


def _as_set(kind: str, group: frozenset[int]) -> BatchBitSet:
    return BatchBitSet(kind, np.uint64(sum(1 << element for element in group)))


def element_at(sequence: MaskedItems, at: BatchScalar) -> tuple[BatchValue, Array]:
    """Return one element of a list, and where the list lacks this position."""
    if not sequence.in_order or not sequence.items:
        raise Unbatchable("the order of a list is not known, or it has no elements")
    outside = np.asarray((at.value < 0) | (at.value >= length(sequence)))
    element: BatchValue | None = None
    for position, mask, value in positions(sequence.items):
        here = mask_and(mask, np.asarray(position == at.value))
        element = value if element is None else _select(here, value, element)
    assert element is not None
    return element, outside


def _select(mask: Mask, left: BatchValue, right: BatchValue) -> BatchValue:
    """Return the left value where the mask is true, else the right one."""
    if isinstance(left, BatchScalar) and isinstance(right, BatchScalar):
        most = max(left.most, right.most)
        return BatchScalar(left.kind, np.where(mask, left.value, right.value), most)
    if is_bits(left, right):
        left_bits, right_bits = as_bits(left), as_bits(right)
        return BatchBitSet(left_bits.kind, np.where(mask, left_bits.value, right_bits.value))
    assert isinstance(left, MaskedItems)
    assert isinstance(right, MaskedItems)
    items = [(mask_and(mask, present), value) for present, value in left.items]
    items += [(mask_and(mask_not(mask), present), value) for present, value in right.items]
    return MaskedItems(tuple(items), left.is_list, left.in_order and right.in_order)
