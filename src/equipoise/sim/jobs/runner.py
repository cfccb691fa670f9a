"""Runs a workload under a built-in policy, and sums it up while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from equipoise.sim.jobs.engine import JobEngine
from equipoise.sim.jobs.host_set import FreeHosts, hosts_of
from equipoise.sim.jobs.hosts import JobHostState
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.policies import Policy
from equipoise.sim.jobs.work import Job, JobState


class JobRecorder(Protocol):
    """Writes rows of jobs and hosts while they happen."""

    def write_job(self, job: Job) -> None:
        """A job has ended or was rejected."""
        ...

    def write_hosts(self, now_s: float, counts: list[int]) -> None:
        """Hosts have changed their state."""
        ...


@dataclass(slots=True)
class JobSummary:
    """Sums and largest values over all jobs; rejected jobs count as jobs without times."""

    jobs: int = 0
    succeeded: int = 0
    rejected: int = 0
    makespan_s: float = 0.0
    waiting_s: float = 0.0
    waiting_s_max: float = 0.0
    turnaround_s: float = 0.0
    turnaround_s_max: float = 0.0
    slowdown: float = 0.0
    slowdown_max: float = 0.0

    def add(self, job: Job) -> None:
        """Count a job in its final state."""
        self.jobs += 1
        if job.state is JobState.REJECTED:
            self.rejected += 1
            return
        self.succeeded += job.state is JobState.SUCCEEDED
        end_s = job.end_s
        waiting_s, turnaround_s = job.start_s - job.submit_s, end_s - job.submit_s
        slowdown = turnaround_s / job.run_s
        self.makespan_s = max(self.makespan_s, end_s)
        self.waiting_s += waiting_s
        self.waiting_s_max = max(self.waiting_s_max, waiting_s)
        self.turnaround_s += turnaround_s
        self.turnaround_s_max = max(self.turnaround_s_max, turnaround_s)
        self.slowdown += slowdown
        self.slowdown_max = max(self.slowdown_max, slowdown)


class JobRun:
    """One workload on one platform under one policy.

    Only the next job that arrives is in memory, beside those that wait or run.
    """

    def __init__(
        self,
        platform: Platform,
        jobs: Iterable[Job],
        policy: Policy,
        recorder: JobRecorder | None = None,
    ) -> None:
        self.summary = JobSummary()
        self.engine = JobEngine(platform, self, energy=platform.measures_power)
        self.energy_j = 0.0
        """The energy of all hosts up to the end of the last job."""
        self._policy = policy
        self._recorder = recorder
        self._jobs: Iterator[Job] = iter(jobs)
        self._free = FreeHosts(len(platform.hosts))

    def run(self) -> None:
        """Run until all jobs have ended."""
        self._await_next_job()
        time = self.engine.time
        while time.step():
            self._policy.schedule(time.now_s, self._free, self._start)
        if self.engine.hosts.measures_energy:
            self.energy_j = self.engine.hosts.total_energy_j(self.engine.now_s)

    def _await_next_job(self) -> None:
        job = next(self._jobs, None)
        if job is not None:
            # Records with arrivals out of order count from the last arrival on.
            wait_s = max(job.submit_s, self.engine.now_s)
            self.engine.time.at(wait_s, lambda: self._submit(job))

    def _submit(self, job: Job) -> None:
        if job.hosts_requested > len(self.engine.platform.hosts):
            job.state = JobState.REJECTED
            self._record(job)
        else:
            job.state = JobState.SUBMITTED
            self._policy.submit(job)
        self._await_next_job()

    def _start(self, job: Job, hosts: int) -> None:
        self._free.remove(hosts)
        job.host_bits = hosts
        self.engine.start(job, hosts_of(hosts))

    def _record(self, job: Job) -> None:
        self.summary.add(job)
        if self._recorder is not None:
            self._recorder.write_job(job)

    def job_started(self, job: Job) -> None:
        """Write the states of hosts."""
        self._write_hosts()

    def job_ended(self, job: Job) -> None:
        """Free the hosts of the job."""
        self._free.add(job.host_bits)
        self._policy.ended(job)
        self._record(job)
        self._write_hosts()

    def hosts_switched(self, hosts: Sequence[int], power_state: int, *, begins: bool) -> None:
        """Write the states of hosts."""
        self._write_hosts()

    def _write_hosts(self) -> None:
        if self._recorder is not None:
            self._recorder.write_hosts(self.engine.now_s, self.engine.hosts.counts)

    def time_in_state_s(self, state: JobHostState) -> float:
        """Return how long hosts were in a state, all hosts together."""
        return self.engine.hosts.total_s[state]
