"""Options as a person asks for them, and whether chance can draw by them at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from equipoise.errors import InvalidInput, Problem
from equipoise.fuzz.generate.options import Options, Span
from equipoise.model.files.assign import changed_tree
from equipoise.model.files.words import closest

SOURCE: Final = "--set"


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
            raise _refused([Problem(key=key, what=what.replace("`", ""))]) from None
    check(options)
    return options


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
    for key in ("hosts", "vms", "actions", "total", "seconds", "waits"):
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
