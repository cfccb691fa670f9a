"""The operators of the language for many cases at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from equipoise.spec.batch.values import (
    Bits,
    Entries,
    Mask,
    Plain,
    Value,
    as_bits,
    both,
    either,
    equal,
    gathered,
    is_bits,
    member,
    number,
    opposite,
    packing,
    subset,
    truth,
)


def mask_of(value: Value) -> Mask:
    """Where a formula is true."""
    assert isinstance(value, Plain)
    return value.value


def _compare(act: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    def compared(one: Value, other: Value) -> Value:
        assert isinstance(one, Plain)
        assert isinstance(other, Plain)
        found = act(one.value, other.value)
        return truth(found if isinstance(found, np.ndarray) else bool(found))

    return compared


def _add(one: Value, other: Value) -> Value:
    if isinstance(one, Plain) and isinstance(other, Plain):
        return number(one.value + other.value, one.most + other.most)
    return _union(one, other)


def _subtract(one: Value, other: Value) -> Value:
    if isinstance(one, Plain) and isinstance(other, Plain):
        return number(one.value - other.value, one.most + other.most)
    if is_bits(one, other):
        mine = as_bits(one)
        return Bits(_kind(one, other), mine.value & ~as_bits(other).value)
    return _kept(one, other, wanted=False)


def _multiply(one: Value, other: Value) -> Value:
    assert isinstance(one, Plain)
    assert isinstance(other, Plain)
    return number(one.value * other.value, one.most * other.most)


def _union(one: Value, other: Value) -> Value:
    if is_bits(one, other):
        return Bits(_kind(one, other), as_bits(one).value | as_bits(other).value)
    assert isinstance(one, Entries)
    assert isinstance(other, Entries)
    return Entries((*one.items, *other.items), is_list=False)


def _intersection(one: Value, other: Value) -> Value:
    if is_bits(one, other):
        return Bits(_kind(one, other), as_bits(one).value & as_bits(other).value)
    return _kept(one, other, wanted=True)


def _kept(one: Value, other: Value, *, wanted: bool) -> Value:
    assert isinstance(one, Entries)
    items = []
    for mask, value in one.items:
        there = member(value, other)
        items.append((both(mask, there if wanted else opposite(there)), value))
    return Entries(tuple(items), is_list=False)


def _kind(one: Value, other: Value) -> str:
    return one.kind if isinstance(one, Bits) else as_bits(other).kind


def _set(value: Value) -> Value:
    """A list where a set is wanted."""
    if isinstance(value, Entries) and value.is_list:
        return gathered(value.items, is_list=False, in_order=False)
    return value


OPERATORS: Final[dict[str, Callable[[Value, Value], Value]]] = {
    "=": lambda one, other: truth(equal(one, other)),
    "/=": lambda one, other: truth(opposite(equal(one, other))),
    "<": _compare(lambda one, other: one < other),
    "<=": _compare(lambda one, other: one <= other),
    ">": _compare(lambda one, other: one > other),
    ">=": _compare(lambda one, other: one >= other),
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/\\": _intersection,
    "\\/": _union,
    ":": lambda one, other: truth(member(one, other)),
    "/:": lambda one, other: truth(opposite(member(one, other))),
    "<:": lambda one, other: truth(subset(_set(one), _set(other))),
    "/<:": lambda one, other: truth(opposite(subset(_set(one), _set(other)))),
    "<<:": lambda one, other: truth(packing(one, _set(other))),
    "/<<:": lambda one, other: truth(opposite(packing(one, _set(other)))),
    "&": lambda one, other: truth(both(mask_of(one), mask_of(other))),
    "|": lambda one, other: truth(either(mask_of(one), mask_of(other))),
    "-->": lambda one, other: truth(either(opposite(mask_of(one)), mask_of(other))),
    "<-->": lambda one, other: truth(equal(one, other)),
}
