"""What happened in a run of jobs, kept in memory for reports and tables."""

from __future__ import annotations

from array import array
from typing import Final

from equipoise.sim.jobs.hosts import HostStates, JobHostState
from equipoise.sim.jobs.work import Job

_ENERGY_SAMPLES_MAX: Final = 4096
"""More samples than a chart has pixels; a sample costs a sum over all hosts."""


class JobHistory:
    """Keeps every job that has ended, the states of hosts, and the energy over time."""

    def __init__(self, *, keep_jobs: bool = True) -> None:
        self._keeps_jobs = keep_jobs
        self.jobs: list[Job] = []
        """Ended and rejected jobs in the order of their ends."""
        self.times = array("d")
        self.counts = [array("l") for _ in JobHostState]
        """How many hosts were in each state, from each of ``times`` on."""
        self.energy_times = array("d")
        self.energy_j = array("d")
        """The energy of all hosts from the start to each of ``energy_times``."""
        self.hosts: HostStates | None = None
        """Set before the run if energy is measured."""
        self._gap_s = 0.0

    def write_job(self, job: Job) -> None:
        """Keep a job that has ended or was rejected."""
        if self._keeps_jobs:
            self.jobs.append(job)

    def write_hosts(self, now_s: float, counts: list[int]) -> None:
        """Keep the states of hosts; the last ones of an instant count."""
        if self.times and self.times[-1] == now_s:
            for column, count in zip(self.counts, counts, strict=True):
                column[-1] = count
        else:
            self.times.append(now_s)
            for column, count in zip(self.counts, counts, strict=True):
                column.append(count)
        if self.hosts is not None and self.hosts.measures_energy:
            self._sample_energy(now_s, self.hosts)

    def _sample_energy(self, now_s: float, hosts: HostStates) -> None:
        if self.energy_times and now_s - self.energy_times[-1] <= self._gap_s:
            return
        self.energy_times.append(now_s)
        self.energy_j.append(hosts.measured_energy_j(now_s))
        if len(self.energy_times) > _ENERGY_SAMPLES_MAX:
            # The length of a run is unknown, so every second sample goes when there are too many.
            del self.energy_times[1::2], self.energy_j[1::2]
            span_s = self.energy_times[-1] - self.energy_times[0]
            self._gap_s = 2 * span_s / _ENERGY_SAMPLES_MAX
