"""Benchmarks of runs under an unmodified kube-scheduler, with both clocks.

``equipoise kube build-scheduler`` builds the program; without it the runs are left out. The openb
trace runs if its folder is named in the environment variable ``EQUIPOISE_OPENB_FOLDER``.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from equipoise.adapters.kubernetes.annotations import DURATION
from equipoise.adapters.kubernetes.clock.build import find_scheduler
from equipoise.adapters.kubernetes.run.driver import DeliveryOptions
from equipoise.adapters.kubernetes.run.scheduler import SchedulerCommand
from equipoise.adapters.kubernetes.run.session import (
    KubernetesCase,
    KubernetesOutcome,
    simulate_pods,
)
from equipoise.adapters.kubernetes.workload.load import NodeChoice, read_pod_workload
from equipoise.adapters.kubernetes.workload.pod_workload import (
    Arrival,
    PodWorkload,
    make_workload,
    pod_object,
    uniform_nodes,
)
from equipoise.bench.measure import BenchmarkRow
from equipoise.errors import MissingExtra

OPENB_FOLDER: Final = "EQUIPOISE_OPENB_FOLDER"
_OPENB_NODES: Final = "openb_node_list_all_node.csv"
_OPENB_PODS: Final = "openb_pod_list_default.csv"
_HOURS_S: Final = 36_000
_MEAN_RUN_S: Final = 820
_BURST: Final = (200, 16, 170)
"""Pods, nodes and seconds, as in Batkube's study."""
_MANY: Final = (2_000, 200)
"""Pods and nodes."""


def run_rows() -> Iterator[BenchmarkRow]:
    """Yield the runs, or one row that says what is missing."""
    try:
        program = find_scheduler()
    except MissingExtra:
        program = None
    if program is None:
        note = "left out: no kube-scheduler; build it: equipoise kube build-scheduler"
        yield BenchmarkRow("runs under kube-scheduler", 0.0, "", None, note=note)
        return
    scheduler = SchedulerCommand(command=str(program))
    yield _bindings(scheduler)
    yield _twice("10 h, 40 pods, one node of 6 CPUs", realistic_pods(), scheduler, "goal: 30 s")
    pods, nodes, seconds = _BURST
    burst = make_workload("burst", uniform_nodes(nodes), same_pods(pods, seconds))
    yield _twice(f"{pods} pods x {seconds} s at once on {nodes} nodes", burst, scheduler)
    yield from _openb(scheduler)


def same_pods(count: int, seconds: int) -> list[Arrival]:
    """Return pods of one CPU that arrive at once."""
    return [(0, _pod(number, 1000, seconds)) for number in range(count)]


def realistic_pods(seed: int = 1) -> PodWorkload:
    """Return ten hours like those of Batkube's study: long and short pods, and at times a queue."""
    rng = random.Random(seed)
    arrivals = [
        (
            1000 * rng.randrange(_HOURS_S),
            _pod(number, rng.choice((1000, 2000, 3516)), int(rng.expovariate(1 / _MEAN_RUN_S)) + 1),
        )
        for number in range(40)
    ]
    return make_workload("realistic", uniform_nodes(1, "6"), arrivals)


def _pod(number: int, cpu_milli: int, seconds: int) -> dict[str, object]:
    return pod_object(
        f"pod-{number:04d}", cpu_milli=cpu_milli, annotations={DURATION: f"{seconds}s"}
    )


def _bindings(scheduler: SchedulerCommand) -> BenchmarkRow:
    """Bind pods that arrive together, with the clock for any scheduler."""
    pods, nodes = _MANY
    workload = make_workload("many", uniform_nodes(nodes, "16"), same_pods(pods, 100))
    outcome = simulate_pods(
        KubernetesCase(
            workload=workload,
            schedulers=(scheduler,),
            clock="stock",
            run=DeliveryOptions(one_by_one=False),
        )
    )
    return BenchmarkRow(
        f"kube-scheduler, clock stock: {pods:,} pods on {nodes} nodes",
        outcome.binding_s,
        "",
        None,
        count=outcome.bindings,
        figures={"whole_run_s": outcome.wall_s, "requests": outcome.requests},
        note="from the first binding to the last; goal: 500 per second",
    )


def _twice(
    what: str, workload: PodWorkload, scheduler: SchedulerCommand, goal: str = ""
) -> BenchmarkRow:
    """Run a workload two times with the exact clock."""
    case = KubernetesCase(workload=workload, schedulers=(scheduler,))
    first, second = simulate_pods(case), simulate_pods(case)
    same = first.bindings_sha256 == second.bindings_sha256
    return BenchmarkRow(
        f"kube-scheduler, clock virtual: {what}",
        max(first.wall_s, second.wall_s),
        "",
        None,
        figures={"same_bindings": float(same)} | _figures(first),
        note="; ".join(filter(None, ["the longer of two runs", goal])),
    )


def _openb(scheduler: SchedulerCommand) -> Iterator[BenchmarkRow]:
    named = os.environ.get(OPENB_FOLDER)
    if named is None:
        return
    folder = Path(named)
    workload = read_pod_workload(folder / _OPENB_PODS, NodeChoice(file=folder / _OPENB_NODES))
    for clock in ("stock", "virtual"):
        case = KubernetesCase(workload=workload, schedulers=(scheduler,), clock=clock)
        outcome = simulate_pods(case)
        nodes, pods = len(workload.nodes), _pods_of(workload.arrivals)
        yield BenchmarkRow(
            f"openb under kube-scheduler, clock {clock}: {nodes:,} nodes, {pods:,} pods",
            outcome.wall_s,
            "",
            None,
            count=outcome.bindings,
            figures=_figures(outcome),
        )


def _pods_of(arrivals: Sequence[Arrival]) -> int:
    return sum(body["kind"] == "Pod" for _, body in arrivals)


def _figures(outcome: KubernetesOutcome) -> dict[str, float]:
    return {
        "bindings": outcome.bindings,
        "pending": outcome.pending_count,
        "over_allocations": len(outcome.over_allocations),
        "steps": outcome.steps,
        "makespan_s": outcome.figures["makespan"],
    }
