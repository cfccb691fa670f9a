"""The parameters of a constraint, the values that can be drawn, and the overrides of ``--set``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import msgspec
import numpy as np

from equipoise.adapters.targets.trial import CountRange, PlanSampling, TrialOptions
from equipoise.errors import InputProblem, InvalidInput
from equipoise.files.overrides import override_values
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
from equipoise.fuzz.trial.stored import validation_problem
from equipoise.model.diagnostics import closest_match
from equipoise.model.host import HostState
from equipoise.model.problem.problem import ActionKind
from equipoise.model.vm import VmState
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
        raise InvalidInput.of("options", what, key=name, cure=cure, code="unsupported-feature")
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
            raise InvalidInput.of(
                "options", what, key=f"given.{name}", cure=f"use {wanted}", code="invalid-value"
            )
    return values


def _choices(name: str, domain: str, options: TrialOptions) -> Sequence[Any]:
    """The possible words or numbers; none for a number that depends on other arguments."""
    if domain == "int":
        return _NUMBERS.get(name, ())
    match name:
        case _ if name == LABEL:
            # Each choice has a value that no machine has: schedulers must answer for those as well.
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


SOURCE: Final = "--set"
_RANGE_FIELDS: Final = ("hosts", "vms", "actions", "total", "seconds", "waits")
_ENUM_FIELDS: Final[Mapping[str, type[StrEnum]]] = {
    "host_states": HostState,
    "vm_states": VmState,
    "end_states": VmState,
    "kinds": ActionKind,
    "plans": PlanSampling,
}


def override_options(options: TrialOptions, changes: Sequence[str]) -> TrialOptions:
    """Options with changes such as ``actions=[0,2]``; a value is JSON or else a word.

    The changes apply in their order, so a later one can change the result of an earlier one.
    """
    for change in changes:
        key = change.partition("=")[0].partition(".")[0].strip()
        if key not in TrialOptions.__struct_fields__:
            near = closest_match(key, TrialOptions.__struct_fields__)
            known = ", ".join(TrialOptions.__struct_fields__)
            cure = f"did you mean {near}?" if near else f"use one of {known}"
            what = "is no option of trials"
            raise _refused([InputProblem(key=key, what=what, cure=cure, code="unknown-key")])
        try:
            options = msgspec.convert(override_values(options, [change], SOURCE), TrialOptions)
        except msgspec.ValidationError as error:
            problem = validation_problem(error)
            cure = _cure(problem.key.partition(".")[0].partition("[")[0], problem.what)
            raise _refused([replace(problem, cure=cure)]) from None
    check_options(options)
    return options


def _cure(key: str, what: str) -> str:
    """The valid values of a field, as the cure of a problem."""
    if what.startswith("Invalid enum value"):
        return ", ".join(_ENUM_FIELDS.get(key, ()))
    return "such as [1, 4]" if key in _RANGE_FIELDS and what.startswith("Expected array") else ""


def check_options(options: TrialOptions) -> None:
    """Raise ``InvalidInput`` for options with empty ranges or choices."""
    problems = [*_reversed_ranges(options), *_empty_choices(options)]
    if problems:
        raise _refused(problems)


def _reversed_ranges(options: TrialOptions) -> Iterator[InputProblem]:
    """Ranges whose minimum is above their maximum."""
    for key, span in _ranges(options):
        if span[0] > span[1]:
            what = f"[{span[0]}, {span[1]}] has a minimum above its maximum"
            cure = f"did you mean [{span[1]}, {span[0]}]?"
            yield InputProblem(key=key, what=what, cure=cure, code="empty-range")


def _ranges(options: TrialOptions) -> Iterator[tuple[str, CountRange]]:
    for key in _RANGE_FIELDS:
        span = getattr(options, key)
        if span is not None:
            yield key, span
    for name, amounts in options.resources.items():
        yield f"resources.{name}.capacity", amounts.capacity
        yield f"resources.{name}.consumption", amounts.consumption
    if options.network is not None:
        for key in ("switches", "hosts_mbps", "trunks_mbps", "switches_mbps"):
            yield f"network.{key}", getattr(options.network, key)


def _empty_choices(options: TrialOptions) -> Iterator[InputProblem]:
    """Choices without a possible value."""
    for key in ("host_states", "vm_states", "end_states"):
        weights: Mapping[Any, int] = getattr(options, key)
        if not any(weights.values()):
            cure = "give one state a weight above 0"
            what = "has no possible value"
            yield InputProblem(key=key, what=what, cure=cure, code="empty-choice")


def _refused(problems: Sequence[InputProblem]) -> InvalidInput:
    return InvalidInput(SOURCE, problems)
