"""A cluster of nodes that run pods in virtual time, as kubelets do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from equipoise.sim.pods.node import PodNode
from equipoise.sim.pods.over_allocation import OverAllocation, judge_node
from equipoise.sim.pods.pod import (
    KILLED_CODE,
    LOST_CODE,
    NEXT_STAGES,
    OUT_OF_MEMORY_CODE,
    STOPPED_CODE,
    Pod,
    PodOutcome,
    PodStage,
)
from equipoise.sim.pods.pod_time import PodTime
from equipoise.sim.pods.spec import (
    CPU,
    MEMORY,
    Amounts,
    KubeletOptions,
    PodNodeSpec,
    PodSpec,
    RestartPolicy,
)
from equipoise.sim.world.event_queue import EventPriority

_MS_PER_S: Final = 1000
_RESET_FACTOR: Final = 2
"""A run of so many longest back-offs sets the back-off of a pod to its beginning."""
_LIVE: Final = frozenset({PodStage.INITIALIZING, PodStage.RUNNING})
"""Stages in which containers run."""


class PodObserver(Protocol):
    """Receives what happens on the nodes, in order."""

    def pod_changed(self, pod: Pod) -> None:
        """The pod is in another stage, or runs its next init container."""
        ...

    def usage_changed(self, node: PodNode) -> None:
        """The pods of a node use another amount."""
        ...

    def node_changed(self, node: PodNode) -> None:
        """A node has failed or returned."""
        ...


class PodCluster:
    """Nodes and their pods. A call has its effects when time is advanced, if only by nothing."""

    def __init__(self, options: KubeletOptions | None = None, time: PodTime | None = None) -> None:
        self.time = time or PodTime()
        self.options = options or KubeletOptions()
        self.nodes: dict[str, PodNode] = {}
        self.pods: dict[str, Pod] = {}
        """The pods on nodes, also those that have ended and were not deleted."""
        self.observers: list[PodObserver] = []
        self.over_allocations: list[OverAllocation] = []
        self._lasting: dict[str, list[OverAllocation]] = {}
        """Over-allocations that last, by node."""

    @property
    def now_ms(self) -> int:
        """The present time."""
        return self.time.now_ms

    def next_event_ms(self) -> int | None:
        """Return the time of the next event; None if nothing is under way."""
        return self.time.next_ms()

    def advance(self, to_ms: int) -> None:
        """Apply all events up to a time, and those of that time."""
        self.time.advance(to_ms)

    # Nodes

    def add_node(self, spec: PodNodeSpec) -> PodNode:
        """Add a node without pods."""
        assert spec.name not in self.nodes, f"{spec.name} is in the cluster already"
        node = self.nodes[spec.name] = PodNode(spec, self.now_ms)
        for image in sorted(self.options.cached_images):
            node.pull_image(image, self.now_ms)
        return node

    def resize_node(self, name: str, allocatable: Amounts) -> None:
        """Pods may request another amount of a node from now on."""
        node = self.nodes[name]
        node.allocatable = dict(allocatable)
        self._close_over_allocations(node)
        for resource in node.exceeded(node.requested):
            if all(known.resource != resource for known in self._lasting.get(name, ())):
                self._record(node, None, [resource], rejected=False)

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods are lost."""
        node = self.nodes[name]
        for pod in list(node.pods.values()):
            self._end(pod, PodStage.REMOVED, PodOutcome.LOST, LOST_CODE)
        node.count_time(self.now_ms)
        del self.nodes[name]

    def fail_node(self, name: str) -> None:
        """A node goes down. Its pods are lost until it returns."""
        node = self.nodes[name]
        if node.is_down:
            return
        node.is_down = True
        node.drop_pulls(self.now_ms)
        for pod in list(node.pods.values()):
            self._stop_timers(pod)
            if pod.stage is not PodStage.BOUND:
                if pod.run_started_ms >= 0 and pod.run_ended_ms < 0:
                    pod.run_ended_ms, pod.exit_code = self.now_ms, LOST_CODE
                self._set_usage(pod, 0, 0)
                self._enter(pod, PodStage.LOST)
        self._report_node(node)

    def return_node(self, name: str) -> None:
        """A node is up again: it removes deleted pods and starts the others as they allow."""
        node = self.nodes[name]
        if not node.is_down:
            return
        node.is_down = False
        self._report_node(node)
        pods = list(node.pods.values())
        bound = [pod for pod in pods if pod.stage is PodStage.BOUND and not pod.is_deleted]
        for pod in bound:
            node.release(pod, self.now_ms)
        self._close_over_allocations(node)
        for pod in pods:
            if pod.is_deleted:
                self._end(pod, PodStage.REMOVED, PodOutcome.LOST, LOST_CODE)
            elif pod.stage is PodStage.LOST:
                self._resume(pod)
        # The node takes those that it has not seen yet in the order of their bindings.
        for pod in bound:
            self._admit(pod)

    def _resume(self, pod: Pod) -> None:
        """A pod whose containers the node has lost starts again, if it may."""
        if pod.run_started_ms >= 0:
            if pod.spec.restart is RestartPolicy.NEVER:
                self._end(pod, PodStage.FAILED, PodOutcome.LOST, LOST_CODE)
                return
            pod.restarts += 1
        pod.init_index, pod.outcome = 0, None
        self._begin(pod)

    # Pods

    def start_pod(self, spec: PodSpec, node_name: str, created_ms: int | None = None) -> Pod:
        """Bind a pod to a node, which takes it or rejects it."""
        assert spec.name not in self.pods, f"{spec.name} is bound already"
        node, now_ms = self.nodes[node_name], self.now_ms
        created = now_ms if created_ms is None else created_ms
        pod = self.pods[spec.name] = Pod(spec, node, created, now_ms)
        self._admit(pod)
        return pod

    def _admit(self, pod: Pod) -> None:
        """Reserve what a pod requests; a node that is up takes the pod or rejects it."""
        node = pod.node
        node.reserve(pod, self.now_ms)
        exceeded = node.exceeded(pod.spec.requests)
        if exceeded:
            rejects = self.options.rejects_over_allocation and not node.is_down
            self._record(node, pod, exceeded, rejected=rejects)
            if rejects:
                node.release(pod, self.now_ms)
                pod.missing_resource = exceeded[0]
        if not node.is_down:
            # As soon as time is advanced, if only by nothing.
            action = self._reject if pod.missing_resource else self._take
            pod.timer = self.time.at(self.now_ms, lambda: action(pod))

    def delete_pod(self, name: str, grace_ms: int) -> None:
        """Request the deletion of a pod; without grace it goes at once, even from a lost node."""
        pod = self.pods[name]
        now_ms = self.now_ms
        if pod.deleted_ms < 0:
            pod.deleted_ms = now_ms
        by_ms = now_ms + grace_ms
        pod.delete_by_ms = by_ms if pod.delete_by_ms < 0 else min(by_ms, pod.delete_by_ms)
        if grace_ms <= 0:
            self.remove_pod(name)
        elif pod.node.is_down and not pod.stage.is_final:
            return  # only its kubelet can say that it has stopped
        elif pod.stage in _LIVE or pod.stage is PodStage.STOPPING:
            self._stop(pod)
        else:
            self._stop_timers(pod)
            pod.timer = self.time.at(now_ms, lambda: self._remove(pod), EventPriority.END)

    def end_run(self, name: str, code: int = 0, *, timed_out: bool = False) -> None:
        """End the containers of a running pod whose run time is decided elsewhere."""
        pod = self.pods[name]
        assert pod.stage is PodStage.RUNNING, f"{pod} does not run"
        self._stop_timers(pod)
        if timed_out:
            self._time_out(pod)
        else:
            outcome = PodOutcome.FAILED if code else PodOutcome.SUCCEEDED
            self._containers_ended(pod, code, outcome)

    def remove_pod(self, name: str) -> None:
        """Remove a pod at once."""
        pod = self.pods[name]
        if pod.deleted_ms < 0:
            pod.deleted_ms = self.now_ms
        self._remove(pod)

    # The life of a pod

    def _reject(self, pod: Pod) -> None:
        pod.taken_ms = self.now_ms
        self._end(pod, PodStage.FAILED, PodOutcome.REJECTED, -1)

    def _take(self, pod: Pod) -> None:
        pod.taken_ms = self.now_ms
        if pod.spec.deadline_ms is not None:
            pod.deadline_at_ms = self.now_ms + pod.spec.deadline_ms
        self._begin(pod)

    def _begin(self, pod: Pod) -> None:
        self._enter(pod, PodStage.PULLING)
        ready_ms = self._images_ready_ms(pod) + self.options.start_ms
        self._next(pod, ready_ms, self._initialize)

    def _images_ready_ms(self, pod: Pod) -> int:
        """Return when the node has all images; it pulls them one after another."""
        ready_ms, options = self.now_ms, self.options
        for image in pod.spec.images:
            known_ms = pod.node.image_ready_ms(image.name, ready_ms)
            if known_ms is None:
                pull_ms = options.pull_ms
                if options.pull_bytes_per_s:
                    pull_ms += -(-image.size_bytes * _MS_PER_S // options.pull_bytes_per_s)
                known_ms = ready_ms + pull_ms
                pod.node.pull_image(image.name, known_ms)
            ready_ms = known_ms
        return ready_ms

    def _initialize(self, pod: Pod) -> None:
        """Run the next init container, or the containers after the last one."""
        if pod.init_index == len(pod.spec.init_ms):
            self._run(pod)
            return
        self._enter(pod, PodStage.INITIALIZING)
        end_ms = self.now_ms + pod.spec.init_ms[pod.init_index]
        self._next(pod, end_ms, self._init_ended)

    def _init_ended(self, pod: Pod) -> None:
        pod.init_index += 1
        self._initialize(pod)

    def _run(self, pod: Pod) -> None:
        now_ms, spec = self.now_ms, pod.spec
        if pod.started_ms < 0:
            pod.started_ms = now_ms
        pod.run_started_ms, pod.run_ended_ms = now_ms, -1
        self._enter(pod, PodStage.RUNNING)
        end_ms = None if spec.duration_ms is None else now_ms + spec.duration_ms
        self._next(pod, end_ms, self._run_ended)
        if spec.usage:
            self._use(pod, 0)
        else:
            self._set_usage(pod, spec.requests.get(CPU, 0), spec.requests.get(MEMORY, 0))

    def _use(self, pod: Pod, index: int) -> None:
        """Begin a phase of the usage of a pod; more memory than its limit ends its run."""
        phase = pod.spec.usage[index]
        self._set_usage(pod, phase.cpu_milli, phase.memory_bytes)
        limit_bytes = pod.spec.memory_limit_bytes
        if limit_bytes is not None and phase.memory_bytes > limit_bytes:
            self._stop_timers(pod)
            pod.timer = self.time.at(
                self.now_ms, lambda: self._out_of_memory(pod), EventPriority.END
            )
        elif index + 1 < len(pod.spec.usage):
            pod.usage_timer = self.time.at(
                self.now_ms + phase.duration_ms, lambda: self._use(pod, index + 1)
            )

    def _out_of_memory(self, pod: Pod) -> None:
        self._containers_ended(pod, OUT_OF_MEMORY_CODE, PodOutcome.OUT_OF_MEMORY)

    def _run_ended(self, pod: Pod) -> None:
        codes = pod.spec.exit_codes
        code = codes[min(pod.restarts, len(codes) - 1)]
        self._containers_ended(pod, code, PodOutcome.FAILED if code else PodOutcome.SUCCEEDED)

    def _containers_ended(self, pod: Pod, code: int, outcome: PodOutcome) -> None:
        restart = pod.spec.restart
        if restart is RestartPolicy.ALWAYS or (restart is RestartPolicy.ON_FAILURE and code):
            self._wait(pod, code, outcome)
        else:
            stage = PodStage.FAILED if code else PodStage.SUCCEEDED
            self._end(pod, stage, outcome, code)

    def _wait(self, pod: Pod, code: int, outcome: PodOutcome) -> None:
        """Wait until the containers may start again: at first not at all, then ever longer."""
        options, now_ms = self.options, self.now_ms
        self._stop_timers(pod)
        pod.run_ended_ms, pod.exit_code, pod.outcome = now_ms, code, outcome
        self._set_usage(pod, 0, 0)
        if now_ms - pod.run_started_ms >= _RESET_FACTOR * options.backoff_ms_max:
            pod.runs_since_reset = 0
        wait_ms = 0
        if pod.runs_since_reset:
            # The shift is bounded: a pod may restart more often than a number has bits.
            doubled = options.backoff_ms << min(pod.runs_since_reset - 1, 62)
            wait_ms = min(doubled, options.backoff_ms_max)
        pod.runs_since_reset += 1
        self._enter(pod, PodStage.WAITING)
        self._next(pod, now_ms + wait_ms, self._restart)

    def _restart(self, pod: Pod) -> None:
        pod.restarts += 1
        pod.outcome = None
        self._run(pod)

    def _next(self, pod: Pod, at_ms: int | None, action: Callable[[Pod], None]) -> None:
        """Set what happens next to a pod: the action, or before it the end of its deadline."""
        deadline_ms = pod.deadline_at_ms
        # As in Batsim, a pod that takes as long as it may has reached its limit.
        if deadline_ms is not None and (at_ms is None or deadline_ms <= at_ms):
            at_ms, action = max(deadline_ms, self.now_ms), self._time_out
        if at_ms is None:
            return
        ends = pod.stage is PodStage.RUNNING or action == self._time_out
        priority = EventPriority.END if ends else EventPriority.CHANGE
        pod.timer = self.time.at(at_ms, lambda: action(pod), priority)

    def _time_out(self, pod: Pod) -> None:
        self._end(pod, PodStage.FAILED, PodOutcome.TIMED_OUT, KILLED_CODE)

    def _stop(self, pod: Pod) -> None:
        """Send the containers the signal to stop; a second request may only be shorter."""
        now_ms = self.now_ms
        stopped_ms = min(pod.deleted_ms + pod.spec.stop_ms, pod.delete_by_ms)
        killed = pod.deleted_ms + pod.spec.stop_ms > pod.delete_by_ms
        code = KILLED_CODE if killed else STOPPED_CODE
        if pod.stage is not PodStage.STOPPING:
            if pod.timer is not None and not pod.timer.is_cancelled:
                natural_ms = pod.timer.at_ms
                stopped_ms = min(stopped_ms, natural_ms)
            self._stop_timers(pod)
            self._enter(pod, PodStage.STOPPING)
        elif pod.timer is not None:
            stopped_ms = min(stopped_ms, pod.timer.at_ms)
            pod.timer.cancel()
        pod.timer = self.time.at(
            max(stopped_ms, now_ms), lambda: self._stopped(pod, code), EventPriority.END
        )

    def _stopped(self, pod: Pod, code: int) -> None:
        self._end(pod, PodStage.REMOVED, PodOutcome.DELETED, code)

    def _remove(self, pod: Pod) -> None:
        """Remove a pod in any stage."""
        if pod.stage.is_final:
            self._stop_timers(pod)
            if pod.stage is not PodStage.REMOVED:
                self.pods.pop(pod.name, None)
                self._enter(pod, PodStage.REMOVED)
        else:
            self._end(pod, PodStage.REMOVED, PodOutcome.DELETED, KILLED_CODE)

    def _end(self, pod: Pod, stage: PodStage, outcome: PodOutcome, code: int) -> None:
        """A pod holds its node no longer."""
        now_ms = self.now_ms
        self._stop_timers(pod)
        pod.ended_ms, pod.outcome = now_ms, outcome
        if pod.run_started_ms >= 0 and pod.run_ended_ms < 0:
            pod.run_ended_ms, pod.exit_code = now_ms, code
        self._set_usage(pod, 0, 0)
        if pod.name in pod.node.pods:
            pod.node.release(pod, now_ms)
            self._close_over_allocations(pod.node)
        if stage is PodStage.REMOVED:
            del self.pods[pod.name]
        self._enter(pod, stage)

    def _enter(self, pod: Pod, stage: PodStage) -> None:
        assert stage in NEXT_STAGES[pod.stage] or stage is pod.stage, f"{pod} cannot be {stage}"
        pod.stage = stage
        for observer in self.observers:
            observer.pod_changed(pod)

    def _set_usage(self, pod: Pod, cpu_milli: int, memory_bytes: int) -> None:
        if (cpu_milli, memory_bytes) == (pod.cpu_milli, pod.memory_bytes):
            return
        pod.node.set_usage(pod, cpu_milli, memory_bytes, self.now_ms)
        for observer in self.observers:
            observer.usage_changed(pod.node)

    @staticmethod
    def _stop_timers(pod: Pod) -> None:
        """Nothing happens to the pod by itself any more."""
        for timer in (pod.timer, pod.usage_timer):
            if timer is not None:
                timer.cancel()
        pod.timer = pod.usage_timer = None

    def _report_node(self, node: PodNode) -> None:
        for observer in self.observers:
            observer.node_changed(node)

    # Over-allocation

    def _record(
        self, node: PodNode, pod: Pod | None, resources: list[str], *, rejected: bool
    ) -> None:
        """Record what the specification finds wrong with a node after a binding."""
        reasons = judge_node(node, resources)
        assert reasons.keys() == set(resources), "the sums and the specification agree"
        for resource, why in reasons.items():
            found = OverAllocation(
                at_ms=self.now_ms,
                node=node.name,
                resource=resource,
                requested=node.requested[resource],
                allocatable=node.allocatable.get(resource, 0),
                pod="" if pod is None else pod.name,
                pods=tuple(node.pods),
                rejected=rejected,
                explanation=why,
                end_ms=self.now_ms if rejected else None,
            )
            self.over_allocations.append(found)
            if not rejected:
                self._lasting.setdefault(node.name, []).append(found)

    def _close_over_allocations(self, node: PodNode) -> None:
        """Write the end of those that are over."""
        if node.name not in self._lasting:
            return
        for excess in self._lasting.pop(node.name):
            if node.requested[excess.resource] > node.allocatable.get(excess.resource, 0):
                self._lasting.setdefault(node.name, []).append(excess)
            else:
                excess.end_ms = self.now_ms
