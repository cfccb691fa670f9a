"""The nodes and pods that a scheduler knows from its watches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from equipoise.adapters.kubernetes.client.pod_view import (
    NodeView,
    PodView,
    read_node_view,
    read_pod_view,
)

Object = dict[str, Any]


class ClusterView:
    """Nodes with the pods on them, and the pods that wait for this scheduler."""

    def __init__(self, scheduler_name: str) -> None:
        self._scheduler = scheduler_name
        self.nodes: dict[str, NodeView] = {}
        self.pods: dict[str, PodView] = {}
        """All pods that have not ended, by uid."""
        self.waiting: dict[str, PodView] = {}
        self.changed = False
        """Whether a pod that waits may have a node now."""
        self.freed = False
        """Whether a pod has ended or a node has come since the last look at the balance."""
        self.now_s = 0.0
        """The latest time that an object states: the clock of the API."""
        self._count = 0

    def apply(self, resource: str, kind: str, body: Object) -> None:
        """Follow one event of a watch."""
        if resource == "nodes":
            self._apply_node(kind, body)
        else:
            self._apply_pod(kind, body)

    def _apply_node(self, kind: str, body: Object) -> None:
        name = body["metadata"]["name"]
        if kind == "DELETED":
            self.changed |= self.nodes.pop(name, None) is not None
            return
        self._see_time(body)
        old, node = self.nodes.get(name), read_node_view(body)
        if old is not None and _demands_equal(old, node):
            return  # only the time of its last report
        for pod in self.pods.values():
            if pod.node == name:
                node.take(pod)
        self.nodes[name] = node
        self.changed = True
        self.freed |= old is None

    def _apply_pod(self, kind: str, body: Object) -> None:
        uid = body["metadata"]["uid"]
        self._see_time(body)
        ended = (body.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
        known = self.pods.get(uid)
        if kind == "DELETED" or ended:
            if known is not None:
                self._forget(known)
            return
        if known is None:
            self._count += 1
        pod = read_pod_view(body, self._count if known is None else known.order)
        if known is not None and known.node and not pod.node:
            pod.node = known.node  # bound by us; the event of the binding is still to come
        self._replace(known, pod)
        is_ours = (body["spec"].get("schedulerName") or "default-scheduler") == self._scheduler
        gated = body["spec"].get("schedulingGates")
        if pod.node or pod.ending or gated or not is_ours:
            self.waiting.pop(uid, None)
        else:
            old = self.waiting.get(uid)
            self.waiting[uid] = pod
            self.changed |= old is None or (old.kind, old.labels) != (pod.kind, pod.labels)

    def _replace(self, known: PodView | None, pod: PodView) -> None:
        if known is not None and known.node in self.nodes:
            self.nodes[known.node].release(known)
        self.pods[pod.uid] = pod
        if pod.node in self.nodes:
            self.nodes[pod.node].take(pod)
        if known is not None and known.node and known.kind != pod.kind:
            self.changed = True  # resized in place

    def _forget(self, pod: PodView) -> None:
        del self.pods[pod.uid]
        self.waiting.pop(pod.uid, None)
        if pod.node in self.nodes:
            self.nodes[pod.node].release(pod)
            self.changed = self.freed = True

    def assume(self, pod: PodView, node: NodeView) -> None:
        """Count a pod on a node before the API says so."""
        pod.node = node.name
        node.take(pod)
        self.waiting.pop(pod.uid, None)

    def revoke(self, pod: PodView) -> None:
        """Undo an assumption: the pod waits again."""
        if pod.node in self.nodes:
            self.nodes[pod.node].release(pod)
        pod.node = ""
        self.waiting[pod.uid] = pod

    def queue(self) -> list[PodView]:
        """Return the pods that wait: the highest priority first, then in order of arrival."""
        return sorted(self.waiting.values(), key=lambda pod: (-pod.priority, pod.order))

    @property
    def has_anti_affinity(self) -> bool:
        """Whether any pod keeps others away."""
        return any(pod.apart for pod in self.pods.values())

    def _see_time(self, body: Object) -> None:
        for text in _times(body):
            try:
                at_s = datetime.fromisoformat(text).timestamp()
            except (TypeError, ValueError):
                continue
            self.now_s = max(self.now_s, at_s)


def _times(body: Object) -> Iterator[Any]:
    metadata, status = body["metadata"], body.get("status") or {}
    yield metadata.get("creationTimestamp", "")
    for condition in status.get("conditions") or ():
        yield condition.get("lastTransitionTime")
    for container in status.get("containerStatuses") or ():
        for state in (container.get("state") or {}).values():
            yield (state or {}).get("finishedAt")


def _demands_equal(old: NodeView, new: NodeView) -> bool:
    return (old.labels, old.taints, old.allocatable) == (new.labels, new.taints, new.allocatable)
