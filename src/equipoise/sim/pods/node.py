"""A node: what its pods request and use, and the images that it has."""

from __future__ import annotations

from equipoise.sim.pods.pod import Pod
from equipoise.sim.pods.spec import CPU, MEMORY, PODS, Amounts, PodNodeSpec


class PodNode:
    """A node of a cluster. Sums over its pods are kept, so that no change looks at all of them."""

    __slots__ = (
        "_images", "_since_ms", "allocatable", "cpu_milli", "cpu_milli_ms", "is_down",
        "memory_bytes", "memory_bytes_ms", "name", "pods", "requested", "requested_cpu_milli_ms",
        "requested_memory_bytes_ms",
    )  # fmt: skip

    def __init__(self, spec: PodNodeSpec, now_ms: int) -> None:
        self.name = spec.name
        self.allocatable: Amounts = dict(spec.allocatable)
        self.is_down = False
        self.pods: dict[str, Pod] = {}
        """The pods that hold requests, in the order of their bindings."""
        self.requested: dict[str, int] = {PODS: 0}
        self.cpu_milli = 0
        self.memory_bytes = 0
        """What its pods use now."""
        self.cpu_milli_ms = 0
        self.memory_bytes_ms = 0
        self.requested_cpu_milli_ms = 0
        self.requested_memory_bytes_ms = 0
        """Integrals over time of what pods use and request, up to the last change."""
        self._since_ms = now_ms
        self._images: dict[str, int] = {}

    def count_time(self, now_ms: int) -> None:
        """Add the time since the last change to the integrals."""
        elapsed_ms = now_ms - self._since_ms
        if elapsed_ms:
            self._since_ms = now_ms
            self.cpu_milli_ms += self.cpu_milli * elapsed_ms
            self.memory_bytes_ms += self.memory_bytes * elapsed_ms
            requested = self.requested
            self.requested_cpu_milli_ms += requested.get(CPU, 0) * elapsed_ms
            self.requested_memory_bytes_ms += requested.get(MEMORY, 0) * elapsed_ms

    def reserve(self, pod: Pod, now_ms: int) -> None:
        """A pod is bound to the node."""
        self.count_time(now_ms)
        requested = self.requested
        for name, amount in pod.spec.requests.items():
            requested[name] = requested.get(name, 0) + amount
        requested[PODS] += 1
        self.pods[pod.name] = pod

    def release(self, pod: Pod, now_ms: int) -> None:
        """A pod holds its requests no longer."""
        self.count_time(now_ms)
        requested = self.requested
        for name, amount in pod.spec.requests.items():
            requested[name] -= amount
        requested[PODS] -= 1
        del self.pods[pod.name]

    def set_usage(self, pod: Pod, cpu_milli: int, memory_bytes: int, now_ms: int) -> None:
        """A pod uses another amount from now on."""
        self.count_time(now_ms)
        self.cpu_milli += cpu_milli - pod.cpu_milli
        self.memory_bytes += memory_bytes - pod.memory_bytes
        pod.cpu_milli, pod.memory_bytes = cpu_milli, memory_bytes

    @property
    def free_cpu_milli(self) -> int:
        """The CPU that a pod could still request; nothing of a node that is down."""
        free_milli = self.allocatable.get(CPU, 0) - self.requested.get(CPU, 0)
        return 0 if self.is_down else max(free_milli, 0)

    def exceeded(self, amounts: Amounts) -> list[str]:
        """Return which of these resources, and whether the number of pods, is over-allocated."""
        requested, allocatable = self.requested, self.allocatable
        found = [
            name
            for name, amount in amounts.items()
            if amount and requested[name] > allocatable.get(name, 0)
        ]
        if PODS in allocatable and requested[PODS] > allocatable[PODS] and PODS not in found:
            found.append(PODS)
        return found

    def image_ready_ms(self, name: str, now_ms: int) -> int | None:
        """Return when the node has an image that it has or pulls; None for any other."""
        ready_ms = self._images.get(name)
        return None if ready_ms is None else max(ready_ms, now_ms)

    def pull_image(self, name: str, ready_ms: int) -> None:
        """The node pulls an image, and keeps it."""
        self._images[name] = ready_ms

    def drop_pulls(self, now_ms: int) -> None:
        """The node fails: images that are not there yet must be pulled again."""
        self._images = {name: at_ms for name, at_ms in self._images.items() if at_ms <= now_ms}
