"""Runs a workload of pods: delivers what happens, waits for the schedulers, lets time pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Final, Protocol

from equipoise.adapters.kubernetes.api.errors import ApiError
from equipoise.adapters.kubernetes.api.resources import (
    BY_KIND,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
)
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind, Object, ObjectStore
from equipoise.adapters.kubernetes.cluster.simulated_cluster import SimulatedCluster
from equipoise.adapters.kubernetes.run.clocks import RunClock
from equipoise.adapters.kubernetes.run.moment import NS_PER_MS, NS_PER_S, Moment
from equipoise.adapters.kubernetes.run.scheduler import StartedScheduler
from equipoise.adapters.kubernetes.workload.pod_workload import PodWorkload
from equipoise.errors import InputProblem, InvalidInput, WorldError

_READY_STEPS_MAX: Final = 20_000
_END_S: Final = 1.0
_NS_MAX: Final = 7 * 10**18
"""About 220 years: the time of day of a scheduler counts nanoseconds since 1970 in 64 bits."""
"""The threads of a process are gone a moment before its exit code is there."""
_AFTER_BACKOFF_NS: Final = 2 * NS_PER_S
PROBE_SELECTOR: Final = "equipoise.dev/probe"
"""A label that no node has: the pod that asks whether a scheduler works never starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOptions:
    """How a run proceeds."""

    one_by_one: bool = True
    """Wait for the schedulers after each thing that happens, also at one instant."""
    give_up_s: float = 660.0
    """End when nothing was decided for so long and nothing else can happen.

    kube-scheduler tries a pod that does not fit again after 300 s, at most 30 s late."""
    backoff_max_s: float = 10.0
    """The longest back-off of the schedulers, after which ``idle_step_s`` counts."""
    every_timer: bool = False
    """Stop at every timer, also while every pod has a node."""
    idle_step_s: float = 0.0
    """The shortest step while pods wait and none can be in back-off; 0 stops at every timer.

    A longer one is approximate: kube-scheduler tries waiting pods again after 300 s, and the
    instant of a try gives a pod its place in the queue."""
    crash_timeout_s: float = inf
    """Stop if pods wait, none runs and nothing is decided for so long on this machine."""
    end_s: float = inf
    """End at this time of the run."""


