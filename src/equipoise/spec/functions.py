"""What the functions of the language mean. ``vocabulary`` has their signatures."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any, Final

from equipoise.model.host import Host
from equipoise.model.vm import Vm, VmState
from equipoise.spec.view import Frame, View

ORDERED_MAX: Final = 8
"""Of how many members all orders may be asked for: 8 have 40,320."""


def _colocated(view: View, _: Frame, vm: Any) -> frozenset[Any]:
    found = view.vms[vm]
    if found.state is not VmState.RUNNING or found.host is None:
        return frozenset()
    return view.running(found.host)


def _label(view: View, _: Frame, element: Any, key: str) -> str:
    found: Vm | Host | None = view.vms.get(element) or view.hosts.get(element)
    return "" if found is None else found.labels.get(key, "")


def _lists(_: View, __: Frame, members: frozenset[Any]) -> frozenset[Any]:
    if len(members) > ORDERED_MAX:
        raise ValueError(f"{len(members)} members have too many orders; at most {ORDERED_MAX}")
    return frozenset(permutations(sorted(members)))


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "host": lambda view, _, vm: view.vms[vm].host,
    "hosted": lambda view, _, host: frozenset() if host is None else view.hosted(host),
    "running": lambda view, _, host: frozenset() if host is None else view.running(host),
    "colocated": _colocated,
    "vmState": lambda view, _, vm: view.vms[vm].state.value,
    "hostState": lambda view, _, host: None if host is None else view.hosts[host].state.value,
    "cons": lambda view, _, vm, name: view.consumption(vm, name),
    "capa": lambda view, _, host, name: 0 if host is None else view.capacity(host, name),
    "demand": lambda view, _, vm, name: view.demand(vm, name),
    "label": _label,
    "card": lambda _, __, some: len(some),
    "sum": lambda _, __, numbers: sum(numbers),
    "range": lambda _, __, some: tuple(range(len(some))),
    "lists": _lists,
    "actions": lambda _, frame, vm: frame.steps.get(vm, ()),
    "begin": lambda _, __, step: step.start_ms,
    "end": lambda _, __, step: step.end_ms,
}
"""By name; each takes the state it is asked of, the frame, and its arguments."""
