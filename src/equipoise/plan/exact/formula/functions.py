"""What the functions of the language mean where the state is not decided yet."""

from __future__ import annotations

from collections.abc import Callable
from heapq import nlargest
from typing import Any, Final

from equipoise.model.vm import VmState
from equipoise.plan.exact.formula.operators import Operators
from equipoise.plan.exact.formula.state import State
from equipoise.plan.exact.formula.values import (
    Unsupported,
    as_value,
    elements_of,
    is_known,
    options_of,
    truth_of,
)
from equipoise.spec.functions import FUNCTIONS
from equipoise.spec.view import capacity_of, demand_of

Function = Callable[..., Any]


class Functions:
    """The functions; each takes the state it is asked of and its arguments, which are known.

    Only ``card`` and ``sum`` take collections that are not decided.
    """

    def __init__(self, operators: Operators) -> None:
        self._operators = operators
        self._of_collections: dict[str, Function] = {
            "card": lambda _, some: operators.count(some),
            "sum": lambda _, numbers: operators.added(numbers),
            "largest": _largest,
            "range": lambda _, some: tuple(range(len(_known(some)))),
            "lists": lambda _, some: FUNCTIONS["lists"](None, None, _known(some)),
            "runs": self._runs,
            "colocated": self._colocated,
        }

    def named(self, name: str) -> Function:
        """A function by its name."""
        found = self._of_collections.get(name) or _OF_STATES.get(name)
        if found is None:
            raise Unsupported(f"{name} is a function that only the judge knows")
        return found

    def _runs(self, state: State, vm: Any) -> Any:
        return as_value(self._operators.equal(state.vm_state(vm), VmState.RUNNING.value))

    def _colocated(self, state: State, vm: Any) -> Any:
        """Who runs where the VM runs; nobody if it does not run."""
        runs = truth_of(self._runs(state, vm))
        all_of = self._operators.circuit.all
        return self._operators.united(
            [
                {
                    one: all_of((runs, here, there))
                    for one, there in elements_of(state.running(host))
                }
                for host, here in options_of(state.vm_host(vm)).items()
                if host is not None
            ]
        )


def _known(some: Any) -> Any:
    if not is_known(some):
        raise Unsupported("a list that is not decided")
    return some


def _largest(_: State, numbers: Any, count: Any) -> Any:
    return tuple(nlargest(_known(count), _known(numbers)))


def _ft_pair(state: State, vm: Any) -> Any:
    other = state.snapshot.vms[vm].ft_pair
    return frozenset([other]) if other in state.snapshot.vms else frozenset()


_OF_STATES: Final[dict[str, Function]] = {
    "host": lambda state, vm: state.vm_host(vm),
    "hosted": lambda state, host: frozenset() if host is None else state.hosted(host),
    "running": lambda state, host: frozenset() if host is None else state.running(host),
    "vmState": lambda state, vm: state.vm_state(vm),
    "hostState": lambda state, host: None if host is None else state.host_state(host),
    "cons": lambda state, vm, name: state.consumption(vm, name),
    "capa": lambda state, host, name: (
        0 if host is None else capacity_of(state.snapshot.hosts[host], name)
    ),
    "demand": lambda state, vm, name: demand_of(state.snapshot.vms[vm], name),
    "label of vm": lambda state, vm, key: state.snapshot.vms[vm].labels.get(key, ""),
    "label of host": lambda state, host, key: (
        "" if host is None else state.snapshot.hosts[host].labels.get(key, "")
    ),
    "pool": lambda state, vm: state.snapshot.vms[vm].pool or "",
    "tenant": lambda state, vm: state.snapshot.vms[vm].tenant or "",
    "agent": lambda state, vm: state.snapshot.vms[vm].agent,
    "ftPair": _ft_pair,
    "actions of vm": lambda state, vm: state.actions_on(vm),
    "actions of host": lambda state, host: state.actions_at(host),
    "underway of vm": lambda state, vm: state.underway_on(vm),
    "underway of host": lambda state, host: (
        frozenset() if host is None else state.underway_at(host)
    ),
    "kind": lambda _, action: action.kind,
    "source": lambda _, action: action.source,
    "target": lambda _, action: action.target,
    "begin": lambda _, action: action.begin_ms,
    "end": lambda _, action: action.end_ms,
}
"""By name. An action is a ``Leg`` of some course."""
