"""Built-in policies through the protocol decide as they do in ``equipoise jobs``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from batsim_files import (
    plain_setup,
    run_in_process,
    write_platform,
    write_workload,
)
from equipoise.adapters.batsim.protocol.codec import Codec, JsonCodec
from equipoise.adapters.batsim.protocol.setup import BatsimSetup
from equipoise.adapters.batsim.schedule.compare import compare_decisions
from equipoise.adapters.batsim.schedule.decider import PolicyDecider
from equipoise.adapters.batsim.schedule.service import DecisionProcess
from equipoise.adapters.batsim.v5.codec import BatprotocolCodec
from equipoise.adapters.batsim.workload_json import read_workload
from equipoise.api.jobs import simulate_jobs
from equipoise.sim.jobs.policies import POLICIES
from equipoise.sim.jobs.queues.conservative import ConservativeBackfilling

HOSTS = 5
PROFILES = {f"d{n}": {"type": "delay", "delay": n} for n in range(1, 31)}


@st.composite
def workloads(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Jobs with whole times, some of them too large, some that reach their walltime."""
    jobs = []
    for number in range(draw(st.integers(1, 14))):
        seconds = draw(st.integers(1, 30))
        job: dict[str, Any] = {
            "id": number,
            "subtime": draw(st.integers(0, 40)),
            "res": draw(st.integers(1, HOSTS + 1)),
            "profile": f"d{seconds}",
        }
        if draw(st.booleans()):
            job["walltime"] = seconds + draw(st.integers(-3, 20))
            if job["walltime"] < 1:
                del job["walltime"]
        jobs.append(job)
    return jobs


def delays(*jobs: tuple[int, int] | tuple[int, int, int]) -> list[dict[str, Any]]:
    """Jobs without limits, each with its hosts, its seconds and the second of its submission."""
    return [
        {"id": number, "subtime": at[0] if at else 0, "res": hosts, "profile": f"d{seconds}"}
        for number, (hosts, seconds, *at) in enumerate(jobs)
    ]


def starts(jobs: list[Any]) -> dict[str, tuple[float, tuple[int, ...], str]]:
    return {job.name: (job.start_s, job.hosts, job.state.name) for job in jobs}


def decide(setup: BatsimSetup, policy: str, codec: Codec) -> list[Any]:
    process = DecisionProcess(PolicyDecider(POLICIES[policy]), policy, "1")
    return run_in_process(setup, codec, process.answer)


