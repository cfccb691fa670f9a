"""What the controller of Jobs knows of one Job: its pods, and how its finished ones ended."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any, Final

from equipoise.adapters.kubernetes.cluster.controllers.owned_pods import OwnedPods
from equipoise.adapters.kubernetes.cluster.reactions import phase_of
from equipoise.sim.jobs.host_set import format_bits
from equipoise.sim.pods.pod_time import PodTimer

Object = dict[str, Any]
INDEX: Final = "batch.kubernetes.io/job-completion-index"
_BACKOFF_MS: Final = 10_000
_BACKOFF_MS_MAX: Final = 360_000
_DOUBLINGS_MAX: Final = 16


class JobPods:
    """The pods of one Job. A pod that has ended counts once, also if it is deleted later."""

    def __init__(self) -> None:
        self.pods = OwnedPods()
        self.succeeded = 0
        self.failed = 0
        self.completed_indexes = 0
        """The indexes whose pods have succeeded, as bits."""
        self.retry_ms = 0
        """When the next pod may be created after failures."""
        self.timer: PodTimer | None = None
        self._failures_in_row = 0
        self._counted: set[str] = set()
        self._restarts: dict[str, int] = {}
        self._indexes: dict[str, int] = {}
        """The indexes of pods that wait or run."""
        self._free_indexes: list[int] = []
        self._next_index = 0

    @property
    def restarts(self) -> int:
        """How often the containers of its active pods have restarted."""
        return sum(self._restarts.values())

    @property
    def completed_text(self) -> str:
        """The completed indexes as a status has them: ``0-3,5``."""
        return format_bits(self.completed_indexes).replace(" ", ",")

    def put(self, pod: Object, now_ms: int) -> None:
        """A pod is new or has changed."""
        uid = pod["metadata"]["uid"]
        phase = phase_of(pod)
        self.pods.put(pod)
        if uid in self._counted:
            return
        index = _index_of(pod)
        if index is not None and uid not in self._indexes:
            self._indexes[uid] = index
        if phase == "Succeeded":
            self._count_success(uid, index)
        elif phase == "Failed":
            self._count_failure(uid, now_ms)
        else:
            self._count_restarts(uid, pod)

    def remove(self, pod: Object, now_ms: int) -> None:
        """A pod has gone; one that had not ended has failed."""
        self.pods.remove(pod)
        uid = pod["metadata"]["uid"]
        if uid not in self._counted:
            self._count_failure(uid, now_ms)

    def give_up(self, uid: str) -> None:
        """The controller deletes this pod itself: that is no failure."""
        self._counted.add(uid)
        self._release(uid)

    def next_indexes(self, count: int, completions: int) -> Iterator[int]:
        """Yield the lowest indexes that no pod has or had with success."""
        while count > 0:
            if self._free_indexes:
                index = heappop(self._free_indexes)
            elif self._next_index < completions:
                index = self._next_index
                self._next_index += 1
            else:
                return
            if not self.completed_indexes >> index & 1:
                count -= 1
                yield index

    def _count_success(self, uid: str, index: int | None) -> None:
        self.succeeded += 1
        self._counted.add(uid)
        self._failures_in_row = 0
        self.retry_ms = 0
        self._restarts.pop(uid, None)
        self._indexes.pop(uid, None)
        if index is not None:
            self.completed_indexes |= 1 << index

    def _count_failure(self, uid: str, now_ms: int) -> None:
        self.failed += 1
        self._counted.add(uid)
        wait_ms = _BACKOFF_MS << min(self._failures_in_row, _DOUBLINGS_MAX)
        self.retry_ms = now_ms + min(wait_ms, _BACKOFF_MS_MAX)
        self._failures_in_row += 1
        self._release(uid)

    def _release(self, uid: str) -> None:
        self._restarts.pop(uid, None)
        index = self._indexes.pop(uid, None)
        if index is not None:
            heappush(self._free_indexes, index)

    def _count_restarts(self, uid: str, pod: Object) -> None:
        statuses = (pod.get("status") or {}).get("containerStatuses") or ()
        restarts = sum(status.get("restartCount") or 0 for status in statuses)
        if restarts:
            self._restarts[uid] = restarts


def _index_of(pod: Object) -> int | None:
    text = (pod["metadata"].get("annotations") or {}).get(INDEX)
    return int(text) if text is not None and text.isdecimal() else None
