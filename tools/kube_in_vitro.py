"""Runs a workload on a real control plane in real time, and compares our clocks with that run.

    .venv/bin/python tools/kube_in_vitro.py -w burst.json -p nodes.xml --shorten 10 --repeats 3

etcd, kube-apiserver and kube-scheduler are real; the nodes are played by this program: it creates
the Node objects, takes each pod that gets a node (phase Running), and ends it after the duration
of its annotation (phase Succeeded). No controller runs, so nodes need no lease. ``--shorten``
divides all arrivals and durations, because a real control plane runs in real time.

``docs/kubernetes-study.md`` names the versions that were tried and shows the figures.
"""

from __future__ import annotations

import argparse
import heapq
import json
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from math import hypot
from pathlib import Path
from statistics import fmean
from typing import Any

from equipoise.adapters.kubernetes.annotations import DURATION, annotations_of, read_run_ms
from equipoise.adapters.kubernetes.client.connection import (
    STRATEGIC_PATCH,
    ApiConnection,
    object_path,
)
from equipoise.adapters.kubernetes.client.kubeconfig import read_kubeconfig
from equipoise.adapters.kubernetes.clock.build import find_scheduler
from equipoise.adapters.kubernetes.run.scheduler import (
    SchedulerCommand,
    SchedulerSettings,
    complete_config,
    kubeconfig_content,
)
from equipoise.adapters.kubernetes.run.session import KubernetesCase, simulate_pods
from equipoise.adapters.kubernetes.workload.batch_jobs import WideJobs
from equipoise.adapters.kubernetes.workload.load import NodeChoice, read_pod_workload
from equipoise.adapters.kubernetes.workload.pod_workload import PodWorkload, pod_object
from equipoise.errors import WorldError

Object = dict[str, Any]
READY_S = 120.0
MS = 1000
PODS = "/api/v1/namespaces/default/pods"
CLOCKS = ("virtual", "stock", "timeout")


@dataclass(frozen=True, slots=True)
class Figures:
    """What the thesis compares, in seconds."""

    makespan_s: float
    mean_waiting_s: float

    def distance_s(self, other: Figures) -> float:
        """Return the distance of the thesis; its accuracy is one by this."""
        return hypot(self.makespan_s - other.makespan_s, self.mean_waiting_s - other.mean_waiting_s)


def shortened(workload: PodWorkload, factor: float) -> PodWorkload:
    """Return the workload with all arrivals and durations divided by a factor.

    Only single pods whose durations are known can be played on a real control plane.
    """
    arrivals = []
    for at_ms, body in workload.arrivals:
        if body["kind"] != "Pod":
            if body["kind"] != "Namespace":
                raise SystemExit(f"{workload.name} has a {body['kind']}: only pods are played")
            continue
        short = deepcopy(body)
        run_ms = read_run_ms(annotations_of(body), None)
        if run_ms is None:
            raise SystemExit(f"{body['metadata']['name']} has no duration")
        short["metadata"]["annotations"] = {DURATION: f"{max(1, round(run_ms / factor))}ms"}
        short["spec"].pop("activeDeadlineSeconds", None)
        arrivals.append((round(at_ms / factor), short))
    return replace(workload, arrivals=arrivals)


