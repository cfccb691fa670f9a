"""Laws of constraints on jobs: starts, promises and rejections equal a brute-force definition."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.sim.jobs.host_set import bits_of, hosts_of
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.policies import POLICIES
from equipoise.sim.jobs.rules.gate import JobGate
from equipoise.sim.jobs.rules.judge import CLOSED_CONSTRAINTS, JobJudge
from equipoise.sim.jobs.rules.policies import RULED_POLICIES
from equipoise.sim.jobs.rules.run import GatedJobRun
from equipoise.sim.jobs.runner import JobRun
from equipoise.sim.jobs.work import DelayWork, Job, JobConstraint, JobState
from equipoise.spec.library import library_constraints
from plain_jobs import PlainRun
from plain_rules import RuledWorkload, ruled_workloads

every_policy = pytest.mark.parametrize("policy", list(RULED_POLICIES))


def run_gated(policy: str, platform: Platform, jobs: list[Job], budget: int = 2_000) -> list[Job]:
    gate = JobGate(platform, budget)
    gate.check_jobs(jobs, "jobs")
    GatedJobRun(platform, jobs, RULED_POLICIES[policy](gate), gate).run()
    return jobs


@every_policy
@given(case=ruled_workloads())
@settings(max_examples=50)
def test_constrained_jobs_start_when_and_where_the_definition_says(
    policy: str, case: RuledWorkload
) -> None:
    plain = PlainRun(policy, len(case.racks), case.jobs, allowed=case.allowed)
    plain.run()
    jobs = run_gated(policy, case.platform(), case.product_jobs())
    assert [(job.start_s, job.hosts) for job in jobs] == [
        (job.start_s, job.hosts) for job in case.jobs
    ]
    for job, latest_s in plain.promises:
        assert jobs[job.number].start_s <= latest_s


@every_policy
@given(case=ruled_workloads(), budget=st.integers(1, 20))
@settings(max_examples=30)
def test_constraints_hold_at_every_moment_and_jobs_end_even_with_a_small_budget(
    policy: str, case: RuledWorkload, budget: int
) -> None:
    jobs = run_gated(policy, case.platform(), case.product_jobs(), budget)
    for at_s in sorted({job.start_s for job in jobs if job.start_s >= 0}):
        running = {
            plain: job.hosts
            for plain, job in zip(case.jobs, jobs, strict=True)
            if job.start_s <= at_s < job.end_s and job.hosts
        }
        assert case.allowed(running)
        hosts = [host for taken in running.values() for host in taken]
        assert len(hosts) == len(set(hosts))
    for plain, job in zip(case.jobs, jobs, strict=True):
        possible = any(
            case.allowed({plain: hosts})
            for hosts in combinations(range(len(case.racks)), plain.width)
        )
        if job.state is JobState.REJECTED:
            assert job.rejection == "search-exhausted" or not possible
            assert job.label == job.rejection
        else:
            assert possible
            assert job.state in {JobState.SUCCEEDED, JobState.TIMED_OUT}


@every_policy
@given(case=ruled_workloads(jobs_max=14))
@settings(max_examples=30)
def test_without_constraints_both_kinds_of_policies_give_the_same_schedule(
    policy: str, case: RuledWorkload
) -> None:
    case.rules.clear()
    platform = case.platform()
    gated = run_gated(policy, platform, case.product_jobs())
    plain = case.product_jobs()
    JobRun(platform, plain, POLICIES[policy](len(platform.hosts))).run()
    assert [(job.start_s, job.hosts) for job in gated] == [
        (job.start_s, job.hosts) for job in plain
    ]


@given(case=ruled_workloads(jobs_max=3), free=st.integers(0, 63))
@settings(max_examples=80)
def test_the_search_returns_the_first_right_set_or_none(case: RuledWorkload, free: int) -> None:
    """The last job starts beside the others, which run anywhere that brute force allows."""
    gate = JobGate(case.platform())
    running: dict[int, tuple[int, ...]] = {}
    for plain, job in zip(case.jobs, case.product_jobs(), strict=True):
        busy = {host for hosts in running.values() for host in hosts}
        open_hosts = [
            host for host in range(len(case.racks)) if host not in busy and free >> host & 1
        ]
        state = {case.jobs[number]: hosts for number, hosts in running.items()}
        right = [
            hosts
            for hosts in combinations(open_hosts, plain.width)
            if case.allowed({**state, plain: hosts})
        ]
        found = gate.choose(job, bits_of(open_hosts))
        assert hosts_of(found) == (right[0] if right else ())
        if found:
            gate.started(job, hosts_of(found))
            running[plain.number] = right[0]


def a_job(name: str, width: int, *constraints: JobConstraint) -> Job:
    return Job("w0", name, 0.0, width, DelayWork(name="d", seconds=1.0), constraints=constraints)


_ARGUMENTS: dict[str, object] = {
    "key": "rack", "value": "a", "values": ["a", "b"], "nb": 1, "id": "cpu", "qty": 1,
    "ns": ["h0", "h1"], "parts": [["h0", "h1"], ["h2"]],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CLOSED_CONSTRAINTS))
@pytest.mark.parametrize("other", [False, True])
def test_closed_constraints_stay_true_when_executors_leave(name: str, other: bool) -> None:
    """Every placement of two executors and one of another job, and all their parts."""
    case = RuledWorkload(["a", "a", "b", ""])
    declared = library_constraints()[name].constraints[name]
    arguments = {
        parameter.name: _ARGUMENTS[parameter.name]
        for parameter in declared.parameters
        if parameter.name in _ARGUMENTS and not (name == "Split" and parameter.name == "parts")
    }
    if name == "PodAntiAffinity":
        arguments["others"] = "others"
    if name == "Split":
        arguments["parts"] = ["this", "others"]
    if name == "SplitAmong":
        arguments["vs"] = ["this", "others"]
    judge = JobJudge(case.platform())
    job, beside = a_job("1", 2, JobConstraint(name, arguments)), a_job("2", 1)
    assert not judge.problems(job)
    held = 0
    for first in range(4):
        for second in range(4):
            for third in range(4):
                others = {beside: (third,)} if other else {}
                if not judge.accepts(job, (first, second), others):
                    continue
                held += 1
                for left in ((first,), (second,), ()):
                    assert judge.accepts(job, left, others)
                assert judge.accepts(job, (first, second), {})
    assert held


@pytest.mark.parametrize("name", ["MostlySpread", "MaxSkew", "MinRunning"])
def test_constraints_that_are_not_closed_are_not_listed(name: str) -> None:
    assert name not in CLOSED_CONSTRAINTS


def test_a_large_platform_is_searched_within_the_budget() -> None:
    case = RuledWorkload([f"r{number // 8}" for number in range(512)])
    gate = JobGate(case.platform())
    job = a_job("1", 64, JobConstraint("SpreadOver", {"key": "rack"}))
    assert gate.rejection(job) == ""
    assert hosts_of(gate.choose(job, gate.all_hosts)) == tuple(range(0, 512, 8))
    wide = a_job("2", 65, JobConstraint("SpreadOver", {"key": "rack"}))
    assert gate.rejection(wide) in {"constraint-unsatisfiable", "search-exhausted"}
