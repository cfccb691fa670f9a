"""Server-side apply: merges what a manager applies and removes what it applied before.

The last manager wins: there are no conflicts between managers, and ``force`` changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from equipoise.adapters.kubernetes.api.patch import merge_key, merges_values, strategic_merge
from equipoise.adapters.kubernetes.api.verbs.rendering import encode

Object = dict[str, Any]

_NOT_OWNED: Final = frozenset({"apiVersion", "kind"})
_METADATA_NOT_OWNED: Final = frozenset(
    {"name", "namespace", "managedFields", "resourceVersion", "uid", "creationTimestamp",
     "generation"}
)  # fmt: skip


def apply(
    current: Object | None, body: Object, manager: str, now: str, subresource: str = ""
) -> Object:
    """Return the object after a manager applies its part of it."""
    metadata = {
        key: value for key, value in (body.get("metadata") or {}).items() if key != "managedFields"
    }
    body = {**body, "metadata": metadata}
    owned = _fields_of(body)
    entry: Object = {
        "manager": manager, "operation": "Apply", "apiVersion": body.get("apiVersion") or "",
        "time": now, "fieldsType": "FieldsV1", "fieldsV1": owned,
    }  # fmt: skip
    if subresource:
        entry["subresource"] = subresource
    if current is None:
        return {**body, "metadata": {**metadata, "managedFields": [entry]}}
    before, others = _entries(current, manager, subresource)
    kept = current
    if before is not None:
        dropped = _minus(before.get("fieldsV1") or {}, owned)
        for other in others:
            if other.get("operation") == "Apply":
                dropped = _minus(dropped, other.get("fieldsV1") or {})
        kept = _without(current, dropped)
        if encode(before.get("fieldsV1")) == encode(owned):
            entry["time"] = before.get("time") or now
    merged = strategic_merge(kept, body)
    merged["metadata"] = {**merged["metadata"], "managedFields": [*others, entry]}
    return merged


def _entries(current: Object, manager: str, subresource: str) -> tuple[Object | None, list[Object]]:
    found, others = None, []
    for entry in current["metadata"].get("managedFields") or ():
        is_own = (entry.get("manager"), entry.get("operation")) == (manager, "Apply")
        if is_own and (entry.get("subresource") or "") == subresource:
            found = entry
        else:
            others.append(entry)
    return found, others


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
