"""Values to text, in YAML and JSON. Equal values give equal text; defaults are left out.

The readers read back the same value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any, Final

import msgspec

from equipoise.files.yaml_reader import YamlScalar
from equipoise.model.diagnostics import quoted
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem import PlanningProblem
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.event import UpgradeStatus
from equipoise.model.value import pause_gc

WritableValue = Inventory | Plan | Scenario | PlanningProblem | UpgradeCampaign | UpgradeStatus

_WIDTH: Final = 100
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))
_FIRST_KEYS: Final[dict[type[msgspec.Struct], tuple[str, ...]]] = {
    Inventory: ("name", "hosts", "vms")
}
"""The keys that are written first, where the class does not declare them first."""

# Words separated by single blanks. None of them can start a comment or end a key.
_UNQUOTED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*")
_YAML_1_1_WORDS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


def to_yaml(value: WritableValue) -> str:
    """Return a value as YAML that is easy to read: short mappings and lists take one line."""
    with pause_gc():
        return plain_to_yaml(to_plain(value))


def plain_to_yaml(plain: Mapping[str, Any]) -> str:
    """Return mappings, lists and scalars as YAML, with every key as it is."""
    return "\n".join(_yaml_block(plain, 0)) + "\n"


def to_json(value: WritableValue, indent: int = 2) -> str:
    """Return a value as JSON; with ``indent=0`` on one line."""
    with pause_gc():
        packed = msgspec.json.encode(to_plain(value))
    return msgspec.json.format(packed, indent=indent or -1).decode() + "\n"


def to_plain(value: Any) -> Any:
    """Return a value of the model as mappings, lists and scalars, without defaults."""
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        plain = {config.tag_field: config.tag} if config.tag_field else {}
        for name, default in _fields(type(value)):
            part = getattr(value, name)
            # A file states only what the operator decided; defaults may change with the version.
            if part != default:
                plain[name] = part if type(part) in _SCALARS else to_plain(part)
        return plain
    if isinstance(value, Mapping):
        return {key: to_plain(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [part if type(part) in _SCALARS else to_plain(part) for part in value]
    return value.value if isinstance(value, Enum) else value


@cache
def _fields(file_type: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a record in the order in which they are written, with defaults."""
    defaults = {
        field.name: field.default_factory()
        if field.default_factory is not msgspec.NODEFAULT
        else field.default
        for field in msgspec.structs.fields(file_type)
    }
    first = _FIRST_KEYS.get(file_type, ())
    names = [*first, *(name for name in defaults if name not in first)]
    return tuple((name, defaults[name]) for name in names)


def _yaml_block(node: Any, depth: int) -> Iterator[str]:
    """Yield the lines of a mapping or list that is not empty, in block style."""
    blank = " " * depth
    if isinstance(node, dict):
        for key, part in node.items():
            name = f"{blank}{format_scalar(key)}:"
            line = _yaml_flow(part, _WIDTH - len(name))
            if line is not None:
                yield f"{name} {line}"
            else:
                yield name
                yield from _yaml_block(part, depth + 2)
    else:
        for part in node:
            if isinstance(part, dict | list) and part:
                first, *others = _yaml_block(part, depth + 2)
                yield f"{blank}- {first[depth + 2 :]}"
                yield from others
            else:
                yield f"{blank}- {_yaml_flow(part, _WIDTH)}"


def _yaml_flow(node: Any, width: int) -> str | None:
    """Return a scalar, or a mapping or list of scalars, on one line; ``None`` if it is too long."""
    if not isinstance(node, dict | list):
        return format_scalar(node)
    parts = list(node.values()) if isinstance(node, dict) else node
    if any(isinstance(part, dict | list) for part in parts):
        return None
    if isinstance(node, dict):
        entries = (f"{format_scalar(key)}: {format_scalar(part)}" for key, part in node.items())
        line = "{" + ", ".join(entries) + "}"
    else:
        line = "[" + ", ".join(map(format_scalar, parts)) + "]"
    return line if len(line) < width or not node else None


def format_scalar(value: YamlScalar) -> str:
    """Return a scalar as YAML text that both YAML 1.1 and 1.2 read back unchanged."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        bare = _UNQUOTED.fullmatch(value) and value.lower() not in _YAML_1_1_WORDS
        return value if bare else quoted(value)
    if isinstance(value, float):
        return _format_float(value)
    return str(value)


def _format_float(value: float) -> str:
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    digits, e, exponent = repr(value).partition("e")
    # YAML 1.1 reads 1e+16 as text, because a number needs a point there.
    return digits + ("" if "." in digits else ".0") + e + exponent
