"""The functions of the language: the built-in ones and those that installed packages add.

``vocabulary`` has the signatures of the built-in functions. To add a function, write in your
package, for example in ``ages.py``::

    from equipoise.spec.functions import function

    @function("(vm) -> int", "how old the VM is, in days")
    def age(view, vm):
        return int(view.vm(vm).labels.get("age", 0))

and in its ``pyproject.toml``::

    [project.entry-points."equipoise.functions"]
    age = "ages:age"

A formula may then use ``age(v) < 30``. The function must depend only on its arguments and on what
it reads from the view: the judge evaluates it again only when something it has read changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from heapq import nlargest
from importlib.metadata import entry_points
from itertools import permutations
from typing import Any, Final

from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.action import kind_of
from equipoise.model.vm import VmState
from equipoise.spec.evaluate.view import EvaluationContext, StateView
from equipoise.spec.language.vocabulary import SIGNATURES, SIMPLE_TYPES, Signature, Type, packing_of

PERMUTED_MAX: Final = 8
"""Largest number of members of which a formula may range over all orders: 8 have 40,320."""


def _colocated(view: StateView, _: EvaluationContext, vm: Any) -> frozenset[Any]:
    subject = view.vm(vm)
    if subject.state is not VmState.RUNNING or subject.host is None:
        return frozenset()
    return view.running(subject.host)


def _ft_pair(view: StateView, _: EvaluationContext, vm: Any) -> frozenset[Any]:
    # The partner may have left the cluster.
    other = view.vm(vm).ft_pair
    return frozenset([other]) if other in view.vms else frozenset()


def _lists(_: StateView, __: EvaluationContext, members: frozenset[Any]) -> frozenset[Any]:
    if len(members) > PERMUTED_MAX:
        raise ValueError(f"{len(members)} members have too many orders; at most {PERMUTED_MAX}")
    return frozenset(permutations(members))


BUILT_IN_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
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
    "card": lambda _, __, members: len(members),
    "sum": lambda _, __, numbers: sum(numbers),
    "largest": lambda _, __, numbers, count: tuple(nlargest(count, numbers)),
    "range": lambda _, __, elements: tuple(range(len(elements))),
    "lists": _lists,
    "actions of vm": lambda _, context, vm: context.steps.of_vm.get(vm, ()),
    "actions of host": lambda _, context, host: context.steps.of_host.get(host, ()),
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
"""The built-in functions by name; each takes the state, the context and its arguments.

A function of VMs and of hosts has one entry for each of the two.
"""


ENTRY_POINT_GROUP: Final = "equipoise.functions"

_COLLECTION_TYPES: Final = ("set", "list", "packing")
_SIGNATURE_PATTERN: Final = re.compile(r"\((?P<takes>.*)\)\s*->\s*(?P<gives>.+)")


@dataclass(frozen=True, slots=True)
class ExtensionFunction:
    """A function of an installed package, with its signature."""

    signature: Signature
    act: Callable[..., Any]


def function(signature: str, doc: str) -> Callable[[Callable[..., Any]], ExtensionFunction]:
    """Return a decorator that adds a Python function to the language.

    The function gets the view of the state, then its arguments.
    """
    match = _SIGNATURE_PATTERN.fullmatch(signature.strip())
    if match is None:
        raise ValueError(f"{signature!r} is not a signature such as '(vm, string) -> int'")
    takes = tuple(map(_parse_type, filter(None, map(str.strip, match["takes"].split(",")))))
    return lambda act: ExtensionFunction(
        Signature(takes, _parse_type(match["gives"].strip()), doc), act
    )


def _parse_type(text: str) -> Type:
    if text in SIMPLE_TYPES:
        return SIMPLE_TYPES[text]
    outer, _, inner = text.removesuffix(">").partition("<")
    if not inner or outer not in _COLLECTION_TYPES:
        raise ValueError(f"{text!r} is not a type of the language")
    return packing_of(_parse_type(inner)) if outer == "packing" else Type(outer, _parse_type(inner))


@cache
def extensions() -> dict[str, ExtensionFunction]:
    """Return the functions that installed packages add, by name."""
    functions: dict[str, ExtensionFunction] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        loaded = entry.load()
        # An added function must not change the meaning of the library.
        if entry.name in SIGNATURES:
            raise _invalid_extension(
                entry.value, f"{entry.name} is already a function of the language"
            )
        if not isinstance(loaded, ExtensionFunction):
            raise _invalid_extension(entry.value, f"{entry.name} was not made by @function(...)")
        functions[entry.name] = loaded
    return functions


def _invalid_extension(source: str, what: str) -> InvalidInput:
    cure = f"correct or remove the entry point in the group {ENTRY_POINT_GROUP}"
    problem = InputProblem(key="", what=what, cure=cure, code="invalid-function")
    return InvalidInput(source, [problem])


@cache
def signatures() -> dict[str, Signature]:
    """Return the signature of every function, built in or added."""
    return SIGNATURES | {name: added.signature for name, added in extensions().items()}


@cache
def implementations() -> dict[str, Callable[..., Any]]:
    """Return what every function does; each takes the state, the context and its arguments."""
    return BUILT_IN_FUNCTIONS | {
        name: _without_context(added.act) for name, added in extensions().items()
    }


def _without_context(act: Callable[..., Any]) -> Callable[..., Any]:
    return lambda view, _context, *arguments: act(view, *arguments)
