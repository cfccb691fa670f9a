"""The functions of the language on states that are not decided yet."""

from __future__ import annotations

from collections.abc import Callable
from heapq import nlargest
from typing import Any, Final

from equipoise.model.vm import VmState
from equipoise.plan.exact.formula.context import SymbolicState
from equipoise.plan.exact.formula.operators import SymbolicOperators
from equipoise.plan.exact.formula.values import (
    UnsupportedFormula,
    elements_of,
    is_known,
    literal_of,
    options_of,
    value_of_literal,
)
from equipoise.spec.evaluate.view import capacity_of, demand_of
from equipoise.spec.functions import BUILT_IN_FUNCTIONS

SymbolicFunction = Callable[..., Any]


class SymbolicFunctions:
    """The functions; each takes a state and its arguments, which are known.

    Only ``card`` and ``sum`` take undecided collections.
    """

    def __init__(self, operators: SymbolicOperators) -> None:
        self._operators = operators
        self._of_collections: dict[str, SymbolicFunction] = {
            "card": lambda _, members: operators.count(members),
            "sum": lambda _, numbers: operators.added(numbers),
            "largest": _largest,
            "range": lambda _, elements: tuple(range(len(_known(elements)))),
            "lists": lambda _, members: BUILT_IN_FUNCTIONS["lists"](None, None, _known(members)),
            "runs": self._runs,
            "colocated": self._colocated,
        }

    def named(self, name: str) -> SymbolicFunction:
        """Return a function by its name."""
        function = self._of_collections.get(name) or _STATE_FUNCTIONS.get(name)
        if function is None:
            raise UnsupportedFormula(f"the solver has no form of the function {name}")
        return function

    def _runs(self, state: SymbolicState, vm: Any) -> Any:
        return value_of_literal(self._operators.equal(state.vm_state(vm), VmState.RUNNING.value))

    def _colocated(self, state: SymbolicState, vm: Any) -> Any:
        """Return the VMs that run on the host of a running VM; empty if the VM does not run."""
        runs = literal_of(self._runs(state, vm))
        all_of = self._operators.builder.all
        return self._operators.union(
            [
                {
                    other: all_of((runs, here, present))
                    for other, present in elements_of(state.running(host))
                }
                for host, here in options_of(state.vm_host(vm)).items()
                if host is not None
            ]
        )


def _known(value: Any) -> Any:
    if not is_known(value):
        raise UnsupportedFormula("a list is undecided")
    return value


def _largest(_: SymbolicState, numbers: Any, count: Any) -> Any:
    return tuple(nlargest(_known(count), _known(numbers)))


def _ft_pair(state: SymbolicState, vm: Any) -> Any:
    other = state.snapshot.vms[vm].ft_pair
    return frozenset([other]) if other in state.snapshot.vms else frozenset()


_STATE_FUNCTIONS: Final[dict[str, SymbolicFunction]] = {
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
"""The functions of a state by name. An action is a ``CandidateAction`` of a schedule."""
