"""Batch jobs as pods: one pod for each job of a Batsim or SWF workload, as Batkube did.

The ``res`` of a job is the number of cores that its pod requests on one node, unless its profile
states ``cpu``, as Batkube's workloads do. A profile may also state ``memory`` and ``scheduler``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil
from typing import Any, Final, NamedTuple

from equipoise.adapters.kubernetes.annotations import DURATION, EXIT_CODE, JOB, WORK
from equipoise.adapters.kubernetes.quantity import (
    format_seconds,
    parse_amount,
    parse_milli,
)
from equipoise.adapters.kubernetes.workload.pod_workload import (
    SCHEDULER,
    Arrival,
    Object,
    amounts_of,
    object_name,
    pod_object,
    pod_spec_object,
)
from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.work import (
    UNLIMITED,
    DelayWork,
    Job,
    MergedTaskWork,
    SequenceWork,
    TaskWork,
    UniformTaskWork,
    Work,
    task_amounts,
)

_MILLI: Final = 1000
_MS_PER_S: Final = 1000
_BATKUBE_DEFAULT: Final = "default"
"""The name of the scheduler in Batkube's workloads."""


_CODE_MAX: Final = 255


class WideJobs(Enum):
    """What becomes of a job that requests more cores than the largest node has."""

    KEEP = "keep"
    """A pod that no node has room for."""
    SPLIT = "split"
    """A Kubernetes Job with a pod of one core for each core; they may start at different times."""
    SCALE = "scale"
    """The cores of all jobs shrink, so that the widest one needs a whole node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """What a job takes: a time on any node, and operations of each core."""

    seconds: float = 0.0
    flops: float = 0.0
    exit_code: int = 0


def batch_pods(
    jobs: Iterable[Job],
    nodes: Sequence[Object],
    source: str,
    *,
    profiles: Mapping[str, Any] | None = None,
    wide: WideJobs = WideJobs.KEEP,
) -> list[Arrival]:
    """Return a pod, or a Kubernetes Job, for each batch job."""
    found = []
    for job in jobs:
        try:
            found.append(_BatchPod.of(job, profiles or {}))
        except (TypeError, ValueError) as error:
            problem = InputProblem(
                key=f"job {job.name}", what=str(error), cure="change the job or its profile"
            )
            raise InvalidInput(source, [problem]) from None
    largest = max((parse_milli(amounts_of(node).get("cpu", 0)) for node in nodes), default=0)
    widest = max((pod.cpu_milli for pod in found), default=0)
    names: set[str] = set()
    arrivals = []
    for pod in found:
        name = unique_pod_name(pod.job.name, names)
        if wide is WideJobs.SPLIT and pod.cpu_milli > largest:
            body = pod.parallel(name)
        elif wide is WideJobs.SCALE and widest > largest:
            body = pod.object(name, max(1, pod.cpu_milli * largest // widest))
        else:
            body = pod.object(name, pod.cpu_milli)
        arrivals.append((round(pod.job.submit_s * _MS_PER_S), body))
    return arrivals


class PodRequests(NamedTuple):
    """What the pod of a job asks for."""

    cpu_milli: int
    memory_bytes: int
    scheduler: str


def profile_requests(profile: Mapping[str, Any], cores: int, *, is_delay: bool) -> PodRequests:
    """Return what a pod asks for by the profile of its job; ``ValueError`` for a wrong amount."""
    # In a parallel task, ``cpu`` has operations.
    own = profile if is_delay else {}
    scheduler = str(profile.get("scheduler") or _BATKUBE_DEFAULT)
    cpu = own.get("cpu")
    return PodRequests(
        parse_milli(cores if cpu is None else cpu),
        parse_amount(own["memory"]) if "memory" in own else 0,
        SCHEDULER if scheduler == _BATKUBE_DEFAULT else scheduler,
    )


def unique_pod_name(job: str, names: set[str]) -> str:
    """Return a name for the pod of a job that no other pod has, and add it to the names."""
    name = first = f"job-{object_name(job)}"
    number = 1
    while name in names:
        number += 1
        name = f"{first}-{number}"
    names.add(name)
    return name


@dataclass(frozen=True, slots=True)
class _BatchPod:
    """What the pod of a batch job needs."""

    job: Job
    cpu_milli: int
    memory_bytes: int
    scheduler: str
    cost: _Cost

    @classmethod
    def of(cls, job: Job, profiles: Mapping[str, Any]) -> _BatchPod:
        raw = profiles.get(str(job.extra.get("profile", "")), {})
        asked = profile_requests(raw, job.hosts_requested, is_delay=isinstance(job.work, DelayWork))
        return cls(job, *asked, _cost(job.work, job.hosts_requested))

    @property
    def deadline_s(self) -> int | None:
        """The walltime; Kubernetes counts whole seconds."""
        limit_s = self.job.walltime_s
        return None if limit_s == UNLIMITED else max(1, ceil(limit_s))

    @property
    def annotations(self) -> dict[str, str]:
        """How the pod behaves."""
        cost = self.cost
        found = {
            DURATION: format_seconds(round(cost.seconds * _MS_PER_S)),
            JOB: f"{self.job.workload}!{self.job.name}",
        }
        if cost.flops:
            found[WORK] = str(ceil(cost.flops))
        if cost.exit_code:
            found[EXIT_CODE] = str(cost.exit_code)
        return found

    def object(self, name: str, cpu_milli: int) -> Object:
        """Return the manifest of the pod."""
        return pod_object(
            name,
            cpu_milli=cpu_milli,
            memory_bytes=self.memory_bytes,
            annotations=self.annotations,
            deadline_s=self.deadline_s,
            scheduler=self.scheduler,
        )

    def parallel(self, name: str) -> Object:
        """Return a Kubernetes Job with a pod of one core for each core."""
        count = -(-self.cpu_milli // _MILLI)
        memory_bytes = -(-self.memory_bytes // count)
        spec = pod_spec_object(_MILLI, memory_bytes, None, None, self.scheduler)
        job: Object = {
            "parallelism": count,
            "completions": count,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": {"metadata": {"annotations": self.annotations}, "spec": spec},
        }
        if self.deadline_s is not None:
            job["activeDeadlineSeconds"] = self.deadline_s
        metadata = {
            "name": name,
            "namespace": "default",
            "annotations": {JOB: self.annotations[JOB]},
        }
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job}


def _cost(work: Work, count: int) -> _Cost:
    """Return what a job takes; ``ValueError`` for a kind of work that needs more than a node."""
    if isinstance(work, DelayWork):
        return _Cost(seconds=work.seconds, exit_code=_code(work))
    if isinstance(work, TaskWork | UniformTaskWork | MergedTaskWork):
        # Each executor has a core of one node, so nothing passes the network.
        flops, _ = task_amounts(work, count)
        return _Cost(flops=max(flops, default=0.0), exit_code=_code(work))
    if isinstance(work, SequenceWork):
        return _sequence_cost(work, count)
    raise ValueError(f"its profile {work.name!r:.40} is of a kind that a pod cannot run")


def _sequence_cost(work: SequenceWork, count: int) -> _Cost:
    seconds, flops = 0.0, 0.0
    for part in work.parts:
        cost = _cost(part, count)
        seconds, flops = seconds + cost.seconds, flops + cost.flops
        if cost.exit_code:  # it ends early, in its first round
            return _Cost(seconds=seconds, flops=flops, exit_code=_code(work))
    rounds = max(work.repeat, 0)
    return _Cost(seconds=seconds * rounds, flops=flops * rounds, exit_code=_code(work))


def _code(work: Work) -> int:
    """Return the exit code of a work; Kubernetes knows one byte."""
    return work.return_code if 0 <= work.return_code <= _CODE_MAX else 1