@dataclass(slots=True)
class PlayedNodes:
    """The kubelets of all nodes, and the user who submits: three threads, in real time."""

    kubeconfig: Path
    workload: PodWorkload
    created_s: dict[str, float] = field(default_factory=dict)
    started_s: dict[str, float] = field(default_factory=dict)
    ended_s: dict[str, float] = field(default_factory=dict)
    failure: BaseException | None = None
    _durations_s: dict[str, float] = field(default_factory=dict)
    _ends: list[tuple[float, str]] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def connection(self) -> Iterator[ApiConnection]:
        """Give a new connection: each thread has its own."""
        with closing(ApiConnection(read_kubeconfig(self.kubeconfig))) as api:
            yield api

    def add_nodes(self) -> None:
        """Create the nodes, ready from the start."""
        with self.connection() as api:
            for node in self.workload.nodes:
                body = deepcopy(node)
                body.setdefault("status", {})["conditions"] = [{"type": "Ready", "status": "True"}]
                api.request("POST", "/api/v1/nodes", body)

    def wait_for_scheduler(self) -> None:
        """Wait until a scheduler says of a pod that it fits nowhere."""
        probe = pod_object("is-there-a-scheduler", cpu_milli=10**9)
        path, end_s = object_path("pods", probe["metadata"]), time.monotonic() + READY_S
        with self.connection() as api:
            api.request("POST", PODS, probe)
            while not api.request("GET", path).get("status", {}).get("conditions"):
                time.sleep(0.05)
                if time.monotonic() > end_s:
                    raise WorldError("the scheduler does not answer", code="scheduler-timeout")
            api.request("DELETE", path, {"kind": "DeleteOptions", "gracePeriodSeconds": 0})

    def play(self) -> Figures:
        """Submit all pods at their times, and run them to the end."""
        for _, body in self.workload.arrivals:
            run_ms = read_run_ms(annotations_of(body), None)
            self._durations_s[body["metadata"]["name"]] = (run_ms or 0) / MS
        threads = [
            threading.Thread(target=self._guard, args=(work,), daemon=True)
            for work in (self._take, self._end, self._submit)
        ]
        for thread in threads:
            thread.start()
        with self._changed:
            self._changed.wait_for(self._is_over)
        if self.failure is not None:
            raise self.failure
        for thread in threads:
            thread.join()
        waits_s = [self.started_s[name] - self.created_s[name] for name in self.started_s]
        first_s = min(self.created_s.values())
        return Figures(max(self.ended_s.values()) - first_s, fmean(waits_s))

    def _is_over(self) -> bool:
        return self.failure is not None or len(self.ended_s) == len(self._durations_s)

    def _guard(self, work: Callable[[ApiConnection], None]) -> None:
        try:
            with self.connection() as api:
                work(api)
        except BaseException as error:
            with self._changed:
                self.failure = error
                self._changed.notify_all()

    def _submit(self, api: ApiConnection) -> None:
        """Create each pod when it arrives."""
        began_s = time.monotonic()
        for at_ms, body in self.workload.arrivals:
            time.sleep(max(0.0, began_s + at_ms / MS - time.monotonic()))
            # The pod may have a node before the answer is here.
            self.created_s[body["metadata"]["name"]] = time.monotonic()
            api.request("POST", PODS, body)

    def _take(self, api: ApiConnection) -> None:
        """Start each pod that gets a node, until all have one."""
        for pod in self._pods(api):
            name = pod["metadata"]["name"]
            if name in self._durations_s and name not in self.started_s:
                if pod["spec"].get("nodeName"):
                    self._start(api, name)
                if len(self.started_s) == len(self._durations_s):
                    return

    def _pods(self, api: ApiConnection) -> Iterator[Object]:
        """Yield each pod as it is, and again whenever it changes."""
        found, version = api.list_all(PODS)
        yield from found
        with self.connection() as watching:
            while True:  # the server ends each watch after some minutes
                with closing(watching.watch(PODS, version)) as events:
                    for kind, pod in events:
                        version = pod["metadata"]["resourceVersion"]
                        if kind in {"ADDED", "MODIFIED"}:
                            yield pod

    def _start(self, api: ApiConnection, name: str) -> None:
        now_s = time.monotonic()
        with self._changed:
            self.started_s[name] = now_s
            heapq.heappush(self._ends, (now_s + self._durations_s[name], name))
            self._changed.notify_all()
        set_phase(api, name, "Running")

    def _end(self, api: ApiConnection) -> None:
        """End each pod after its duration, until all have ended."""
        while not self._is_over():
            with self._changed:
                while not self._ends or self._ends[0][0] > time.monotonic():
                    left_s = self._ends[0][0] - time.monotonic() if self._ends else None
                    self._changed.wait(left_s)
                name = heapq.heappop(self._ends)[1]
            ended_s = time.monotonic()
            set_phase(api, name, "Succeeded")
            with self._changed:
                self.ended_s[name] = ended_s
                self._changed.notify_all()


