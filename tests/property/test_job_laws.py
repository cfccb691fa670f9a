"""Laws of batch jobs under the built-in policies, on random small workloads."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equipoise.sim.jobs.platform import uniform_platform
from equipoise.sim.jobs.policies import POLICIES
from equipoise.sim.jobs.queues import profile
from equipoise.sim.jobs.queues.conservative import ConservativeBackfilling
from equipoise.sim.jobs.queues.reservations import PlainReservations
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


@given(case=workloads(), few_jobs=st.sampled_from([0, 3]), few_steps=st.sampled_from([0, 4, 8]))
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_conservative_backfilling_tries_every_job_that_can_move(
    case: tuple[int, list[PlainJob]],
    few_jobs: int,
    few_steps: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A long queue is searched for the jobs that freed hosts help, a long profile by its arrays.

    Here every queue and profile is long, or becomes long and short again.
    """
    monkeypatch.setattr(PlainReservations, "few_jobs", few_jobs)
    monkeypatch.setattr(profile, "_FEW_STEPS", few_steps)
    hosts, plain = case
    PlainRun("conservative", hosts, plain).run()
    found = [(job.start_s, job.hosts) for job in run_product("conservative", hosts, plain)]
    assert found == [(job.start_s, job.hosts) for job in plain]


def use_kernels(monkeypatch: pytest.MonkeyPatch, *, compiled_from: int, plain_below: int) -> None:
    """Let conservative backfilling use the compiled kernels for queues of such lengths."""
    monkeypatch.setattr(ConservativeBackfilling, "compiled_from", compiled_from)
    monkeypatch.setattr(ConservativeBackfilling, "plain_below", plain_below)


@pytest.mark.parametrize(("compiled_from", "plain_below"), [(0, 0), (3, 2), (4, 1)])
@given(case=workloads())
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_kernels_of_long_queues_follow_the_definition(
    compiled_from: int,
    plain_below: int,
    case: tuple[int, list[PlainJob]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if reservations go from plain Python to the kernels and back."""
    use_kernels(monkeypatch, compiled_from=compiled_from, plain_below=plain_below)
    hosts, plain = case
    PlainRun("conservative", hosts, plain).run()
    found = [(job.start_s, job.hosts) for job in run_product("conservative", hosts, plain)]
    assert found == [(job.start_s, job.hosts) for job in plain]


@given(seed=st.integers(0, 10_000), hosts=st.sampled_from([20, 64, 65, 130]))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_kernels_of_long_queues_decide_as_the_plain_search(
    seed: int, hosts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs arrive in bursts, with times that are no whole numbers, some without a limit."""
    random = Random(seed)
    plain: list[tuple[float, int, float, float]] = []
    for _ in range(random.randint(1, 4)):
        at_s = random.choice([0.0, 10 / 3, 100.1])
        for _ in range(random.randint(1, 40)):
            seconds = random.choice([0.1, 1 / 3, 2.0, random.expovariate(0.05)])
            limit_s = random.choice([seconds * 3, seconds * 7, 60.0, UNLIMITED])
            plain.append((at_s, random.randint(1, hosts), seconds, limit_s))

    def starts() -> list[tuple[float, tuple[int, ...]]]:
        jobs = [
            Job("w0", str(n), at_s, width, DelayWork(name="d", seconds=seconds), limit_s)
            for n, (at_s, width, seconds, limit_s) in enumerate(sorted(plain))
        ]
        JobRun(uniform_platform(hosts), jobs, POLICIES["conservative"](hosts)).run()
        return [(job.start_s, job.hosts) for job in jobs]

    use_kernels(monkeypatch, compiled_from=10**9, plain_below=0)
    expected = starts()
    use_kernels(monkeypatch, compiled_from=0, plain_below=0)
    assert starts() == expected
    use_kernels(monkeypatch, compiled_from=30, plain_below=20)
    assert starts() == expected
