"""A second, plain implementation of nodes that run pods: one step for every millisecond.

It has no queue and no timers: a pod counts down what is left of its present stage. It is written
from the meaning of the stages alone, so that a difference shows a mistake in one of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from equipoise.sim.pods.spec import KubeletOptions, PodSpec, RestartPolicy


@dataclass(frozen=True)
class Operation:
    """What a test does to a cluster at a time."""

    at_ms: int
    kind: str
    """``start``, ``delete``, ``fail`` or ``return``."""
    subject: str
    """The pod or the node."""
    node: str = ""
    grace_ms: int = 0


@dataclass
class PlainPod:
    spec: PodSpec
    node: str
    stage: str = "bound"
    outcome: str | None = None
    left_ms: int | None = 0
    deadline_left_ms: int | None = None
    stop_left_ms: int = 0
    grace_left_ms: int = 0
    init_index: int = 0
    run_ms: int = 0
    restarts: int = 0
    backoffs: int = 0
    deleted: bool = False
    rejected: bool = False
    has_run: bool = False
    is_live: bool = False
    """Whether the containers of a run are there."""
    taken_ms: int = -1
    started_ms: int = -1
    ended_ms: int = -1
    exit_code: int = -1

    @property
    def facts(self) -> tuple[object, ...]:
        return (
            self.stage, self.outcome, self.taken_ms, self.started_ms, self.ended_ms,
            self.restarts, self.exit_code,
        )  # fmt: skip


@dataclass
class PlainCluster:
    capacity: dict[str, int]
    """CPU by node."""
    specs: dict[str, PodSpec]
    options: KubeletOptions
    now_ms: int = 0
    down: set[str] = field(default_factory=set)
    pods: dict[str, PlainPod] = field(default_factory=dict)
    images: dict[tuple[str, str], int] = field(default_factory=dict)
    """When a node has an image."""

    def run(self, operations: Sequence[Operation], until_ms: int) -> None:
        for at_ms in range(until_ms + 1):
            self.now_ms = at_ms
            if at_ms:
                for pod in self.pods.values():
                    self._count_down(pod)
            self._settle()
            for operation in operations:
                if operation.at_ms == at_ms:
                    self._apply(operation)
                    self._settle()

    def _apply(self, operation: Operation) -> None:
        match operation.kind:
            case "start":
                self._start(operation)
            case "delete":
                self._delete(self.pods[operation.subject], operation.grace_ms)
            case "fail":
                self._fail(operation.subject)
            case "return":
                self._return(operation.subject)

    # Every step shortens what is left; nothing else does.

    def _count_down(self, pod: PlainPod) -> None:
        if pod.deadline_left_ms is not None:
            pod.deadline_left_ms -= 1
        if pod.node in self.down or self._is_over(pod):
            return
        if pod.left_ms is not None:
            pod.left_ms -= 1
        if pod.stage == "running":
            pod.run_ms += 1
        if pod.stage == "stopping":
            pod.stop_left_ms -= 1
            pod.grace_left_ms -= 1

    @staticmethod
    def _is_over(pod: PlainPod) -> bool:
        return pod.stage in ("succeeded", "failed", "removed")

    def _settle(self) -> None:
        changed = True
        while changed:
            changed = False
            for pod in self.pods.values():
                if pod.node not in self.down:
                    changed |= self._go_on(pod)

    def _go_on(self, pod: PlainPod) -> bool:
        """Go to the next stage if the present one is over."""
        if self._is_over(pod):
            if pod.deleted and pod.stage != "removed":
                pod.stage = "removed"
                return True
            return False
        if pod.stage == "bound":
            self._take(pod)
        elif pod.stage == "stopping":
            return self._stop(pod)
        elif pod.deleted:
            self._end(pod, "removed", "deleted", 137)
        elif pod.stage == "running" and self._uses_too_much(pod):
            self._run_over(pod, 137, "out of memory")
        elif pod.deadline_left_ms is not None and pod.deadline_left_ms <= 0:
            self._end(pod, "failed", "timed out", 137)
        elif pod.left_ms is None or pod.left_ms > 0:
            return False
        else:
            self._time_is_over(pod)
        return True

    def _take(self, pod: PlainPod) -> None:
        pod.taken_ms = self.now_ms
        if pod.deleted:
            pod.taken_ms = -1
            self._end(pod, "removed", "deleted", None)
        elif pod.rejected:
            self._end(pod, "failed", "rejected", None)
        else:
            pod.deadline_left_ms = pod.spec.deadline_ms
            self._pull(pod)

    def _stop(self, pod: PlainPod) -> bool:
        ends = (pod.stop_left_ms, pod.grace_left_ms, pod.left_ms, pod.deadline_left_ms)
        if any(left_ms is not None and left_ms <= 0 for left_ms in ends):
            code = 143 if pod.stop_left_ms <= pod.grace_left_ms else 137
            self._end(pod, "removed", "deleted", code)
            return True
        return False

    def _time_is_over(self, pod: PlainPod) -> None:
        if pod.stage in ("pulling", "initializing"):
            if pod.stage == "initializing":
                pod.init_index += 1
            self._initialize(pod)
        elif pod.stage == "waiting":
            pod.restarts += 1
            pod.outcome = None
            self._begin_run(pod)
        elif pod.stage == "running":
            codes = pod.spec.exit_codes
            code = codes[pod.restarts] if pod.restarts < len(codes) else codes[-1]
            self._run_over(pod, code, "failed" if code else "succeeded")

    def _uses_too_much(self, pod: PlainPod) -> bool:
        limit, begin_ms = pod.spec.memory_limit_bytes, 0
        if limit is None:
            return False
        if pod.run_ms > 0 and 0 in (pod.left_ms, pod.deadline_left_ms):
            return False  # it has ended
        for phase in pod.spec.usage:
            if begin_ms <= pod.run_ms and phase.memory_bytes > limit:
                return True
            begin_ms += phase.duration_ms
        return False

    def _pull(self, pod: PlainPod) -> None:
        pod.stage = "pulling"
        pod.init_index = 0
        ready_ms = self.now_ms
        for image in pod.spec.images:
            key = (pod.node, image.name)
            if key not in self.images:
                rate = self.options.pull_bytes_per_s
                size_ms = 0 if not rate else (image.size_bytes * 1000 + rate - 1) // rate
                self.images[key] = ready_ms + self.options.pull_ms + size_ms
            ready_ms = max(ready_ms, self.images[key])
        pod.left_ms = ready_ms - self.now_ms + self.options.start_ms

    def _initialize(self, pod: PlainPod) -> None:
        if pod.init_index < len(pod.spec.init_ms):
            pod.stage = "initializing"
            pod.left_ms = pod.spec.init_ms[pod.init_index]
        else:
            self._begin_run(pod)

    def _begin_run(self, pod: PlainPod) -> None:
        pod.stage, pod.run_ms, pod.has_run, pod.is_live = "running", 0, True, True
        pod.left_ms = pod.spec.duration_ms
        if pod.started_ms < 0:
            pod.started_ms = self.now_ms

    def _run_over(self, pod: PlainPod, code: int, outcome: str) -> None:
        restart = pod.spec.restart
        if restart is RestartPolicy.NEVER or (restart is RestartPolicy.ON_FAILURE and code == 0):
            self._end(pod, "failed" if code else "succeeded", outcome, code)
            return
        if pod.run_ms >= 2 * self.options.backoff_ms_max:
            pod.backoffs = 0
        wait_ms = 0
        for number in range(pod.backoffs):
            wait_ms = self.options.backoff_ms if number == 0 else 2 * wait_ms
        pod.left_ms = min(wait_ms, self.options.backoff_ms_max)
        pod.backoffs += 1
        pod.stage, pod.outcome, pod.exit_code, pod.is_live = "waiting", outcome, code, False

    def _end(self, pod: PlainPod, stage: str, outcome: str, code: int | None) -> None:
        if pod.is_live:
            assert code is not None
            pod.exit_code, pod.is_live = code, False
        pod.stage, pod.outcome, pod.ended_ms = stage, outcome, self.now_ms

    # Operations

    def _start(self, operation: Operation) -> None:
        pod = PlainPod(self.specs[operation.subject], operation.node)
        self.pods[operation.subject] = pod
        self._check_room(pod)

    def _check_room(self, pod: PlainPod) -> None:
        used = 0
        for other in self.pods.values():
            if other is pod:
                break
            if other.node == pod.node and not self._is_over(other) and not other.rejected:
                used += other.spec.requests["cpu"]
        fits = used + pod.spec.requests["cpu"] <= self.capacity[pod.node]
        if not fits and self.options.rejects_over_allocation and pod.node not in self.down:
            pod.rejected = True

    def _delete(self, pod: PlainPod, grace_ms: int) -> None:
        if pod.stage == "removed":
            return
        if not pod.deleted:
            pod.stop_left_ms, pod.grace_left_ms = pod.spec.stop_ms, grace_ms
        pod.deleted, pod.grace_left_ms = True, min(grace_ms, pod.grace_left_ms)
        if grace_ms == 0:
            if self._is_over(pod):
                pod.stage = "removed"
            else:
                self._end(pod, "removed", "deleted", 137)
        elif self._is_over(pod):
            pod.stage = "removed"
        elif pod.node not in self.down and pod.stage in ("initializing", "running"):
            pod.stage = "stopping"

    def _fail(self, node: str) -> None:
        if node in self.down:
            return
        self.down.add(node)
        for pod in self.pods.values():
            if pod.node == node and pod.is_live:
                pod.exit_code, pod.is_live = 255, False
        self.images = {
            key: at_ms
            for key, at_ms in self.images.items()
            if key[0] != node or at_ms <= self.now_ms
        }

    def _return(self, node: str) -> None:
        if node not in self.down:
            return
        self.down.discard(node)
        pods = [pod for pod in self.pods.values() if pod.node == node and not self._is_over(pod)]
        for pod in pods:
            if pod.deleted:
                self._lose(pod, "removed")
            elif pod.stage == "bound":
                self._check_room(pod)
            elif pod.has_run and pod.spec.restart is RestartPolicy.NEVER:
                self._lose(pod, "failed")
            else:
                if pod.has_run:
                    pod.restarts += 1
                pod.outcome = None
                self._pull(pod)

    def _lose(self, pod: PlainPod, stage: str) -> None:
        pod.stage, pod.outcome, pod.ended_ms = stage, "lost", self.now_ms
