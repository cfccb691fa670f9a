"""The functions of the language for many cases at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from equipoise.model.vm import VmState
from equipoise.spec.batch.cases import NOWHERE, VM_CODES, Array, Unbatchable
from equipoise.spec.batch.moments import Rows
from equipoise.spec.batch.values import (
    Bits,
    Entries,
    Plain,
    Value,
    count,
    entries_of,
    length,
    number,
    positions,
    truth,
)

RUNNING: Final = VM_CODES[VmState.RUNNING]


def _of(table: Array, element: Value) -> Any:
    """A figure of an element, from a table by (element, moment, case)."""
    assert isinstance(element, Plain)
    if element.constant:
        return table[element.value]
    at = np.asarray(element.value, np.intp)
    shape = np.broadcast_shapes(at.shape, table.shape[1:])
    spread = np.broadcast_to(table, (table.shape[0], *shape))
    return np.take_along_axis(spread, np.broadcast_to(at, shape)[None], axis=0)[0]


def _or_nowhere(table: Array, element: Value, otherwise: int) -> Any:
    """The same for a host that may be none."""
    assert isinstance(element, Plain)
    if element.constant:
        return table[element.value] if element.value != NOWHERE else otherwise
    known = element.value != NOWHERE
    inside = Plain(element.kind, np.where(known, element.value, 0))
    return np.where(known, _of(table, inside), otherwise)


def _text(rows: Rows, value: Value) -> str:
    """A text that is the same everywhere."""
    assert isinstance(value, Plain)
    if not value.constant:
        raise Unbatchable("the name differs from case to case")
    return next(word for word, code in rows.cases.words.items() if code == value.value)


def _host(rows: Rows, vm: Value) -> Value:
    return Plain("host", _of(rows.vm_host, vm))


def _vm_state(rows: Rows, vm: Value) -> Value:
    return Plain("vm state", _of(rows.vm_state, vm))


def _host_state(rows: Rows, host: Value) -> Value:
    return Plain("host state", _or_nowhere(rows.host_state, host, NOWHERE))


def _vms_on(table: Array, host: Value) -> Any:
    assert isinstance(host, Plain)
    last = table.shape[0] - 1  # which is empty, and stands for nowhere
    at = min(host.value, last) if host.constant else np.minimum(host.value, last)
    return _of(table, Plain("host", at))


def _running(rows: Rows, host: Value) -> Value:
    return Bits("vm", _vms_on(rows.running, host))


def _hosted(rows: Rows, host: Value) -> Value:
    return Bits("vm", _vms_on(rows.hosted, host))


def _colocated(rows: Rows, vm: Value) -> Value:
    there = _vms_on(rows.running, _host(rows, vm))
    return Bits("vm", np.where(_of(rows.vm_state, vm) == RUNNING, there, np.uint64(0)))


def _cons(rows: Rows, vm: Value, resource: Value) -> Value:
    name = _text(rows, resource)
    changed = rows.allocated.get(rows.cases.word(name))
    table = rows.cases.of_vms("cons", name)[:, None] if changed is None else changed
    return number(_of(table, vm), _most(table))


def _capa(rows: Rows, host: Value, resource: Value) -> Value:
    table = rows.cases.of_hosts("capa", _text(rows, resource))[:, None]
    return number(_or_nowhere(table, host, 0), _most(table))


def _demand(rows: Rows, vm: Value, resource: Value) -> Value:
    table = rows.cases.of_vms("demand", _text(rows, resource))[:, None]
    return number(_of(table, vm), _most(table))


def _most(table: Array) -> int:
    return int(np.abs(table).max(initial=0))


def _label(rows: Rows, element: Value, key: Value) -> Value:
    assert isinstance(element, Plain)
    name = _text(rows, key)
    if element.kind == "vm":
        return Plain("string", _of(rows.cases.of_vms("label", name)[:, None], element))
    table = rows.cases.of_hosts("label", name)[:, None]
    return Plain("string", _or_nowhere(table, element, 0))


def _word_of_vm(what: str) -> Callable[[Rows, Value], Value]:
    return lambda rows, vm: Plain("string", _of(rows.cases.of_vms(what)[:, None], vm))


def _agent(rows: Rows, vm: Value) -> Value:
    return truth(_of(rows.cases.of_vms("agent")[:, None], vm) != 0)


def _ft_pair(rows: Rows, vm: Value) -> Value:
    return Bits("vm", _of(rows.cases.partners()[:, None], vm))


def _card(_: Rows, some: Value) -> Value:
    most = 64 if isinstance(some, Bits) else len(entries_of(some))
    return number(length(some), most)


def _sum(_: Rows, numbers: Value) -> Value:
    total: Any = 0
    most = 0
    for mask, value in entries_of(numbers):
        assert isinstance(value, Plain)
        total = total + np.where(mask, value.value, 0)
        most += value.most
    return number(total, most)


def _largest(_: Rows, numbers: Value, wanted: Value) -> Value:
    items = entries_of(numbers)
    assert isinstance(wanted, Plain)
    plain = [(mask, one) for mask, one in items if isinstance(one, Plain)]
    if not plain:
        return Entries((), is_list=True)
    least = -max(one.most for _, one in plain) - 1
    arrays = np.broadcast_arrays(*(np.where(mask, one.value, least) for mask, one in plain))
    falling = -np.sort(-np.stack(arrays), axis=0)
    there = count([mask for mask, _ in plain])
    kept = [
        (np.asarray((place < wanted.value) & (place < there)), number(values, -least))
        for place, values in enumerate(falling)
    ]
    return Entries(tuple(kept), is_list=True)


def _range(_: Rows, some: Value) -> Value:
    items = list(positions(entries_of(some)))
    places = tuple((mask, number(before, len(items))) for before, mask, _ in items)
    return Entries(places, is_list=True)


def _lists(_: Rows, __: Value) -> Value:
    raise Unbatchable("all orders are asked for")


def _actions(rows: Rows, element: Value) -> Value:
    assert isinstance(element, Plain)
    ranks = rows.cases.ranks()[:, None]
    touched = _touches(rows, element)
    # Those that touch it first, in order of time: few entries, for few steps touch the same.
    order = np.argsort(np.where(touched, ranks, len(ranks)), axis=0, kind="stable")
    count = touched.sum(axis=0)
    found = [(count > place, Plain("action", order[place])) for place in range(_most(count))]
    return Entries(tuple(found), is_list=True)


def _touches(rows: Rows, element: Plain) -> Array:
    """Whether a step touches a VM or a host: (step, moment, case)."""
    steps, at = rows.cases.steps, element.value
    if element.kind == "vm":
        return np.asarray(steps.vm[:, None] == at)
    found: Array = np.zeros((steps.kind.shape[0], 1, 1), bool)
    for named in (steps.source, steps.target, steps.switched):
        found = found | ((named[:, None] == at) & (named[:, None] != NOWHERE))
    return found


def _underway(rows: Rows, element: Value) -> Value:
    assert isinstance(element, Plain)
    touched = _touches(rows, element) & (rows.cases.steps.kind >= 0)[:, None]
    masks = np.asarray(rows.under_way & touched)
    items = [(mask, Plain("action", step)) for step, mask in enumerate(masks)]
    return Entries(tuple(items), is_list=False)


def _figure(name: str, kind: str) -> Callable[[Rows, Value], Value]:
    def ask(rows: Rows, action: Value) -> Value:
        table = getattr(rows.cases.steps, name)[:, None]
        most = _most(table[table < _NEVER]) if kind == "int" else 0
        return Plain(kind, _of(table, action), most)

    return ask


_NEVER: Final = 1 << 60

FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    "host": _host,
    "hosted": _hosted,
    "running": _running,
    "colocated": _colocated,
    "runs": lambda rows, vm: truth(_of(rows.vm_state, vm) == RUNNING),
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
"""By name; each takes the rows it is asked of, and its arguments."""


SEE_STARTS: Final = frozenset({"hosted", "underway"})
"""The functions whose answer changes when an action starts; all others see only its end."""