@dataclass(slots=True)
class PodCounts:
    """Counts pods by what they wait for, from the changes of the store."""

    pending: dict[tuple[str, str], Object] = field(default_factory=dict)
    """Pods without a node."""
    active: set[tuple[str, str]] = field(default_factory=set)
    """Pods on a node that have not ended."""
    decisions: int = 0
    """How often a pod was given a node."""
    decided_ns: int = 0
    """When a scheduler last wrote to a pod."""

    def observe(self, change: Change) -> None:
        """Follow one change of a pod."""
        metadata = change.object["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        ended = change.object.get("status", {}).get("phase") in {"Succeeded", "Failed"}
        bound = bool(change.object.get("spec", {}).get("nodeName"))
        if change.kind is ChangeKind.DELETED or ended:
            self.pending.pop(key, None)
            self.active.discard(key)
        elif bound:
            if self.pending.pop(key, None) is not None:
                self.decisions += 1
            self.active.add(key)
        else:
            self.pending[key] = change.object


@dataclass(frozen=True, slots=True)
class RunParts:
    """What a run consists of."""

    moment: Moment
    store: ObjectStore
    cluster: SimulatedCluster
    workload: PodWorkload
    clock: RunClock
    runner: PodRunner | None = None


class PodRunner(Protocol):
    """Runs the pods in place of their durations, and creates those that arrive."""

    async def wait(self, now_ns: int, until_ns: int | None) -> int | None:
        """Return when something happens there, at ``until_ns`` at most; None after its end."""
        ...


class KubernetesRun:
    """One workload on one simulated cluster under one or more schedulers."""

    def __init__(
        self,
        parts: RunParts,
        options: DeliveryOptions,
        schedulers: Sequence[StartedScheduler] = (),
        progress: Callable[[int], None] = lambda now_ms: None,
    ) -> None:
        self.parts = parts
        self.pods = PodCounts()
        self.delivered = 0
        """How many things have happened in the cluster; decisions are recorded with this number."""
        self.steps = 0
        """How often time passed."""
        self._options = options
        self._schedulers = schedulers
        self._progress = progress
        self._arrived = 0
        self.stranded_cpu_milli_ms = 0
        """The CPU that no pod requested while pods waited, over time."""
        self._counted_ms = 0
        self._free_cpu_milli: int | None = None
        self._changed_ns = 0
        self._progress_s = inf
        self._progress_decisions = 0
        parts.store.subscribe(self.pods.observe, PODS)
        for resource in (PODS, NODES):
            parts.store.subscribe(self._forget_free, resource)

    def wrote(self) -> None:
        """A scheduler wrote to a pod: back-offs begin again."""
        self._changed_ns = max(self._changed_ns, self.parts.moment.now_ns)

    async def make_ready(self, names: Sequence[str]) -> None:
        """Wait until each scheduler reacts to a pod that no node can take; remove the pods."""
        store, clock = self.parts.store, self.parts.clock
        for name in names:
            store.create(PODS, _probe(name), "kube-system")
        answered: set[str] = set()
        for _ in range(_READY_STEPS_MAX):
            await self._settle()
            answered = {name for name in names if self._has_answered(name)}
            if len(answered) == len(names):
                break
            timer_ns = clock.next_timer_ns()
            if timer_ns is not None and timer_ns < 0:
                clock.advance(timer_ns)
        missing = [name for name in names if name not in answered]
        if missing:
            text = f"no scheduler serves pods with schedulerName {', '.join(missing)}"
            raise WorldError(text, code="scheduler-timeout")
        for name in names:
            store.delete(PODS, _probe_name(name), "kube-system", grace_s=0)
        await self._settle()
        await self.add_nodes()
        clock.advance(0)
        await self._settle()
        self.pods.decisions = 0

    async def add_nodes(self) -> None:
        """Create the nodes one after another.

        Schedulers read a list of objects in random order, and events in theirs; equal scores are
        broken by the order of nodes.
        """
        for node in self.parts.workload.nodes:
            self.parts.store.create(NODES, node)
            if self._options.one_by_one:
                await self._settle()
        self.parts.cluster.advance(0)
        await self._settle()

    def _has_answered(self, name: str) -> bool:
        pod = self.parts.store.find(PODS, _probe_name(name), "kube-system")
        assert pod is not None
        return bool(pod["spec"].get("nodeName") or pod.get("status", {}).get("conditions"))

    def pass_time(self, to_ns: int) -> None:
        """Let time pass while schedulers work, at most to the next thing that happens."""
        moment, event_ms = self.parts.moment, self._next_event_ms()
        if event_ms is not None:
            to_ns = min(to_ns, event_ms * NS_PER_MS)
        moment.advance(max(to_ns, moment.now_ns))
        self.parts.cluster.pass_to(moment.now_ms)

    async def follow(self) -> None:
        """Run until all pods have ended, or nothing can happen any more."""
        moment, clock = self.parts.moment, self.parts.clock
        self._progress_s = perf_counter()
        while True:
            await self._deliver_due()
            self._progress(moment.now_ms)
            target_ns = await self._when_next()
            if target_ns is None or target_ns > self._options.end_s * NS_PER_S:
                return
            if target_ns > _NS_MAX:
                raise _too_long(target_ns)
            clock.advance(target_ns)
            self._count_stranded()
            self.steps += 1
            if not self._is_due():
                # What is decided now happens now, and not at the last event.
                self.parts.cluster.pass_to(moment.now_ms)
                await self._settle()
            self._check_progress()

    def _forget_free(self, change: Change) -> None:
        """A pod or a node has changed, and with it maybe what is free."""
        del change
        self._free_cpu_milli = None

    def _count_stranded(self) -> None:
        """Add what was free on the nodes since the last time, if pods waited for room."""
        now_ms = self.parts.moment.now_ms
        if self.pods.pending and now_ms > self._counted_ms:
            if self._free_cpu_milli is None:
                nodes = self.parts.cluster.pods.nodes.values()
                self._free_cpu_milli = sum(node.free_cpu_milli for node in nodes)
            self.stranded_cpu_milli_ms += self._free_cpu_milli * (now_ms - self._counted_ms)
        self._counted_ms = now_ms

    async def _when_next(self) -> int | None:
        """Return when to go on; a simulation that runs the pods may have something before."""
        target_ns, runner = self._next_ns(), self.parts.runner
        if runner is None:
            return target_ns
        return await runner.wait(self.parts.moment.now_ns, target_ns)

    def _check_progress(self) -> None:
        """Raise if pods have waited for long, and neither the cluster nor a scheduler acted."""
        pods, now_s = self.pods, perf_counter()
        if not pods.pending or pods.active or pods.decisions != self._progress_decisions:
            self._progress_s, self._progress_decisions = now_s, pods.decisions
        elif now_s - self._progress_s > self._options.crash_timeout_s:
            namespace, name = next(iter(pods.pending))
            text = (
                f"deadlock at {self.parts.moment.now_ms / 1000:g} s of the run: "
                f"{len(pods.pending):,} pods wait, such as {namespace}/{name}, no pod runs, and "
                f"nothing was decided for {self._options.crash_timeout_s:g} s"
            )
            raise WorldError(text, code="scheduler-deadlock")

    def _next_ns(self) -> int | None:
        """Return the next instant at which something can happen; None at the end."""
        moment, pods = self.parts.moment, self.pods
        event_ms = self._next_event_ms()
        world_ns = None if event_ms is None else max(event_ms * NS_PER_MS, moment.now_ns)
        alone = self.parts.clock.acts_alone or self._options.every_timer
        if not pods.pending and (world_ns is None or not alone):
            # Timers of a scheduler decide nothing while every pod has a node.
            return world_ns
        timer_ns = self.parts.clock.next_timer_ns()
        if timer_ns is None:
            return world_ns
        quiet_ns = moment.now_ns - self._changed_ns
        if world_ns is None and quiet_ns > self._options.give_up_s * NS_PER_S:
            return None
        horizon_ns = round(self._options.backoff_max_s * NS_PER_S) + _AFTER_BACKOFF_NS
        if quiet_ns > horizon_ns and not self._options.every_timer:
            idle_ns = round(self._options.idle_step_s * NS_PER_S)
            timer_ns = max(timer_ns, moment.now_ns + idle_ns)
        return timer_ns if world_ns is None else min(timer_ns, world_ns)

    def _next_event_ms(self) -> int | None:
        arrivals = self.parts.workload.arrivals
        arrival = arrivals[self._arrived][0] if self._arrived < len(arrivals) else None
        event = self.parts.cluster.next_event_ms()
        times = [at_ms for at_ms in (arrival, event) if at_ms is not None]
        return min(times, default=None)

    def _is_due(self) -> bool:
        event_ms = self._next_event_ms()
        return event_ms is not None and event_ms <= self.parts.moment.now_ms

    async def _deliver_due(self) -> None:
        """Deliver what is due, each at its time: first what happens on nodes, then arrivals."""
        store = self.parts.store
        version = store.version
        while self._is_due():
            before = store.version
            self._deliver_one()
            if store.version != before:
                # A replay delivers one by one, and counts what changed the objects.
                self.delivered += 1
                self.wrote()
            if store.version != version and (self._options.one_by_one or not self._is_due()):
                await self._settle()
                version = store.version
        self.parts.cluster.pass_to(self.parts.moment.now_ms)

    def _deliver_one(self) -> None:
        """Let the next thing happen."""
        cluster, arrivals = self.parts.cluster, self.parts.workload.arrivals
        event_ms = cluster.next_event_ms()
        at_ms, manifest = arrivals[self._arrived] if self._arrived < len(arrivals) else (None, None)
        if manifest is None or at_ms is None or (event_ms is not None and event_ms <= at_ms):
            cluster.step()
        else:
            self._arrived += 1
            cluster.pass_to(at_ms)
            submit(self.parts.store, manifest)

    async def _settle(self) -> None:
        try:
            await self.parts.clock.settle()
        except WorldError:
            # A process that has ended says more by its exit code and its last lines.
            self._check_schedulers(_END_S)
            raise
        self._check_schedulers()

    def _check_schedulers(self, wait_s: float = 0.0) -> None:
        for scheduler in self._schedulers:
            ended = scheduler.process.has_ended(wait_s)
            if ended:
                scheduler.process.stop(grace_s=0)
                lines = scheduler.process.last_lines()
                text = f"{scheduler.name} {ended}\nthe last lines of the scheduler:\n{lines}"
                raise WorldError(text, code="scheduler-ended")


_PREDEFINED: Final = (NAMESPACES, PRIORITY_CLASSES)
"""A cluster has some of these from the start, so a workload that has them too is no error."""


def submit(store: ObjectStore, manifest: Object) -> None:
    """Create an object as a client of the API would; ``InvalidInput`` if the API refuses it."""
    served = BY_KIND.get((str(manifest.get("apiVersion")), str(manifest.get("kind"))))
    assert served is not None, "the reader of the workload has checked the kind"
    resource, body = served.resource, served.to_stored(manifest)
    metadata = body["metadata"]
    name, namespace = metadata.get("name") or "", metadata.get("namespace") or ""
    if resource in _PREDEFINED and store.find(resource, name) is not None:
        return
    try:
        store.create(resource, body, namespace)
    except ApiError as error:
        where = f"{resource.kind} {namespace or 'default'}/{name}" if resource.namespaced else name
        cure = "change the workload"
        problem = InputProblem(key=where, what=error.message, cure=cure)
        raise InvalidInput("workload", [problem]) from None


def _too_long(target_ns: int) -> InvalidInput:
    problem = InputProblem(
        key="", what=f"something happens after {target_ns // NS_PER_S:,} s of the run",
        cure="shorten durations and delays, or end the run before with --until",
        code="out-of-range",
    )  # fmt: skip
    return InvalidInput("workload", [problem])


def _probe_name(name: str) -> str:
    return f"equipoise-probe-{name}"


def _probe(name: str) -> Object:
    container = {"name": "probe", "image": "probe"}
    return {
        "metadata": {"name": _probe_name(name)},
        "spec": {
            "schedulerName": name,
            "containers": [container],
            "nodeSelector": {PROBE_SELECTOR: "none"},
        },
    }
