"""Options of trials as the user overrides them with ``--set``, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from equipoise.adapters.targets.trial import CountRange, PlanSampling, TrialOptions
from equipoise.errors import InputProblem, InvalidInput
from equipoise.files.overrides import override_values
from equipoise.model.diagnostics import closest_match
from equipoise.model.host import HostState
from equipoise.model.problem.problem import ActionKind
from equipoise.model.vm import VmState

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
            raise _refused([InputProblem(key=key, what="is no option of trials", cure=cure)])
        try:
            options = msgspec.convert(override_values(options, [change], SOURCE), TrialOptions)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at ")
            key = where.replace("`", "").replace("key in ", "").removeprefix("$.")
            cure = _cure(key.partition(".")[0].partition("[")[0], what)
            raise _refused([InputProblem(key=key, what=what.replace("`", ""), cure=cure)]) from None
    check_options(options)
    return options


def _cure(key: str, what: str) -> str:
    """The valid values of a field, as the cure of a problem."""
    if what.startswith("Invalid enum value"):
        return ", ".join(_ENUM_FIELDS.get(key, ()))
    return "such as [1, 4]" if key in _RANGE_FIELDS and what.startswith("Expected `array`") else ""


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
