"""The pods of one controller, counted by what they do, so that no reconciliation lists them."""

from __future__ import annotations

from typing import Any

from equipoise.adapters.kubernetes.cluster.reactions import (
    Key,
    is_deleted,
    is_ready,
    key_of_object,
    phase_of,
)

Object = dict[str, Any]


class OwnedPods:
    """Pods by their ids. A pod that the controller has just created may be added twice."""

    __slots__ = ("active", "ended", "ready", "terminating")

    def __init__(self) -> None:
        self.active: dict[str, Object] = {}
        """Pods that wait or run, in the order of their creation."""
        self.ready: dict[str, None] = {}
        self.terminating: dict[str, Key] = {}
        """Pods that wait or run and are being deleted."""
        self.ended: dict[str, Key] = {}
        """Pods that have succeeded or failed and are still there."""

    def put(self, pod: Object) -> None:
        """A pod is new or has changed."""
        uid = pod["metadata"]["uid"]
        if phase_of(pod) in ("Succeeded", "Failed"):
            self._clear(uid)
            self.ended[uid] = key_of_object(pod)
        elif is_deleted(pod):
            self._clear(uid)
            self.terminating[uid] = key_of_object(pod)
        elif uid not in self.ended and uid not in self.terminating:
            self.active[uid] = pod
            if is_ready(pod):
                self.ready[uid] = None
            else:
                self.ready.pop(uid, None)

    def remove(self, pod: Object) -> None:
        """A pod has gone."""
        uid = pod["metadata"]["uid"]
        self._clear(uid)
        self.terminating.pop(uid, None)
        self.ended.pop(uid, None)

    def _clear(self, uid: str) -> None:
        self.active.pop(uid, None)
        self.ready.pop(uid, None)

    def surplus(self, count: int) -> list[Key]:
        """Return pods that should go first: those without a node, not ready, or new."""
        if count <= 0:
            return []  # most calls: they must not look at all pods
        order = {uid: number for number, uid in enumerate(self.active)}

        def urgency(uid: str) -> tuple[bool, bool, int]:
            bound = bool(self.active[uid]["spec"].get("nodeName"))
            return bound, uid in self.ready, -order[uid]

        chosen = sorted(self.active, key=urgency)[:count]
        return [key_of_object(self.active[uid]) for uid in chosen]
