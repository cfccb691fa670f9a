"""The controller of Deployments: one ReplicaSet for each template, and rolling updates."""

from __future__ import annotations

import json
from hashlib import blake2b
from math import ceil
from typing import Any, Final

from equipoise.adapters.kubernetes.api.resources import DEPLOYMENTS, REPLICA_SETS
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind
from equipoise.adapters.kubernetes.cluster.reactions import (
    Key,
    Reactions,
    is_deleted,
    key_of_object,
    owner_of,
    owner_reference,
    with_condition,
)

Object = dict[str, Any]
_KIND: Final = "Deployment"
_HASH: Final = "pod-template-hash"
_REVISION: Final = "deployment.kubernetes.io/revision"
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH: Final = 10
_PERCENT: Final = 100


class Deployments:
    """Scales the ReplicaSets of Deployments."""

    def __init__(self, reactions: Reactions) -> None:
        self._reactions = reactions
        self._store = reactions.store
        self._sets: dict[str, dict[str, Key]] = {}
        """ReplicaSets by the id of their Deployment and their own id, the oldest first."""
        reactions.read(self._on_set, REPLICA_SETS)
        reactions.read(self._on_change, DEPLOYMENTS)

    def _on_change(self, change: Change) -> None:
        if change.kind is ChangeKind.DELETED:
            self._sets.pop(change.object["metadata"]["uid"], None)
        else:
            self._reactions.mark(self, key_of_object(change.object))

    def _on_set(self, change: Change) -> None:
        body = change.object
        owner = owner_of(body, _KIND)
        if owner is None:
            return
        known, uid = self._sets.setdefault(owner["uid"], {}), body["metadata"]["uid"]
        if change.kind is ChangeKind.DELETED:
            known.pop(uid, None)
        else:
            known[uid] = key_of_object(body)
        self._reactions.mark(self, (body["metadata"]["namespace"], owner["name"]))

    def reconcile(self, key: Key) -> None:
        """Go one step from the old templates to the present one."""
        namespace, name = key
        body = self._store.find(DEPLOYMENTS, name, namespace)
        if body is None or is_deleted(body):
            return
        present = self._present_set(body)
        if not body["spec"].get("paused"):
            if (body["spec"].get("strategy") or {}).get("type") == "Recreate":
                self._recreate(body, present)
            else:
                self._roll(body, present)
        self._forget_old(body, present)
        self._write_status(body, present)

    def _all_sets(self, body: Object) -> list[Object]:
        keys = self._sets.get(body["metadata"]["uid"], {})
        found = (self._store.find(REPLICA_SETS, name, space) for space, name in keys.values())
        return [
            replica_set
            for replica_set in found
            if replica_set is not None and not is_deleted(replica_set)
        ]

    def _present_set(self, body: Object) -> Key:
        """Return the ReplicaSet of the present template; create it if there is none."""
        metadata, spec = body["metadata"], body["spec"]
        template_hash = _hash(spec["template"])
        name = f"{metadata['name']}-{template_hash}"
        key = metadata["namespace"], name
        if self._store.find(REPLICA_SETS, name, metadata["namespace"]) is not None:
            return key
        template = spec["template"]
        labels = {**((template.get("metadata") or {}).get("labels") or {}), _HASH: template_hash}
        selector = spec.get("selector") or {}
        match_labels = {**(selector.get("matchLabels") or {}), _HASH: template_hash}
        revision = 1 + max(
            (_revision(replica_set) for replica_set in self._all_sets(body)), default=0
        )
        created = self._store.create(
            REPLICA_SETS,
            {
                "metadata": {
                    "name": name,
                    "namespace": metadata["namespace"],
                    "labels": labels,
                    "annotations": {_REVISION: str(revision)},
                    "ownerReferences": [owner_reference(body)],
                },
                "spec": {
                    "replicas": 0,
                    "selector": {**selector, "matchLabels": match_labels},
                    "template": {
                        **template,
                        "metadata": {**(template.get("metadata") or {}), "labels": labels},
                    },
                },
            },
            metadata["namespace"],
        )
        known = self._sets.setdefault(metadata["uid"], {})
        known[created["metadata"]["uid"]] = key
        return key

    def _recreate(self, body: Object, present: Key) -> None:
        old = [
            replica_set
            for replica_set in self._all_sets(body)
            if key_of_object(replica_set) != present
        ]
        for replica_set in old:
            self._scale(key_of_object(replica_set), 0)
        if not any(_status(replica_set, "replicas") for replica_set in old):
            self._scale(present, _replicas(body))

    def _roll(self, body: Object, present: Key) -> None:
        """Add as many new pods as may be too many, remove as many old ones as may be missing."""
        desired = _replicas(body)
        surge, missing = _limits(body, desired)
        sets = self._all_sets(body)
        new = next(replica_set for replica_set in sets if key_of_object(replica_set) == present)
        old = [replica_set for replica_set in sets if replica_set is not new]
        # Pods that are to go, but have not been deleted yet, count too.
        total = sum(
            max(_replicas(replica_set), _status(replica_set, "replicas")) for replica_set in sets
        )
        more = min(desired + surge - total, desired - _replicas(new))
        if _replicas(new) > desired or more > 0:
            # The change of the ReplicaSet marks the Deployment again.
            self._scale(present, min(desired, _replicas(new) + max(0, more)))
            return
        available = sum(_status(replica_set, "availableReplicas") for replica_set in sets)
        not_there = _replicas(new) - _status(new, "availableReplicas")
        removable = sum(map(_replicas, sets)) - (desired - missing) - not_there
        # Old pods that are not ready go first: their removal makes nothing worse.
        for replica_set in old:
            unready = _replicas(replica_set) - _status(replica_set, "availableReplicas")
            count = max(0, min(unready, removable))
            removable -= count
            self._scale(key_of_object(replica_set), _replicas(replica_set) - count)
        removable = min(removable, available - (desired - missing))
        for replica_set in old:
            current = self._store.get(REPLICA_SETS, replica_set["metadata"]["name"], present[0])
            count = max(0, min(_replicas(current), removable))
            removable -= count
            self._scale(key_of_object(replica_set), _replicas(current) - count)

    def _scale(self, key: Key, replicas: int) -> None:
        self._store.update(
            REPLICA_SETS, key[1], key[0],
            lambda body: {**body, "spec": {**body["spec"], "replicas": replicas}},
        )  # fmt: skip

    def _forget_old(self, body: Object, present: Key) -> None:
        """Delete the oldest ReplicaSets without pods, beyond those that are kept to go back to."""
        kept = body["spec"].get("revisionHistoryLimit", 10)
        empty = [
            replica_set
            for replica_set in self._all_sets(body)
            if key_of_object(replica_set) != present
            and not _replicas(replica_set)
            and not _status(replica_set, "replicas")
        ]
        empty.sort(key=_revision)
        for replica_set in empty[: max(0, len(empty) - kept)]:
            self._store.delete(REPLICA_SETS, replica_set["metadata"]["name"], present[0])

    def _write_status(self, body: Object, present: Key) -> None:
        sets = self._all_sets(body)
        new = next(
            (replica_set for replica_set in sets if key_of_object(replica_set) == present), {}
        )
        desired = _replicas(body)
        missing = _limits(body, desired)[1]
        counts = {
            key: sum(_status(replica_set, key) for replica_set in sets)
            for key in ("replicas", "readyReplicas", "availableReplicas")
        }
        updated = _status(new, "replicas")
        available = counts["availableReplicas"]
        enough = available >= desired - missing
        complete = updated == counts["replicas"] == desired and available >= desired
        conditions: list[Object] = [
            {"type": "Available", "status": str(enough),
             "reason": f"MinimumReplicas{'A' if enough else 'Una'}vailable"},
            {"type": "Progressing", "status": "True",
             "reason": "NewReplicaSetAvailable" if complete else "ReplicaSetUpdated"},
        ]  # fmt: skip
        now = self._store.timestamp()

        def changed(current: Object) -> Object:
            status = dict(current.get("status") or {})
            known = status.get("conditions") or []
            for condition in conditions:
                known = with_condition(known, condition, now)
            status |= {
                **counts,
                "updatedReplicas": updated,
                "unavailableReplicas": max(0, counts["replicas"] - available),
                "observedGeneration": current["metadata"].get("generation", 1),
                "conditions": known,
            }
            return {**current, "status": status}

        namespace, name = key_of_object(body)
        self._store.update(DEPLOYMENTS, name, namespace, changed)


def _replicas(body: Object) -> int:
    return int(body["spec"].get("replicas", 1))


def _status(body: Object, key: str) -> int:
    return int((body.get("status") or {}).get(key) or 0)


def _revision(body: Object) -> int:
    text = (body["metadata"].get("annotations") or {}).get(_REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _limits(body: Object, desired: int) -> tuple[int, int]:
    """Return how many pods may be too many, and how many may be missing, during an update."""
    rolling = (body["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = resolve_share(rolling.get("maxSurge", "25%"), desired, up=True)
    missing = resolve_share(rolling.get("maxUnavailable", "25%"), desired, up=False)
    # Both 0 would be an update that never begins.
    return surge, missing if surge or missing else 1


def resolve_share(value: object, of: int, *, up: bool) -> int:
    """Return a number, or a percentage of another number, rounded up or down."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        share = int(value[:-1]) * of
        return ceil(share / _PERCENT) if up else share // _PERCENT
    return int(value) if isinstance(value, int | str) and str(value).isdecimal() else 0


def _hash(template: Object) -> str:
    """Return letters that name a template."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    number = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
    letters = ""
    for _ in range(_HASH_LENGTH):
        number, index = divmod(number, len(_LETTERS))
        letters += _LETTERS[index]
    return letters
