"""The study of Batkube's clock: how its parameters change a run, beside an exact clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import hypot
from typing import Final, NamedTuple

from equipoise.adapters.kubernetes.run.clocks import TimeoutOptions
from equipoise.adapters.kubernetes.run.session import (
    KubernetesCase,
    KubernetesOutcome,
    RunStopped,
    simulate_pods,
)
from equipoise.adapters.kubernetes.workload.pod_workload import PodWorkload
from equipoise.errors import WorldError

Simulate = Callable[[KubernetesCase], KubernetesOutcome]

PODS_WAIT: Final = "scheduler-deadlock"
"""The failure of a run that ends with pods that have no node."""
_EQUAL_S: Final = 1e-6
"""Times are whole milliseconds: a smaller distance is an error of rounding."""


class StudyPoint(NamedTuple):
    """Parameters of the clock, in seconds."""

    timeout_s: float
    max_step_s: float
    min_delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """What a study runs."""

    workloads: Sequence[PodWorkload]
    case: KubernetesCase
    """Schedulers and options of every run; each workload in turn replaces its own."""
    points: Sequence[StudyPoint]
    repeats: int = 3
    reference_clock: str = "virtual"

    @property
    def run_count(self) -> int:
        """How many runs there are."""
        return len(self.workloads) * (1 + len(self.points) * self.repeats)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRun:
    """One run of a study."""

    workload: str
    point: StudyPoint | None
    """None for the reference."""
    repeat: int = 0
    makespan_s: float
    mean_waiting_s: float
    wall_s: float
    over_allocations: int
    failure: str = ""
    """The code of what stopped the run; empty if it came to its end."""
    notes: Sequence[str] = field(default=())


def study(plan: StudyPlan, simulate: Simulate = simulate_pods) -> Iterator[StudyRun]:
    """Yield for each workload the run of the reference, then those of all points.

    A reference that fails ends the study.
    """
    for workload in plan.workloads:
        case = replace(plan.case, workload=workload, clock=plan.reference_clock)
        reference = _run(case, None, 0, simulate)
        if reference.failure:
            text = f"the reference run of {workload.name} failed: {', '.join(reference.notes)}"
            raise WorldError(text, code=reference.failure)
        yield reference
        for point in plan.points:
            for repeat in range(plan.repeats):
                yield _run(_at(case, point), point, repeat, simulate)


def grid(
    timeouts_s: Sequence[float], max_steps_s: Sequence[float], min_delays_s: Sequence[float]
) -> list[StudyPoint]:
    """Return a point for each combination."""
    return [
        StudyPoint(timeout_s, max_step_s, min_delay_s)
        for min_delay_s in min_delays_s
        for max_step_s in max_steps_s
        for timeout_s in timeouts_s
    ]


def distance_s(run: StudyRun, reference: StudyRun) -> float:
    """Return how far makespan and mean waiting time are from those of the reference."""
    return hypot(
        run.makespan_s - reference.makespan_s, run.mean_waiting_s - reference.mean_waiting_s
    )


def accuracy(run: StudyRun, reference: StudyRun) -> float | None:
    """Return the accuracy of the thesis, one by the distance; None if the figures are equal."""
    distance = distance_s(run, reference)
    return None if distance < _EQUAL_S else 1 / distance


def _at(case: KubernetesCase, point: StudyPoint) -> KubernetesCase:
    """Return the case with the clock of Batkube."""
    options: TimeoutOptions = replace(
        case.timeout,
        timeout_s=point.timeout_s,
        max_step_s=point.max_step_s,
        min_delay_s=point.min_delay_s,
    )
    return replace(case, clock="timeout", timeout=options)


def _run(
    case: KubernetesCase, point: StudyPoint | None, repeat: int, simulate: Simulate
) -> StudyRun:
    failure, notes = "", []
    try:
        outcome = simulate(case)
    except RunStopped as error:
        outcome, failure = error.outcome, error.code
        notes.append(str(error))
    if not failure and outcome.pending_count:
        failure = PODS_WAIT
        notes.append(f"{outcome.pending_count:,} pods have no node at the end")
    return StudyRun(
        workload=case.workload.name,
        point=point,
        repeat=repeat,
        makespan_s=float(outcome.figures["makespan"]),
        mean_waiting_s=float(outcome.figures["mean_waiting_time"]),
        wall_s=outcome.wall_s,
        over_allocations=len(outcome.over_allocations),
        failure=failure,
        notes=tuple(notes),
    )
