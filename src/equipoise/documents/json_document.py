"""The base of all documents, and a reader for documents of other versions."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


class Document(msgspec.Struct, frozen=True):
    """One JSON object: fields are its keys, in the order in which they are printed.

    Subclasses repeat ``frozen`` and add ``kw_only``, which msgspec and mypy do not inherit.
    """

    def to_json_object(self) -> dict[str, Any]:
        """Return dictionaries, lists and scalars that ``json`` can write."""
        # NumPy's floats are no plain floats to msgspec.
        plain: dict[str, Any] = msgspec.to_builtins(self, enc_hook=float)
        return plain


def read_leniently(kind: type[S], raw: Mapping[str, Any]) -> S:
    """Read an object of another version: a value that does not fit counts as missing.

    All fields of ``kind`` need defaults. Keys without a field are ignored.
    """
    values = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name in raw:
            value = _read_value(field.type, raw[field.encode_name])
            if value is not msgspec.UNSET:
                values[field.name] = value
    return kind(**values)


def _read_value(annotation: Any, raw: Any) -> Any:
    """Return the value as the type of its field, or ``UNSET`` if it has another type."""
    if isinstance(raw, float) and not isfinite(raw):
        return msgspec.UNSET
    info = msgspec.inspect.type_info(annotation)
    parts = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    for part in parts:
        if isinstance(part, msgspec.inspect.StructType) and isinstance(raw, Mapping):
            return read_leniently(part.cls, raw)
        if isinstance(part, msgspec.inspect.VarTupleType) and isinstance(raw, list):
            row = part.item_type
            if isinstance(row, msgspec.inspect.StructType):
                return tuple(
                    read_leniently(row.cls, item) for item in raw if isinstance(item, dict)
                )
    try:
        return msgspec.convert(raw, annotation)
    except msgspec.ValidationError:
        return msgspec.UNSET


def unknown_keys(kind: type[msgspec.Struct], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a JSON object that ``kind`` has no field for."""
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    return {key: value for key, value in raw.items() if key not in known}
