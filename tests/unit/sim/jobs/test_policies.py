"""Policies on small workloads and on the golden set; every schedule is checked host by host."""

from __future__ import annotations

import csv
from pathlib import Path
from random import Random

import pytest

from equipoise.adapters.batsim.platform_xml import read_platform
from equipoise.adapters.batsim.workload_json import read_workload
from equipoise.sim.jobs.platform import uniform_platform
from equipoise.sim.jobs.policies import POLICIES
from equipoise.sim.jobs.runner import JobRun
from equipoise.sim.jobs.work import UNLIMITED, DelayWork, Job, JobState

GOLDEN = Path(__file__).parents[5] / "shared/data/batsim/golden"


def job(name: str, submit_s: float, hosts: int, seconds: float, walltime_s: float) -> Job:
    return Job("w", name, submit_s, hosts, DelayWork(name="d", seconds=seconds), walltime_s)


def starts(policy: str, jobs: list[Job], hosts: int) -> dict[str, float]:
    run = JobRun(uniform_platform(hosts), jobs, POLICIES[policy](hosts))
    run.run()
    return {each.name: each.start_s for each in jobs}


def workload() -> list[Job]:
    return [
        job("a", 0, 2, 10, 10.5),
        job("b", 1, 4, 5, 6),
        job("c", 2, 2, 20, 30),
        job("d", 3, 2, 4, 5),
    ]


def test_fcfs_never_overtakes() -> None:
    assert starts("fcfs", workload(), 4) == {"a": 0, "b": 10, "c": 15, "d": 15}


def test_shortest_first_prefers_short_jobs() -> None:
    assert starts("sjf", workload(), 4) == {"a": 0, "d": 3, "b": 10, "c": 15}


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_backfilling_fills_the_hole_without_delaying_the_first(policy: str) -> None:
    assert starts(policy, workload(), 4) == {"a": 0, "d": 3, "b": 10, "c": 15}


def test_only_conservative_protects_the_second_waiting_job() -> None:
    jobs = [
        job("a", 0, 3, 10, 11),
        job("b", 1, 2, 10, 11),
        job("c", 2, 4, 10, 11),
        job("d", 3, 1, 25, 26),
    ]
    # On hosts 0 to 3: b is reserved at 11 on 0 and 1, c at 22 on all; d on host 3 would delay c.
    assert starts("easy", [*jobs], 4)["d"] == 3
    again = [job(each.name, each.submit_s, each.hosts_requested, 0, 0) for each in jobs]
    for new, old in zip(again, jobs, strict=True):
        new.work, new.walltime_s = old.work, old.walltime_s
    assert starts("conservative", again, 4)["d"] > 3


@pytest.mark.parametrize("policy", list(POLICIES))
def test_random_workloads_use_no_host_twice_and_start_all_jobs(policy: str) -> None:
    for seed in range(30):
        rng = Random(seed)
        hosts = rng.randint(1, 9)
        jobs = []
        at_s = 0.0
        for number in range(40):
            at_s += rng.choice([0, 0, 1, 5])
            seconds = rng.randint(1, 20)
            limit_s = rng.choice([seconds + 1, seconds + 9, UNLIMITED])
            jobs.append(job(str(number), at_s, rng.randint(1, hosts), seconds, limit_s))
        starts(policy, jobs, hosts)
        busy: dict[int, list[tuple[float, float]]] = {}
        for each in jobs:
            assert each.state is JobState.SUCCEEDED
            assert each.start_s >= each.submit_s
            assert len(set(each.hosts)) == each.hosts_requested
            for number in each.hosts:
                busy.setdefault(number, []).append((each.start_s, each.end_s))
        for periods in busy.values():
            periods.sort()
            ends = [end for _, end in periods[:-1]]
            assert all(end <= start for end, (start, _) in zip(ends, periods[1:], strict=True))


def test_a_job_wider_than_the_platform_is_rejected() -> None:
    wide = job("wide", 0, 5, 1, 2)
    run = JobRun(uniform_platform(4), [wide], POLICIES["easy"](4))
    run.run()
    assert wide.state is JobState.REJECTED
    assert (run.summary.jobs, run.summary.rejected) == (1, 1)


def test_a_delay_as_long_as_its_walltime_is_timed_out() -> None:
    short, equal = job("short", 0, 1, 5, 5.1), job("equal", 0, 1, 5, 5)
    starts("fcfs", [short, equal], 2)
    assert (short.state, equal.state) == (JobState.SUCCEEDED, JobState.TIMED_OUT)
    assert equal.return_code == -1


@pytest.mark.parametrize(("policy", "mean_wait"), [("easy", 9.516326), ("conservative", 9.852251)])
def test_golden_start_times_waiting_time_and_energy(policy: str, mean_wait: float) -> None:
    if not GOLDEN.exists():
        pytest.skip("the golden set of Batsim is not beside the repository")
    platform = read_platform(GOLDEN / "platform.xml")
    workload = read_workload(GOLDEN / "medium_late.json")
    assert workload.hosts == 32
    platform.hosts = platform.hosts[: workload.hosts]
    run = JobRun(platform, workload.jobs, POLICIES[policy](32))
    run.run()
    with (GOLDEN / policy / "out_jobs.csv").open() as file:
        rows = {row["job_id"]: row for row in csv.DictReader(file)}
    assert len(rows) == len(workload.jobs) == 801
    for each in workload.jobs:
        row = rows[each.name]
        assert each.start_s == pytest.approx(float(row["starting_time"]), abs=2e-6), each.name
        assert each.energy_j == pytest.approx(float(row["consumed_energy"]), abs=1e-3)
    assert run.summary.makespan_s == pytest.approx(16088.51, abs=1e-6)
    assert run.summary.waiting_s / 801 == pytest.approx(mean_wait, abs=1e-6)
    assert run.energy_j == pytest.approx(48909070.4, rel=1e-9)
