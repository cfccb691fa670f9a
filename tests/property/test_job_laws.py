"""Laws of batch jobs under the built-in policies, on random small workloads."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.sim.jobs.platform import uniform_platform
from equipoise.sim.jobs.policies import POLICIES
from equipoise.sim.jobs.runner import JobRun
from equipoise.sim.jobs.work import UNLIMITED, DelayWork, Job, JobState
from plain_jobs import PlainJob, PlainRun

every_policy = pytest.mark.parametrize("policy", list(POLICIES))


@st.composite
def workloads(draw: st.DrawFn) -> tuple[int, list[PlainJob]]:
    """Draw a number of hosts and jobs; some jobs are wider than the platform."""
    hosts = draw(st.integers(1, 6))
    jobs: list[PlainJob] = []
    submit_s = 0
    for number in range(draw(st.integers(1, 14))):
        submit_s += draw(st.sampled_from([0, 0, 0, 1, 2, 5]))
        seconds = draw(st.integers(1, 12))
        limit_s = draw(st.none() | st.integers(1, 15))
        jobs.append(PlainJob(number, submit_s, draw(st.integers(1, hosts + 1)), seconds, limit_s))
    return hosts, jobs


def run_product(policy: str, hosts: int, plain: list[PlainJob]) -> list[Job]:
    """Run the same jobs in the product."""
    jobs = [
        Job(
            "w0",
            str(job.number),
            float(job.submit_s),
            job.width,
            DelayWork(name="d", seconds=float(job.seconds)),
            UNLIMITED if job.limit_s is None else float(job.limit_s),
        )
        for job in plain
    ]
    JobRun(uniform_platform(hosts), jobs, POLICIES[policy](hosts)).run()
    return jobs


@every_policy
@given(case=workloads())
@settings(max_examples=150)
def test_jobs_start_when_and_where_the_definition_of_the_policy_says(
    policy: str, case: tuple[int, list[PlainJob]]
) -> None:
    hosts, plain = case
    PlainRun(policy, hosts, plain).run()
    found = [(job.start_s, job.hosts) for job in run_product(policy, hosts, plain)]
    assert found == [(job.start_s, job.hosts) for job in plain]


@every_policy
@given(case=workloads())
@settings(max_examples=100)
def test_no_host_runs_two_jobs_and_every_job_that_fits_runs(
    policy: str, case: tuple[int, list[PlainJob]]
) -> None:
    hosts, plain = case
    jobs = run_product(policy, hosts, plain)
    periods: dict[int, list[tuple[float, float]]] = {}
    for job in jobs:
        if job.hosts_requested > hosts:
            assert job.state is JobState.REJECTED
            continue
        assert job.state in {JobState.SUCCEEDED, JobState.TIMED_OUT}
        assert job.start_s >= job.submit_s
        assert len(set(job.hosts)) == job.hosts_requested
        for host in job.hosts:
            periods.setdefault(host, []).append((job.start_s, job.end_s))
    for of_host in periods.values():
        of_host.sort()
        for (_, end_s), (start_s, _) in pairwise(of_host):
            assert end_s <= start_s


@every_policy
@given(case=workloads())
@settings(max_examples=100)
def test_a_job_runs_to_its_end_or_to_its_limit_and_no_longer(
    policy: str, case: tuple[int, list[PlainJob]]
) -> None:
    hosts, plain = case
    for job, known in zip(run_product(policy, hosts, plain), plain, strict=True):
        if job.state is JobState.REJECTED:
            continue
        # A delay as long as its limit has reached it (as in Batsim).
        ends_early = known.limit_s is not None and known.limit_s <= known.seconds
        assert job.state is (JobState.TIMED_OUT if ends_early else JobState.SUCCEEDED)
        assert job.run_s == (known.limit_s if ends_early else known.seconds)


@pytest.mark.parametrize("policy", ["easy", "conservative"])
@given(case=workloads())
@settings(max_examples=150)
def test_no_job_starts_later_than_the_policy_promised(
    policy: str, case: tuple[int, list[PlainJob]]
) -> None:
    """EASY promises a start to the first waiting job, conservative backfilling to every one."""
    hosts, plain = case
    oracle = PlainRun(policy, hosts, plain)
    oracle.run()
    jobs = run_product(policy, hosts, plain)
    for job, latest_s in oracle.promises:
        assert jobs[job.number].start_s <= latest_s
