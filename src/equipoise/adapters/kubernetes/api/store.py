"""The objects of the cluster, with one counter of versions and the history that watches need.

A stored object is never changed, only replaced, so a reader may keep what it has read. Listeners
receive every change in the order of versions, also the changes that other listeners make.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from equipoise.adapters.kubernetes.api import errors
from equipoise.adapters.kubernetes.api.admission.defaults import complete, seal
from equipoise.adapters.kubernetes.api.admission.identity import Identities, rfc3339
from equipoise.adapters.kubernetes.api.admission.validation import check_new, check_replaced
from equipoise.adapters.kubernetes.api.resources import (
    ALL_RESOURCES,
    EVENTS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    Resource,
)
from equipoise.adapters.kubernetes.api.storage.collection import (
    Change,
    ChangeKind,
    Collection,
    key_of,
    object_key,
)

__all__ = ["Change", "ChangeKind", "DeleteOptions", "ObjectStore", "key_of", "object_key"]

Object = dict[str, Any]
Objects = list[Object]
Names = list[str]

FIRST_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_SYSTEM_CLASSES: Final = (
    ("system-cluster-critical", 2_000_000_000, "must run in the cluster, may move to another node"),
    ("system-node-critical", 2_000_001_000, "must run on its node"),
)
_FINALIZER_OF_POLICY: Final = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
_EVENT_LIFE_MS: Final = 3_600_000


Changes = list[Change]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """What a client may ask of a deletion besides the grace period and the uid."""

    version: str = ""
    """The version that the object must have."""
    propagation: str = ""
    """``Foreground`` or ``Orphan``; anything else deletes dependents in the background."""
    dry_run: bool = False


class ObjectStore:
    """All objects of all collections."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        epoch_ms: int = 1_700_000_000_000,
        history_max: int = 50_000,
        seed: int = 0,
        not_ready_tolerations: bool = False,
    ) -> None:
        self.version = 0
        """The version of the last change; every change takes the next one."""
        self.not_ready_tolerations = not_ready_tolerations
        """Whether new pods tolerate nodes that are not ready or unreachable for five minutes."""
        self._now_ms = now_ms
        self._epoch_ms = epoch_ms
        self._identities = Identities(seed)
        self._collections = {resource: Collection(history_max) for resource in ALL_RESOURCES}
        self._listeners: list[tuple[Resource | None, Callable[[Change], None]]] = []
        self._unpublished: deque[Change] = deque()
        self._is_publishing = False
        self._objects = 0
        self._count_by_namespace: dict[str, int] = {}
        self._event_ends: deque[tuple[int, str, str]] = deque()
        for name in FIRST_NAMESPACES:
            self.create(NAMESPACES, {"metadata": {"name": name}})
        for name, value, description in _SYSTEM_CLASSES:
            body = {"metadata": {"name": name}, "value": value, "description": description}
            self.create(PRIORITY_CLASSES, body)

    # Time

    @property
    def now_ms(self) -> int:
        """Return the virtual time since the start of the run."""
        return self._now_ms()

    @property
    def wall_ms(self) -> int:
        """Return the time of day of the cluster, in milliseconds since 1970."""
        return self._epoch_ms + self._now_ms()

    def read_wall_ms(self) -> int:
        """Return the time of day of the cluster, for those that keep the function."""
        return self._epoch_ms + self._now_ms()

    def timestamp(self) -> str:
        """Return the virtual time in RFC 3339 with seconds."""
        return rfc3339(self.wall_ms)

    # Reading

    @property
    def objects(self) -> int:
        """Return how many objects all collections have."""
        return self._objects

    def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return an object, or None."""
        return self._collections[resource].objects.get(key_of(name, namespace))

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """Return an object, or raise ``ApiError`` 404."""
        found = self._collections[resource].objects.get(key_of(name, namespace))
        if found is None:
            raise errors.not_found(resource.group, resource.plural, name)
        return found

    def list(
        self,
        resource: Resource,
        namespace: str = "",
        matches: Callable[[Object], bool] | None = None,
    ) -> Objects:
        """Return objects in the order of their namespaces and names."""
        within = namespace if resource.namespaced else ""
        objects = self._collections[resource].in_namespace(within)
        return objects if matches is None else [stored for stored in objects if matches(stored)]

    def count(self, resource: Resource) -> int:
        """Return how many objects a collection has."""
        return len(self._collections[resource].objects)

    def list_at(self, resource: Resource, version: int, namespace: str = "") -> Objects:
        """Return the objects as they were at a version, or raise ``ApiError`` 410."""
        self.check_reached(version)
        return self._collections[resource].at(version, namespace)

    def changes_since(self, resource: Resource, version: int) -> Changes:
        """Return the changes after a version, or raise ``ApiError`` 410 if some are forgotten."""
        self.check_reached(version)
        return self._collections[resource].changes_since(version)

    def check_reached(self, version: int) -> None:
        """Raise ``ApiError`` 410 for a version that this store has not reached.

        It is from the life of another store: the client has to list again.
        """
        if version > self.version:
            raise errors.gone(f"too large resource version: {version} ({self.version})")

    def subscribe(
        self, listener: Callable[[Change], None], resource: Resource | None = None
    ) -> Callable[[], None]:
        """Call a function for every change from now on. Return what ends that."""
        entry = (resource, listener)
        # A new list each time, so that a publication that is in progress is not disturbed.
        self._listeners = [*self._listeners, entry]

        def unsubscribe() -> None:
            self._listeners = [other for other in self._listeners if other is not entry]

        return unsubscribe

    # Writing

    def create(
        self, resource: Resource, body: Object, namespace: str = "", *, dry_run: bool = False
    ) -> Object:
        """Store a new object with its defaults and return it."""
        metadata = dict(body.get("metadata") or {})
        if resource.namespaced:
            namespace = self._agreed_namespace(metadata, namespace)
            metadata["namespace"] = namespace
        else:
            metadata.pop("namespace", None)
            namespace = ""
        collection = self._collections[resource]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._generated_name(collection, metadata, namespace)
        name = metadata.get("name") or ""
        if metadata.get("resourceVersion"):
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        stored = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        stored["apiVersion"], stored["kind"] = resource.api_version, resource.kind
        stored["metadata"] = metadata
        check_new(resource, stored)
        key = key_of(name, namespace)
        if key in collection.objects:
            raise errors.already_exists(resource.group, resource.plural, name)
        if namespace:
            self._check_namespace_accepts(resource, name, namespace)
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            metadata.pop(field, None)
        of = f"{resource.group}/{resource.plural}/{key}"
        metadata["uid"] = self._identities.uid(of, drawn=not dry_run)
        metadata["creationTimestamp"] = self.timestamp()
        if resource.generation:
            metadata["generation"] = 1
        stored = complete(resource, stored, self)
        if dry_run:
            return stored
        if resource is EVENTS:
            self._expire_events(key, metadata["uid"])
        return self._store(resource, ChangeKind.ADDED, stored, None)

    def replace(
        self, resource: Resource, body: Object, *, subresource: str = "", dry_run: bool = False
    ) -> Object:
        """Replace an object, or a part of it, unless it has changed since the client read it."""
        metadata = body.get("metadata") or {}
        name, namespace = metadata.get("name") or "", metadata.get("namespace") or ""
        if not resource.namespaced:
            namespace = ""
        current = self.get(resource, name, namespace)
        self._check_preconditions(
            resource, current, metadata.get("uid") or "", metadata.get("resourceVersion") or ""
        )
        wanted = seal(resource, current, body, subresource)
        check_replaced(resource, current, wanted, subresource)
        return self._put(resource, current, wanted, dry_run=dry_run)

    def update(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        change: Callable[[Object], Object],
    ) -> Object:
        """Replace an object by what a function of it returns; without a change, keep the version.

        For writers in this process: the function may change specification and status at once.
        """
        current = self.get(resource, name, namespace)
        return self._put(resource, current, change(current))

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        grace_s: int | None = None,
        uid: str = "",
        options: DeleteOptions | None = None,
    ) -> Object:
        """Delete an object, or begin to: pods that run end first, finalizers keep an object.

        The propagation policies ``Foreground`` and ``Orphan`` become finalizers, which the garbage
        collector of the simulated cluster handles and removes.
        """
        options = options or DeleteOptions()
        current = self.get(resource, name, namespace)
        self._check_preconditions(resource, current, uid, options.version)
        dry_run = options.dry_run
        if resource is NAMESPACES:
            return self._delete_namespace(current, dry_run=dry_run)
        metadata = current["metadata"]
        grace_s = self._grace_s(resource, current, grace_s)
        finalizers = list(metadata.get("finalizers") or ())
        extra = _FINALIZER_OF_POLICY.get(options.propagation)
        if extra and extra not in finalizers:
            finalizers.append(extra)
        if grace_s == 0 and not finalizers:
            if dry_run:
                return current
            return self._remove(resource, current)
        wanted = {**current, "metadata": self._dying(metadata, grace_s, finalizers)}
        return self._put(resource, current, wanted, dry_run=dry_run)

    def bind(
        self,
        namespace: str,
        name: str,
        node: str,
        *,
        uid: str = "",
        annotations: dict[str, str] | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Assign a pod to a node, once."""
        current = self.get(PODS, name, namespace)
        metadata, spec = current["metadata"], current["spec"]
        if uid and uid != metadata["uid"]:
            raise _uid_conflict(PODS, name, uid, metadata["uid"])
        if metadata.get("deletionTimestamp"):
            why = f"pod {name} is being deleted, cannot be assigned to a host"
            raise errors.conflict("", "pods/binding", name, why)
        if spec.get("nodeName"):
            why = f"pod {name} is already assigned to node {spec['nodeName']!r}"
            raise errors.conflict("", "pods/binding", name, why)
        if spec.get("schedulingGates"):
            why = f"pod {name} has non-empty .spec.schedulingGates"
            raise errors.conflict("", "pods/binding", name, why)
        now = self.timestamp()
        status = current.get("status") or {}
        scheduled = {"type": "PodScheduled", "status": "True"}
        scheduled["lastTransitionTime"] = now
        conditions = [
            condition
            for condition in status.get("conditions") or ()
            if condition.get("type") != "PodScheduled"
        ]
        wanted = {
            **current,
            "spec": {**spec, "nodeName": node},
            "status": {**status, "conditions": [*conditions, scheduled]},
        }
        if annotations:
            merged = {**(metadata.get("annotations") or {}), **annotations}
            wanted["metadata"] = {**metadata, "annotations": merged}
        return self._put(PODS, current, wanted, dry_run=dry_run, counts=False)

    # The parts of writing

    def _agreed_namespace(self, metadata: Object, namespace: str) -> str:
        written = metadata.get("namespace") or ""
        if namespace and written and namespace != written:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the"
                " request"
            )
        return namespace or written or "default"

    def _generated_name(self, collection: Collection, metadata: Object, namespace: str) -> str:
        while True:
            name = self._identities.name(metadata["generateName"])
            if key_of(name, namespace) not in collection.objects:
                return name

    def _check_namespace_accepts(self, resource: Resource, name: str, namespace: str) -> None:
        found = self.find(NAMESPACES, namespace)
        if found is None:
            raise errors.not_found("", "namespaces", namespace)
        if found["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace}: it is being terminated"
            raise errors.forbidden(resource.group, resource.plural, name, why)

    def _check_preconditions(
        self, resource: Resource, current: Object, uid: str, version: str
    ) -> None:
        metadata = current["metadata"]
        if uid and uid != metadata["uid"]:
            raise _uid_conflict(resource, metadata["name"], uid, metadata["uid"])
        if version and version != metadata["resourceVersion"]:
            why = (
                "the object has been modified; please apply your changes to the latest version"
                " and try again"
            )
            raise errors.conflict(resource.group, resource.plural, metadata["name"], why)

    def _grace_s(self, resource: Resource, current: Object, grace_s: int | None) -> int:
        if resource is not PODS:
            return 0
        spec, status = current.get("spec") or {}, current.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
            return 0
        if grace_s is None:
            grace_s = spec.get("terminationGracePeriodSeconds", 30)
        grace_s = max(grace_s, 0)
        before: int | None = current["metadata"].get("deletionGracePeriodSeconds")
        return grace_s if before is None else min(grace_s, before)

    def _dying(self, metadata: Object, grace_s: int, finalizers: Names) -> Object:
        """Return the metadata of an object that is being deleted; a second deletion may hurry."""
        wanted = dict(metadata)
        if finalizers:
            wanted["finalizers"] = finalizers
        before = metadata.get("deletionGracePeriodSeconds")
        if not metadata.get("deletionTimestamp") or (before is not None and grace_s < before):
            wanted["deletionTimestamp"] = rfc3339(self.wall_ms + grace_s * 1000)
            wanted["deletionGracePeriodSeconds"] = grace_s
        return wanted

    def _put(
        self,
        resource: Resource,
        current: Object,
        wanted: Object,
        *,
        dry_run: bool = False,
        counts: bool = True,
    ) -> Object:
        """Store a changed object, or remove it when its last finalizer is gone."""
        if wanted is current or wanted == current:
            return current
        if counts and resource.generation and wanted.get("spec") != current.get("spec"):
            metadata = dict(wanted["metadata"])
            metadata["generation"] = (current["metadata"].get("generation") or 0) + 1
            wanted = {**wanted, "metadata": metadata}
        if dry_run:
            return wanted
        stored = self._store(resource, ChangeKind.MODIFIED, wanted, current)
        metadata = stored["metadata"]
        if (
            metadata.get("deletionTimestamp")
            and current["metadata"].get("finalizers")
            and not metadata.get("finalizers")
            and not metadata.get("deletionGracePeriodSeconds")
        ):
            return self._remove(resource, stored)
        return stored

    def _store(
        self, resource: Resource, kind: ChangeKind, wanted: Object, old: Object | None
    ) -> Object:
        """Give a state the next version, keep it and publish it."""
        self.version += 1
        metadata = {**wanted["metadata"], "resourceVersion": str(self.version)}
        stored = {**wanted, "metadata": metadata}
        namespace = metadata.get("namespace") or ""
        change = Change(resource, kind, stored, old, self.version)
        self._collections[resource].keep(change)
        difference = (kind is ChangeKind.ADDED) - (kind is ChangeKind.DELETED)
        self._objects += difference
        if namespace and difference:
            counts = self._count_by_namespace
            counts[namespace] = counts.get(namespace, 0) + difference
        self._publish(change)
        return stored

    def _remove(self, resource: Resource, current: Object) -> Object:
        last = self._store(resource, ChangeKind.DELETED, current, current)
        namespace = current["metadata"].get("namespace")
        if namespace and not self._count_by_namespace[namespace]:
            self._remove_empty_namespace(namespace)
        return last

    def _publish(self, change: Change) -> None:
        """Give a change to the listeners, after those that they have not got yet."""
        self._unpublished.append(change)
        if self._is_publishing:
            return
        self._is_publishing = True
        try:
            while self._unpublished:
                published = self._unpublished.popleft()
                for resource, listener in self._listeners:
                    if resource is None or resource is published.resource:
                        listener(published)
        finally:
            self._is_publishing = False

    def _delete_namespace(self, current: Object, *, dry_run: bool) -> Object:
        """Delete what is in a namespace, then the namespace, when its last pod has ended."""
        name = current["metadata"]["name"]
        if name in FIRST_NAMESPACES:
            raise errors.forbidden("", "namespaces", name, "this namespace may not be deleted")
        wanted = {
            **current,
            "metadata": self._dying(current["metadata"], 0, []),
            "status": {**(current.get("status") or {}), "phase": "Terminating"},
        }
        stored = self._put(NAMESPACES, current, wanted, dry_run=dry_run)
        if dry_run:
            return stored
        for resource in ALL_RESOURCES:
            if resource.namespaced:
                for inner in self.list(resource, name):
                    # A listener or an earlier deletion may have removed it already.
                    inner_name = inner["metadata"]["name"]
                    if self.find(resource, inner_name, name) is not None:
                        self.delete(resource, inner_name, name)
        if not self._count_by_namespace.get(name):
            self._remove_empty_namespace(name)
        return stored

    def _remove_empty_namespace(self, name: str) -> None:
        found = self.find(NAMESPACES, name)
        if found is None or not found["metadata"].get("deletionTimestamp"):
            return
        if not found["metadata"].get("finalizers"):
            self._remove(NAMESPACES, found)
            self._count_by_namespace.pop(name, None)

    def _expire_events(self, key: str, uid: str) -> None:
        """Remove events that are an hour old, as the real API does."""
        now = self._now_ms()
        while self._event_ends and self._event_ends[0][0] <= now:
            _, ended, ended_uid = self._event_ends.popleft()
            stored = self._collections[EVENTS].objects.get(ended)
            if stored is not None and stored["metadata"]["uid"] == ended_uid:
                self._remove(EVENTS, stored)
        self._event_ends.append((now + _EVENT_LIFE_MS, key, uid))


def _uid_conflict(resource: Resource, name: str, wanted: str, found: str) -> errors.ApiError:
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return errors.conflict(resource.group, resource.plural, name, why)
