"""What the functions of the language mean. ``vocabulary`` has their signatures."""

from __future__ import annotations

from collections.abc import Callable
from heapq import nlargest
from itertools import permutations
from typing import Any, Final

from equipoise.model.action import Action
from equipoise.model.vm import VmState
from equipoise.spec.view import Frame, View

ORDERED_MAX: Final = 8
"""Of how many members all orders may be asked for: 8 have 40,320."""


def _colocated(view: View, _: Frame, vm: Any) -> frozenset[Any]:
    found = view.vm(vm)
    if found.state is not VmState.RUNNING or found.host is None:
        return frozenset()
    return view.running(found.host)


def _ft_pair(view: View, _: Frame, vm: Any) -> frozenset[Any]:
    other = view.vm(vm).ft_pair
    return frozenset([other]) if other in view.vms else frozenset()


def _lists(_: View, __: Frame, members: frozenset[Any]) -> frozenset[Any]:
    if len(members) > ORDERED_MAX:
        raise ValueError(f"{len(members)} members have too many orders; at most {ORDERED_MAX}")
    return frozenset(permutations(sorted(members)))


def kind_of(action: Action) -> str:
    """The kind of an action, as files name it."""
    return str(action.__struct_config__.tag)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "host": lambda view, _, vm: view.vm(vm).host,
    "hosted": lambda view, _, host: frozenset() if host is None else view.hosted(host),
    "running": lambda view, _, host: frozenset() if host is None else view.running(host),
    "colocated": _colocated,
    "runs": lambda view, _, vm: view.vm(vm).state is VmState.RUNNING,
    "vmState": lambda view, _, vm: view.vm(vm).state.value,
    "hostState": lambda view, _, host: None if host is None else view.host(host).state.value,
    "cons": lambda view, _, vm, name: view.consumption(vm, name),
    "capa": lambda view, _, host, name: 0 if host is None else view.capacity(host, name),
    "demand": lambda view, _, vm, name: view.demand(vm, name),
    "label of vm": lambda view, _, vm, key: view.vm(vm).labels.get(key, ""),
    "label of host": lambda view, _, host, key: (
        "" if host is None else view.host(host).labels.get(key, "")
    ),
    "pool": lambda view, _, vm: view.vm(vm).pool or "",
    "tenant": lambda view, _, vm: view.vm(vm).tenant or "",
    "agent": lambda view, _, vm: view.vm(vm).agent,
    "ftPair": _ft_pair,
    "card": lambda _, __, some: len(some),
    "sum": lambda _, __, numbers: sum(numbers),
    "largest": lambda _, __, numbers, count: tuple(nlargest(count, numbers)),
    "range": lambda _, __, some: tuple(range(len(some))),
    "lists": _lists,
    "actions of vm": lambda _, frame, vm: frame.steps.of_vm.get(vm, ()),
    "actions of host": lambda _, frame, host: frame.steps.of_host.get(host, ()),
    "underway of vm": lambda view, _, vm: frozenset(view.on_vm(vm)),
    "underway of host": lambda view, _, host: (
        frozenset() if host is None else frozenset(view.on_host(host))
    ),
    "kind": lambda _, __, step: kind_of(step.action),
    "source": lambda _, __, step: step.footprint.source,
    "target": lambda _, __, step: step.footprint.target,
    "begin": lambda _, __, step: step.start_ms,
    "end": lambda _, __, step: step.end_ms,
}
"""By name; each takes the state it is asked of, the frame, and its arguments.

What is asked of VMs and of hosts under one name has a meaning for each.
"""
