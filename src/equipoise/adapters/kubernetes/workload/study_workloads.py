"""The workloads of Batkube's study, generated: a burst, jobs at equal distances, a mixed day."""

from __future__ import annotations

from random import Random
from typing import Final

from equipoise.adapters.kubernetes.annotations import DURATION
from equipoise.adapters.kubernetes.quantity import format_seconds
from equipoise.adapters.kubernetes.workload.pod_workload import (
    Arrival,
    PodWorkload,
    make_workload,
    pod_object,
    uniform_nodes,
)

_MS: Final = 1000
_JOBS: Final = 200
_JOB_S: Final = 170
_NODES: Final = 16
_DISTANCE_S: Final = 10
_MIXED_JOBS: Final = 40
_MIXED_S: Final = 10 * 3600
_MIXED_S_MAX: Final = 3600
"""The study cut the run times of its trace at one hour."""
_MIXED_CPUS: Final = ((5900, 2), (3516, 24), (1172, 9), (586, 2), (188, 3))
"""CPU requests in thousandths, and how many jobs have each: most pairs do not fit on six cores."""
_SEED: Final = 1


def study_workloads() -> tuple[PodWorkload, ...]:
    """Return the three workloads, each with its nodes."""
    return burst_workload(), spaced_workload(), mixed_workload()


def burst_workload() -> PodWorkload:
    """Return 200 pods of one core and 170 s that arrive at once, on 16 nodes of one core."""
    arrivals = [_arrival(number, 0, 1000, _JOB_S) for number in range(_JOBS)]
    return make_workload("burst", uniform_nodes(_NODES), arrivals)


def spaced_workload() -> PodWorkload:
    """Return the same pods, one every 10 s."""
    arrivals = [_arrival(number, _DISTANCE_S * number, 1000, _JOB_S) for number in range(_JOBS)]
    return make_workload("spaced", uniform_nodes(_NODES), arrivals)


def mixed_workload() -> PodWorkload:
    """Return 40 pods of several sizes over ten hours, on one node of six cores."""
    draw = Random(_SEED)
    cpus = [cpu for cpu, count in _MIXED_CPUS for _ in range(count)]
    draw.shuffle(cpus)
    submits = sorted(draw.randrange(_MIXED_S) for _ in range(_MIXED_JOBS))
    arrivals = []
    for number, (submit_s, cpu_milli) in enumerate(zip(submits, cpus, strict=True)):
        run_s = min(round(draw.lognormvariate(6.2, 1.3)), _MIXED_S_MAX)
        arrivals.append(_arrival(number, submit_s, cpu_milli, max(run_s, 1)))
    return make_workload("realistic", uniform_nodes(1, 6), arrivals)


def _arrival(number: int, submit_s: int, cpu_milli: int, run_s: int) -> Arrival:
    annotations = {DURATION: format_seconds(run_s * _MS)}
    pod = pod_object(f"job-{number + 1}", cpu_milli=cpu_milli, annotations=annotations)
    return submit_s * _MS, pod