@settings(max_examples=60)
@given(workloads(), st.sampled_from(sorted(POLICIES)))
def test_a_policy_starts_the_same_jobs_over_both_versions_as_in_process(
    jobs: list[dict[str, Any]], policy: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        platform = write_platform(folder, HOSTS)
        write_workload(folder, HOSTS, jobs, **PROFILES)
        own = simulate_jobs(platform, read_workload(folder / "jobs.json").jobs, policy=policy)
        expected = starts(own.jobs)
        over_4 = decide(plain_setup(folder, str(folder / "four")), policy, JsonCodec())
        over_5 = decide(plain_setup(folder, str(folder / "five")), policy, BatprotocolCodec())
        assert starts(over_4) == starts(over_5) == expected
        assert (folder / "four_jobs.csv").read_text() == (folder / "five_jobs.csv").read_text()
        # Every job that fits has started.
        assert all(job.start_s >= 0 for job in over_4 if job.hosts_requested <= HOSTS)


@settings(max_examples=60)
@given(
    workloads(),
    st.sampled_from(sorted(POLICIES)),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, HOSTS - 1), st.booleans()), max_size=8),
)
def test_every_job_that_fits_starts_in_spite_of_hosts_that_come_and_go(
    jobs: list[dict[str, Any]], policy: str, changes: list[tuple[int, int, bool]]
) -> None:
    """The simulation refuses a start on a host that is unavailable or busy."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_platform(folder, HOSTS)
        write_workload(folder, HOSTS, jobs, **PROFILES)
        kinds = {True: "machine_available", False: "machine_unavailable"}
        lines = [
            f'{{"type": "{kinds[up]}", "resources": "{host}", "timestamp": {at_s}}}'
            for at_s, host, up in changes
        ]
        lines.append(
            f'{{"type": "machine_available", "resources": "0-{HOSTS - 1}", "timestamp": 61}}'
        )
        events = folder / "events.txt"
        events.write_text("\n".join(lines))
        setup = plain_setup(folder)
        setup = BatsimSetup(platform=setup.platform, workloads=setup.workloads, events=[events])
        ended = decide(setup, policy, JsonCodec())
        assert len(ended) == len(jobs)
        assert all(job.start_s >= 0 for job in ended if job.hosts_requested <= HOSTS)


LATE: list[tuple[list[dict[str, Any]], str, float, float]] = [
    (
        [
            {"id": 0, "subtime": 0, "res": 5, "profile": "d5", "walltime": 10},
            {"id": 1, "subtime": 1, "res": 4, "profile": "d9", "walltime": 30},
            {"id": 2, "subtime": 2, "res": 3, "profile": "d5", "walltime": 5},
        ],
        "conservative",
        3.0,
        0.0,
    ),
    # A message is later than jobs take, so several are due at once that need the same host.
    (delays((1, 1), (1, 1), (5, 5), *[(1, 1)] * 9), "conservative", 1e7, 0.0),
    # A job ends in the same rounded moment in which it is found to be overdue.
    (
        delays((3, 1), (1, 1, 35), (5, 16), *[(1, 1)] * 9, (1, 14), (1, 1)),
        "conservative",
        1e7,
        0.0,
    ),
    # The time of a job is lost when it is added to the date.
    (delays((3, 1), (3, 1), (5, 30), (2, 1)), "conservative", 1e9, 1e9),
]


@settings(max_examples=200)
@given(
    workloads(),
    st.sampled_from(sorted(POLICIES)),
    st.sampled_from([3.0, 7.0, 1e7]),
    st.sampled_from([0.0, 1e9]),
)
@example(*LATE[0])
@example(*LATE[1])
@example(*LATE[2])
@example(*LATE[3])
def test_every_job_that_fits_starts_although_messages_round_times(
    jobs: list[dict[str, Any]], policy: str, divisor: float, since_s: float
) -> None:
    """A job that ends later than its expected end, by rounding, makes its followers late."""
    ended = decide_short_jobs(jobs, policy, divisor, since_s)
    assert len(ended) == len(jobs)
    assert all(job.start_s >= 0 for job in ended if job.hosts_requested <= HOSTS)


def decide_short_jobs(
    jobs: list[dict[str, Any]], policy: str, divisor: float, since_s: float
) -> list[Any]:
    """Run jobs whose times are divided by a number, from a date on; return them by end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_platform(folder, HOSTS)
        parts = {key: {"type": "delay", "delay": int(key[1:]) / divisor} for key in PROFILES}
        short = [{**job, "subtime": since_s + job["subtime"] / divisor} for job in jobs]
        for job in short:
            if "walltime" in job:
                job["walltime"] /= divisor
        write_workload(folder, HOSTS, short, **parts)
        return decide(plain_setup(folder), policy, JsonCodec())


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(workloads(), st.sampled_from([3.0, 7.0, 1e7]), st.sampled_from([0.0, 1e9]))
@example(LATE[0][0], *LATE[0][2:])
@example(LATE[1][0], *LATE[1][2:])
@example(LATE[2][0], *LATE[2][2:])
@example(LATE[3][0], *LATE[3][2:])
def test_the_kernels_of_long_queues_start_the_same_jobs_although_messages_round_times(
    monkeypatch: pytest.MonkeyPatch, jobs: list[dict[str, Any]], divisor: float, since_s: float
) -> None:
    monkeypatch.setattr(ConservativeBackfilling, "compiled_from", 10**9)
    plain = decide_short_jobs(jobs, "conservative", divisor, since_s)
    monkeypatch.setattr(ConservativeBackfilling, "compiled_from", 0)
    monkeypatch.setattr(ConservativeBackfilling, "plain_below", 0)
    compiled = decide_short_jobs(jobs, "conservative", divisor, since_s)
    assert starts(compiled) == starts(plain)


@settings(max_examples=30)
@given(workloads(), st.sampled_from(sorted(POLICIES)))
def test_a_recorded_exchange_of_a_policy_is_equal_to_its_own_decisions(
    jobs: list[dict[str, Any]], policy: str
) -> None:
    """Also the other way round: a start on other hosts is reported as a difference."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_platform(folder, HOSTS)
        write_workload(folder, HOSTS, jobs, **PROFILES)
        process = DecisionProcess(PolicyDecider(POLICIES[policy]), policy, "1")
        exchange: list[dict[str, Any]] = []

        def answer(frame: bytes) -> bytes:
            reply = process.answer(frame)
            exchange.append({"from": "batsim", "msg": json.loads(frame)})
            exchange.append({"from": "sched", "msg": json.loads(reply)})
            return reply

        run_in_process(plain_setup(folder), JsonCodec(), answer)
        found = compare_decisions(exchange, POLICIES[policy])
        assert (found.equal, found.difference) == (len(exchange) // 2, "")
        starts_at = [n for n, entry in enumerate(exchange) if "alloc" in str(entry["msg"])]
        for number in (n for n in starts_at if exchange[n]["from"] == "sched"):
            exchange[number]["msg"]["events"].pop()
            changed = compare_decisions(exchange, POLICIES[policy])
            assert (changed.equal, bool(changed.difference)) == (number // 2, True)
            break
