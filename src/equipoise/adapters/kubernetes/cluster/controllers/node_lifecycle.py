"""The controller of nodes: conditions, taints of nodes that are down, and evictions by taints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from equipoise.adapters.kubernetes.api.resources import NODES, PODS
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind
from equipoise.adapters.kubernetes.cluster.reactions import (
    Key,
    Reactions,
    is_deleted,
    key_of_object,
    phase_of,
    with_condition,
)
from equipoise.sim.pods.pod_time import PodTimer

Object = dict[str, Any]
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
NOT_READY: Final = "node.kubernetes.io/not-ready"
_NO_EXECUTE: Final = "NoExecute"
_MS_PER_S: Final = 1000
_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)


class NodeLifecycle:
    """Writes what is known of nodes, and evicts pods from nodes that do not answer."""

    def __init__(self, reactions: Reactions, tolerated_ms: int, *, removes_evicted: bool) -> None:
        self._reactions = reactions
        self._store = reactions.store
        self._time = reactions.time
        self._tolerated_ms = tolerated_ms
        self._removes_evicted = removes_evicted
        self._evictions: dict[Key, PodTimer] = {}
        self._pods_of: dict[str, dict[Key, None]] = {}
        """Pods by the node that they are bound to."""
        reactions.read(self._on_node, NODES)
        reactions.read(self._on_pod, PODS)

    def _on_node(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        if change.kind is ChangeKind.DELETED:
            return
        before = [] if change.old is None else _no_execute(change.old)
        after = _no_execute(change.object)
        if before != after:
            for key in self._pods_of.get(name, {}):
                self._reactions.mark(self, key)

    def _on_pod(self, change: Change) -> None:
        key, node = key_of_object(change.object), change.object["spec"].get("nodeName")
        if not node:
            return
        if change.kind is ChangeKind.DELETED:
            self._pods_of.get(node, {}).pop(key, None)
            self._cancel(key)
        elif key not in self._pods_of.setdefault(node, {}):
            self._pods_of[node][key] = None
            self._reactions.mark(self, key)

    def _cancel(self, key: Key) -> None:
        timer = self._evictions.pop(key, None)
        if timer is not None:
            timer.cancel()

    def reconcile(self, key: Key) -> None:
        """Evict a pod now or later, if the taints of its node say so."""
        self._cancel(key)
        pod = self._store.find(PODS, key[1], key[0])
        if pod is None or phase_of(pod) in ("Succeeded", "Failed"):
            return
        node = self._store.find(NODES, pod["spec"].get("nodeName") or "")
        if node is None or is_deleted(pod):
            return
        waits_ms = [self._tolerated(pod, taint) for taint in _no_execute(node)]
        limited = [wait_ms for wait_ms in waits_ms if wait_ms is not None]
        if limited:
            at_ms = self._time.now_ms + min(limited)
            uid = pod["metadata"]["uid"]
            self._evictions[key] = self._time.at(at_ms, lambda: self._evict(key, uid))

    def _tolerated(self, pod: Object, taint: Object) -> int | None:
        """Return how long a pod tolerates a taint; None if for ever."""
        found: list[int | None] = []
        for toleration in pod["spec"].get("tolerations") or ():
            if _tolerates(toleration, taint):
                seconds = toleration.get("tolerationSeconds")
                found.append(None if seconds is None else max(0, int(seconds)) * _MS_PER_S)
        if not found:
            return self._tolerated_ms if taint.get("key") in (UNREACHABLE, NOT_READY) else 0
        limited = [wait_ms for wait_ms in found if wait_ms is not None]
        return min(limited) if limited else None

    def _evict(self, key: Key, uid: str) -> None:
        self._evictions.pop(key, None)
        pod = self._store.find(PODS, key[1], key[0])
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        condition = {
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "The pod does not tolerate a taint of its node",
        }  # fmt: skip
        self._condition(PODS, key, condition)
        grace_s = 0 if self._removes_evicted else None
        self._store.delete(PODS, key[1], key[0], grace_s=grace_s)

    def welcome(self, name: str) -> None:
        """Write the conditions of a node that has just been added, unless it states them."""
        now = self._store.timestamp()

        def changed(body: Object) -> Object:
            status = dict(body.get("status") or {})
            known = {condition["type"]: condition for condition in status.get("conditions") or ()}
            status["conditions"] = [
                known.get(kind)
                or {
                    "type": kind, "status": value, "reason": reason, "message": "",
                    "lastHeartbeatTime": now, "lastTransitionTime": now,
                }
                for kind, value, reason in _CONDITIONS
            ]  # fmt: skip
            status.setdefault("capacity", dict(status.get("allocatable") or {}))
            status.setdefault("addresses", [{"type": "Hostname", "address": name}])
            status.setdefault("nodeInfo", _NODE_INFO)
            return {**body, "status": status}

        self._store.update(NODES, name, "", changed)

    def lost(self, name: str) -> None:
        """A node has not answered for too long."""
        if self._store.find(NODES, name) is None:
            return
        reason = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
        for kind, _, _ in _CONDITIONS:
            self._condition(NODES, ("", name), {"type": kind, "status": "Unknown", **reason})
        self._store.update(NODES, name, "", lambda body: _tainted(body, self._store.timestamp()))
        for key in list(self._pods_of.get(name, {})):
            pod = self._store.find(PODS, key[1], key[0])
            if pod is not None and phase_of(pod) == "Running":
                not_ready = {"type": "Ready", "status": "False", "reason": "NodeNotReady"}
                self._condition(PODS, key, not_ready)

    def found(self, name: str) -> None:
        """A node answers again."""
        if self._store.find(NODES, name) is None:
            return
        for kind, value, reason in _CONDITIONS:
            condition = {"type": kind, "status": value, "reason": reason, "message": ""}
            self._condition(NODES, ("", name), condition)
        self._store.update(NODES, name, "", _untainted)

    def _condition(self, resource: Any, key: Key, condition: Object) -> None:
        now = self._store.timestamp()

        def changed(body: Object) -> Object:
            status = dict(body.get("status") or {})
            status["conditions"] = with_condition(status.get("conditions") or [], condition, now)
            return {**body, "status": status}

        self._store.update(resource, key[1], key[0], changed)


_NODE_INFO: Final[Mapping[str, str]] = {
    "kubeletVersion": "v1.36.0", "kubeProxyVersion": "", "osImage": "simulated",
    "containerRuntimeVersion": "simulated://1", "operatingSystem": "linux",
    "architecture": "amd64", "kernelVersion": "", "machineID": "", "systemUUID": "", "bootID": "",
}  # fmt: skip


def _no_execute(node: Object) -> list[Object]:
    taints = (node.get("spec") or {}).get("taints") or ()
    return [taint for taint in taints if taint.get("effect") == _NO_EXECUTE]


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key, operator = toleration.get("key"), toleration.get("operator") or "Equal"
    if key and key != taint.get("key"):
        return False
    if operator == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


def _tainted(body: Object, now: str) -> Object:
    spec = body.get("spec") or {}
    added = [
        {"key": UNREACHABLE, "effect": effect, "timeAdded": now}
        for effect in ("NoSchedule", _NO_EXECUTE)
    ]
    taints = [taint for taint in spec.get("taints") or () if taint.get("key") != UNREACHABLE]
    return {**body, "spec": {**spec, "taints": [*taints, *added]}}


def _untainted(body: Object) -> Object:
    spec = dict(body.get("spec") or {})
    taints = [taint for taint in spec.get("taints") or () if taint.get("key") != UNREACHABLE]
    spec["taints"] = taints
    if not taints:
        del spec["taints"]
    return {**body, "spec": spec}
