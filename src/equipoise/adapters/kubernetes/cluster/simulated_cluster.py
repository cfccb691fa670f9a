"""A simulated cluster behind the objects of an API: nodes, pods and controllers in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from equipoise.adapters.kubernetes.api.resources import NODES
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind, ObjectStore
from equipoise.adapters.kubernetes.cluster.controllers.deployments import Deployments
from equipoise.adapters.kubernetes.cluster.controllers.disruption import DisruptionBudgets
from equipoise.adapters.kubernetes.cluster.controllers.garbage import GarbageCollector
from equipoise.adapters.kubernetes.cluster.controllers.jobs import KubernetesJobs
from equipoise.adapters.kubernetes.cluster.controllers.node_lifecycle import NodeLifecycle
from equipoise.adapters.kubernetes.cluster.controllers.replica_sets import ReplicaSets
from equipoise.adapters.kubernetes.cluster.kubelets import Kubelets, NodeRuntime
from equipoise.adapters.kubernetes.cluster.reactions import Reactions
from equipoise.sim.pods.cluster import PodCluster
from equipoise.sim.pods.over_allocation import OverAllocation
from equipoise.sim.pods.pod_time import PodTime, PodTimer
from equipoise.sim.world.event_queue import EventPriority

if TYPE_CHECKING:
    from equipoise.sim.pods.job_records import PodJobRecords

Object = dict[str, Any]
_MONITOR_GRACE_MS: Final = 40_000
_TOLERATED_MS: Final = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """How the cluster behaves. The defaults are those of Kubernetes, with pods that start at once.

    The controllers of Jobs, Deployments and ReplicaSets can be left out, to use others.
    """

    runtime: NodeRuntime = field(default_factory=NodeRuntime)
    controllers: bool = True
    monitor_grace_ms: int = _MONITOR_GRACE_MS
    """How long a node may be silent before it counts as unreachable."""
    tolerated_ms: int = _TOLERATED_MS
    """How long pods that do not say it stay on an unreachable node."""
    removes_evicted: bool = False
    """Pods evicted from a node that is down go at once, and do not wait for its return."""


class SimulatedCluster:
    """Keeps an object store and a cluster of pods equal.

    The store must read the same time: ``time = PodTime(); store = ObjectStore(time)``.
    """

    def __init__(
        self,
        store: ObjectStore,
        options: ClusterOptions | None = None,
        *,
        time: PodTime,
        records: PodJobRecords | None = None,
    ) -> None:
        self.store = store
        self.time = time
        self.options = options or ClusterOptions()
        self.pods = PodCluster(self.options.runtime.kubelet, time)
        self._suspects: dict[str, PodTimer] = {}
        """Nodes that are down and not yet unreachable."""
        if records is not None:
            self.pods.observers.append(records)
        reactions = Reactions(store, time)
        # First what keeps the nodes and pods, then those who look at them.
        self._kubelets = Kubelets(reactions, self.pods, self.options.runtime, records)
        self._lifecycle = NodeLifecycle(
            reactions, self.options.tolerated_ms, removes_evicted=self.options.removes_evicted
        )
        reactions.read(self._on_node, NODES)
        if self.options.controllers:
            GarbageCollector(reactions)
            KubernetesJobs(reactions)
            ReplicaSets(reactions)
            Deployments(reactions)
            DisruptionBudgets(reactions)

    @property
    def now_ms(self) -> int:
        """The present time."""
        return self.time.now_ms

    @property
    def over_allocations(self) -> list[OverAllocation]:
        """Every over-allocation so far, with the binding that led to it."""
        return self.pods.over_allocations

    def next_event_ms(self) -> int | None:
        """Return when something happens next by itself; None if nothing does."""
        return self.time.next_ms()

    def advance(self, to_ms: int) -> None:
        """Let everything happen up to a time, and at that time."""
        self.time.advance(to_ms, self._kubelets.settle)

    def step(self) -> None:
        """Let the next thing happen at its time, and nothing else."""
        self.time.step()
        self._kubelets.settle()

    def pass_to(self, to_ms: int) -> None:
        """Let time pass in which nothing happens."""
        self.time.pass_to(to_ms)

    def add_node(self, body: Object) -> Object:
        """Create a node from its manifest; return it as it is stored."""
        name = self.store.create(NODES, body)["metadata"]["name"]
        return self.store.get(NODES, name)

    def fail_node(self, name: str) -> None:
        """A node goes down with its pods. The API notices it later."""
        if self.pods.nodes[name].is_down:
            return
        self.pods.fail_node(name)
        self._suspects[name] = self.time.at(
            self.now_ms + self.options.monitor_grace_ms,
            lambda: self._lifecycle.lost(name),
            EventPriority.FAULT,
        )

    def return_node(self, name: str) -> None:
        """A node is up again."""
        if not self.pods.nodes[name].is_down:
            return
        timer = self._suspects.pop(name)
        if timer.is_cancelled:  # it has run
            self._lifecycle.found(name)
        timer.cancel()
        self.pods.return_node(name)

    def remove_node(self, name: str) -> None:
        """Delete a node; its pods go with it."""
        self.store.delete(NODES, name)

    def _on_node(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        if change.kind is ChangeKind.ADDED:
            self._lifecycle.welcome(name)
        elif change.kind is ChangeKind.DELETED:
            timer = self._suspects.pop(name, None)
            if timer is not None:
                timer.cancel()
