"""The garbage collector: deletes objects whose owners have gone."""

from __future__ import annotations

from typing import Any, Final

from equipoise.adapters.kubernetes.api.resources import EVENTS, Resource
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind, DeleteOptions
from equipoise.adapters.kubernetes.cluster.reactions import Key, Reactions, is_deleted

Object = dict[str, Any]
_FOREGROUND: Final = "foregroundDeletion"
_ORPHAN: Final = "orphan"
_Place = tuple[Resource, str, str]
"""The collection, the namespace and the name of an object."""


class GarbageCollector:
    """Deletes in the background, in the foreground, or sets dependents free.

    It marks owners by their ids, because an owner may be gone when it is looked at.
    """

    def __init__(self, reactions: Reactions) -> None:
        self._reactions = reactions
        self._store = reactions.store
        self._places: dict[str, _Place] = {}
        """All objects by their ids."""
        self._dependents: dict[str, dict[str, None]] = {}
        """The ids of the objects that name an owner."""
        reactions.read(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.resource is EVENTS:
            return
        metadata = change.object["metadata"]
        uid = metadata["uid"]
        before = () if change.old is None else _owners(change.old)
        after = () if change.kind is ChangeKind.DELETED else _owners(change.object)
        for owner in before:
            if owner not in after:
                self._release(owner, uid)
        for owner in after:
            if owner not in before:
                self._dependents.setdefault(owner, {})[uid] = None
                if owner not in self._places:
                    self._reactions.mark(self, ("", owner))
        if change.kind is ChangeKind.DELETED:
            self._places.pop(uid, None)
            if uid in self._dependents:
                self._reactions.mark(self, ("", uid))
        else:
            place = (change.resource, metadata.get("namespace") or "", metadata["name"])
            self._places[uid] = place
            if is_deleted(change.object) and metadata.get("finalizers"):
                self._reactions.mark(self, ("", uid))

    def _release(self, owner: str, uid: str) -> None:
        """An object names an owner no longer; an owner that waits for it may go."""
        known = self._dependents.get(owner)
        if known is not None:
            known.pop(uid, None)
            if not known:
                del self._dependents[owner]
            if owner in self._places:
                self._reactions.mark(self, ("", owner))

    def reconcile(self, key: Key) -> None:
        """Look at an owner: delete what it leaves, or let it go."""
        uid = key[1]
        place = self._places.get(uid)
        body = None if place is None else self._find(place)
        if place is None or body is None or body["metadata"]["uid"] != uid:
            for dependent in list(self._dependents.get(uid, ())):
                self._owner_has_gone(uid, dependent)
            return
        if not is_deleted(body):
            return
        finalizers = body["metadata"].get("finalizers") or []
        if _ORPHAN in finalizers:
            for dependent in list(self._dependents.get(uid, ())):
                self._set_free(uid, dependent)
            self._drop_finalizer(place, _ORPHAN)
        elif _FOREGROUND in finalizers:
            dependents = self._dependents.get(uid, {})
            if not dependents:
                self._drop_finalizer(place, _FOREGROUND)
            for dependent in list(dependents):
                self._delete(dependent, "Foreground")

    def _find(self, place: _Place) -> Object | None:
        resource, namespace, name = place
        return self._store.find(resource, name, namespace)

    def _owner_has_gone(self, owner: str, uid: str) -> None:
        place = self._places.get(uid)
        body = None if place is None else self._find(place)
        if place is None or body is None:
            return
        others = [other for other in _owners(body) if other != owner and other in self._places]
        if others:
            self._set_free(owner, uid)
        else:
            self._delete(uid, "Background")

    def _delete(self, uid: str, propagation: str) -> None:
        place = self._places.get(uid)
        body = None if place is None else self._find(place)
        if place is None or body is None or is_deleted(body):
            return
        resource, namespace, name = place
        # In the background its own dependents follow when it has gone.
        chosen = propagation if self._dependents.get(uid) else ""
        options = DeleteOptions(propagation=chosen)
        self._store.delete(resource, name, namespace, uid=uid, options=options)

    def _set_free(self, owner: str, uid: str) -> None:
        """Remove a reference to an owner."""
        place = self._places.get(uid)
        if place is None or self._find(place) is None:
            return

        def changed(body: Object) -> Object:
            metadata = body["metadata"]
            kept = [
                reference
                for reference in metadata.get("ownerReferences") or ()
                if reference.get("uid") != owner
            ]
            return {**body, "metadata": {**metadata, "ownerReferences": kept}}

        self._store.update(place[0], place[2], place[1], changed)

    def _drop_finalizer(self, place: _Place, finalizer: str) -> None:
        def changed(body: Object) -> Object:
            metadata = dict(body["metadata"])
            kept = [other for other in metadata.get("finalizers") or () if other != finalizer]
            metadata["finalizers"] = kept
            if not kept:
                del metadata["finalizers"]
            return {**body, "metadata": metadata}

        self._store.update(place[0], place[2], place[1], changed)


def _owners(body: Object) -> tuple[str, ...]:
    references = body["metadata"].get("ownerReferences") or ()
    return tuple(reference.get("uid") or "" for reference in references)
