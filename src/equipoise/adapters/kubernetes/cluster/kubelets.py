"""The kubelets: they run the pods that are bound to their nodes, and write their status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from equipoise.adapters.kubernetes.annotations import JOB, annotations_of, read_speed
from equipoise.adapters.kubernetes.api.admission.identity import rfc3339
from equipoise.adapters.kubernetes.api.errors import ApiError
from equipoise.adapters.kubernetes.api.resources import NODES, PODS
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind
from equipoise.adapters.kubernetes.cluster.pod_specs import read_node, read_pod
from equipoise.adapters.kubernetes.cluster.pod_status import status_of
from equipoise.adapters.kubernetes.cluster.reactions import (
    Key,
    Reactions,
    is_deleted,
    key_of_object,
    phase_of,
)
from equipoise.sim.pods.cluster import PodCluster
from equipoise.sim.pods.node import PodNode
from equipoise.sim.pods.pod import Pod, PodStage
from equipoise.sim.pods.spec import KubeletOptions

if TYPE_CHECKING:
    from equipoise.sim.pods.job_records import PodJobRecords

Object = dict[str, Any]
_MS_PER_S: Final = 1000
_BYTE: Final = 256
_PHASES_AT_END: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRuntime:
    """How nodes treat pods, with what a pod does not state."""

    kubelet: KubeletOptions = field(default_factory=KubeletOptions)
    image_bytes: Mapping[str, int] = field(default_factory=dict)
    """Sizes of images by name; unknown ones have none."""
    run_ms: int | None = None
    """The duration of pods that state none; None: until they are deleted."""


class Kubelets:
    """All kubelets of a cluster."""

    def __init__(
        self,
        reactions: Reactions,
        pods: PodCluster,
        runtime: NodeRuntime,
        records: PodJobRecords | None = None,
    ) -> None:
        self._store = reactions.store
        self._time = reactions.time
        self._cluster = pods
        self._runtime = runtime
        self._records = records
        self._speeds: dict[str, Fraction | None] = {}
        self._numbers: dict[str, int] = {}
        """Numbers of nodes in the order of their arrival, for their addresses."""
        self._addresses: dict[str, str] = {}
        self._pods_seen = 0
        self._uids: dict[str, str] = {}
        """The pods that kubelets know, by the name in the simulation."""
        self._without_node: dict[str, dict[Key, None]] = {}
        """Pods that name a node which is not there."""
        self._unwritten: dict[Pod, None] = {}
        self._passing: dict[Pod, None] = {}
        """Pods that changed and change again in the same instant."""
        pods.observers.append(self)
        reactions.read(self._on_node, NODES)
        reactions.read(self._on_pod, PODS)

    def settle(self) -> None:
        """Write the status of all pods that have changed in this instant, once each."""
        passing: dict[Pod, None] = {}
        self._unwritten, self._passing = self._passing | self._unwritten, passing
        while self._unwritten:
            pod = next(iter(self._unwritten))
            del self._unwritten[pod]
            if self._starts_now(pod):
                passing[pod] = None
            else:
                self._write(pod)

    def _starts_now(self, pod: Pod) -> bool:
        """Whether a pod leaves its stage in this instant, so that its status would last no time."""
        timer = pod.timer
        return (
            pod.stage is PodStage.PULLING
            and timer is not None
            and not timer.is_cancelled
            and timer.at_ms <= self._time.now_ms
        )

    # The simulation reports

    def pod_changed(self, pod: Pod) -> None:
        """The status is written at the end of the instant."""
        if not self._unwritten:
            # Time must be advanced for it, if only by nothing.
            self._time.at(self._time.now_ms, _do_nothing)
        self._unwritten[pod] = None

    def usage_changed(self, node: PodNode) -> None:
        """The API has no usage."""

    def node_changed(self, node: PodNode) -> None:
        """A node that is down says nothing; the node controller notices it."""

    # The API reports

    def _on_node(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        if change.kind is ChangeKind.DELETED:
            if name in self._cluster.nodes:
                self._cluster.remove_node(name)
            self._speeds.pop(name, None)
            return
        try:
            spec = read_node(change.object)
            self._speeds[name] = read_speed(annotations_of(change.object))
        except ValueError:
            return  # the API refuses such amounts; a node of before keeps its own
        known = self._cluster.nodes.get(name)
        if known is None:
            self._numbers.setdefault(name, len(self._numbers))
            self._cluster.add_node(spec)
            for namespace, pod in self._without_node.pop(name, {}):
                body = self._store.find(PODS, pod, namespace)
                if body is not None:
                    self._take(body)
        elif known.allocatable != spec.allocatable:
            self._cluster.resize_node(name, spec.allocatable)

    def _on_pod(self, change: Change) -> None:
        body = change.object
        name = pod_name(body)
        if change.kind is ChangeKind.ADDED:
            self._submit(name, body)
        if change.kind is ChangeKind.DELETED:
            self._forget(name, body)
        elif name not in self._uids:
            if body["spec"].get("nodeName") and phase_of(body) not in _PHASES_AT_END:
                self._take(body)
        elif is_deleted(body) and name in self._cluster.pods:
            old = change.old
            grace_s = body["metadata"].get("deletionGracePeriodSeconds")
            if (
                old is None
                or not is_deleted(old)
                or old["metadata"].get("deletionGracePeriodSeconds") != grace_s
            ):
                self._cluster.delete_pod(name, (grace_s or 0) * _MS_PER_S)

    def _submit(self, name: str, body: Object) -> None:
        if self._records is None:
            return
        workload, job = _job_of(body)
        try:
            spec = read_pod(name, body, {}, run_ms=self._runtime.run_ms)
        except ValueError:
            self._records.submitted(name, workload=workload, job=job)
            return
        self._records.submitted(
            name,
            workload=workload,
            job=job,
            duration_ms=spec.duration_ms,
            exit_code=spec.exit_codes[0],
            deadline_ms=spec.deadline_ms,
        )

    def _take(self, body: Object) -> None:
        """A pod is bound to a node: its kubelet takes it."""
        key, node = key_of_object(body), body["spec"]["nodeName"]
        if node not in self._cluster.nodes:
            self._without_node.setdefault(node, {})[key] = None
            return
        name = pod_name(body)
        runtime = self._runtime
        try:
            spec = read_pod(name, body, runtime.image_bytes, self._speeds.get(node), runtime.run_ms)
        except ValueError as error:
            self._refuse(key, str(error))
            return
        self._uids[name] = body["metadata"]["uid"]
        self._cluster.start_pod(spec, node)
        if is_deleted(body):
            grace_s = body["metadata"].get("deletionGracePeriodSeconds") or 0
            self._cluster.delete_pod(name, grace_s * _MS_PER_S)

    def _refuse(self, key: Key, message: str) -> None:
        """A pod with an annotation that cannot be read fails, as one with a wrong field."""
        namespace, name = key
        status = {"phase": "Failed", "reason": "InvalidAnnotation", "message": message}
        self._store.update(
            PODS, name, namespace,
            lambda body: {**body, "status": {**(body.get("status") or {}), **status}},
        )  # fmt: skip

    def _forget(self, name: str, body: Object) -> None:
        """A pod has left the API."""
        known = self._uids.get(name) == body["metadata"]["uid"]
        if known:
            del self._uids[name]
            if name in self._cluster.pods:
                self._cluster.remove_pod(name)
        elif body["spec"].get("nodeName"):
            self._without_node.get(body["spec"]["nodeName"], {}).pop(key_of_object(body), None)
        self._addresses.pop(name, None)
        if self._records is not None:
            self._records.withdrawn(name, "deleted")

    # What kubelets write

    def _write(self, pod: Pod) -> None:
        uid = self._uids.get(pod.name)
        if uid is None or pod.stage is PodStage.LOST:
            return
        namespace, _, name = pod.name.partition("/")
        if pod.stage is PodStage.REMOVED:
            try:
                self._store.delete(PODS, name, namespace, grace_s=0, uid=uid)
            except ApiError:
                return  # it has gone meanwhile
            return
        if pod.taken_ms < 0:
            return
        host_ip = self._host_ip(pod.node.name)
        pod_ip = self._pod_ip(pod.name)

        def changed(body: Object) -> Object:
            return {**body, "status": status_of(pod, body, (host_ip, pod_ip), self._timestamp)}

        self._store.update(PODS, name, namespace, changed)

    def _timestamp(self, at_ms: int) -> str:
        return _text_of(self._store.wall_ms - self._time.now_ms + at_ms)

    def _host_ip(self, node: str) -> str:
        return _address(192, 168 * _BYTE * _BYTE + 1 + self._numbers.get(node, 0))

    def _pod_ip(self, name: str) -> str:
        found = self._addresses.get(name)
        if found is None:
            self._pods_seen += 1
            found = self._addresses[name] = _address(10, self._pods_seen)
        return found


@lru_cache(4096)
def _text_of(wall_ms: int) -> str:
    """Return a time of day; the pods of an instant share it."""
    return rfc3339(wall_ms)


def _address(first: int, number: int) -> str:
    """Return an address within the network of its first number."""
    low = number % _BYTE**3
    return f"{first}.{low // _BYTE**2}.{low // _BYTE % _BYTE}.{low % _BYTE}"


def pod_name(body: Object) -> str:
    """Return the name of a pod in the simulation."""
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def _do_nothing() -> None:
    """Keep a place in the queue."""


def _job_of(body: Object) -> tuple[str, str]:
    """Return the workload and the name of the job that a pod is in the records.

    A pod of a batch workload has the names of its file, unless a Job made several pods of it.
    """
    metadata = body["metadata"]
    workload, _, job = annotations_of(body).get(JOB, "").partition("!")
    if not job or metadata.get("ownerReferences"):
        return metadata["namespace"], metadata["name"]
    return workload, job
