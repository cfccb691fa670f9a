"""The base of all documents, the document of an error, and a reader for other versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, Final, Self, TypeVar

import msgspec

from equipoise.errors import EquipoiseError, InputProblem, InvalidInput
from equipoise.model.value import Value

S = TypeVar("S", bound=msgspec.Struct)

_CODES_OF_KINDS: Final[Mapping[str, str]] = {
    "usage": "usage-error",
    "interrupted": "interrupted",
    "bug": "internal-error",
}
"""The codes of errors that the command line finds itself, without an exception of the package."""


class Document(Value):
    """One JSON object: fields are its keys, in the order in which they are printed.

    Reading is strict, as for every ``Value``: a key without a field is an error.
    """

    @classmethod
    def of(cls, source: object, **values: Any) -> Self:
        """Return the document with ``values``; the other fields have the attributes of a source."""
        names = (name for name in cls.__struct_fields__ if name not in values)
        return cls(**values, **{name: getattr(source, name) for name in names})

    def to_json_object(self) -> dict[str, Any]:
        """Return dictionaries, lists and scalars that ``json`` can write."""
        plain: dict[str, Any] = to_plain(self)
        return plain


class ProblemRow(Document):
    """One problem of an input."""

    file: str | None
    line: int | None
    column: int | None
    key: str
    what: str
    cure: str
    code: str


def warning_rows(source: str, warnings: Iterable[InputProblem]) -> tuple[ProblemRow, ...]:
    """Return warnings about a file as rows."""
    return tuple(ProblemRow.of(warning, file=source) for warning in warnings)


class ErrorDocument(Document):
    """The JSON document of every command that fails."""

    error: str
    """The kind: ``usage``, ``bad input``, ``the world failed``, ``interrupted`` or ``bug``."""
    message: str
    code: str = ""
    """A key of ``CODES``: of the first problem, of the outside system or of the bug."""
    problems: tuple[ProblemRow, ...] = ()


def error_document(kind: str, error: Exception | str) -> ErrorDocument:
    """Return the document of an error; only bad input has problems."""
    code = error.code if isinstance(error, EquipoiseError) else _CODES_OF_KINDS[kind]
    rows: tuple[ProblemRow, ...] = ()
    if isinstance(error, InvalidInput):
        rows = tuple(ProblemRow.of(problem, file=error.source) for problem in error.problems)
    return ErrorDocument(error=kind, message=str(error), code=code, problems=rows)


def to_plain(content: object) -> Any:
    """Return dictionaries, lists and scalars for a document or a list of documents."""
    # NumPy's floats are no plain floats to msgspec.
    return msgspec.to_builtins(content, enc_hook=float)


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
    # Not a figure: JSON has no such number, and a page cannot draw it.
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
