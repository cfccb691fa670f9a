"""A simulated cluster with a scheduler in the process of the test: first fit, through the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from equipoise.adapters.kubernetes.api.resources import NODES, PODS, RESOURCES
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind, ObjectStore
from equipoise.adapters.kubernetes.cluster.pod_specs import read_amounts, read_requests
from equipoise.adapters.kubernetes.cluster.simulated_cluster import (
    ClusterOptions,
    SimulatedCluster,
)
from equipoise.adapters.kubernetes.workload.pod_workload import PodWorkload
from equipoise.sim.pods.job_records import PodJobRecords
from equipoise.sim.pods.pod_time import PodTime

Object = dict[str, Any]
BY_KIND = {resource.kind: resource for resource in RESOURCES.values()}


class FirstFit:
    """Binds waiting pods in the order of their creation to the first node with room.

    It keeps its own sums from the changes of the store, as a real scheduler does.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._free: dict[str, dict[str, int]] = {}
        self._bound: dict[str, tuple[str, dict[str, int]]] = {}
        self.waiting: dict[str, tuple[str, str, dict[str, int]]] = {}
        self._too_large: dict[tuple[tuple[str, int], ...], None] = {}
        store.subscribe(self._on_node, NODES)
        store.subscribe(self._on_pod, PODS)

    def _on_node(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        if change.kind is ChangeKind.DELETED:
            del self._free[name]
        elif name not in self._free:
            self._free[name] = read_amounts(change.object["status"]["allocatable"])
            self._too_large.clear()

    def _on_pod(self, change: Change) -> None:
        body = change.object
        uid, spec = body["metadata"]["uid"], body["spec"]
        ended = body["status"]["phase"] in ("Succeeded", "Failed")
        if change.kind is ChangeKind.DELETED or ended:
            self.waiting.pop(uid, None)
            node, requests = self._bound.pop(uid, ("", {}))
            if node in self._free:
                self._take(node, requests, -1)
                self._too_large.clear()
        elif spec.get("nodeName"):
            self.waiting.pop(uid, None)
            if uid not in self._bound:
                self._reserve(uid, spec["nodeName"], _requests(spec))
        elif uid not in self.waiting and not body["metadata"].get("deletionTimestamp"):
            metadata = body["metadata"]
            self.waiting[uid] = (metadata["namespace"], metadata["name"], _requests(spec))

    def _reserve(self, uid: str, node: str, requests: dict[str, int]) -> None:
        self._bound[uid] = node, requests
        if node in self._free:
            self._take(node, requests, 1)

    def _take(self, node: str, requests: dict[str, int], sign: int) -> None:
        free = self._free[node]
        for name, amount in requests.items():
            free[name] = free.get(name, 0) - sign * amount

    def schedule(self) -> int:
        """Bind what fits; return how many pods were bound."""
        count = 0
        for uid, (namespace, name, requests) in list(self.waiting.items()):
            kind = tuple(requests.items())
            if kind in self._too_large:
                continue
            node = self._find(requests)
            if node is None:
                self._too_large[kind] = None
            elif uid in self.waiting:
                self._store.bind(namespace, name, node, uid=uid)
                count += 1
        return count

    def _find(self, requests: dict[str, int]) -> str | None:
        for name, free in self._free.items():
            if all(free.get(key, 0) >= amount for key, amount in requests.items()):
                return name
        return None


def _requests(spec: Object) -> dict[str, int]:
    return {**read_requests(spec), "pods": 1}


class World:
    """A cluster, its store, and a scheduler."""

    def __init__(
        self,
        nodes: list[Object],
        options: ClusterOptions | None = None,
        records: Callable[[PodTime], PodJobRecords] | None = None,
        *,
        schedules: bool = True,
        **store_options: Any,
    ) -> None:
        self.time = PodTime()
        self.store = ObjectStore(self.time, **store_options)
        self.records = records(self.time) if records is not None else None
        self.cluster = SimulatedCluster(self.store, options, time=self.time, records=self.records)
        self.scheduler = FirstFit(self.store) if schedules else None
        for node in nodes:
            self.cluster.add_node(node)

    def create(self, body: Object) -> Object:
        return self.store.create(
            BY_KIND[body["kind"]], body, body["metadata"].get("namespace") or ""
        )

    def settle(self) -> None:
        """Schedule and react until nothing more happens at this instant."""
        self.cluster.advance(self.time.now_ms)
        while self.scheduler is not None and self.scheduler.schedule():
            self.cluster.advance(self.time.now_ms)

    def run(self, until_ms: int) -> None:
        """Go from event to event."""
        self.settle()
        while (at_ms := self.cluster.next_event_ms()) is not None and at_ms <= until_ms:
            self.cluster.advance(at_ms)
            self.settle()
        self.cluster.advance(until_ms)

    def run_workload(self, workload: PodWorkload, until_ms: int) -> None:
        """Create objects when they arrive, and go on until nothing happens any more."""
        for at_ms, body in workload.arrivals:
            if at_ms > self.time.now_ms:
                self.run(at_ms)
            self.create(body)
        self.settle()
        while (next_ms := self.cluster.next_event_ms()) is not None and next_ms <= until_ms:
            self.cluster.advance(next_ms)
            self.settle()

    def pods(self) -> list[Object]:
        return self.store.list(PODS)

    def phases(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for pod in self.pods():
            phase = pod["status"]["phase"]
            counts[phase] = counts.get(phase, 0) + 1
        return counts