def set_phase(api: ApiConnection, name: str, phase: str) -> None:
    """Write the phase of a pod, as its kubelet does."""
    ready = {"type": "Ready", "status": str(phase == "Running")}
    body = {"status": {"phase": phase, "conditions": [ready]}}
    path = object_path("pods", {"namespace": "default", "name": name}, "status")
    api.request("PATCH", path, body, STRATEGIC_PATCH)


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def running(words: list[str], log: Path) -> Iterator[None]:
    """Run a program until the end of the block."""
    with log.open("w") as file, subprocess.Popen(words, stdout=file, stderr=file) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def control_plane(programs: argparse.Namespace, folder: Path) -> Iterator[Path]:
    """Start etcd and kube-apiserver with empty data; yield a kubeconfig of their administrator."""
    token, key = secrets.token_hex(16), folder / "accounts.key"
    (folder / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
    words = ["openssl", "genrsa", "-out", str(key), "2048"]
    subprocess.run(words, check=True, capture_output=True)
    client, peer, port = free_port(), free_port(), free_port()
    etcd = [
        programs.etcd, "--data-dir", str(folder / "etcd"),
        "--listen-client-urls", f"http://127.0.0.1:{client}",
        "--advertise-client-urls", f"http://127.0.0.1:{client}",
        "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--unsafe-no-fsync",
    ]  # fmt: skip
    server = [
        programs.apiserver, f"--etcd-servers=http://127.0.0.1:{client}",
        "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={port}",
        f"--cert-dir={folder}", "--service-account-issuer=https://in-vitro.invalid",
        f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
        "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=AlwaysAllow",
        f"--token-auth-file={folder / 'tokens.csv'}", "--endpoint-reconciler-type=none",
        # Without controllers no pod has an account, and nothing removes the taint of new nodes.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    ]  # fmt: skip
    kubeconfig = folder / "kubeconfig"
    content = kubeconfig_content(f"https://127.0.0.1:{port}", token)
    content["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    kubeconfig.write_text(json.dumps(content))
    with ExitStack() as stack:
        stack.enter_context(running(etcd, folder / "etcd.log"))
        stack.enter_context(running(server, folder / "apiserver.log"))
        wait_until_there(kubeconfig)
        yield kubeconfig


def wait_until_there(kubeconfig: Path) -> None:
    """Wait until the API has the namespace of the pods."""
    end_s = time.monotonic() + READY_S
    while True:
        try:
            ApiConnection(read_kubeconfig(kubeconfig)).request("GET", "/api/v1/namespaces/default")
        except WorldError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.2)
        else:
            return


def in_vitro(workload: PodWorkload, programs: argparse.Namespace) -> Figures:
    """Run a workload on a new control plane."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        kubeconfig = stack.enter_context(control_plane(programs, folder))
        nodes = PlayedNodes(kubeconfig, workload)
        nodes.add_nodes()
        config = folder / "scheduler.json"
        config.write_text(json.dumps(complete_config({}, kubeconfig, SchedulerSettings())))
        words = [programs.scheduler, f"--config={config}", "--secure-port=0"]
        stack.enter_context(running(words, folder / "scheduler.log"))
        nodes.wait_for_scheduler()
        return nodes.play()


def simulated(workload: PodWorkload, clock: str, programs: argparse.Namespace) -> Figures:
    """Run a workload on the simulated cluster."""
    command = SchedulerCommand(command=programs.scheduler)
    case = KubernetesCase(workload=workload, schedulers=(command,), clock=clock)
    figures = simulate_pods(case).figures
    return Figures(float(figures["makespan"]), float(figures["mean_waiting_time"]))


def row(name: str, what: str, runs: list[Figures], real: list[Figures]) -> Object:
    """Sum up the runs of one kind, with their accuracy against the mean of the real ones."""
    mean = Figures(fmean(run.makespan_s for run in real), fmean(run.mean_waiting_s for run in real))
    makespans, waits = [run.makespan_s for run in runs], [run.mean_waiting_s for run in runs]
    distances = [run.distance_s(mean) for run in runs]
    return {
        "workload": name,
        "clock": what,
        "runs": len(runs),
        "makespan_s": [min(makespans), fmean(makespans), max(makespans)],
        "mean_waiting_s": [min(waits), fmean(waits), max(waits)],
        "distance_s": fmean(distances),
        "accuracy": fmean(1 / distance for distance in distances) if all(distances) else None,
    }


def compare(workload: PodWorkload, arguments: argparse.Namespace) -> Iterator[Object]:
    """Yield the row of the real runs, then one for each clock."""
    real = []
    for number in range(arguments.repeats):
        real.append(in_vitro(workload, arguments))
        print(f"{workload.name} in vitro {number + 1}: {real[-1]}", file=sys.stderr, flush=True)
    yield row(workload.name, "in vitro", real, real)
    for clock in CLOCKS:
        runs = [simulated(workload, clock, arguments) for _ in range(arguments.repeats)]
        print(f"{workload.name} {clock}: {runs}", file=sys.stderr, flush=True)
        yield row(workload.name, clock, runs, real)


def parsed() -> argparse.Namespace:
    """Return the arguments, with programs that exist."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-w", "--workload", type=Path, required=True)
    parser.add_argument("-p", "--platform", type=Path, required=True)
    parser.add_argument("--shorten", type=float, default=10.0, metavar="FACTOR")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--etcd", default="etcd")
    parser.add_argument("--apiserver", default="kube-apiserver")
    parser.add_argument("--scheduler", default="")
    arguments = parser.parse_args()
    arguments.scheduler = arguments.scheduler or str(find_scheduler() or "kube-scheduler")
    for program in (arguments.etcd, arguments.apiserver, arguments.scheduler, "openssl"):
        if shutil.which(program) is None:
            parser.error(f"there is no program {program}")
    return arguments


def main() -> None:
    """Compare one workload, and print a line of JSON for each kind of run."""
    arguments = parsed()
    nodes = NodeChoice(file=arguments.platform)
    workload = read_pod_workload(arguments.workload, nodes, wide=WideJobs.SCALE)
    for found in compare(shortened(workload, arguments.shorten), arguments):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
