"""The operators and functions of the language for many cases at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from equipoise.model.vm import VmState
from equipoise.spec.batch.cases import NOWHERE, VM_CODES, Array, Unbatchable
from equipoise.spec.batch.moments import StateRows
from equipoise.spec.batch.values import (
    BatchBitSet,
    BatchScalar,
    BatchValue,
    Mask,
    MaskedItems,
    as_bits,
    as_collection,
    bool_value,
    count,
    equal,
    is_bits,
    items_of,
    length,
    mask_and,
    mask_not,
    mask_or,
    member,
    number_value,
    packing,
    positions,
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


RUNNING: Final = VM_CODES[VmState.RUNNING]


def _of(table: Array, element: BatchValue) -> Any:
    """Return a figure of an element, from a table by (element, moment, case)."""
    assert isinstance(element, BatchScalar)
    if element.constant:
        return table[element.value]
    at = np.asarray(element.value, np.intp)
    shape = np.broadcast_shapes(at.shape, table.shape[1:])
    # The element differs from case to case: each case picks its own row.
    spread = np.broadcast_to(table, (table.shape[0], *shape))
    return np.take_along_axis(spread, np.broadcast_to(at, shape)[None], axis=0)[0]


def _or_nowhere(table: Array, element: BatchValue, otherwise: int) -> Any:
    """Return the same for a host that may be missing."""
    assert isinstance(element, BatchScalar)
    if element.constant:
        return table[element.value] if element.value != NOWHERE else otherwise
    known = element.value != NOWHERE
    inside = BatchScalar(element.kind, np.where(known, element.value, 0))
    return np.where(known, _of(table, inside), otherwise)


def _text(rows: StateRows, value: BatchValue) -> str:
    """Return a text that is the same in all cases."""
    assert isinstance(value, BatchScalar)
    if not value.constant:
        raise Unbatchable("the name differs from case to case")
    return next(word for word, code in rows.cases.words.items() if code == value.value)


def _host(rows: StateRows, vm: BatchValue) -> BatchValue:
    return BatchScalar("host", _of(rows.vm_host, vm))


def _vm_state(rows: StateRows, vm: BatchValue) -> BatchValue:
    return BatchScalar("vm state", _of(rows.vm_state, vm))


def _host_state(rows: StateRows, host: BatchValue) -> BatchValue:
    return BatchScalar("host state", _or_nowhere(rows.host_state, host, NOWHERE))


def _vms_on(table: Array, host: BatchValue) -> Any:
    assert isinstance(host, BatchScalar)
    last = table.shape[0] - 1  # the empty row for the missing host
    at = min(host.value, last) if host.constant else np.minimum(host.value, last)
    return _of(table, BatchScalar("host", at))


def _running(rows: StateRows, host: BatchValue) -> BatchValue:
    return BatchBitSet("vm", _vms_on(rows.running, host))


def _hosted(rows: StateRows, host: BatchValue) -> BatchValue:
    return BatchBitSet("vm", _vms_on(rows.hosted, host))


def _colocated(rows: StateRows, vm: BatchValue) -> BatchValue:
    there = _vms_on(rows.running, _host(rows, vm))
    return BatchBitSet("vm", np.where(_of(rows.vm_state, vm) == RUNNING, there, np.uint64(0)))


def _cons(rows: StateRows, vm: BatchValue, resource: BatchValue) -> BatchValue:
    name = _text(rows, resource)
    changed = rows.allocated.get(rows.cases.text_code(name))
    table = rows.cases.of_vms("cons", name)[:, None] if changed is None else changed
    return number_value(_of(table, vm), _max_abs(table))


def _capa(rows: StateRows, host: BatchValue, resource: BatchValue) -> BatchValue:
    table = rows.cases.of_hosts("capa", _text(rows, resource))[:, None]
    return number_value(_or_nowhere(table, host, 0), _max_abs(table))


def _demand(rows: StateRows, vm: BatchValue, resource: BatchValue) -> BatchValue:
    table = rows.cases.of_vms("demand", _text(rows, resource))[:, None]
    return number_value(_of(table, vm), _max_abs(table))


def _max_abs(table: Array) -> int:
    return int(np.abs(table).max(initial=0))


def _label(rows: StateRows, element: BatchValue, key: BatchValue) -> BatchValue:
    assert isinstance(element, BatchScalar)
    name = _text(rows, key)
    if element.kind == "vm":
        return BatchScalar("string", _of(rows.cases.of_vms("label", name)[:, None], element))
    table = rows.cases.of_hosts("label", name)[:, None]
    return BatchScalar("string", _or_nowhere(table, element, 0))


def _word_of_vm(what: str) -> Callable[[StateRows, BatchValue], BatchValue]:
    return lambda rows, vm: BatchScalar("string", _of(rows.cases.of_vms(what)[:, None], vm))


def _agent(rows: StateRows, vm: BatchValue) -> BatchValue:
    return bool_value(_of(rows.cases.of_vms("agent")[:, None], vm) != 0)


def _ft_pair(rows: StateRows, vm: BatchValue) -> BatchValue:
    return BatchBitSet("vm", _of(rows.cases.partners()[:, None], vm))


def _card(_: StateRows, members: BatchValue) -> BatchValue:
    # A set of bits has at most 64 members, a list at most its items.
    most = 64 if isinstance(members, BatchBitSet) else len(items_of(members))
    return number_value(length(members), most)


def _sum(_: StateRows, numbers: BatchValue) -> BatchValue:
    total: Any = 0
    most = 0
    for mask, value in items_of(numbers):
        assert isinstance(value, BatchScalar)
        total = total + np.where(mask, value.value, 0)
        most += value.most
    return number_value(total, most)


def _largest(_: StateRows, numbers: BatchValue, wanted: BatchValue) -> BatchValue:
    items = items_of(numbers)
    assert isinstance(wanted, BatchScalar)
    scalars = [(mask, value) for mask, value in items if isinstance(value, BatchScalar)]
    if not scalars:
        return MaskedItems((), is_list=True)
    least = -max(value.most for _, value in scalars) - 1
    # Absent numbers become smaller than all others, so they sort to the end.
    arrays = np.broadcast_arrays(*(np.where(mask, value.value, least) for mask, value in scalars))
    falling = -np.sort(-np.stack(arrays), axis=0)
    present = count([mask for mask, _ in scalars])
    kept = [
        (np.asarray((rank < wanted.value) & (rank < present)), number_value(values, -least))
        for rank, values in enumerate(falling)
    ]
    return MaskedItems(tuple(kept), is_list=True)


def _range(_: StateRows, elements: BatchValue) -> BatchValue:
    items = list(positions(items_of(elements)))
    numbers = tuple((mask, number_value(before, len(items))) for before, mask, _ in items)
    return MaskedItems(numbers, is_list=True)


def _lists(_: StateRows, __: BatchValue) -> BatchValue:
    raise Unbatchable("the formula ranges over all orders")


def _actions(rows: StateRows, element: BatchValue) -> BatchValue:
    assert isinstance(element, BatchScalar)
    ranks = rows.cases.ranks()[:, None]
    touched = _touches(rows, element)
    # The touching steps come first, in order of time. Few steps touch one element, so few entries
    # suffice.
    order = np.argsort(np.where(touched, ranks, len(ranks)), axis=0, kind="stable")
    count = touched.sum(axis=0)
    actions = [
        (count > rank, BatchScalar("action", order[rank])) for rank in range(_max_abs(count))
    ]
    return MaskedItems(tuple(actions), is_list=True)


def _touches(rows: StateRows, element: BatchScalar) -> Array:
    """Return whether a step touches a VM or a host: (step, moment, case)."""
    steps, at = rows.cases.steps, element.value
    if element.kind == "vm":
        return np.asarray(steps.vm[:, None] == at)
    touched: Array = np.zeros((steps.kind.shape[0], 1, 1), bool)
    for named in (steps.source, steps.target, steps.switched):
        touched = touched | ((named[:, None] == at) & (named[:, None] != NOWHERE))
    return touched


def _underway(rows: StateRows, element: BatchValue) -> BatchValue:
    assert isinstance(element, BatchScalar)
    touched = _touches(rows, element) & (rows.cases.steps.kind >= 0)[:, None]
    masks = np.asarray(rows.under_way & touched)
    items = [(mask, BatchScalar("action", step)) for step, mask in enumerate(masks)]
    return MaskedItems(tuple(items), is_list=False)


def _figure(name: str, kind: str) -> Callable[[StateRows, BatchValue], BatchValue]:
    def read(rows: StateRows, action: BatchValue) -> BatchValue:
        table = getattr(rows.cases.steps, name)[:, None]
        most = _max_abs(table[table < _NEVER]) if kind == "int" else 0
        return BatchScalar(kind, _of(table, action), most)

    return read


# Unused rows hold a time beyond this; they must not raise the bound of real times.
_NEVER: Final = 1 << 60

BATCH_FUNCTIONS: Final[dict[str, Callable[..., BatchValue]]] = {
    "host": _host,
    "hosted": _hosted,
    "running": _running,
    "colocated": _colocated,
    "runs": lambda rows, vm: bool_value(_of(rows.vm_state, vm) == RUNNING),
    "vmState": _vm_state,
    "hostState": _host_state,
    "cons": _cons,
    "capa": _capa,
    "demand": _demand,
    "label": _label,
    "pool": _word_of_vm("pool"),
    "tenant": _word_of_vm("tenant"),
    "agent": _agent,
    "ftPair": _ft_pair,
    "card": _card,
    "sum": _sum,
    "largest": _largest,
    "range": _range,
    "lists": _lists,
    "actions": _actions,
    "underway": _underway,
    "kind": _figure("kind", "string"),
    "source": _figure("source", "host"),
    "target": _figure("target", "host"),
    "begin": _figure("start_ms", "int"),
    "end": _figure("end_ms", "int"),
}
"""The functions by name; each takes the rows of the state and its arguments."""
