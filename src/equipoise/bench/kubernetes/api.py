"""Benchmarks of the Kubernetes API: requests per second, events to watchers, and memory."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter, process_time
from typing import Final, NamedTuple

from equipoise.adapters.kubernetes.api.resources import NODES, PODS
from equipoise.adapters.kubernetes.api.server import ApiServer
from equipoise.adapters.kubernetes.api.store import Object, ObjectStore
from equipoise.adapters.kubernetes.cluster.simulated_cluster import SimulatedCluster
from equipoise.adapters.kubernetes.workload.pod_workload import pod_object, uniform_nodes
from equipoise.bench.kubernetes import clients
from equipoise.bench.kubernetes.clients import REQUEST_KINDS, pod_name
from equipoise.bench.measure import BenchmarkRow, run_alone
from equipoise.sim.pods.pod_time import PodTime

_REQUESTS: Final = 8_000
_CONNECTIONS: Final = 4
_WATCHERS: Final = 20
_CHANGES: Final = 2_000
_NODES: Final = 5_000
_PODS: Final = 50_000


class _Used(NamedTuple):
    """The time of a measurement: on the wall, and of the CPU in the process of the server.

    The second one depends little on what else the machine does.
    """

    wall_s: float
    cpu_s: float


def api_rows() -> Iterator[BenchmarkRow]:
    """Yield requests of each kind, events to watchers, and the memory of a large cluster."""
    found = asyncio.run(_measure_requests())
    for kind in REQUEST_KINDS:
        yield BenchmarkRow(
            f"API: {_REQUESTS:,} x {kind} of a pod on {_CONNECTIONS} connections",
            found[kind].wall_s,
            "",
            None,
            count=_REQUESTS,
            figures={"server_us": 1e6 * found[kind].cpu_s / _REQUESTS},
            note="goal: 3,000 per second",
        )
    watched = asyncio.run(_measure_watches())
    events = _CHANGES * _WATCHERS
    yield BenchmarkRow(
        f"API: {_CHANGES:,} changes of pods to {_WATCHERS} watchers",
        watched.wall_s,
        "",
        None,
        count=events,
        figures={"server_us": 1e6 * watched.cpu_s / events},
        note="events; goal: 10,000 per second",
    )
    yield _measure_memory()


async def _measure_requests() -> dict[str, _Used]:
    """Return the seconds of each kind of request, in the order in which they depend."""
    store = ObjectStore(lambda: 0)
    for node in uniform_nodes(clients.NODES):
        store.create(NODES, node)
    server = ApiServer(store)
    await server.start()
    try:
        return {kind: await _run_client(server, kind, _REQUESTS) for kind in REQUEST_KINDS}
    finally:
        await server.stop()


async def _run_client(server: ApiServer, kind: str, count: int) -> _Used:
    began_s = process_time()
    process = await _start_client(server, kind, count, _CONNECTIONS)
    output, _ = await process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode or 0, kind)
    return _Used(float(output), process_time() - began_s)


async def _start_client(
    server: ApiServer, kind: str, count: int, connections: int
) -> asyncio.subprocess.Process:
    port = server.url.rpartition(":")[2]
    words = ("-m", clients.__name__, port, kind, str(count), str(connections))
    return await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE
    )


async def _measure_watches() -> _Used:
    """Change pods one after another while watchers read, and return the time to the last."""
    store = ObjectStore(lambda: 0)
    for number in range(_CHANGES):
        store.create(PODS, pod_object(pod_name(number), cpu_milli=100), "default")
    server = ApiServer(store)
    await server.start()
    try:
        process = await _start_client(server, "watch", 2 * _CHANGES, _WATCHERS)
        assert process.stdout is not None
        await process.stdout.readline()
        await _until_sent(server)  # the pods that were there before
        began, began_cpu = perf_counter(), process_time()
        for number in range(_CHANGES):
            store.update(PODS, pod_name(number), "default", _running)
            # As between two requests: watches send what they have.
            await asyncio.sleep(0)
        await process.communicate()
        return _Used(perf_counter() - began, process_time() - began_cpu)
    finally:
        await server.stop()


async def _until_sent(server: ApiServer) -> None:
    """Wait until all watches are open and have nothing more to send."""
    while server.watches_open < _WATCHERS or server.requests_open:
        await asyncio.sleep(0.01)


def _running(body: Object) -> Object:
    return {**body, "status": {**body["status"], "phase": "Running"}}


def _measure_memory() -> BenchmarkRow:
    """Fill a cluster in a process of its own, whose memory is its own."""
    seconds, memory_mib = run_alone(fill_cluster, _NODES, _PODS)
    return BenchmarkRow(
        f"{_PODS:,} pods are created, bound and run on {_NODES:,} nodes",
        seconds,
        "",
        None,
        count=_PODS,
        figures={"memory_mib": round(memory_mib, 1)},
        note="the store and the simulated cluster, without a network; goal: under 1,024 MiB",
    )


def fill_cluster(nodes: int, pods: int) -> float:
    """Run so many pods at once on a simulated cluster, and return the seconds."""
    began = perf_counter()
    time = PodTime()
    store = ObjectStore(time)
    cluster = SimulatedCluster(store, time=time)
    names = []
    for node in uniform_nodes(nodes, "16", "64Gi"):
        cluster.add_node(node)
        names.append(node["metadata"]["name"])
    for number in range(pods):
        store.create(PODS, pod_object(pod_name(number), cpu_milli=1000), "default")
    for number in range(pods):
        store.bind("default", pod_name(number), names[number % nodes])
    cluster.advance(0)
    running = sum(body["status"]["phase"] == "Running" for body in store.list(PODS))
    assert running == pods, running
    return perf_counter() - began
