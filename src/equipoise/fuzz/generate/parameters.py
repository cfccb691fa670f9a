"""The parameters of a constraint, as the kernels read them and as people do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from equipoise.errors import InvalidInput
from equipoise.errors import Problem as Mistake
from equipoise.fuzz.generate.draw.numbers import (
    CHOICE,
    HOST_GROUPS,
    NONE,
    NUMBER,
    ONE_HOST,
    ONE_VM,
    SOME_CHOICES,
    SOME_HOSTS,
    SOME_VMS,
    VM_GROUPS,
    VM_LIST,
)
from equipoise.fuzz.generate.options import Options
from equipoise.model.problem.problem import ActionKind
from equipoise.spec.batch.cases import Array
from equipoise.spec.language.syntax import Binding, Call, Constraint, Name, Parameter

_NUMBERS: Final[dict[str, tuple[int, ...]]] = {
    "percent": (0, 33, 50, 67, 100, 150),
    "ms": (0, 500, 1000, 2000, 3000, 5000),
}
_OF_VMS: Final = {
    Binding.SUBSET: SOME_VMS,
    Binding.PACKING: VM_GROUPS,
    Binding.MEMBER: ONE_VM,
}
_OF_HOSTS: Final = {
    Binding.SUBSET: SOME_HOSTS,
    Binding.PACKING: HOST_GROUPS,
    Binding.MEMBER: ONE_HOST,
}
_LISTS: Final = Call("lists", (Name("vms"),))
NUMBER_MAX: Final = 10**9
"""How large a number may be that somebody gives."""
RESOURCE: Final = "id"
"""How parameters are called that name a resource."""
LABEL: Final = "key"
"""How parameters are called that name a label."""


@dataclass(frozen=True, slots=True)
class Drawable:
    """A parameter for which values can be drawn."""

    name: str
    what: int
    choices: Sequence[Any] = ()
    """The values there are, if it is neither about VMs nor about hosts."""

    @property
    def is_name(self) -> bool:
        """Whether it names a resource or a label, which formulas look up."""
        return self.name in (RESOURCE, LABEL)


def drawables(constraint: Constraint, options: Options) -> tuple[Drawable, ...]:
    """The parameters of a constraint, in their order."""
    return tuple(_drawable(one, options) for one in constraint.parameters)


def _drawable(parameter: Parameter, options: Options) -> Drawable:
    name = parameter.name
    if parameter.domain == _LISTS:
        return Drawable(name, VM_LIST)
    if not isinstance(parameter.domain, Name):
        what = f"chance draws no arguments such as {name}"
        cure = "vms, hosts, int or string, or lists(vms), as what they are taken from"
        raise InvalidInput("options", [Mistake(key=name, what=what, cure=cure)])
    domain = parameter.domain.name
    if domain in ("vms", "hosts"):
        return Drawable(name, (_OF_VMS if domain == "vms" else _OF_HOSTS)[parameter.binding])
    choices = _given(name, domain, options) or _choices(name, domain, options)
    if not choices:
        return Drawable(name, NUMBER)
    is_one = parameter.binding is Binding.MEMBER
    return Drawable(name, CHOICE if is_one else SOME_CHOICES, tuple(choices))


def _given(name: str, domain: str, options: Options) -> Sequence[str | int]:
    """The values that somebody wants it to have, if they are of its kind."""
    values, kind = options.given.get(name, ()), int if domain == "int" else str
    for one in values:
        if not isinstance(one, kind) or (isinstance(one, int) and abs(one) > NUMBER_MAX):
            wanted = f"whole numbers up to {NUMBER_MAX:,}" if kind is int else "words"
            what = f"{one!r} is no value for {name}"
            raise InvalidInput("options", [Mistake(key=f"given.{name}", what=what, cure=wanted)])
    return values


def _choices(name: str, domain: str, options: Options) -> Sequence[Any]:
    """The words or numbers there are; none for a number that depends on the others."""
    if domain == "int":
        return _NUMBERS.get(name, ())
    match name:
        case _ if name == LABEL:
            return (*options.labels, "colour")
        case "kind":
            return tuple(kind.value for kind in ActionKind)
        case "name":
            return (*options.tenants, "nobody")
        case _ if name == RESOURCE:
            return (*options.resources, "cpu", "memory", "unheard-of")
    values = {value: None for some in options.labels.values() for value in some}
    return (*values, "")


def resource_of(parameters: Sequence[Drawable], options: Options, drawn: Array) -> Array:
    """Which resource the arguments of each trial speak of; -1 if of none that there is."""
    found = np.full(len(drawn), NONE)
    for place, one in enumerate(parameters):
        if one.name == RESOURCE:
            names = list(options.resources)
            numbers = [names.index(name) if name in names else NONE for name in one.choices]
            found = np.array(numbers)[drawn[:, place, 0]]
    return found
