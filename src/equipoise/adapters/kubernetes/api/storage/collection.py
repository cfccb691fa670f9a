"""The objects of one collection in the order of lists, and the history of their changes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from equipoise.adapters.kubernetes.api import errors
from equipoise.adapters.kubernetes.api.resources import Resource

Object = dict[str, Any]


class WatchEventType(StrEnum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


# Inside this package the short name is clear; an upgrade has kinds of changes of its own.
ChangeKind = WatchEventType


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object."""

    resource: Resource
    kind: ChangeKind
    object: Object
    """The new state; of a deleted object the last one, with the version of its deletion."""
    old: Object | None
    version: int


class Collection:
    """The objects of one resource by key, and its changes."""

    __slots__ = ("_history", "_history_max", "_keys", "dropped", "objects")

    def __init__(self, history_max: int) -> None:
        self.objects: dict[str, Object] = {}
        self.dropped = 0
        """The version of the last change that left the history."""
        # Sorted, which is the order of lists.
        self._keys: list[str] = []
        self._history: list[Change] = []
        self._history_max = max(history_max, 1)

    def keep(self, change: Change) -> None:
        """Apply a change, and remember it."""
        key = object_key(change.object)
        if change.kind is ChangeKind.DELETED:
            del self.objects[key]
            del self._keys[bisect_left(self._keys, key)]
        else:
            if key not in self.objects:
                insort(self._keys, key)
            self.objects[key] = change.object
        history = self._history
        history.append(change)
        if len(history) > self._history_max:
            # A part at once, so that a change costs the same at any length of the history.
            forgotten = len(history) - self._history_max + self._history_max // 4
            self.dropped = history[forgotten - 1].version
            del history[:forgotten]

    def in_namespace(self, namespace: str) -> list[Object]:
        """Return the objects of a namespace, or of all, in the order of their keys."""
        objects, keys = self.objects, self._keys
        if namespace:
            # "0" is the character after "/".
            start = bisect_left(keys, f"{namespace}/")
            keys = keys[start : bisect_left(keys, f"{namespace}0", start)]
        return [objects[key] for key in keys]

    def changes_since(self, version: int) -> list[Change]:
        """Return the changes after a version, or raise ``ApiError`` 410 if some are forgotten."""
        if version < self.dropped:
            raise errors.gone(f"too old resource version: {version} ({self.dropped})")
        return self._history[bisect_right(self._history, version, key=_version_of) :]

    def at(self, version: int, namespace: str) -> list[Object]:
        """Return the objects as they were at a version, or raise ``ApiError`` 410."""
        changes = self.changes_since(version)
        if not changes:
            return self.in_namespace(namespace)
        objects = {object_key(stored): stored for stored in self.in_namespace(namespace)}
        for change in reversed(changes):
            if namespace and change.object["metadata"].get("namespace") != namespace:
                continue
            key = object_key(change.object)
            if change.old is None:
                objects.pop(key, None)
            else:
                objects[key] = change.old
        return [objects[key] for key in sorted(objects)]


def key_of(name: str, namespace: str) -> str:
    """Return the key of an object within its collection, whose order is that of lists."""
    return f"{namespace}/{name}" if namespace else name


def object_key(stored: Object) -> str:
    """Return the key of an object within its collection."""
    metadata = stored["metadata"]
    return key_of(metadata["name"], metadata.get("namespace") or "")


def _version_of(change: Change) -> int:
    return change.version
