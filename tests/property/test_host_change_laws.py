"""Laws of hosts that sleep when idle, and of hosts that leave and return, under every policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equipoise.sim.jobs.host_changes import AvailabilityChange, HostRules
from equipoise.sim.jobs.platform import JobHost, Platform, PowerState, SleepState
from equipoise.sim.jobs.policies import POLICIES
from equipoise.sim.jobs.queues.conservative import ConservativeBackfilling
from equipoise.sim.jobs.runner import JobRun
from equipoise.sim.jobs.work import UNLIMITED, DelayWork, Job, JobState

every_policy = pytest.mark.parametrize("policy", list(POLICIES))
IDLE_W, SLEEP_W, FALL_W, WAKE_W = 100.0, 9.0, 130.0, 150.0
AWAKE, ASLEEP = 0, 1


def platform(hosts: int, fall_s: float, wake_s: float) -> Platform:
    """Return hosts with one sleep state; the transitions take so long."""
    states = (
        PowerState(1.0, IDLE_W, IDLE_W, 200.0),
        PowerState(1.0, SLEEP_W, SLEEP_W, SLEEP_W),
        PowerState(1 / fall_s if fall_s else inf, FALL_W, FALL_W, FALL_W),
        PowerState(1 / wake_s if wake_s else inf, WAKE_W, WAKE_W, WAKE_W),
    )
    host = {"power_states": states, "sleep_states": {1: SleepState(1, 2, 3)}}
    return Platform(
        hosts=[JobHost(name=f"h{n}", measures_power=True, **host) for n in range(hosts)]  # type: ignore[arg-type]
    )


@dataclass
class Watch:
    """Keeps the switches of hosts with their times, as rows of a recorder."""

    switches: list[tuple[float, tuple[int, ...], float]] = field(default_factory=list)

    def write_energy(self, now_s: float, kind: str) -> None:
        assert kind in {"s", "e", "p"}

    def write_switch(
        self, now_s: float, hosts: Sequence[int], state: int, *, begins: bool, sleeps: bool
    ) -> None:
        if begins:
            watts = FALL_W if sleeps else WAKE_W
        else:
            watts = {AWAKE: IDLE_W, ASLEEP: SLEEP_W}[state]
        self.switches.append((now_s, tuple(hosts), watts))

    def energy_j(self, hosts: int, begin_s: float, end_s: float) -> float:
        """Return the integral of the power, host by host; delays draw no more than idle hosts."""
        total_j = 0.0
        for number in range(hosts):
            steps = [(0.0, IDLE_W)]
            steps += [(at_s, watts) for at_s, found, watts in self.switches if number in found]
            steps.append((end_s, 0.0))
            total_j += sum(
                watts * max(to_s - max(from_s, begin_s), 0.0)
                for (from_s, watts), (to_s, _) in pairwise(steps)
            )
        return total_j


class CheckedRun(JobRun):
    """Checks at each start that every host of the job is awake."""

    def job_started(self, job: Job) -> None:
        states = self.engine.hosts.power_state
        assert all(states[number] == AWAKE for number in job.hosts)
        super().job_started(job)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[int, list[tuple[float, int, float, float]]]:
    hosts = draw(st.integers(1, 5))
    jobs = []
    submit_s = 0
    for _ in range(draw(st.integers(1, 10))):
        submit_s += draw(st.sampled_from([0, 0, 1, 4, 15, 60]))
        seconds = draw(st.integers(1, 12))
        limit_s = draw(st.sampled_from([UNLIMITED, seconds + 1.0, seconds * 3.0]))
        jobs.append((float(submit_s), draw(st.integers(1, hosts)), float(seconds), limit_s))
    return hosts, jobs


Case = tuple[int, list[tuple[float, int, float, float]]]


def make_jobs(case: Case) -> list[Job]:
    return [
        Job("w", str(n), submit_s, width, DelayWork(name="d", seconds=seconds), limit_s)
        for n, (submit_s, width, seconds, limit_s) in enumerate(case[1])
    ]


def run(
    policy: str, case: Case, rules: HostRules | None, fall_s: float = 3.0, wake_s: float = 7.0
) -> tuple[list[Job], CheckedRun, Watch]:
    jobs = make_jobs(case)
    of_run = CheckedRun(
        platform(case[0], fall_s, wake_s), jobs, POLICIES[policy](case[0]), rules=rules
    )
    watch = Watch()
    of_run.power = watch
    of_run.run()
    return jobs, of_run, watch


def schedule(jobs: list[Job]) -> list[tuple[float, float, tuple[int, ...]]]:
    return [(job.start_s, job.run_s, job.hosts) for job in jobs]


def no_host_runs_two(jobs: list[Job]) -> None:
    periods: dict[int, list[tuple[float, float]]] = {}
    for job in jobs:
        for host in job.hosts:
            periods.setdefault(host, []).append((job.start_s, job.end_s))
    for of_host in periods.values():
        of_host.sort()
        for (_, end_s), (start_s, _) in pairwise(of_host):
            assert end_s <= start_s


@every_policy
@given(
    case=workloads(),
    after_s=st.sampled_from([0.0, 1.0, 5.0, 30.0]),
    fall_s=st.sampled_from([0.0, 0.5, 3.0, 40.0]),
    wake_s=st.sampled_from([0.0, 0.25, 7.0, 90.0]),
    keep=st.integers(0, 3),
)
@settings(max_examples=60, deadline=None)
def test_every_job_runs_on_hosts_that_are_awake_and_the_energy_is_the_integral(
    policy: str, case: Case, after_s: float, fall_s: float, wake_s: float, keep: int
) -> None:
    rules = HostRules(shutdown_after_s=after_s, keep_awake=keep)
    jobs, of_run, watch = run(policy, case, rules, fall_s, wake_s)
    assert all(job.state is JobState.SUCCEEDED for job in jobs)
    assert all(job.start_s >= job.submit_s for job in jobs)
    no_host_runs_two(jobs)
    begin_s, end_s = min(job.submit_s for job in jobs), max(job.end_s for job in jobs)
    expected_j = watch.energy_j(case[0], begin_s, end_s)
    assert of_run.energy_j == pytest.approx(expected_j, rel=1e-9)


@every_policy
def test_the_energy_ends_with_the_last_job_although_hosts_switch_later(policy: str) -> None:
    # The last job is too wide and arrives late, so that time goes on.
    case = 2, [(0.0, 2, 10.0, UNLIMITED), (500.0, 3, 1.0, UNLIMITED)]
    jobs, of_run, watch = run(policy, case, HostRules(shutdown_after_s=1.0))
    assert [job.state for job in jobs] == [JobState.SUCCEEDED, JobState.REJECTED]
    assert watch.switches[-1][0] == 14.0
    assert of_run.energy_j == pytest.approx(2 * 10.0 * IDLE_W, rel=1e-12)


@every_policy
@given(case=workloads(), after_s=st.sampled_from([inf, 1e9]))
@settings(max_examples=40, deadline=None)
def test_hosts_that_never_sleep_change_nothing(policy: str, case: Case, after_s: float) -> None:
    plain, without, _ = run(policy, case, None)
    jobs, of_run, _ = run(policy, case, HostRules(shutdown_after_s=after_s))
    assert schedule(jobs) == schedule(plain)
    assert of_run.energy_j == pytest.approx(without.energy_j, rel=1e-12)
    assert of_run.switches == 0


@every_policy
@given(case=workloads(), after_s=st.sampled_from([0.0, 2.0, 20.0]), keep=st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_transitions_without_time_cost_nothing_and_save_energy(
    policy: str, case: Case, after_s: float, keep: int
) -> None:
    plain, without, _ = run(policy, case, None)
    rules = HostRules(shutdown_after_s=after_s, keep_awake=keep)
    jobs, of_run, _ = run(policy, case, rules, 0.0, 0.0)
    assert schedule(jobs) == schedule(plain)
    assert of_run.energy_j <= without.energy_j * (1 + 1e-12)


@st.composite
def changes(draw: st.DrawFn) -> tuple[Case, list[AvailabilityChange]]:
    case = draw(workloads())
    found = []
    at_s = 0
    for _ in range(draw(st.integers(1, 6))):
        at_s += draw(st.sampled_from([0, 1, 3, 10, 30]))
        hosts = draw(st.sets(st.integers(0, case[0] - 1), min_size=1))
        found.append(AvailabilityChange(float(at_s), tuple(sorted(hosts)), draw(st.booleans())))
    return case, found


@every_policy
@given(
    drawn=changes(),
    after_s=st.sampled_from([inf, 0.0, 4.0]),
    wake_s=st.sampled_from([0.0, 6.0]),
)
@settings(max_examples=80, deadline=None)
def test_no_job_starts_on_a_host_that_left_and_all_that_fit_at_the_end_run(
    policy: str, drawn: tuple[Case, list[AvailabilityChange]], after_s: float, wake_s: float
) -> None:
    case, found = drawn
    rules = HostRules(shutdown_after_s=after_s, changes=found)
    jobs, _, _ = run(policy, case, rules, wake_s, wake_s)
    no_host_runs_two(jobs)
    absent: set[int] = set()
    spans: list[tuple[float, set[int]]] = [(-1.0, set())]
    for change in found:
        absent = absent - {*change.hosts} if change.available else absent | {*change.hosts}
        spans.append((change.at_s, set(absent)))
    for job in jobs:
        if job.hosts_requested <= case[0] - len(absent):
            assert job.state is JobState.SUCCEEDED
        if job.state is JobState.SUCCEEDED and after_s == inf:
            away = [gone for at_s, gone in spans if at_s <= job.start_s][-1]
            assert not away & {*job.hosts}
        else:
            assert job.state in {JobState.SUCCEEDED, JobState.REJECTED}


@given(
    drawn=changes(),
    after_s=st.sampled_from([inf, 0.0, 4.0]),
    wake_s=st.sampled_from([0.0, 6.0]),
)
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_kernels_of_long_queues_see_the_same_hosts(
    drawn: tuple[Case, list[AvailabilityChange]],
    after_s: float,
    wake_s: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case, found = drawn
    rules = HostRules(shutdown_after_s=after_s, changes=found)
    expected, _, _ = run("conservative", case, rules, wake_s, wake_s)
    for compiled_from, plain_below in ((0, 0), (3, 2)):
        monkeypatch.setattr(ConservativeBackfilling, "compiled_from", compiled_from)
        monkeypatch.setattr(ConservativeBackfilling, "plain_below", plain_below)
        jobs, _, _ = run("conservative", case, rules, wake_s, wake_s)
        assert schedule(jobs) == schedule(expected)
        monkeypatch.undo()
