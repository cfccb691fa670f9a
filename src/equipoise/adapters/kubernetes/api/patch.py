"""The three forms of a patch: strategic merge, JSON merge (RFC 7386) and JSON patch (RFC 6902).

A patched object is a new one and shares what the patch does not touch. Which lists merge, and by
which key their items are the same, is part of the Kubernetes API and written down here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from equipoise.adapters.kubernetes.api.errors import ApiError, bad_request

Object = dict[str, Any]

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_MERGE_KEYS: Final[Mapping[tuple[str, str], str]] = {
    ("status", "conditions"): "type",
    ("status", "addresses"): "type",
    ("status", "podIPs"): "ip",
    ("status", "hostIPs"): "ip",
    ("status", "reservedFor"): "uid",
    ("metadata", "ownerReferences"): "uid",
    ("spec", "ports"): "port",
    ("spec", "drivers"): "name",
    ("spec", "volumes"): "name",
    ("spec", "imagePullSecrets"): "name",
    ("spec", "hostAliases"): "ip",
    ("spec", "topologySpreadConstraints"): "topologyKey",
    ("spec", "schedulingGates"): "name",
    ("spec", "resourceClaims"): "name",
    ("", "secrets"): "name",
    ("", "imagePullSecrets"): "name",
    **{("spec", name): "name" for name in _CONTAINERS},
    **{
        (container, name): key
        for container in _CONTAINERS
        for name, key in (
            ("env", "name"), ("ports", "containerPort"), ("volumeMounts", "mountPath"),
            ("volumeDevices", "devicePath"),
        )
    },
}  # fmt: skip
"""Lists that merge: the field in which the list's owner is, the field of the list, and its key."""

_MERGED_VALUES: Final = {("metadata", "finalizers"), ("spec", "podCIDRs")}
_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE_VALUES: Final = "$deleteFromPrimitiveList/"
_OPERATIONS_MAX: Final = 10_000
_COPIED_BYTES_MAX: Final = 3 * 1024 * 1024


def merge_key(owner: str, field: str) -> str | None:
    """Return the key by which the items of a list are the same; None if the list is one value."""
    return _MERGE_KEYS.get((owner, field))


def merges_values(owner: str, field: str) -> bool:
    """Return whether a list of values is a set: a merge adds to it."""
    return (owner, field) in _MERGED_VALUES


# JSON merge patch


def merge_patch(target: Any, patch: Any) -> Any:
    """Return a value after a JSON merge patch: null removes, objects merge, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


# Strategic merge patch


def strategic_merge(target: Object, patch: Object, owner: str = "") -> Object:
    """Return an object after a strategic merge patch. ``owner`` is the field the object is in."""
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"Unknown patch type found: {directive}")
    merged = dict(target)
    retained = patch.get(_RETAIN)
    if isinstance(retained, list):
        merged = {key: value for key, value in merged.items() if key in retained}
    for key, value in patch.items():
        if key.startswith(_DELETE_VALUES):
            field = key.removeprefix(_DELETE_VALUES)
            removed = _as_list(value, key)
            if isinstance(merged.get(field), list):
                merged[field] = [item for item in merged[field] if item not in removed]
        elif not key.startswith("$"):
            _merge_field(merged, key, value, owner, patch)
    return merged


def _merge_field(merged: Object, key: str, value: Any, owner: str, patch: Object) -> None:
    before = merged.get(key)
    if value is None:
        merged.pop(key, None)
    elif isinstance(value, dict):
        if value.get(_DIRECTIVE) == "delete":
            merged.pop(key, None)
        else:
            merged[key] = strategic_merge(before if isinstance(before, dict) else {}, value, key)
    elif isinstance(value, list):
        order = patch.get(_ORDER + key)
        merged[key] = _merge_list(
            before if isinstance(before, list) else [],
            value, owner, key, order if isinstance(order, list) else None,
        )  # fmt: skip
    else:
        merged[key] = value


def _merge_list(
    before: list[Any], patch: list[Any], owner: str, field: str, order: list[Any] | None
) -> list[Any]:
    if merges_values(owner, field):
        return [*before, *(item for item in patch if item not in before)]
    key = merge_key(owner, field)
    if key is None:
        return [item for item in patch if not _is_directive(item, "replace")]
    if any(_is_directive(item, "replace") and key not in item for item in patch):
        return [item for item in patch if not _is_directive(item, "replace")]
    items: dict[Any, Any] = {}
    for item in before:
        items[_identity(item, key, field)] = item
    for item in patch:
        identity = _identity(item, key, field)
        if _is_directive(item, "delete"):
            items.pop(identity, None)
        elif _is_directive(item, "replace"):
            items[identity] = {name: part for name, part in item.items() if name != _DIRECTIVE}
        else:
            items[identity] = strategic_merge(items.get(identity) or {}, item, field)
    if order is not None:
        return _ordered(items, [_identity(item, key, field) for item in order])
    return list(items.values())


def _is_directive(item: Any, directive: str) -> bool:
    return isinstance(item, dict) and item.get(_DIRECTIVE) == directive


def _identity(item: Any, key: str, field: str) -> Any:
    identity = item.get(key) if isinstance(item, dict) else None
    if not isinstance(identity, str | int):
        raise bad_request(f"{field}: an item does not contain declared merge key: {key}")
    return identity


def _ordered(items: dict[Any, Any], order: list[Any]) -> list[Any]:
    """Return items in a given order. Items that it does not name stay before their successors."""
    listed = [identity for identity in dict.fromkeys(order) if identity in items]
    following: dict[Any, list[Any]] = {}
    waiting: list[Any] = []
    for identity in items:
        if identity in listed:
            following.setdefault(identity, []).extend(waiting)
            waiting = []
        else:
            waiting.append(identity)
    result: list[Any] = []
    for identity in listed:
        result += [items[other] for other in following.get(identity, ())]
        result.append(items[identity])
    return result + [items[identity] for identity in waiting]


def _as_list(value: Any, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise bad_request(f"{key} must be a list")
    return value


# JSON patch


def json_patch(target: Any, operations: Any) -> Any:
    """Return a value after the operations of a JSON patch; all succeed, or none is applied."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch must be a list of operations")
    if len(operations) > _OPERATIONS_MAX:
        text = f"The allowed maximum operations in a JSON patch is {_OPERATIONS_MAX}"
        raise ApiError(413, "RequestEntityTooLarge", text)
    budget = [_COPIED_BYTES_MAX]
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise bad_request("an operation of a JSON patch must be an object with a path")
        target = _operate(target, operation, budget)
    return target


