"""The journal of a run of jobs alone rebuilds the run."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.adapters.batsim.outputs import job_line
from equipoise.adapters.batsim.summary import summary_values
from equipoise.model.event import event_kind
from equipoise.sim.jobs.history import JobHistory
from equipoise.sim.jobs.platform import JobHost, Platform, PowerState
from equipoise.sim.jobs.policies import POLICIES
from equipoise.sim.jobs.record.journal import JobJournal
from equipoise.sim.jobs.record.replay import JobReplay
from equipoise.sim.jobs.runner import JobRun
from equipoise.sim.jobs.work import UNLIMITED, DelayWork, Job, UniformTaskWork, Work
from equipoise.store import MemoryJournal

STATE = PowerState(speed_flops=3.0, idle_w=90.5, base_w=100.1, full_w=190.7)
times = st.floats(0, 50, allow_nan=False).map(lambda value: round(value, 3))
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, list[Job]]:
    """Draw hosts and jobs that wait, compute, fail, time out, or are wider than the platform."""
    hosts = draw(st.integers(1, 5))
    works: list[Work] = [
        DelayWork(name=draw(names), seconds=draw(times)),
        DelayWork(name="fails", seconds=draw(times), return_code=3),
        UniformTaskWork(name="computes", flops=draw(st.floats(1, 99)), transfer=0.0),
    ]
    jobs = []
    submit_s = 0.0
    for number in range(draw(st.integers(0, 12))):
        submit_s += draw(times) / 7
        limit_s = draw(st.sampled_from([UNLIMITED, 3.3, 40.0]))
        width = draw(st.integers(1, hosts + 1))
        work = draw(st.sampled_from(works))
        name = f"{number}{draw(names)}"
        jobs.append(Job("w0", name, submit_s, width, work, limit_s, label=draw(names)))
    return hosts, jobs


@pytest.mark.parametrize("policy", list(POLICIES))
@given(case=runs(), power=st.booleans())
@settings(max_examples=60)
def test_a_replay_has_every_row_and_every_figure_of_the_run(
    policy: str, case: tuple[int, list[Job]], power: bool
) -> None:
    count, jobs = case
    hosts = [
        JobHost(name=f"h{number}", power_states=(STATE,), measures_power=power)
        for number in range(count)
    ]
    platform, history, journal = Platform(hosts=hosts), JobHistory(), MemoryJournal()
    recorder = JobJournal(journal)
    recorder.begin("w.json", policy, platform)
    run = JobRun(platform, jobs, POLICIES[policy](count), history, journal=recorder)
    run.run()
    replay = JobReplay().replay(journal.events())
    assert [job_line(job, job.work.name) for job in replay.jobs] == [
        job_line(job, job.work.name) for job in history.jobs
    ]
    assert summary_values(replay) == summary_values(run)
    assert replay.complete
    assert not replay.active
    assert (replay.policy, replay.source, len(replay.host_names)) == (policy, "w.json", count)


@given(case=runs())
@settings(max_examples=60)
def test_times_never_decrease_and_a_prefix_is_a_state_of_the_run(
    case: tuple[int, list[Job]],
) -> None:
    count, jobs = case
    platform = Platform(
        hosts=[JobHost(name=f"h{number}", power_states=(STATE,)) for number in range(count)]
    )
    journal = MemoryJournal()
    recorder = JobJournal(journal)
    recorder.begin("w", "fcfs", platform)
    JobRun(platform, jobs, POLICIES["fcfs"](count), journal=recorder).run()
    events = list(journal.events())
    assert all(event.at_ms <= later.at_ms for event, later in pairwise(events))
    replay = JobReplay()
    for event in events:
        replay.apply(event)
        running = [job for job in replay.active.values() if job.hosts]
        used = [number for job in running for number in job.hosts]
        assert len(used) == len(set(used)), "no two jobs are on one host"
        assert len(replay.jobs) + len(replay.active) <= len(jobs)
    kinds = [event_kind(event) for event in events]
    assert kinds.count("job_submitted") == len(jobs)
    assert kinds[0] == "jobs_run_started"
    assert kinds[-1] == "jobs_run_ended"
