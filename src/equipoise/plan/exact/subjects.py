"""What a demand is about: who can make a difference to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, Final

from equipoise.model.quantity import VmId
from equipoise.spec.demand import Demand
from equipoise.spec.language.syntax import calls_in, names_in
from equipoise.spec.language.vocabulary import SETS, plain
from equipoise.spec.specification import Specification

_OF_ONE_VM: Final = frozenset(
    {"host", "runs", "vmState", "cons", "demand", "label", "pool", "tenant", "agent"}
)
"""Functions that tell of a VM only what changes by what happens to that VM."""
_OF_NOBODY: Final = frozenset(
    {"capa", "card", "sum", "largest", "range", "lists", "actions", "kind", "source", "target"}
    | {"begin", "end"}
)
"""Functions of which the value is the same at every moment of a plan, for the same arguments."""


def subjects(demand: Demand) -> frozenset[VmId] | None:
    """The VMs whose doings can make a difference to a demand in between; nothing if anybody's can.

    A formula that asks single VMs for what is theirs, and is given those VMs by name, can only
    change when one of them does. That spares looking at it whenever anybody does anything.
    """
    if not _is_about_its_arguments(demand.specification, demand.name):
        return None
    about_vms = _about_vms(demand.specification, demand.name)
    return frozenset(_names([demand.arguments[one] for one in about_vms]))


@lru_cache(maxsize=512)
def _about_vms(home: Specification, name: str) -> tuple[str, ...]:
    """The arguments of a constraint that may be VMs."""
    parameters = home.constraints[name].parameters
    return tuple(one.name for one in parameters if "vms" in map(plain, names_in(one.domain)))


@lru_cache(maxsize=512)
def _is_about_its_arguments(home: Specification, name: str) -> bool:
    if not home.calls(name) <= _OF_ONE_VM | _OF_NOBODY:
        return False
    formula = home.constraints[name].formula
    if any(plain(one) in SETS for one in names_in(formula)):
        return False
    others = ((home.home(one), one) for one in calls_in(formula))
    return all(there is None or _is_about_its_arguments(there, one) for there, one in others)


def _names(values: Collection[Any]) -> Iterator[VmId]:
    """Every name in some arguments, be it in a group."""
    for value in values:
        if isinstance(value, str):
            yield VmId(value)
        elif isinstance(value, frozenset | tuple):
            yield from _names(value)
