"""The types of Kubernetes: objects of clients are checked by them and keep only known fields.

``types.txt`` lists them, one type in a line: its name, then its fields with their types, ``!`` for
a field that is required. ``s`` is a text, ``i`` a whole number, ``f`` a number, ``b`` a truth
value, ``t`` a time, ``q`` a quantity, ``n`` a number or a text, ``x`` anything; ``[T]`` is a list
and ``{T}`` a mapping. Everything behind this check may rely on the types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

from equipoise.adapters.kubernetes.api.admission.validation import is_quantity
from equipoise.adapters.kubernetes.api.errors import ApiError
from equipoise.adapters.kubernetes.api.resources import ServedVersion

Object = dict[str, Any]
Unknown = list[str]
Check = Callable[[Any, str, Unknown], Any]
"""Returns a value of the type, given the value, its path, and the list of unknown fields."""

_FILE: Final = Path(__file__).with_name("types.txt")
_ROOTS: Final = {"resourceclaims": "ResourceV1ResourceClaim"}
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[-+][0-9]{2}:[0-9]{2})"
)
_INT_MAX: Final = 2**63 - 1
_UNKNOWN_MAX: Final = 100


class WrongType(ApiError):
    """A part of an object has a type that its field does not have."""

    def __init__(self, path: str, found: str, wanted: str) -> None:
        text = f"cannot read the object: {path or 'body'} is {found}, must be {wanted}"
        super().__init__(400, "BadRequest", text)
        self.path, self.found, self.wanted = path, found, wanted


def type_of(served: ServedVersion) -> str:
    """Return the name of the type of a collection's objects as they are served."""
    if served.group == "events.k8s.io":
        return "EventsV1Event"
    return _ROOTS.get(served.resource.plural, served.resource.kind)


@cache
def type_fields() -> Mapping[str, Mapping[str, str]]:
    """Return the types by name, each with its fields and the codes of their types."""
    types: dict[str, dict[str, str]] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, *fields = line.split(" ")
            types[name] = dict(field.split("=", 1) for field in fields)
    return types


def check_types(served: ServedVersion, body: Object) -> tuple[Object, list[str]]:
    """Return an object without unknown fields and nulls, and the names of the unknown fields.

    A value of a wrong type is ``WrongType``, an ``ApiError`` 400.
    """
    unknown: Unknown = []
    checked = _check_of(type_of(served))(body, "", unknown)
    return dict(checked), unknown


@cache
def _check_of(code: str) -> Check:
    code = code.removeprefix("!")
    if code[0] == "[":
        return _list_check(_check_of(code[1:-1]))
    if code[0] == "{":
        return _map_check(_check_of(code[1:-1]))
    return _SIMPLE.get(code) or _object_check(code)


def _reject(path: str, value: object, wanted: str) -> NoReturn:
    found = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")
    raise WrongType(path, found, wanted)


def _text(value: Any, path: str, unknown: Unknown) -> Any:
    if type(value) is not str:
        _reject(path, value, "string")
    return value


def _whole(value: Any, path: str, unknown: Unknown) -> Any:
    if type(value) is not int or not -_INT_MAX - 1 <= value <= _INT_MAX:
        _reject(path, value, "a whole number of 64 bits")
    return value


def _number(value: Any, path: str, unknown: Unknown) -> Any:
    if type(value) is not int and type(value) is not float:
        _reject(path, value, "number")
    return value


def _truth(value: Any, path: str, unknown: Unknown) -> Any:
    if type(value) is not bool:
        _reject(path, value, "bool")
    return value


def _time(value: Any, path: str, unknown: Unknown) -> Any:
    if type(value) is not str or not _TIME.fullmatch(value):
        _reject(path, value, "a time in RFC 3339")
    return value


def _either(value: Any, path: str, unknown: Unknown) -> Any:
    if type(value) is not str:
        _whole(value, path, unknown)
    return value


def _quantity(value: Any, path: str, unknown: Unknown) -> Any:
    """Return a quantity as text. Clients may write small ones as numbers."""
    if type(value) is float:
        milli = value * 1000
        if abs(milli) > _INT_MAX or milli != int(milli):
            _reject(path, value, "a quantity with at most three decimals")
        value = int(milli)
        return f"{value // 1000}" if value % 1000 == 0 else f"{value}m"
    if not is_quantity(value):
        _reject(path, value, "a quantity")
    return str(value)


def _anything(value: Any, path: str, unknown: Unknown) -> Any:
    return value


_SIMPLE: Final[Mapping[str, Check]] = {
    "s": _text, "i": _whole, "f": _number, "b": _truth, "t": _time, "n": _either,
    "q": _quantity, "x": _anything,
}  # fmt: skip


def _list_check(check: Check) -> Check:
    def check_list(value: Any, path: str, unknown: Unknown) -> Any:
        if type(value) is not list:
            _reject(path, value, "array")
        return [check(item, f"{path}[{index}]", unknown) for index, item in enumerate(value)]

    return check_list


def _map_check(check: Check) -> Check:
    def check_map(value: Any, path: str, unknown: Unknown) -> Any:
        if type(value) is not dict:
            _reject(path, value, "object")
        return {
            key: check(entry, f"{path}[{key}]", unknown)
            for key, entry in value.items()
            if entry is not None
        }

    return check_map


def _object_check(name: str) -> Check:
    # The checks of the fields are found when first needed: types refer to each other in cycles.
    fields = type_fields()[name]
    checks: dict[str, Check] = {}

    def check_object(value: Any, path: str, unknown: Unknown) -> Any:
        if type(value) is not dict:
            _reject(path, value, "object")
        checked = {}
        for key, part in value.items():
            if part is None:
                continue
            check = checks.get(key)
            if check is None:
                code = fields.get(key)
                if code is None:
                    if len(unknown) < _UNKNOWN_MAX:
                        unknown.append(f'unknown field "{path}{"." if path else ""}{key}"')
                    continue
                check = checks[key] = _check_of(code)
            checked[key] = check(part, f"{path}.{key}" if path else key, unknown)
        return checked

    return check_object
