"""The journal of a run of jobs rebuilds it also if hosts sleep, wake, leave and return."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from equipoise.adapters.batsim.outputs import job_line
from equipoise.adapters.batsim.summary import summary_values
from equipoise.sim.jobs.history import JobHistory
from equipoise.sim.jobs.host_changes import AvailabilityChange, HostRules
from equipoise.sim.jobs.platform import JobHost, Platform, PowerState, SleepState
from equipoise.sim.jobs.policies import POLICIES
from equipoise.sim.jobs.record.journal import JobJournal
from equipoise.sim.jobs.record.replay import JobReplay
from equipoise.sim.jobs.rules.gate import JobGate
from equipoise.sim.jobs.rules.policies import RULED_POLICIES
from equipoise.sim.jobs.rules.run import GatedJobRun
from equipoise.sim.jobs.runner import JobRun
from equipoise.sim.jobs.work import UNLIMITED, DelayWork, Job, UniformTaskWork
from equipoise.store import MemoryJournal
from plain_rules import RuledWorkload, ruled_workloads

times = st.floats(0.125, 40, allow_nan=False).map(lambda value: round(value, 3))


@st.composite
def hosts_that_sleep(draw: st.DrawFn, number: int) -> JobHost:
    """Draw a host: most sleep, each with its own times, and some sleep at the start."""
    computing = PowerState(3.0, 90.5, 100.1, 190.7)
    states = [computing, *(PowerState(1.0 / draw(times), 9.5, 9.5, 9.5) for _ in range(3))]
    sleeps = draw(st.integers(0, 4)) > 0
    return JobHost(
        name=f"h{number}",
        power_states=tuple(states),
        sleep_states={1: SleepState(1, 2, 3)} if sleeps else {},
        initial_state=1 if sleeps and draw(st.booleans()) else 0,
        measures_power=True,
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Platform, list[Job], HostRules]:
    """Draw hosts, jobs and what happens to the hosts."""
    count = draw(st.integers(1, 5))
    platform = Platform(hosts=[draw(hosts_that_sleep(number)) for number in range(count)])
    works = [
        DelayWork(name="waits", seconds=draw(times)),
        DelayWork(name="fails", seconds=draw(times), return_code=3),
        UniformTaskWork(name="computes", flops=draw(st.floats(1, 99)), transfer=0.0),
    ]
    jobs = []
    submit_s = 0.0
    for number in range(draw(st.integers(0, 10))):
        submit_s += draw(times)
        limit_s = draw(st.sampled_from([UNLIMITED, 3.3, 40.0]))
        width = draw(st.integers(1, count + 1))
        work = draw(st.sampled_from(works))
        jobs.append(Job("w0", str(number), submit_s, width, work, limit_s))
    changes = [
        AvailabilityChange(
            draw(times) * 4,
            tuple(sorted(draw(st.sets(st.integers(0, count - 1), min_size=1)))),
            draw(st.booleans()),
        )
        for _ in range(draw(st.integers(0, 5)))
    ]
    rules = HostRules(
        shutdown_after_s=draw(times),
        keep_awake=draw(st.integers(0, 2)),
        changes=sorted(changes, key=lambda change: change.at_s),
    )
    return platform, jobs, rules


@pytest.mark.parametrize("policy", list(POLICIES))
@given(case=cases())
@settings(max_examples=60)
def test_a_replay_has_every_row_and_figure_though_hosts_change(
    policy: str, case: tuple[Platform, list[Job], HostRules]
) -> None:
    platform, jobs, rules = case
    history, journal = JobHistory(), MemoryJournal()
    recorder = JobJournal(journal)
    recorder.begin("w.json", policy, platform)
    make = POLICIES[policy](len(platform.hosts))
    run = JobRun(platform, jobs, make, history, journal=recorder, rules=rules)
    run.run()
    event(f"switches: {min(run.switches, 3)}")
    replay = JobReplay().replay(journal.events())
    assert [job_line(job, job.work.name) for job in replay.jobs] == [
        job_line(job, job.work.name) for job in history.jobs
    ]
    assert summary_values(replay) == summary_values(run)
    assert (replay.switches, replay.switched_hosts) == (run.switches, run.switched_hosts)
    assert replay.engine.hosts.state == run.engine.hosts.state
    assert replay.complete
    assert not replay.active


@pytest.mark.parametrize("policy", list(RULED_POLICIES))
@given(case=ruled_workloads())
@settings(max_examples=30)
def test_a_replay_has_every_row_and_figure_of_jobs_with_constraints(
    policy: str, case: RuledWorkload
) -> None:
    platform, jobs = case.platform(), case.product_jobs()
    gate = JobGate(platform)
    gate.check_jobs(jobs, "law")
    history, journal = JobHistory(), MemoryJournal()
    recorder = JobJournal(journal)
    recorder.begin("w.json", policy, platform)
    make = RULED_POLICIES[policy](gate)
    run = GatedJobRun(platform, jobs, make, gate, recorder=history, journal=recorder)
    run.run()
    event(f"rejected: {min(run.summary.rejected, 3)}")
    replay = JobReplay().replay(journal.events())
    assert [job_line(job, job.work.name) for job in replay.jobs] == [
        job_line(job, job.work.name) for job in history.jobs
    ]
    assert summary_values(replay) == summary_values(run)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)


@given(name=texts, workload=texts, profile=texts, label=texts)
def test_every_name_of_a_job_can_be_read_back(
    name: str, workload: str, profile: str, label: str
) -> None:
    job = Job(workload, name, 0.0, 1, DelayWork(name=profile, seconds=1.0), label=label)
    job.start_s, job.run_s = 1.0, 2.0
    (row,) = csv.reader(io.StringIO(job_line(job, profile), newline=""))
    assert (row[0], row[1], row[2], row[-1]) == (name, workload, profile, label)
    plain = Job("w0", "job-1", 0.0, 1, job.work)
    assert job_line(plain, "p!1").startswith("job-1,w0,p!1,0.000000,1,")
