"""A Batsim that is the cluster behind the API, as in Batkube: it has the hosts, runs and arrivals.

Batsim sees one more decision process, which starts, rejects and kills its jobs. A job that it
submits becomes a pod, a pod that runs on a node is executed on the host of that name, and Batsim
says when it ends. Time passes only as far as Batsim lets it.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.adapters.batsim.schedule.service import SimulationCodec, SimulationSocket
from equipoise.adapters.kubernetes.annotations import JOB
from equipoise.adapters.kubernetes.api.resources import NODES, PODS
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind, Object
from equipoise.adapters.kubernetes.run.moment import NS_PER_MS, NS_PER_S
from equipoise.adapters.kubernetes.workload.batch_jobs import profile_requests, unique_pod_name
from equipoise.adapters.kubernetes.workload.pod_workload import (
    Arrival,
    PodWorkload,
    platform_nodes,
    pod_object,
)
from equipoise.sim.jobs.host_set import parse_host_set
from equipoise.sim.jobs.platform import JobHost, Platform, PowerState
from equipoise.sim.pods.node import PodNode
from equipoise.sim.pods.pod import Pod, PodStage
from equipoise.sim.world.event_queue import EventPriority

if TYPE_CHECKING:
    from equipoise.adapters.kubernetes.cluster.simulated_cluster import SimulatedCluster

_CHECK_MS: Final = 100
_NS_PER_US: Final = 1000
"""Batsim prints times in microseconds."""
_TIMED_OUT: Final = "COMPLETED_WALLTIME_REACHED"
_SUCCEEDED: Final = "COMPLETED_SUCCESSFULLY"
_NO_MORE_JOBS: Final = "no_more_static_job_to_submit"
_USABLE: Final = frozenset({"idle", "computing"})


class BatsimPodRunner:
    """The decision process of one simulation. ``workload`` grows while jobs arrive."""

    def __init__(
        self, endpoint: str, release: str, notice: Callable[[str], None] = lambda line: None
    ) -> None:
        self._codec = SimulationCodec("equipoise-kubernetes", release)
        self._socket = SimulationSocket(endpoint)
        self._arrivals: list[Arrival] = []
        self._jobs: dict[str, str] = {}
        """Jobs that wait or run in Batsim, by the name of their pod in the simulation."""
        self._pods: dict[str, str] = {}
        self._cores: dict[str, int] = {}
        """The executors of each job that waits."""
        self._executed: set[str] = set()
        self._names: set[str] = set()
        self._profiles: dict[str, dict[str, Any]] = {}
        self._requests: list[dict[str, Any]] = []
        self._calls_ns: list[int] = []
        self._now_s = 0.0
        self._cluster: SimulatedCluster | None = None
        self._is_last = False
        self._is_over = False
        notice(f"awaiting a simulation at {endpoint}")
        try:
            self.workload = self._begin()
        except BaseException:
            self._socket.close()
            raise

    def _begin(self) -> PodWorkload:
        """Receive the hosts, and with them maybe the first jobs."""
        while not self._socket.poll(_CHECK_MS):
            pass
        events = list(self._receive()["events"])
        if not events or events[0]["type"] != "SIMULATION_BEGINS":
            raise SchedulerError("SIMULATION_BEGINS", "is not the first event", "connect a Batsim")
        data = events.pop(0)["data"]
        hosts = [_host(raw, shares=data["allow_compute_sharing"])
                 for raw in data["compute_resources"]]  # fmt: skip
        self._profiles = {name: dict(raw) for name, raw in data["profiles"].items()}
        if data.get("config", {}).get("dynamic-jobs-enabled"):
            self._request("NOTIFY", {"type": "registration_finished"})
        nodes, platform = platform_nodes(Platform(hosts=hosts))
        for node, raw in zip(nodes, data["compute_resources"], strict=True):
            if raw["state"] not in _USABLE:
                node["spec"] = {"unschedulable": True}
        self._numbers = {host.name: number for number, host in enumerate(platform.hosts)}
        self._hosts = [host.name for host in platform.hosts]
        self._handle(events)
        return PodWorkload(name="batsim", nodes=nodes, arrivals=self._arrivals, platform=platform)

    def attach(self, cluster: SimulatedCluster) -> None:
        """Follow the pods of the cluster, whose time must be that of the run."""
        self._cluster = cluster
        cluster.pods.observers.append(self)
        cluster.store.subscribe(self._on_pod, PODS)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    # Time

    async def wait(self, now_ns: int, until_ns: int | None) -> int | None:
        """Send what was decided, and return when something happens, at ``until_ns`` at most."""
        if self._is_over:
            return None
        if until_ns is not None and until_ns <= now_ns:
            return until_ns
        if until_ns is None and self._is_last and not self._executed:
            # Nothing can happen any more: Batsim ends only if no job waits.
            for pod in list(self._jobs):
                self._reject(pod)
        if until_ns is not None:
            self._call_at(until_ns)
        self._reply()
        while not self._socket.poll(_CHECK_MS):
            await asyncio.sleep(0)
        message = self._receive()
        at_ns = max(round(self._now_s * NS_PER_S), now_ns)
        self._calls_ns = [call_ns for call_ns in self._calls_ns if call_ns > at_ns]
        self._handle(message["events"])
        if self._is_over:
            self._reply()
            return None
        return at_ns

    def _call_at(self, at_ns: int) -> None:
        """Ask Batsim for a message at a time, unless one comes earlier."""
        at_ns = -(-at_ns // _NS_PER_US) * _NS_PER_US
        if not self._calls_ns or self._calls_ns[0] > at_ns:
            insort(self._calls_ns, at_ns)
            self._request("CALL_ME_LATER", {"timestamp": at_ns / NS_PER_S})

    def _receive(self) -> dict[str, Any]:
        frame = self._socket.receive()
        greeting = self._codec.greet(frame)
        if greeting is not None:
            self._socket.send(greeting)
            frame = self._socket.receive()
        message = self._codec.decode(frame)
        self._now_s = float(message["now"])
        return message

    def _reply(self) -> None:
        requests, self._requests = self._requests, []
        self._socket.send(self._codec.encode({"now": self._now_s, "events": requests}))

    def _request(self, kind: str, data: dict[str, Any]) -> None:
        self._requests.append({"timestamp": self._now_s, "type": kind, "data": data})

    @property
    def _now_ms(self) -> int:
        """The present millisecond, which is never before that of the cluster."""
        now_ms = round(self._now_s * NS_PER_S) // NS_PER_MS
        return now_ms if self._cluster is None else max(now_ms, self._cluster.now_ms)

    # What Batsim reports

    def _handle(self, events: list[Mapping[str, Any]]) -> None:
        for event in events:
            kind, data = event["type"], event.get("data") or {}
            try:
                if kind == "JOB_SUBMITTED":
                    self._submit(data)
                elif kind == "JOB_COMPLETED":
                    self._complete(data)
                elif kind == "NOTIFY":
                    self._notice(data)
                elif kind == "SIMULATION_ENDS":
                    self._is_over = True
            except (KeyError, TypeError, ValueError) as error:
                what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
                raise SchedulerError(kind, what, "send it as Batsim does") from None

    def _submit(self, data: Mapping[str, Any]) -> None:
        job, raw = str(data["job_id"]), data["job"]
        workload, _, number = job.partition("!")
        profile = data.get("profile")
        if profile is None:
            owner, mark, inner = str(raw["profile"]).partition("!")
            known = self._profiles.get(owner if mark else workload, {})
            profile = known.get(inner if mark else owner, {})
        cores = int(raw["res"])
        asked = profile_requests(profile, cores, is_delay=profile.get("type") == "delay")
        name = unique_pod_name(number, self._names)
        body = pod_object(
            name,
            cpu_milli=asked.cpu_milli,
            memory_bytes=asked.memory_bytes,
            annotations={JOB: job},
            scheduler=asked.scheduler,
        )
        pod = f"{body['metadata']['namespace']}/{name}"
        self._jobs[pod], self._pods[job], self._cores[pod] = job, pod, cores
        self._arrivals.append((self._now_ms, body))

    def _complete(self, data: Mapping[str, Any]) -> None:
        pod = self._pods.pop(str(data["job_id"]), None)
        if pod is None or self._jobs.pop(pod, None) is None:
            return
        self._executed.discard(pod)
        state = str(data["job_state"])
        code = 0 if state == _SUCCEEDED else int(data.get("return_code") or 0) or 1
        assert self._cluster is not None
        pods = self._cluster.pods

        def end() -> None:
            if pod in pods.pods and pods.pods[pod].stage is PodStage.RUNNING:
                pods.end_run(pod, code, timed_out=state == _TIMED_OUT)

        self._cluster.time.at(self._now_ms, end, EventPriority.END)

    def _notice(self, data: Mapping[str, Any]) -> None:
        kind = data["type"]
        if kind == _NO_MORE_JOBS:
            self._is_last = True
        elif kind in {"event_machine_unavailable", "event_machine_available"}:
            assert self._cluster is not None
            for number in parse_host_set(data["resources"]):
                self._cordon(self._hosts[number], cordoned=kind == "event_machine_unavailable")

    def _cordon(self, node: str, *, cordoned: bool) -> None:
        """No pod starts on a host that Batsim has taken away; those that run go on there."""
        assert self._cluster is not None
        store = self._cluster.store

        def changed(body: Object) -> Object:
            return {**body, "spec": {**body.get("spec", {}), "unschedulable": cordoned}}

        def change() -> None:
            store.update(NODES, node, "", changed)

        self._cluster.time.at(self._now_ms, change, EventPriority.FAULT)

    # What the cluster reports

    def pod_changed(self, pod: Pod) -> None:
        """Execute the job of a pod that runs; reject or kill that of a pod that was removed."""
        job = self._jobs.get(pod.name)
        if job is None:
            return
        if pod.stage is PodStage.RUNNING and pod.name not in self._executed:
            host, cores = str(self._numbers[pod.node.name]), self._cores[pod.name]
            mapping = {str(executor): "0" for executor in range(cores)}
            executed = {"job_id": job, "alloc": host} | ({"mapping": mapping} if cores > 1 else {})
            self._executed.add(pod.name)
            self._request("EXECUTE_JOB", executed)
        elif pod.stage.is_final:
            if pod.name in self._executed:
                self._request("KILL_JOB", {"job_ids": [job]})
                # Batsim reports its end, which concerns no pod any more.
                self._executed.discard(pod.name)
                del self._jobs[pod.name]
            else:
                self._reject(pod.name)

    def usage_changed(self, node: PodNode) -> None:
        """Batsim has figures of its own."""

    def node_changed(self, node: PodNode) -> None:
        """Nodes fail in Batsim, if at all."""

    def _on_pod(self, change: Change) -> None:
        """A pod that no node has taken was deleted."""
        metadata = change.object["metadata"]
        pod = f"{metadata.get('namespace')}/{metadata['name']}"
        if change.kind is ChangeKind.DELETED and pod in self._jobs and pod not in self._executed:
            self._reject(pod)

    def _reject(self, pod: str) -> None:
        self._request("REJECT_JOB", {"job_id": self._jobs.pop(pod)})


def _host(raw: Mapping[str, Any], *, shares: bool) -> JobHost:
    """Return a host of the first message. It runs one pod at a time if Batsim shares none."""
    properties = {str(key): str(value) for key, value in raw["properties"].items()}
    if not shares:
        properties["pods"] = "1"
    return JobHost(
        name=str(raw["name"]),
        power_states=(PowerState(1.0),),
        cores=int(raw.get("core_count", 1)),
        properties=properties,
    )
