"""Runs a workload under a built-in policy, and sums it up while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from equipoise.sim.jobs.engine import JobEngine
from equipoise.sim.jobs.host_changes import (
    Availability,
    HostRules,
    IdleShutdown,
    PowerRecorder,
)
from equipoise.sim.jobs.host_set import FreeHosts, hosts_of
from equipoise.sim.jobs.hosts import JobHostState
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.policies import Policy
from equipoise.sim.jobs.virtual_time import VirtualTime
from equipoise.sim.jobs.work import Job, JobState

if TYPE_CHECKING:
    from equipoise.sim.jobs.record.journal import JobJournal


_SWITCHING: Final = frozenset({JobHostState.SWITCHING_ON, JobHostState.SWITCHING_OFF})


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
        run_s = job.run_s
        end_s = job.start_s + run_s
        waiting_s, turnaround_s = job.start_s - job.submit_s, end_s - job.submit_s
        slowdown = turnaround_s / run_s
        self.waiting_s += waiting_s
        self.turnaround_s += turnaround_s
        self.slowdown += slowdown
        self.makespan_s = max(self.makespan_s, end_s)
        self.waiting_s_max = max(self.waiting_s_max, waiting_s)
        self.turnaround_s_max = max(self.turnaround_s_max, turnaround_s)
        self.slowdown_max = max(self.slowdown_max, slowdown)


class JobRun:
    """One workload on one platform under one policy.

    Only the next job that arrives is in memory, beside those that wait or run.
    """

    def __init__(  # noqa: PLR0913  (three parts are needed, the others are named)
        self,
        platform: Platform,
        jobs: Iterable[Job],
        policy: Policy,
        recorder: JobRecorder | None = None,
        *,
        make_time: Callable[[JobEngine], VirtualTime] | None = None,
        journal: JobJournal | None = None,
        rules: HostRules | None = None,
    ) -> None:
        self.summary = JobSummary()
        self.engine = JobEngine(platform, self, energy=platform.measures_power, make_time=make_time)
        self.energy_j = 0.0
        """The energy of all hosts from the first submission to the end of the last job."""
        self._energy_before_j: float | None = None
        self._last_end_s = 0.0
        self.power: PowerRecorder | None = None
        """Receives energy and power states; set before the run."""
        self._policy = policy
        self._recorder = recorder
        self._journal = journal
        self._jobs: Iterator[Job] = iter(jobs)
        self._free = FreeHosts(len(platform.hosts))
        self._rules = rules or HostRules()
        self._shutdown: IdleShutdown | None = None
        self._availability: Availability | None = None
        self._unfinished: dict[Job, None] = {}
        """Jobs that have arrived and not ended, in the order of arrival; if hosts change only."""
        self._awaits_jobs = True

    @property
    def switches(self) -> int:
        """How often hosts were switched, a group that switches together once."""
        return 0 if self._shutdown is None else self._shutdown.switches

    @property
    def switched_hosts(self) -> int:
        """How often a host was switched."""
        return 0 if self._shutdown is None else self._shutdown.switched_hosts

    def run(self) -> None:
        """Run until all jobs have ended."""
        if self._hosts_change():
            self._run_with_changes()
        else:
            self._await_next_job()
            time, schedule, free, start = (
                self.engine.time,
                self._policy.schedule,
                self._free,
                self._start,
            )
            while time.step():
                schedule(time.now_s, free, start)
        if self.engine.hosts.measures_energy and self._last_end_s > 0 and self._shutdown is None:
            # Hosts are idle since then, and time may have gone on to a walltime of an ended job.
            self._take_energy(self._last_end_s)
        if self._journal is not None:
            self._journal.end(
                self.engine.now_s,
                self.energy_j,
                switches=self.switches,
                switched_hosts=self.switched_hosts,
            )

    def _hosts_change(self) -> bool:
        asleep = any(h.initial_state in h.sleep_states for h in self.engine.platform.hosts)
        return self._rules.is_needed or asleep

    def _run_with_changes(self) -> None:
        engine, free = self.engine, self._free
        shutdown = self._shutdown = IdleShutdown(engine, free, self._rules, self.power)
        self._availability = Availability(engine, free, self._availability_changed, self._journal)
        self._availability.schedule(self._rules.changes)
        shutdown.idle(free.bits)
        self._await_next_job()
        while (self._unfinished or self._awaits_jobs) and engine.time.step():
            self._policy.schedule(engine.now_s, free, self._start_awake)
        for job in list(self._unfinished):
            # Its hosts never return.
            job.state = JobState.REJECTED
            if self._journal is not None:
                self._journal.rejected(job, self.engine.now_s, "job-too-large")
            self._record(job)

    def _availability_changed(self, returned: int) -> None:
        assert self._shutdown is not None
        self._shutdown.idle(returned)
        renew = getattr(self._policy, "renew", None)
        if renew is not None:
            count = self._free.available.bit_count()
            waiting = [
                job
                for job in self._unfinished
                if job.host_bits == 0 and job.hosts_requested <= count
            ]
            renew(waiting, self._free)

    def _await_next_job(self) -> None:
        job = next(self._jobs, None)
        if job is not None:
            # Records with arrivals out of order count from the last arrival on.
            wait_s = max(job.submit_s, self.engine.now_s)
            self.engine.time.at(wait_s, lambda: self._arrive(job))
        else:
            self._awaits_jobs = False

    def _arrive(self, job: Job) -> None:
        if self._energy_before_j is None and self.engine.hosts.measures_energy:
            self._energy_before_j = self.engine.hosts.total_energy_j(self.engine.now_s)
        self._submit(job)

    def _submit(self, job: Job) -> None:
        if self._journal is not None:
            self._journal.submitted(job, self.engine.now_s)
        if job.hosts_requested > len(self.engine.platform.hosts):
            job.state = JobState.REJECTED
            if self._journal is not None:
                self._journal.rejected(job, self.engine.now_s, "job-too-large")
            self._record(job)
        else:
            job.state = JobState.SUBMITTED
            if self._shutdown is not None:
                self._unfinished[job] = None
            available = self._free.available
            # A policy that renews its queue receives only jobs that fit on present hosts.
            if (
                available == self._free.everything
                or job.hosts_requested <= available.bit_count()
                or not hasattr(self._policy, "renew")
            ):
                self._policy.submit(job)
        self._await_next_job()

    def _start(self, job: Job, hosts: int) -> float:
        self._free.remove(hosts)
        job.host_bits = hosts
        self.engine.start(job, hosts_of(hosts))
        return self.engine.time.now_s

    def _start_awake(self, job: Job, hosts: int) -> float:
        assert self._shutdown is not None
        assert self._availability is not None
        self._free.remove(hosts)
        self._availability.busy |= hosts
        job.host_bits = hosts
        return self._shutdown.start(job, hosts)

    def _record(self, job: Job) -> None:
        self.summary.add(job)
        if self._recorder is not None:
            self._recorder.write_job(job)

    def _take_energy(self, now_s: float) -> None:
        """Take the energy up to the end of the last job so far."""
        after_j = self.engine.hosts.total_energy_j(now_s)
        self.energy_j = after_j - (self._energy_before_j or 0.0)

    def job_started(self, job: Job) -> None:
        """Write the states of hosts."""
        if self._journal is not None:
            self._journal.started(job, self.engine.now_s)
        self._write_hosts()
        if self.power is not None:
            self.power.write_energy(self.engine.now_s, "s")

    def job_ended(self, job: Job) -> None:
        """Free the hosts of the job."""
        if self._journal is not None:
            self._journal.ended(job, self.engine.now_s)
        bits = job.host_bits
        self._last_end_s = self.engine.now_s
        self._free.add(bits)
        self._policy.ended(job)
        self._record(job)
        if self._recorder is not None:
            self._write_hosts()
        if self.power is not None:
            self.power.write_energy(self.engine.now_s, "e")
        if self._shutdown is not None and self._availability is not None:
            if self.engine.hosts.measures_energy:
                self._take_energy(self._last_end_s)  # hosts may switch before the next end
            del self._unfinished[job]
            self._availability.busy &= ~bits
            self._shutdown.idle(bits & self._free.available)

    def hosts_switched(self, hosts: Sequence[int], power_state: int, *, begins: bool) -> None:
        """Write the states of hosts."""
        if begins and self._journal is not None:
            states = self.engine.hosts.state
            switching = [number for number in hosts if states[number] in _SWITCHING]
            self._journal.switched(switching, power_state, states, self.engine.now_s)
        self._write_hosts()
        if self.power is not None:
            now_s = self.engine.now_s
            sleeps = power_state in self.engine.platform.hosts[hosts[0]].sleep_states
            self.power.write_switch(now_s, hosts, power_state, begins=begins, sleeps=sleeps)
            if not begins:
                self.power.write_energy(now_s, "p")

    def hosts_arrived(self, hosts: Sequence[int], power_state: int, *, changed: bool) -> None:
        """Record the states of hosts: those of one request may take different times."""
        if self._journal is not None:
            states = self.engine.hosts.state if changed else None
            self._journal.switched(hosts, power_state, states, self.engine.now_s)

    def _write_hosts(self) -> None:
        if self._recorder is not None:
            self._recorder.write_hosts(self.engine.now_s, self.engine.hosts.counts)
