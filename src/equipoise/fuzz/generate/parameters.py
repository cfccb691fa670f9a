"""The parameters of a constraint, and which values can be drawn for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from equipoise.adapters.targets.trial import TrialOptions
from equipoise.errors import InputProblem, InvalidInput
from equipoise.fuzz.generate.draw.trial_arrays import (
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
"""The maximum of a given number."""
RESOURCE: Final = "id"
"""The name of parameters that are names of resources."""
LABEL: Final = "key"
"""The name of parameters that are names of labels."""


@dataclass(frozen=True, slots=True)
class DrawableParameter:
    """A parameter whose values can be drawn."""

    name: str
    what: int
    choices: Sequence[Any] = ()
    """The possible values of a parameter that is neither about VMs nor about hosts."""

    @property
    def is_name(self) -> bool:
        """Whether its values are names of resources or labels, which formulas look up."""
        return self.name in (RESOURCE, LABEL)


def drawable_parameters(
    constraint: Constraint, options: TrialOptions
) -> tuple[DrawableParameter, ...]:
    """The parameters of a constraint, in their order."""
    return tuple(_drawable(parameter, options) for parameter in constraint.parameters)


def _drawable(parameter: Parameter, options: TrialOptions) -> DrawableParameter:
    name = parameter.name
    if parameter.domain == _LISTS:
        return DrawableParameter(name, VM_LIST)
    if not isinstance(parameter.domain, Name):
        what = f"no values can be drawn for the domain of {name}"
        cure = "use the domain vms, hosts, int, string or lists(vms)"
        raise InvalidInput("options", [InputProblem(key=name, what=what, cure=cure)])
    domain = parameter.domain.name
    if domain in ("vms", "hosts"):
        return DrawableParameter(
            name, (_OF_VMS if domain == "vms" else _OF_HOSTS)[parameter.binding]
        )
    choices = _given(name, domain, options) or _choices(name, domain, options)
    if not choices:
        return DrawableParameter(name, NUMBER)
    is_one = parameter.binding is Binding.MEMBER
    return DrawableParameter(name, CHOICE if is_one else SOME_CHOICES, tuple(choices))


def _given(name: str, domain: str, options: TrialOptions) -> Sequence[str | int]:
    """The given values of a parameter; ``InvalidInput`` if one has the wrong type."""
    values, kind = options.given.get(name, ()), int if domain == "int" else str
    for value in values:
        if not isinstance(value, kind) or (isinstance(value, int) and abs(value) > NUMBER_MAX):
            wanted = f"whole numbers up to {NUMBER_MAX:,}" if kind is int else "words"
            what = f"{value!r} is no value of {name}"
            problem = InputProblem(key=f"given.{name}", what=what, cure=f"use {wanted}")
            raise InvalidInput("options", [problem])
    return values


def _choices(name: str, domain: str, options: TrialOptions) -> Sequence[Any]:
    """The possible words or numbers; none for a number that depends on other arguments."""
    if domain == "int":
        return _NUMBERS.get(name, ())
    match name:
        case _ if name == LABEL:
            return (*options.labels, "colour")
        case "kind":
            return tuple(kind.value for kind in ActionKind)
        case "name":
            return (*options.tenants, "unknown")
        case _ if name == RESOURCE:
            return (*options.resources, "cpu", "memory", "unknown")
    values = {value: None for texts in options.labels.values() for value in texts}
    return (*values, "")


def resource_of(
    parameters: Sequence[DrawableParameter], options: TrialOptions, drawn: Array
) -> Array:
    """The index of the resource in the arguments of each trial; -1 without a known one."""
    resources = np.full(len(drawn), NONE)
    for i, parameter in enumerate(parameters):
        if parameter.name == RESOURCE:
            names = list(options.resources)
            numbers = [names.index(name) if name in names else NONE for name in parameter.choices]
            resources = np.array(numbers)[drawn[:, i, 0]]
    return resources
