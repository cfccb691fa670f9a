"""The operators of the language for many cases at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from equipoise.spec.batch.values import (
    BatchBitSet,
    BatchScalar,
    BatchValue,
    Mask,
    MaskedItems,
    as_bits,
    as_collection,
    bool_value,
    equal,
    is_bits,
    mask_and,
    mask_not,
    mask_or,
    member,
    number_value,
    packing,
    subset,
)


def mask_of(value: BatchValue) -> Mask:
    """Return where a formula is true."""
    assert isinstance(value, BatchScalar)
    return value.value


def _compare(act: Callable[[Any, Any], Any]) -> Callable[[BatchValue, BatchValue], BatchValue]:
    def compared(left: BatchValue, right: BatchValue) -> BatchValue:
        assert isinstance(left, BatchScalar)
        assert isinstance(right, BatchScalar)
        result = act(left.value, right.value)
        return bool_value(result if isinstance(result, np.ndarray) else bool(result))

    return compared


def _add(left: BatchValue, right: BatchValue) -> BatchValue:
    if isinstance(left, BatchScalar) and isinstance(right, BatchScalar):
        return number_value(left.value + right.value, left.most + right.most)
    return _union(left, right)


def _subtract(left: BatchValue, right: BatchValue) -> BatchValue:
    if isinstance(left, BatchScalar) and isinstance(right, BatchScalar):
        return number_value(left.value - right.value, left.most + right.most)
    if is_bits(left, right):
        left_bits = as_bits(left)
        return BatchBitSet(_kind(left, right), left_bits.value & ~as_bits(right).value)
    return _filtered(left, right, wanted=False)


def _multiply(left: BatchValue, right: BatchValue) -> BatchValue:
    assert isinstance(left, BatchScalar)
    assert isinstance(right, BatchScalar)
    return number_value(left.value * right.value, left.most * right.most)


def _union(left: BatchValue, right: BatchValue) -> BatchValue:
    if is_bits(left, right):
        return BatchBitSet(_kind(left, right), as_bits(left).value | as_bits(right).value)
    assert isinstance(left, MaskedItems)
    assert isinstance(right, MaskedItems)
    return MaskedItems((*left.items, *right.items), is_list=False)


def _intersection(left: BatchValue, right: BatchValue) -> BatchValue:
    if is_bits(left, right):
        return BatchBitSet(_kind(left, right), as_bits(left).value & as_bits(right).value)
    return _filtered(left, right, wanted=True)


def _filtered(left: BatchValue, right: BatchValue, *, wanted: bool) -> BatchValue:
    assert isinstance(left, MaskedItems)
    items = []
    for mask, value in left.items:
        inside = member(value, right)
        items.append((mask_and(mask, inside if wanted else mask_not(inside)), value))
    return MaskedItems(tuple(items), is_list=False)


def _kind(left: BatchValue, right: BatchValue) -> str:
    return left.kind if isinstance(left, BatchBitSet) else as_bits(right).kind


def _set(value: BatchValue) -> BatchValue:
    """Return a list as a set; other values stay."""
    if isinstance(value, MaskedItems) and value.is_list:
        return as_collection(value.items, is_list=False, in_order=False)
    return value


BATCH_OPERATORS: Final[dict[str, Callable[[BatchValue, BatchValue], BatchValue]]] = {
    "=": lambda left, right: bool_value(equal(left, right)),
    "/=": lambda left, right: bool_value(mask_not(equal(left, right))),
    "<": _compare(lambda left, right: left < right),
    "<=": _compare(lambda left, right: left <= right),
    ">": _compare(lambda left, right: left > right),
    ">=": _compare(lambda left, right: left >= right),
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/\\": _intersection,
    "\\/": _union,
    ":": lambda left, right: bool_value(member(left, right)),
    "/:": lambda left, right: bool_value(mask_not(member(left, right))),
    "<:": lambda left, right: bool_value(subset(_set(left), _set(right))),
    "/<:": lambda left, right: bool_value(mask_not(subset(_set(left), _set(right)))),
    "<<:": lambda left, right: bool_value(packing(left, _set(right))),
    "/<<:": lambda left, right: bool_value(mask_not(packing(left, _set(right)))),
    "&": lambda left, right: bool_value(mask_and(mask_of(left), mask_of(right))),
    "|": lambda left, right: bool_value(mask_or(mask_of(left), mask_of(right))),
    "-->": lambda left, right: bool_value(mask_or(mask_not(mask_of(left)), mask_of(right))),
    "<-->": lambda left, right: bool_value(equal(left, right)),
}
