"""The types of OpenAPI version 2 in protobuf: kubectl before 1.24 reads them in no other form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from equipoise.adapters.kubernetes.api.verbs.rendering import encode

Object = dict[str, Any]

MEDIA: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

# Clients ask for a media type that their own parser refuses in an answer.
CONTENT_TYPE: Final = MEDIA.replace("@", ".")

# The numbers of the fields of a path, its operations, and their parameters.
_PATH, _OPERATIONS = 2, {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_OPERATION_ID, _PARAMETERS, _RESPONSES, _OPERATION_EXTENSION = 5, 8, 9, 13
_PARAMETER, _NOT_IN_BODY, _IN_QUERY = 1, 2, 3
_IN, _NAME, _QUERY_TYPE = 2, 4, 6

# The numbers of the fields of a document, a schema and its parts.
_SWAGGER, _INFO, _PATHS, _DEFINITIONS = 1, 2, 8, 9
_REFERENCE, _FORMAT, _DESCRIPTION, _REQUIRED = 1, 2, 4, 19
_ADDITIONAL, _TYPE, _ITEMS, _PROPERTIES, _EXTENSION = 21, 22, 23, 25, 31
_VALUE, _YAML = 2, 2


def document_protobuf(document: Object) -> bytes:
    """Return the types of a document of version 2, and what its writes accept in a query."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    return (
        _text(_SWAGGER, "2.0")
        + _part(_INFO, info)
        + _part(_PATHS, _paths(document["paths"]))
        + _part(_DEFINITIONS, _named(document["definitions"].items()))
    )


def _paths(paths: Object) -> bytes:
    """Return the operations, by which clients see whether a kind supports ``dryRun``."""
    parts = []
    for path, operations in paths.items():
        item = b"".join(
            _part(_OPERATIONS[method], _operation(operation))
            for method, operation in operations.items()
            if method in _OPERATIONS
        )
        parts.append(_part(_PATH, _text(1, path) + _part(_VALUE, item)))
    return b"".join(parts)


def _operation(operation: Object) -> bytes:
    parts = [_text(_OPERATION_ID, operation["operationId"])]
    for parameter in operation["parameters"]:
        if parameter["in"] == "query":
            query = _text(_IN, "query") + _text(_NAME, parameter["name"])
            query += _text(_QUERY_TYPE, parameter["type"])
            in_query = _part(_NOT_IN_BODY, _part(_IN_QUERY, query))
            parts.append(_part(_PARAMETERS, _part(_PARAMETER, in_query)))
    parts += [_part(_RESPONSES, b""), *_extensions(operation, _OPERATION_EXTENSION)]
    return b"".join(parts)


def _extensions(owner: Object, number: int) -> list[bytes]:
    """Return what is beyond OpenAPI. The value of an extension is YAML, and JSON is YAML."""
    return [
        _part(number, _text(1, key) + _part(_VALUE, _text(_YAML, encode(value).decode())))
        for key, value in owner.items()
        if key.startswith("x-")
    ]


def _named(schemas: Iterable[tuple[str, Object]]) -> bytes:
    return b"".join(
        _part(1, _text(1, name) + _part(_VALUE, _schema(schema))) for name, schema in schemas
    )


def _schema(schema: Object) -> bytes:
    parts = []
    for key, number in (
        ("$ref", _REFERENCE), ("format", _FORMAT), ("description", _DESCRIPTION),
    ):  # fmt: skip
        if key in schema:
            parts.append(_text(number, schema[key]))
    parts += [_text(_REQUIRED, name) for name in schema.get("required", ())]
    if "additionalProperties" in schema:
        parts.append(_part(_ADDITIONAL, _part(1, _schema(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_part(_TYPE, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_part(_ITEMS, _part(1, _schema(schema["items"]))))
    if "properties" in schema:
        parts.append(_part(_PROPERTIES, _named(schema["properties"].items())))
    return b"".join([*parts, *_extensions(schema, _EXTENSION)])


def _text(number: int, text: str) -> bytes:
    return _part(number, text.encode())


def _part(number: int, content: bytes) -> bytes:
    """Return a field whose content has a length: wire type 2."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:  # noqa: PLR2004
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)
