"""Options as a person asks for them, and whether chance can draw by them at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from equipoise.errors import InvalidInput, Problem
from equipoise.fuzz.generate.options import Options, Plans, Span
from equipoise.model.files.assign import changed_tree
from equipoise.model.files.words import closest
from equipoise.model.host import HostState
from equipoise.model.problem.problem import ActionKind
from equipoise.model.vm import VmState

SOURCE: Final = "--set"
_SPANS: Final = ("hosts", "vms", "actions", "total", "seconds", "waits")
_WORDS: Final[Mapping[str, type[StrEnum]]] = {
    "host_states": HostState,
    "vm_states": VmState,
    "end_states": VmState,
    "kinds": ActionKind,
    "plans": Plans,
}


def options_with(options: Options, changes: Sequence[str]) -> Options:
    """Options with changes such as ``actions=[0,2]``; a value is JSON, and else a word.

    Each is a change of what those before it have made, such as ``network={}`` of a network.
    """
    for change in changes:
        key = change.partition("=")[0].partition(".")[0].strip()
        if key not in Options.__struct_fields__:
            near = closest(key, Options.__struct_fields__)
            cure = f"did you mean {near}?" if near else ", ".join(Options.__struct_fields__)
            raise _refused([Problem(key=key, what="is nothing that trials have", cure=cure)])
        try:
            options = msgspec.convert(changed_tree(options, [change], SOURCE), Options)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at ")
            key = where.replace("`", "").replace("key in ", "").removeprefix("$.")
            cure = _cure(key.partition(".")[0].partition("[")[0], what)
            raise _refused([Problem(key=key, what=what.replace("`", ""), cure=cure)]) from None
    check(options)
    return options


def _cure(key: str, what: str) -> str:
    """What could be written instead of something that is no value for a field."""
    if what.startswith("Invalid enum value"):
        return ", ".join(_WORDS.get(key, ()))
    return "such as [1, 4]" if key in _SPANS and what.startswith("Expected `array`") else ""


def check(options: Options) -> None:
    """Refuse options by which nothing can be drawn."""
    found = [*_upside_down(options), *_weightless(options)]
    if found:
        raise _refused(found)


def _upside_down(options: Options) -> Iterator[Problem]:
    """Ranges that begin above their end."""
    for key, span in _spans(options):
        if span[0] > span[1]:
            what = f"[{span[0]}, {span[1]}] begins above its end"
            yield Problem(key=key, what=what, cure=f"[{span[1]}, {span[0]}]?")


def _spans(options: Options) -> Iterator[tuple[str, Span]]:
    for key in _SPANS:
        span = getattr(options, key)
        if span is not None:
            yield key, span
    for name, amounts in options.resources.items():
        yield f"resources.{name}.capacity", amounts.capacity
        yield f"resources.{name}.consumption", amounts.consumption
    if options.network is not None:
        for key in ("switches", "hosts_mbps", "trunks_mbps", "switches_mbps"):
            yield f"network.{key}", getattr(options.network, key)


def _weightless(options: Options) -> Iterator[Problem]:
    """Choices in which nothing can be chosen."""
    for key in ("host_states", "vm_states", "end_states"):
        weights: Mapping[Any, int] = getattr(options, key)
        if not any(weights.values()):
            yield Problem(key=key, what="leaves nothing to choose", cure="a weight above 0")


def _refused(problems: Sequence[Problem]) -> InvalidInput:
    return InvalidInput(SOURCE, problems)
