"""Nodes and pods: pulls, usage, energy, over-allocation, and the records of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.adapters.batsim.outputs import BatsimOutputs
from equipoise.adapters.batsim.summary import summary_values
from equipoise.sim.jobs.platform import JobHost, Platform, PowerState
from equipoise.sim.jobs.record.journal import JobJournal
from equipoise.sim.jobs.record.replay import JobReplay
from equipoise.sim.pods.cluster import PodCluster
from equipoise.sim.pods.job_records import PodJobRecords
from equipoise.sim.pods.pod import PodOutcome, PodStage
from equipoise.sim.pods.spec import (
    KubeletOptions,
    PodImage,
    PodNodeSpec,
    PodSpec,
    UsagePhase,
)
from equipoise.store import open_journal

STATE = PowerState(1.0, idle_w=100.0, base_w=100.0, full_w=200.0)


def cluster(*cpus: int, **options: object) -> PodCluster:
    found = PodCluster(KubeletOptions(**options))  # type: ignore[arg-type]
    for number, cpu in enumerate(cpus):
        found.add_node(PodNodeSpec(name=f"n{number}", allocatable={"cpu": cpu, "pods": 3}))
    return found


def pod(name: str, cpu: int = 1000, ms: int | None = 1000, **more: object) -> PodSpec:
    return PodSpec(name=name, requests={"cpu": cpu}, duration_ms=ms, **more)  # type: ignore[arg-type]


def test_an_image_is_pulled_once_on_each_node_and_pods_wait_for_the_same_pull() -> None:
    found = cluster(9000, 9000, pull_ms=100, pull_bytes_per_s=1000, start_ms=10)
    image = PodImage("i", 500)
    first = found.start_pod(pod("a", images=(image,)), "n0")
    found.advance(200)
    second = found.start_pod(pod("b", images=(image, PodImage("j"))), "n0")
    other = found.start_pod(pod("c", images=(image,)), "n1")
    found.advance(3000)
    third = found.start_pod(pod("d", images=(image,)), "n0")
    found.advance(9000)
    assert [each.started_ms for each in (first, second, other, third)] == [610, 710, 810, 3010]


def test_images_that_nodes_have_from_the_start_are_not_pulled() -> None:
    found = cluster(9000, pull_ms=100, cached_images=frozenset({"i"}))
    started = found.start_pod(pod("a", images=(PodImage("i"),)), "n0")
    found.advance(0)
    assert started.started_ms == 0


def test_integrals_of_usage_and_requests_are_exact() -> None:
    found = cluster(4000)
    usage = (UsagePhase(300, 2000, 10), UsagePhase(100, 500, 20))
    found.start_pod(pod("a", usage=usage), "n0")
    found.start_pod(pod("b", 500, 400), "n0")
    found.advance(5000)
    node = found.nodes["n0"]
    node.count_time(found.now_ms)
    assert node.cpu_milli_ms == 300 * 2000 + 700 * 500 + 400 * 500
    assert node.memory_bytes_ms == 300 * 10 + 700 * 20
    assert node.requested_cpu_milli_ms == 1000 * 1000 + 400 * 500


def test_the_number_of_pods_is_a_resource() -> None:
    found = cluster(9000)
    pods = [found.start_pod(pod(f"p{number}", 1), "n0") for number in range(4)]
    found.advance(0)
    assert [each.stage for each in pods] == [PodStage.RUNNING] * 3 + [PodStage.FAILED]
    assert (pods[3].outcome, pods[3].missing_resource) == (PodOutcome.REJECTED, "pods")


def test_a_resource_that_the_node_does_not_know_is_over_allocated() -> None:
    found = cluster(9000)
    spec = PodSpec(name="g", requests={"gpu": 1})
    found.start_pod(spec, "n0")
    (record,) = found.over_allocations
    assert (record.resource, record.requested, record.allocatable) == ("gpu", 1, 0)


def test_a_node_that_shrinks_is_over_allocated_without_a_binding() -> None:
    found = cluster(2000)
    found.start_pod(pod("a", 1000, 500), "n0")
    found.start_pod(pod("b", 1000, 900), "n0")
    found.advance(100)
    found.resize_node("n0", {"cpu": 1500, "pods": 3})
    found.advance(2000)
    (record,) = found.over_allocations
    assert (record.pod, record.at_ms, record.end_ms, record.rejected) == ("", 100, 500, False)


def test_pods_bound_to_a_node_that_is_down_are_taken_in_order_when_it_returns() -> None:
    found = cluster(1000)
    found.fail_node("n0")
    pods = [found.start_pod(pod(name), "n0") for name in "ab"]
    found.advance(500)
    assert [each.stage for each in pods] == [PodStage.BOUND] * 2
    found.return_node("n0")
    found.advance(500)
    assert [each.stage for each in pods] == [PodStage.RUNNING, PodStage.FAILED]
    # First both were there; then the node rejected the second.
    assert [(each.rejected, each.end_ms) for each in found.over_allocations] == [
        (False, 500), (True, 500),
    ]  # fmt: skip


def test_the_files_and_the_journal_of_jobs_show_pods(tmp_path: Path) -> None:
    hosts = [
        JobHost(name=name, power_states=(STATE,), measures_power=True) for name in ("n0", "n1")
    ]
    platform = Platform(hosts=hosts)
    found = cluster(2000, 1000)
    with (
        BatsimOutputs(str(tmp_path / "o")) as outputs,
        open_journal(str(tmp_path / "j.jsonl")) as opened,
    ):
        journal = JobJournal(opened)
        journal.begin("w", "s", platform)
        records = PodJobRecords(platform, found.time, recorder=outputs, journal=journal)
        found.observers.append(records)
        for name, node in (("a", "n0"), ("b", "n0"), ("c", "n1"), ("d", "n1")):
            records.submitted(name, duration_ms=4000, deadline_ms=3000 if name == "b" else None)
            deadline_ms = 3000 if name == "b" else None
            found.start_pod(pod(name, 1000, 4000, deadline_ms=deadline_ms), node)
        found.advance(1000)
        found.fail_node("n1")
        found.advance(2000)
        found.return_node("n1")
        found.advance(10_000)
        records.submitted("e")
        records.withdrawn("e", "deleted")
        records.finish()
        values = summary_values(records)
        replay = JobReplay().replay(opened.events())
    rows = [line.split(",") for line in (tmp_path / "o_jobs.csv").read_text().splitlines()[1:]]
    assert [(row[0], row[7], row[8], row[9]) for row in rows] == [
        ("d", "REJECTED", "", ""),
        ("c", "COMPLETED_KILLED", "0.000000", "2.000000"),
        ("b", "COMPLETED_WALLTIME_REACHED", "0.000000", "3.000000"),
        ("a", "COMPLETED_SUCCESSFULLY", "0.000000", "4.000000"),
        ("e", "REJECTED", "", ""),
    ]
    assert (values["nb_jobs"], values["nb_jobs_success"], values["makespan"]) == (5, 1, 4.0)
    # n0: 3 s full, 1 s half, 6 s idle; n1: 1 s full, 9 s idle.
    assert values["consumed_joules"] == pytest.approx(600 + 150 + 600 + 200 + 900)
    assert [job.name for job in replay.jobs] == [row[0] for row in rows]
    assert replay.energy_j == records.energy_j
