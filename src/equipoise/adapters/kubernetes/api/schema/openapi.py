"""OpenAPI documents: enough for ``kubectl apply``, ``create`` and ``explain`` to know the kinds.

Version 3 has an index and one document for each group version, version 2 one document for all.
They say the fields and their types, the kinds of the types, and that writes accept
``fieldValidation``, so that clients leave validation to the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

from equipoise.adapters.kubernetes.api.patch import merge_key, merges_values
from equipoise.adapters.kubernetes.api.resources import SERVED_VERSIONS, ServedVersion
from equipoise.adapters.kubernetes.api.schema.types import type_fields, type_of

Object = dict[str, Any]

TITLE: Final = "Kubernetes"
_V2: Final = "#/definitions/"
_V3: Final = "#/components/schemas/"
_PATCH_TYPES: Final = (
    "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)  # fmt: skip
_SIMPLE: Final[Mapping[str, Object]] = {
    "s": {"type": "string"},
    "i": {"type": "integer", "format": "int64"},
    "f": {"type": "number"},
    "b": {"type": "boolean"},
    "t": {"type": "string", "format": "date-time"},
    "x": {},
}
_EITHER: Final[Mapping[str, Object]] = {
    _V2: {"type": "string", "format": "int-or-string"},
    _V3: {"oneOf": [{"type": "string"}, {"type": "integer"}]},
}
_QUERY: Final = (
    ("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"),
    ("pretty", "string"),
)  # fmt: skip


def index(group_versions: Iterable[tuple[str, str]]) -> Object:
    """Return the index of version 3."""
    paths = {}
    for group, version in group_versions:
        path = f"apis/{group}/{version}" if group else "api/v1"
        hashed = blake2b(path.encode(), digest_size=16).hexdigest().upper()
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={hashed}"}
    return {"paths": paths}


def document_v3(group: str, version: str, title_version: str) -> Object:
    """Return the document of a group version."""
    served = [
        served_version
        for served_version in SERVED_VERSIONS.values()
        if _is_of(served_version, group, version)
    ]
    return {
        "openapi": "3.0.0",
        "info": {"title": TITLE, "version": title_version},
        "paths": _paths(served, _V3),
        "components": {"schemas": definitions(served, _V3)},
    }


def document_v2(title_version: str) -> Object:
    """Return the one document of version 2."""
    served = list(SERVED_VERSIONS.values())
    return {
        "swagger": "2.0",
        "info": {"title": TITLE, "version": title_version},
        "paths": _paths(served, _V2),
        "definitions": definitions(served, _V2),
    }


def _is_of(served: ServedVersion, group: str, version: str) -> bool:
    return (served.group, served.version) == (group, version)


def schema_name(type_name: str) -> str:
    """Return the name of a type in a document."""
    return f"io.k8s.api.{type_name}"


def definitions(served: Iterable[ServedVersion], prefix: str) -> dict[str, Object]:
    """Return the types that some collections use, with the kinds of the collections."""
    kinds: dict[str, list[Object]] = {}
    for served_version in served:
        kinds.setdefault(type_of(served_version), []).append(_kind_of(served_version))
    names, schemas = list(kinds), {}
    types = type_fields()
    while names:
        name = names.pop()
        if schema_name(name) in schemas:
            continue
        properties, needed = {}, []
        for field, code in sorted(types[name].items()):
            plain = code.removeprefix("!")
            if plain != code:
                needed.append(field)
            properties[field] = _property(name, field, plain, prefix)
            inner = plain.strip("[]{}")
            if inner in types:
                names.append(inner)
        schema: Object = {"type": "object", "description": f"{name} of Kubernetes."}
        if properties:
            schema["properties"] = properties
        if needed:
            schema["required"] = needed
        if name in kinds:
            schema["x-kubernetes-group-version-kind"] = kinds[name]
        schemas[schema_name(name)] = schema
    return dict(sorted(schemas.items()))


def _property(name: str, field: str, code: str, prefix: str) -> Object:
    schema = _schema(code, prefix)
    # Merge keys depend on the field that holds the owner; types are named after it.
    owner = {"ObjectMeta": "metadata", "Container": "containers"}.get(name)
    if owner is None:
        owner = "status" if name.endswith("Status") else "spec" if name.endswith("Spec") else ""
    if code[0] == "[":
        key = merge_key(owner, field)
        if key is not None:
            schema["x-kubernetes-patch-merge-key"] = key
            schema["x-kubernetes-patch-strategy"] = "merge"
        elif merges_values(owner, field):
            schema["x-kubernetes-patch-strategy"] = "merge"
    return schema


def _schema(code: str, prefix: str) -> Object:
    if code[0] == "[":
        return {"type": "array", "items": _schema(code[1:-1], prefix)}
    if code[0] == "{":
        return {"type": "object", "additionalProperties": _schema(code[1:-1], prefix)}
    if code in ("n", "q"):
        return dict(_EITHER[prefix]) if code == "n" else {"type": "string"}
    if code in _SIMPLE:
        return dict(_SIMPLE[code])
    reference = {"$ref": f"{prefix}{schema_name(code)}"}
    return reference if prefix == _V2 else {"allOf": [reference], "default": {}}


def _kind_of(served: ServedVersion) -> Object:
    return {"group": served.group, "kind": served.resource.kind, "version": served.version}


def _paths(served: Iterable[ServedVersion], prefix: str) -> dict[str, Object]:
    paths: dict[str, Object] = {}
    for served_version in served:
        root = (
            f"/apis/{served_version.group}/{served_version.version}"
            if served_version.group
            else "/api/v1"
        )
        within = []
        if served_version.resource.namespaced:
            root += "/namespaces/{namespace}"
            within.append(_path_parameter("namespace", prefix))
        collection = f"{root}/{served_version.resource.plural}"
        paths[collection] = {"post": _operation(served_version, "post", prefix)}
        paths[f"{collection}/{{name}}"] = {
            method: _operation(served_version, method, prefix)
            for method in ("get", "put", "patch", "delete")
        }
        if within:
            paths[collection]["parameters"] = within
        paths[f"{collection}/{{name}}"]["parameters"] = [*within, _path_parameter("name", prefix)]
    return paths


def _path_parameter(name: str, prefix: str) -> Object:
    typed: Object = {"schema": {"type": "string"}} if prefix == _V3 else {"type": "string"}
    return {"name": name, "in": "path", "required": True, **typed}


def _operation(served: ServedVersion, method: str, prefix: str) -> Object:
    parameters: list[Object] = []
    for name, kind in _QUERY if method != "get" else ():
        typed: Object = {"schema": {"type": kind}} if prefix == _V3 else {"type": kind}
        parameters.append({"name": name, "in": "query", **typed})
    action = {"post": "create", "put": "replace"}.get(method, method)
    operation: Object = {
        "operationId": f"{action}{served.group}{served.version}{served.resource.kind}",
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": {"post": "post"}.get(method, method),
        "x-kubernetes-group-version-kind": _kind_of(served),
    }
    reference = {"$ref": f"{prefix}{schema_name(type_of(served))}"}
    if method in ("post", "put", "patch"):
        media = _PATCH_TYPES if method == "patch" else ("application/json", "application/yaml")
        body = {} if method == "patch" else reference
        if prefix == _V3:
            operation["requestBody"] = {
                "content": {media_type: {"schema": body} for media_type in media}
            }
        else:
            operation["consumes"] = list(media)
            parameters.append({"name": "body", "in": "body", "required": True, "schema": body})
    return operation
