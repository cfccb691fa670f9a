"""Server-side apply: merges what a manager applies and removes what it applied before.

Another value of a field that another manager applies is a conflict, unless the manager forces it.
Writes without apply own nothing here, so they are no conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from equipoise.adapters.kubernetes.api.errors import ApiError, cause
from equipoise.adapters.kubernetes.api.patch import merge_key, merges_values, strategic_merge
from equipoise.adapters.kubernetes.api.verbs.rendering import encode

Object = dict[str, Any]

_NOT_OWNED: Final = frozenset({"apiVersion", "kind"})
_METADATA_NOT_OWNED: Final = frozenset(
    {"name", "namespace", "managedFields", "resourceVersion", "uid", "creationTimestamp",
     "generation"}
)  # fmt: skip


_ABSENT: Final = object()
Path = tuple[str, ...]
"""The steps to a field, as ``FieldsV1`` writes them."""


@dataclass(frozen=True, slots=True)
class Applier:
    """Who applies, to which part of an object, and whether it takes fields from others."""

    name: str
    subresource: str = ""
    force: bool = False


def apply(current: Object | None, body: Object, manager: Applier, now: str) -> Object:
    """Return the object after a manager applies its part; ``ApiError`` 409 in a conflict."""
    metadata = {
        key: value for key, value in (body.get("metadata") or {}).items() if key != "managedFields"
    }
    body = {**body, "metadata": metadata}
    owned = _fields_of(body)
    entry: Object = {
        "manager": manager.name, "operation": "Apply", "apiVersion": body.get("apiVersion") or "",
        "time": now, "fieldsType": "FieldsV1", "fieldsV1": owned,
    }  # fmt: skip
    if manager.subresource:
        entry["subresource"] = manager.subresource
    if current is None:
        return {**body, "metadata": {**metadata, "managedFields": [entry]}}
    before, others = _entries(current, manager)
    others = _without_conflicts(current, body, owned, others, manager)
    kept = current
    if before is not None:
        dropped = _minus(before.get("fieldsV1") or {}, owned)
        for other in others:
            if other.get("operation") == "Apply":
                dropped = _minus(dropped, _readable(other.get("fieldsV1")))
        kept = _without(current, dropped)
        if encode(before.get("fieldsV1")) == encode(owned):
            entry["time"] = before.get("time") or now
    merged = strategic_merge(kept, body)
    merged["metadata"] = {**merged["metadata"], "managedFields": [*others, entry]}
    return merged


def _entries(current: Object, manager: Applier) -> tuple[Object | None, list[Object]]:
    found, others = None, []
    for entry in current["metadata"].get("managedFields") or ():
        is_own = (entry.get("manager"), entry.get("operation")) == (manager.name, "Apply")
        if is_own and (entry.get("subresource") or "") == manager.subresource:
            found = {**entry, "fieldsV1": _readable(entry.get("fieldsV1"))}
        else:
            others.append(entry)
    return found, others


def _readable(fields: Any) -> Object:
    """Return a set of fields; what a client has written of another type owns nothing below."""
    if not isinstance(fields, dict):
        return {}
    return {key: _readable(inner) for key, inner in fields.items()}


# Conflicts


def _without_conflicts(
    current: Object, body: Object, owned: Object, others: list[Object], manager: Applier
) -> list[Object]:
    """Return the entries of other managers without the fields that are forced from them."""
    causes, left = [], []
    for other in others:
        fields = _readable(other.get("fieldsV1"))
        is_applied = other.get("operation") == "Apply"
        found = list(_conflicts(owned, fields, body, current)) if is_applied else []
        text = f'conflict with "{other.get("manager")}"'
        causes += [cause(_shown(path), "FieldManagerConflict", text) for path in found]
        for path in found:
            fields = _minus_path(fields, path)
        left.append({**other, "fieldsV1": fields} if found else other)
    if causes and not manager.force:
        count = f"{len(causes)} conflict{'s' if len(causes) > 1 else ''}"
        listed = ", ".join(f"{conflict['message']}: {conflict['field']}" for conflict in causes)
        details = {"causes": causes}
        raise ApiError(409, "Conflict", f"Apply failed with {count}: {listed}", details)
    return left


def _conflicts(
    owned: Object, others: Object, body: Any, current: Any, path: Path = ()
) -> Iterator[Path]:
    """Yield the fields that both own, and whose value the body changes."""
    for key, inner in owned.items():
        if key not in others or key == "." or key.startswith("v:"):
            continue
        wanted, found = _part(body, key), _part(current, key)
        if inner and others[key]:
            yield from _conflicts(inner, others[key], wanted, found, (*path, key))
        elif not isinstance(wanted, dict) and wanted != found and found is not _ABSENT:
            yield (*path, key)


def _part(node: Any, key: str) -> Any:
    """Return the part of an object or a list that a key of ``FieldsV1`` names."""
    if key.startswith("f:"):
        return node.get(key[2:], _ABSENT) if isinstance(node, dict) else _ABSENT
    wanted: Object = msgspec.json.decode(key[2:])
    for item in node if isinstance(node, list) else ():
        if isinstance(item, dict) and wanted.items() <= item.items():
            return item
    return _ABSENT


def _shown(path: Path) -> str:
    """Return a path as Kubernetes writes it: ``.spec.containers[name="c"].image``."""
    text = ""
    for key in path:
        if key.startswith("f:"):
            text += f".{key[2:]}"
        else:
            parts = msgspec.json.decode(key[2:]).items()
            text += f"[{','.join(f'{name}={encode(value).decode()}' for name, value in parts)}]"
    return text


def _minus_path(fields: Object, path: Path) -> Object:
    first, *rest = path
    if not rest:
        return {key: inner for key, inner in fields.items() if key != first}
    return {**fields, first: _minus_path(fields[first], tuple(rest))}


# Fields


def _fields_of(body: Object) -> Object:
    """Return the set of fields of an object, in the form of ``FieldsV1``."""
    fields: Object = {}
    for key, value in body.items():
        if key == "metadata":
            part = {name: inner for name, inner in value.items() if name not in _METADATA_NOT_OWNED}
            if part:
                fields["f:metadata"] = _fields(part, "metadata")
        elif key not in _NOT_OWNED:
            fields[f"f:{key}"] = _value_fields(value, "", key)
    return fields


def _fields(part: Mapping[str, Any], owner: str) -> Object:
    return {f"f:{key}": _value_fields(value, owner, key) for key, value in part.items()}


def _value_fields(value: Any, owner: str, field: str) -> Object:
    if isinstance(value, dict):
        return _fields(value, field)
    if isinstance(value, list):
        if merges_values(owner, field):
            return {f"v:{encode(item).decode()}": {} for item in value}
        key = merge_key(owner, field)
        if key is not None:
            return {
                _item_key(key, item): {".": {}, **_fields(item, field)}
                for item in value
                if isinstance(item, dict)
            }
    return {}


def _item_key(key: str, item: Object) -> str:
    return f"k:{encode({key: item.get(key)}).decode()}"


def _minus(fields: Object, other: Object) -> Object:
    """Return the fields that another set does not have."""
    rest: Object = {}
    for key, inner in fields.items():
        if key not in other:
            rest[key] = inner
        elif inner and isinstance(inner, dict) and isinstance(other[key], dict):
            deeper = _minus(inner, other[key])
            if deeper:
                rest[key] = deeper
    return rest


def _without(node: Any, dropped: Object, owner: str = "") -> Any:
    """Return an object without fields. One of which all parts go, goes too."""
    kept = dict(node)
    for key, inner in dropped.items():
        if not key.startswith("f:") or key[2:] not in kept:
            continue
        field = key[2:]
        value = kept[field]
        if not inner:
            del kept[field]
        elif isinstance(value, dict):
            rest = _without(value, inner, field)
            if rest or not value:
                kept[field] = rest
            else:
                del kept[field]
        elif isinstance(value, list):
            kept[field] = _without_items(value, inner, owner, field)
    return kept


def _without_items(items: list[Any], dropped: Object, owner: str, field: str) -> list[Any]:
    if merges_values(owner, field):
        return [item for item in items if f"v:{encode(item).decode()}" not in dropped]
    key = merge_key(owner, field) or ""
    kept = []
    for item in items:
        inner = dropped.get(_item_key(key, item)) if isinstance(item, dict) else None
        if inner is None:
            kept.append(item)
        elif "." not in inner:
            kept.append(_without(item, inner, field))
    return kept
