"""A scenario or another value with a few figures changed, as ``KEY=VALUE``: to try a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from equipoise.errors import InvalidInput, Problem
from equipoise.model.files.parse import Also, parse_scenario
from equipoise.model.files.words import closest, kind_of
from equipoise.model.story.scenario import Scenario
from equipoise.model.value import Value


def assigned(
    scenario: Scenario, changes: Sequence[str], source: str, also: Also | None = None
) -> Scenario:
    """The scenario with changes such as ``cluster.power.foresight_s=1800``; values are JSON, and
    what is not JSON is a word. All that a file is checked for is checked again."""
    tree = changed_tree(scenario, changes, source)
    return parse_scenario(msgspec.json.encode(tree), source, also)


def changed_tree(value: Value, changes: Sequence[str], source: str) -> Any:
    """A value as plain dictionaries and lists, with changes; not checked in any way."""
    tree = msgspec.json.decode(msgspec.json.encode(value))
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise _refused(source, change, "is no assignment", "KEY=VALUE")
        _put(tree, key.strip(), _value(text.strip()), source)
    return tree


def _put(tree: Any, key: str, value: Any, source: str) -> None:
    *way, last = key.split(".")
    place = tree
    for taken in range(1, len(way) + 1):
        place = _inside(place, way[:taken], key, source)
    if isinstance(place, dict):
        if way and last not in place and not _is_open(place, way):
            raise _unknown(place, [*way, last], key, source)
        place[last] = value
    elif isinstance(place, list) and last.isdecimal() and int(last) < len(place):
        place[int(last)] = value
    else:
        raise _unknown(place, [*way, last], key, source)


def _is_open(place: dict[str, Any], way: Sequence[str]) -> bool:
    """Whether it is a map of names, which may get new ones."""
    return not place or way[-1] in {
        *("hosts", "vms", "loads", "vm_loads", "labels"),
        *("host_states", "vm_states", "end_states", "resources", "given"),
    }


def _inside(place: Any, way: Sequence[str], key: str, source: str) -> Any:
    """What the last step of a way leads to, from the place that the others led to."""
    step = way[-1]
    if isinstance(place, dict) and step in place:
        return place[step]
    if isinstance(place, list) and step.isdecimal() and int(step) < len(place):
        return place[int(step)]
    raise _unknown(place, way, key, source)


def _unknown(place: Any, way: Sequence[str], key: str, source: str) -> InvalidInput:
    step, whole = way[-1], ".".join(way[:-1])
    if isinstance(place, str | int | float):
        what = f"{whole} is {kind_of(place)}, with nothing in it"
        return _refused(source, key, what, f"{whole}=VALUE")
    cure = f"give {whole} as a whole, as {whole}={'[...]' if place == [] else '{...}'}"
    if isinstance(place, list) and place:
        cure = f"a number from 0 to {len(place) - 1}"
    elif isinstance(place, dict) and place:
        near = closest(step, place)
        cure = f"did you mean {near}?" if near else f"one of {', '.join(place)}"
    return _refused(source, key, f"there is no {step!r}", cure)


def _refused(source: str, key: str, what: str, cure: str) -> InvalidInput:
    return InvalidInput(source, [Problem(key=f"--set {key}", what=what, cure=cure)])


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