def _operate(target: Any, operation: Object, budget: list[int]) -> Any:
    """Return a value after one operation. ``budget`` holds the bytes that may still be copied."""
    name, tokens = operation.get("op"), _tokens(operation["path"])
    if name in ("add", "replace", "test"):
        if "value" not in operation:
            raise bad_request(f"operation {name} needs a value")
        return _apply(target, tokens, name, operation["value"])
    if name == "remove":
        return _edit(target, tokens, _remove)
    if name not in ("move", "copy"):
        raise bad_request(f"Unexpected kind: {name}")
    if not isinstance(operation.get("from"), str):
        raise bad_request(f"operation {name} needs from")
    source = _tokens(operation["from"])
    value = _read(target, source)
    if name == "move":
        if tokens[: len(source)] == source != tokens:
            raise _unprocessable("a value cannot move into itself")
        target = _edit(target, source, _remove)
    else:
        # Copies of copies would double without end.
        budget[0] -= len(msgspec.json.encode(value))
        if budget[0] < 0:
            text = "the copies of the JSON patch are too large"
            raise ApiError(413, "RequestEntityTooLarge", text)
    return _apply(target, tokens, "add", value)


def _unprocessable(message: str) -> ApiError:
    return ApiError(
        422,
        "Invalid",
        f"the server rejected our request due to an error in our request: {message}",
        {},
    )


def _tokens(pointer: str) -> list[str]:
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise bad_request(f"{pointer!r} is no JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _read(node: Any, tokens: list[str]) -> Any:
    for token in tokens:
        if isinstance(node, dict) and token in node:
            node = node[token]
        elif isinstance(node, list):
            node = node[_index(node, token)]
        else:
            raise _unprocessable(f"the path has no {token!r}")
    return node


def _index(node: list[Any], token: str, *, may_append: bool = False) -> int:
    if may_append and token == "-":
        return len(node)
    if not (token.isascii() and token.isdigit() and len(token) < 7) or (  # noqa: PLR2004
        len(token) > 1 and token[0] == "0"
    ):
        raise _unprocessable(f"{token!r} is no index")
    index = int(token)
    if index > len(node) - (not may_append):
        raise _unprocessable(f"the index {token} is out of range")
    return index


def _apply(target: Any, tokens: list[str], name: str, value: Any) -> Any:
    if name == "test":
        if not _is_same(_read(target, tokens), value):
            raise _unprocessable(f"testing value /{'/'.join(tokens)} failed")
        return target
    if not tokens:
        return value

    def change(node: Any, token: str) -> Any:
        if isinstance(node, dict):
            if name == "replace" and token not in node:
                raise _unprocessable(f"the path has no {token!r}")
            return {**node, token: value}
        if isinstance(node, list):
            if name == "replace":
                index = _index(node, token)
                return [*node[:index], value, *node[index + 1 :]]
            index = _index(node, token, may_append=True)
            return [*node[:index], value, *node[index:]]
        raise _unprocessable(f"{token!r} is in no object and no list")

    return _edit(target, tokens, change)


def _is_same(value: Any, other: Any) -> bool:
    """Whether two values are equal in JSON, where a truth value is no number."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(
            _is_same(value[key], other[key]) for key in value
        )
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_is_same, value, other))
    return bool(value == other) and isinstance(value, bool) is isinstance(other, bool)


def _remove(node: Any, token: str) -> Any:
    if isinstance(node, dict):
        if token not in node:
            raise _unprocessable(f"the path has no {token!r}")
        return {key: value for key, value in node.items() if key != token}
    if isinstance(node, list):
        index = _index(node, token)
        return [*node[:index], *node[index + 1 :]]
    raise _unprocessable(f"{token!r} is in no object and no list")


def _edit(target: Any, tokens: list[str], change: Callable[[Any, str], Any]) -> Any:
    """Return a value whose node above the last token is changed by a function."""
    if not tokens:
        raise _unprocessable("the whole object cannot be removed")
    nodes = [target]
    for token in tokens[:-1]:
        nodes.append(_read(nodes[-1], [token]))
    changed = change(nodes[-1], tokens[-1])
    for node, token in zip(reversed(nodes[:-1]), reversed(tokens[:-1]), strict=True):
        if isinstance(node, dict):
            changed = {**node, token: changed}
        else:
            index = _index(node, token)
            changed = [*node[:index], changed, *node[index + 1 :]]
    return changed
