"""From values to text, in YAML and JSON. Equal values give equal text; what is default is left out.

Never writes what the readers would not read back as the same value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any, Final

import msgspec

from equipoise.model.files.collector import undisturbed
from equipoise.model.files.scalar import scalar_text
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem import Problem
from equipoise.model.story.scenario import Scenario
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.standing import CampaignStanding

Written = Inventory | Plan | Scenario | Problem | Campaign | CampaignStanding

_WIDTH: Final = 100
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))
_FIRST: Final[dict[type[msgspec.Struct], tuple[str, ...]]] = {Inventory: ("name", "hosts", "vms")}
"""What a person wants to see on top, where it is not declared first."""


def to_yaml(value: Written) -> str:
    """Write a value as YAML for people: short mappings and lists on one line."""
    with undisturbed():
        return "\n".join(_block(plain(value), 0)) + "\n"


def to_json(value: Written, indent: int = 2) -> str:
    """Write a value as JSON; with ``indent=0`` on one line."""
    with undisturbed():
        packed = msgspec.json.encode(plain(value))
    return msgspec.json.format(packed, indent=indent or -1).decode() + "\n"


def plain(value: Any) -> Any:
    """Give a value of the model as mappings, lists and scalars, without what is default."""
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        made = {config.tag_field: config.tag} if config.tag_field else {}
        for name, default in _fields(type(value)):
            part = getattr(value, name)
            if part != default:
                made[name] = part if type(part) in _SCALARS else plain(part)
        return made
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [part if type(part) in _SCALARS else plain(part) for part in value]
    return value.value if isinstance(value, Enum) else value


@cache
def _fields(form: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """The fields of a record in the order of writing, each with its default."""
    defaults = {
        field.name: field.default_factory()
        if field.default_factory is not msgspec.NODEFAULT
        else field.default
        for field in msgspec.structs.fields(form)
    }
    first = _FIRST.get(form, ())
    names = [*first, *(name for name in defaults if name not in first)]
    return tuple((name, defaults[name]) for name in names)


def _block(node: Any, depth: int) -> Iterator[str]:
    """The lines of a mapping or list that is not empty, each part on lines of its own."""
    blank = " " * depth
    if isinstance(node, dict):
        for key, part in node.items():
            name = f"{blank}{scalar_text(key)}:"
            line = _flow(part, _WIDTH - len(name))
            if line is not None:
                yield f"{name} {line}"
            else:
                yield name
                yield from _block(part, depth + 2)
    else:
        for part in node:
            if isinstance(part, dict | list) and part:
                first, *others = _block(part, depth + 2)
                yield f"{blank}- {first[depth + 2 :]}"
                yield from others
            else:
                yield f"{blank}- {_flow(part, _WIDTH)}"


def _flow(node: Any, width: int) -> str | None:
    """One line for a scalar, or for a mapping or list of scalars that fits on it."""
    if not isinstance(node, dict | list):
        return scalar_text(node)
    parts = list(node.values()) if isinstance(node, dict) else node
    if any(isinstance(part, dict | list) for part in parts):
        return None
    if isinstance(node, dict):
        entries = (f"{scalar_text(key)}: {scalar_text(part)}" for key, part in node.items())
        line = "{" + ", ".join(entries) + "}"
    else:
        line = "[" + ", ".join(map(scalar_text, parts)) + "]"
    return line if len(line) < width or not node else None
