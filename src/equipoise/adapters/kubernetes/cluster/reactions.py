"""Calls controllers when objects change: each reads a change, and reconciles what it marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from equipoise.adapters.kubernetes.api.errors import ApiError
from equipoise.adapters.kubernetes.api.resources import Resource
from equipoise.adapters.kubernetes.api.store import Change, ObjectStore
from equipoise.sim.pods.pod_time import PodTime, PodTimer

Object = dict[str, Any]
Key = tuple[str, str]
"""The namespace and the name of an object."""


class Reconciler(Protocol):
    """A controller: brings one object to its desired state, from what the store has now."""

    def reconcile(self, key: Key) -> None:
        """Do what is needed for the object with this key, if it is still there."""
        ...


class Reactions:
    """The controllers of a cluster, and the objects that each of them has to look at."""

    def __init__(self, store: ObjectStore, time: PodTime) -> None:
        self.store = store
        self.time = time
        self._readers: dict[Resource | None, list[Callable[[Change], None]]] = {}
        self._marked: dict[tuple[Reconciler, Key], None] = {}
        self._is_running = False
        store.subscribe(self._on_change)

    def read(self, reader: Callable[[Change], None], resource: Resource | None = None) -> None:
        """Call a function for each change of a resource, or of any, before reconciling."""
        self._readers.setdefault(resource, []).append(reader)

    def mark(self, reconciler: Reconciler, key: Key) -> None:
        """An object has to be looked at, once for any number of marks."""
        self._marked[reconciler, key] = None

    def at(self, at_ms: int, reconciler: Reconciler, key: Key) -> PodTimer:
        """Look at an object at a later time."""

        def due() -> None:
            self.mark(reconciler, key)
            self.run()

        return self.time.at(max(at_ms, self.time.now_ms), due)

    def _on_change(self, change: Change) -> None:
        for reader in self._readers.get(None, ()):
            reader(change)
        for reader in self._readers.get(change.resource, ()):
            reader(change)
        self.run()

    def run(self) -> None:
        """Reconcile all that is marked. The changes that this makes are published afterwards."""
        if self._is_running:
            return
        self._is_running = True
        try:
            while self._marked:
                mark = next(iter(self._marked))
                del self._marked[mark]
                reconciler, key = mark
                try:
                    reconciler.reconcile(key)
                except ApiError:
                    # A client was faster, or the namespace is about to go: a later change marks
                    # the object again.
                    continue
        finally:
            self._is_running = False


def key_of_object(body: Object) -> Key:
    """Return the namespace and the name of an object."""
    metadata = body["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def owner_of(body: Object, kind: str) -> Object | None:
    """Return the reference to the controller of an object, if it is of this kind."""
    for reference in body["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference.get("kind") == kind:
            found: Object = reference
            return found
    return None


def owner_reference(owner: Object) -> Object:
    """Return the reference by which an object names its controller."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from_template(owner: Object, template: Object, name: str = "") -> Object:
    """Return the manifest of a pod of a controller."""
    metadata = template.get("metadata") or {}
    named = {"name": name} if name else {"generateName": f"{owner['metadata']['name']}-"}
    return {
        "metadata": {
            **named,
            "namespace": owner["metadata"]["namespace"],
            "labels": dict(metadata.get("labels") or {}),
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": template.get("spec") or {},
    }


def phase_of(pod: Object) -> str:
    """Return the phase of a pod."""
    phase: str = (pod.get("status") or {}).get("phase") or "Pending"
    return phase


def is_ready(pod: Object) -> bool:
    """Return whether a pod has the condition Ready."""
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in (pod.get("status") or {}).get("conditions") or ()
    )


def is_deleted(body: Object) -> bool:
    """Return whether the deletion of an object was requested."""
    return bool(body["metadata"].get("deletionTimestamp"))


def with_condition(
    conditions: list[Object], condition: Object, now: str, *, time_key: str = "lastTransitionTime"
) -> list[Object]:
    """Return conditions with one that is new or has changed; an equal one keeps its time."""
    found = []
    before: Object | None = None
    for other in conditions:
        if other.get("type") == condition["type"]:
            before = other
        else:
            found.append(other)
    at = now
    if before is not None and before.get("status") == condition["status"]:
        at = before.get(time_key, now)
    return [*found, {**condition, time_key: at}]
