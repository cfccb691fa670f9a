"""The controller of ReplicaSets: keeps as many pods as are desired."""

from __future__ import annotations

from typing import Any

from equipoise.adapters.kubernetes.api.resources import PODS, REPLICA_SETS
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind
from equipoise.adapters.kubernetes.cluster.controllers.owned_pods import OwnedPods
from equipoise.adapters.kubernetes.cluster.reactions import (
    Key,
    Reactions,
    is_deleted,
    key_of_object,
    owner_of,
    pod_from_template,
)

Object = dict[str, Any]
_KIND = "ReplicaSet"


class ReplicaSets:
    """Creates and deletes the pods of ReplicaSets, and counts them in their status."""

    def __init__(self, reactions: Reactions) -> None:
        self._reactions = reactions
        self._store = reactions.store
        self._pods: dict[str, OwnedPods] = {}
        """By the id of the ReplicaSet."""
        reactions.read(self._on_pod, PODS)
        reactions.read(self._on_change, REPLICA_SETS)

    def _on_change(self, change: Change) -> None:
        if change.kind is ChangeKind.DELETED:
            self._pods.pop(change.object["metadata"]["uid"], None)
        else:
            self._reactions.mark(self, key_of_object(change.object))

    def _on_pod(self, change: Change) -> None:
        pod = change.object
        owner = owner_of(pod, _KIND)
        if owner is None:
            return
        pods = self._pods.setdefault(owner["uid"], OwnedPods())
        if change.kind is ChangeKind.DELETED:
            pods.remove(pod)
        else:
            pods.put(pod)
        self._reactions.mark(self, (pod["metadata"]["namespace"], owner["name"]))

    def reconcile(self, key: Key) -> None:
        """Create or delete pods until there are as many as desired."""
        namespace, name = key
        body = self._store.find(REPLICA_SETS, name, namespace)
        if body is None:
            return
        pods = self._pods.setdefault(body["metadata"]["uid"], OwnedPods())
        if not is_deleted(body):
            wanted = int(body["spec"].get("replicas", 1))
            for _ in range(wanted - len(pods.active)):
                manifest = pod_from_template(body, body["spec"]["template"])
                pods.put(self._store.create(PODS, manifest, namespace))
            for surplus in pods.surplus(max(0, len(pods.active) - wanted)):
                self._store.delete(PODS, surplus[1], surplus[0])
                gone = self._store.find(PODS, surplus[1], surplus[0])
                if gone is not None:
                    pods.put(gone)
        self._write_status(key, pods)

    def _write_status(self, key: Key, pods: OwnedPods) -> None:
        count, ready = len(pods.active), len(pods.ready)

        def changed(body: Object) -> Object:
            status: Object = {
                **(body.get("status") or {}),
                "replicas": count,
                "fullyLabeledReplicas": count,
                "readyReplicas": ready,
                "availableReplicas": ready,
                "observedGeneration": body["metadata"].get("generation", 1),
            }
            return {**body, "status": status}

        self._store.update(REPLICA_SETS, key[1], key[0], changed)
