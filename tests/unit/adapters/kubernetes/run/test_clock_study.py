"""The study of the clock with a timeout: its measure, its loop, its workloads, and its page."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from math import inf, sqrt
from pathlib import Path

import pytest

from equipoise.adapters.kubernetes.annotations import DURATION
from equipoise.adapters.kubernetes.quantity import parse_milli
from equipoise.adapters.kubernetes.run.clocks import TimeoutOptions
from equipoise.adapters.kubernetes.run.scheduler import SchedulerCommand
from equipoise.adapters.kubernetes.run.session import (
    KubernetesCase,
    KubernetesOutcome,
    RunStopped,
    simulate_pods,
)
from equipoise.adapters.kubernetes.run.study import (
    StudyPlan,
    StudyPoint,
    StudyRun,
    accuracy,
    distance_s,
    grid,
    study,
)
from equipoise.adapters.kubernetes.workload.pod_workload import (
    PodWorkload,
    make_workload,
    pod_object,
    uniform_nodes,
)
from equipoise.adapters.kubernetes.workload.study_workloads import (
    mixed_workload,
    study_workloads,
)
from equipoise.errors import WorldError

SCRIPT = Path(__file__).parents[4] / "kubernetes_scheduler.py"
SCHEDULER = SchedulerCommand(command=f"{sys.executable} {SCRIPT} {{url}}")
POINT = StudyPoint(0.02, 20.0, 0.0)


def workload(name: str, cpus: list[int], nodes: int = 1) -> PodWorkload:
    pods = [
        (0, pod_object(f"p{number}", cpu_milli=cpu, annotations={DURATION: "10"}))
        for number, cpu in enumerate(cpus)
    ]
    return make_workload(name, uniform_nodes(nodes), pods)


def made(makespan_s: float, wait_s: float) -> StudyRun:
    return StudyRun(
        workload="w", point=POINT, makespan_s=makespan_s, mean_waiting_s=wait_s, wall_s=1.0,
        over_allocations=0,
    )  # fmt: skip


def outcome(case: KubernetesCase, makespan_s: float, pending: int = 0) -> KubernetesOutcome:
    return KubernetesOutcome(
        scheduler="s", clock=case.clock, notes=(),
        figures={"makespan": makespan_s, "mean_waiting_time": 5.0}, pending=(),
        pending_count=pending, over_allocations=(), cpu_requested_pct=0.0, cpu_used_pct=0.0,
        fragmentation_pct=0.0,
        bindings=1, binding_s=0.5, requests=1, steps=1, bindings_sha256="", wall_s=0.5,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("makespan_s", "wait_s", "expected"),
    [(103.0, 14.0, 1 / 5), (97.0, 6.0, 1 / 5), (100.0, 10.5, 2.0), (101.0, 11.0, 1 / sqrt(2))],
)
def test_accuracy_is_one_by_the_distance(makespan_s: float, wait_s: float, expected: float) -> None:
    reference, run = made(100.0, 10.0), made(makespan_s, wait_s)
    assert accuracy(run, reference) == pytest.approx(expected)
    assert distance_s(run, reference) == distance_s(reference, run)


def test_the_accuracy_of_an_equal_run_has_no_number() -> None:
    reference = made(100.0, 0.1 + 0.2)
    assert accuracy(made(100.0, 0.3), reference) is None
    # The least difference that a run of 50,000 pods can have is still a number.
    assert accuracy(made(100.0, 0.3 + 0.001 / 500), reference) is not None


def test_a_grid_has_each_combination_once() -> None:
    points = grid([0.001, 0.02], [1.0, 20.0, 100.0], [0.0, 0.005])
    assert len(points) == len(set(points)) == 12


def test_a_study_runs_the_reference_then_each_point() -> None:
    seen = []

    def simulate(case: KubernetesCase) -> KubernetesOutcome:
        seen.append((case.workload.name, case.clock, case.timeout.timeout_s))
        return outcome(case, 20.0)

    works = (workload("a", [1000]), workload("b", [1000]))
    case = KubernetesCase(workload=works[0], schedulers=(SCHEDULER,))
    plan = StudyPlan(workloads=works, case=case, points=grid([0.3, 0.4], [1.0], [0.0]), repeats=2)
    runs = list(study(plan, simulate))
    assert len(runs) == plan.run_count == 10
    expected = [("virtual", None), *(("timeout", t) for t in (0.3, 0.3, 0.4, 0.4))]
    for name, begin in (("a", 0), ("b", 5)):
        assert [name == each[0] for each in seen[begin : begin + 5]] == [True] * 5
        found = [(clock, None if clock == "virtual" else timeout)
                 for _, clock, timeout in seen[begin : begin + 5]]  # fmt: skip
        assert found == expected


def test_runs_that_stop_or_leave_pods_are_crashes() -> None:
    def simulate(case: KubernetesCase) -> KubernetesOutcome:
        found = outcome(case, 20.0, pending=case.timeout.timeout_s == 0.2)
        if case.timeout.timeout_s == 0.1:
            raise RunStopped("it ended", "scheduler-ended", found)
        return found

    work = workload("a", [1000])
    case = KubernetesCase(workload=work, schedulers=(SCHEDULER,))
    points = grid([0.1, 0.2, 0.3], [1.0], [0.0])
    runs = list(study(StudyPlan(workloads=(work,), case=case, points=points, repeats=1), simulate))
    assert [run.failure for run in runs] == ["", "scheduler-ended", "scheduler-deadlock", ""]


def test_a_reference_that_fails_ends_the_study() -> None:
    def simulate(case: KubernetesCase) -> KubernetesOutcome:
        raise RunStopped("it ended", "scheduler-ended", outcome(case, 0.0))

    work = workload("a", [1000])
    case = KubernetesCase(workload=work, schedulers=(SCHEDULER,))
    with pytest.raises(WorldError) as raised:
        list(study(StudyPlan(workloads=(work,), case=case, points=[POINT]), simulate))
    assert raised.value.code == "scheduler-ended"


def test_the_workloads_have_the_shapes_of_the_thesis() -> None:
    burst, spaced, mixed = study_workloads()
    for each, step_ms in ((burst, 0), (spaced, 10_000)):
        assert [at for at, _ in each.arrivals] == [step_ms * number for number in range(200)]
        assert {body["metadata"]["annotations"][DURATION] for _, body in each.arrivals} == {"170"}
        assert len(each.nodes) == 16
    assert (len(mixed.nodes), len(mixed.arrivals)) == (1, 40)
    assert mixed.arrivals[-1][0] < 10 * 3600 * 1000
    requests = [
        parse_milli(body["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        for _, body in mixed.arrivals
    ]
    assert max(requests) <= 6000
    assert mixed_workload().arrivals == mixed.arrivals


# The clock itself, with a scheduler that is a script


def timeout_case(work: PodWorkload, **options: float) -> KubernetesCase:
    return KubernetesCase(
        workload=work, schedulers=(SCHEDULER,), clock="timeout", timeout=TimeoutOptions(**options)
    )


def test_no_pod_starts_before_its_decision() -> None:
    """Whatever the timeout, a run takes at least as long as the work on the node."""
    found = simulate_pods(timeout_case(workload("a", [1000, 1000, 1000]), max_step_s=2.0))
    assert (found.bindings, found.pending_count, found.over_allocations) == (3, 0, ())
    assert found.figures["makespan"] >= 30
    assert found.figures["mean_waiting_time"] >= 10


@pytest.mark.parametrize("timeout_s", [0.0, 0.005, 0.05])
def test_a_record_of_the_clock_is_repeated(tmp_path: Path, timeout_s: float) -> None:
    """Also decisions that came late, and between the events of the run."""
    work, record = workload("a", [500, 1000, 500, 1000], nodes=2), tmp_path / "d.jsonl"
    case = timeout_case(work, timeout_s=timeout_s, max_step_s=40.0)
    found = simulate_pods(replace(case, record=record))
    again = simulate_pods(KubernetesCase(workload=work, replay=record))
    assert again.bindings_sha256 == found.bindings_sha256
    assert again.figures == found.figures


def test_pods_that_wait_while_nothing_happens_are_a_deadlock() -> None:
    work = workload("a", [1000, 5000])
    with pytest.raises(RunStopped) as raised:
        simulate_pods(timeout_case(work, crash_timeout_s=0.2))
    assert raised.value.code == "scheduler-deadlock"
    assert "p1" in str(raised.value)
    assert raised.value.outcome.pending_count == 1
    assert raised.value.outcome.figures["nb_jobs_success"] == 1


def test_a_scheduler_that_ends_is_a_crash() -> None:
    dies = SchedulerCommand(command=f"{SCHEDULER.command} --mode die --count 2")
    work = workload("a", [1000] * 4, nodes=3)
    case = KubernetesCase(
        workload=work, schedulers=(dies,), clock="timeout",
        timeout=TimeoutOptions(crash_timeout_s=inf),
    )  # fmt: skip
    with pytest.raises(RunStopped) as raised:
        simulate_pods(case)
    assert raised.value.code == "scheduler-ended"


def test_a_study_with_a_real_process() -> None:
    work = workload("a", [1000] * 3, nodes=2)
    case = KubernetesCase(workload=work, schedulers=(SCHEDULER,))
    plan = StudyPlan(
        workloads=(work,), case=case, points=[POINT], repeats=2, reference_clock="stock"
    )
    runs = list(study(plan))
    assert Counter(run.failure for run in runs) == {"": 3}
    assert runs[0].makespan_s == 20
    assert all(run.makespan_s >= runs[0].makespan_s for run in runs)
