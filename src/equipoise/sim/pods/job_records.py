"""Pods as batch jobs, so that the tables, the charts and the journal of jobs show them.

A job is a pod from its creation to its end; the node is its one host, and pods share hosts. It
starts when its containers run. A pod that ends before is a rejected job, whose label says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from equipoise.sim.jobs.fluid import TaskFactory
from equipoise.sim.jobs.host_set import bits_of
from equipoise.sim.jobs.hosts import HostStates
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.runner import JobRecorder, JobSummary
from equipoise.sim.jobs.work import UNLIMITED, DelayWork, Job, JobState, Work
from equipoise.sim.pods.node import PodNode
from equipoise.sim.pods.pod import Pod, PodOutcome, PodStage
from equipoise.sim.pods.pod_time import PodTime
from equipoise.sim.pods.spec import CPU

if TYPE_CHECKING:
    from equipoise.sim.jobs.record.journal import JobJournal

_MS_PER_S: Final = 1000
_SHORTEST_RUN_S: Final = 1e-5
"""The run time of a pod that takes no time; slowdowns divide by it."""
_STATES: Final[Mapping[PodOutcome, JobState]] = {
    PodOutcome.SUCCEEDED: JobState.SUCCEEDED,
    PodOutcome.FAILED: JobState.FAILED,
    PodOutcome.OUT_OF_MEMORY: JobState.FAILED,
    PodOutcome.TIMED_OUT: JobState.TIMED_OUT,
    PodOutcome.REJECTED: JobState.REJECTED,
    PodOutcome.DELETED: JobState.KILLED,
    PodOutcome.LOST: JobState.KILLED,
}
_SERVICE: Final = Work(name="until-deleted")


@dataclass(slots=True)
class PodHosts:
    """The part of an engine of jobs that summaries and charts read."""

    platform: Platform
    hosts: HostStates


class PodJobRecords:
    """Observes a cluster of pods, and keeps and writes its jobs.

    ``platform`` has the nodes by name; pods on other nodes have no host in the records.
    """

    def __init__(
        self,
        platform: Platform,
        time: PodTime,
        *,
        recorder: JobRecorder | None = None,
        journal: JobJournal | None = None,
    ) -> None:
        hosts = HostStates(platform, TaskFactory(platform), energy=platform.measures_power)
        self.engine = PodHosts(platform, hosts)
        self.summary = JobSummary()
        self.energy_j = 0.0
        """The energy of all hosts, once the run has ended."""
        self.is_open = True
        """Pods that are created while it is not are in no record."""
        self._time = time
        self._recorder = recorder
        self._journal = journal
        self._number = {host.name: number for number, host in enumerate(platform.hosts)}
        self._jobs: dict[str, Job] = {}
        """Jobs that have arrived and not ended."""
        self._energy_before_j: dict[str, float] = {}

    @property
    def _now_s(self) -> float:
        return self._time.now_ms / _MS_PER_S

    def submitted(
        self,
        name: str,
        *,
        workload: str = "pods",
        job: str = "",
        duration_ms: int | None = None,
        exit_code: int = 0,
        deadline_ms: int | None = None,
    ) -> Job:
        """A pod was created; ``job`` is its name in the records, if that is another one."""
        work: Work = _SERVICE
        if duration_ms is not None:
            seconds = duration_ms / _MS_PER_S
            work = DelayWork(name=f"{seconds:g}", seconds=seconds, return_code=exit_code)
        limit_s = UNLIMITED if deadline_ms is None else deadline_ms / _MS_PER_S
        record = Job(workload, job or name, self._now_s, 1, work, limit_s, JobState.SUBMITTED)
        if not self.is_open:
            return record
        self._jobs[name] = record
        if self._journal is not None:
            self._journal.submitted(record, self._now_s)
        return record

    def withdrawn(self, name: str, why: str) -> None:
        """A pod that no node has taken was deleted."""
        job = self._jobs.pop(name, None)
        if job is not None:
            self._reject(job, why)

    def pod_changed(self, pod: Pod) -> None:
        """Write the start or the end of the job."""
        job = self._jobs.get(pod.name)
        if job is None:
            return
        if pod.stage is PodStage.RUNNING and job.state is JobState.SUBMITTED:
            self._start(job, pod)
        elif pod.stage.is_final:
            del self._jobs[pod.name]
            self._end(job, pod)

    def usage_changed(self, node: PodNode) -> None:
        """The power of a node follows what its pods use of its CPU."""
        number = self._number.get(node.name)
        capacity = node.allocatable.get(CPU, 0)
        if number is not None and capacity:
            load = min(1.0, node.cpu_milli / capacity)
            self.engine.hosts.set_load(number, load, self._now_s)

    def node_changed(self, node: PodNode) -> None:
        """A node that is down takes no pods and is not idle."""
        number = self._number.get(node.name)
        if number is None:
            return
        change = self.engine.hosts.set_available
        if node.is_down:
            change = self.engine.hosts.set_unavailable
        change([number], self._now_s)
        if self._journal is not None:
            write = self._journal.failed if node.is_down else self._journal.returned
            write([number], self._now_s)
        self._write_hosts()

    def finish(self) -> None:
        """The run has ended: jobs that still wait or run have no end."""
        hosts = self.engine.hosts
        if hosts.measures_energy:
            self.energy_j = hosts.total_energy_j(self._now_s)
        if self._journal is not None:
            self._journal.end(self._now_s, self.energy_j)

    def _start(self, job: Job, pod: Pod) -> None:
        now_s, number = self._now_s, self._number.get(pod.node.name)
        job.state, job.start_s = JobState.RUNNING, now_s
        job.hosts = () if number is None else (number,)
        job.host_bits = bits_of(job.hosts)
        hosts = self.engine.hosts
        if hosts.measures_energy:
            self._energy_before_j[pod.name] = hosts.energy_j(job.hosts, now_s)
        hosts.add_job(job.hosts, now_s)
        if self._journal is not None:
            self._journal.started(job, now_s)
        self._write_hosts()

    def _end(self, job: Job, pod: Pod) -> None:
        now_s, hosts = self._now_s, self.engine.hosts
        assert pod.outcome is not None, "a pod that has ended has an outcome"
        if job.state is JobState.SUBMITTED:
            reason = pod.missing_resource or pod.outcome.value
            self._reject(job, f"{pod.outcome.value}: {reason}" if pod.missing_resource else reason)
            return
        job.state = _STATES[pod.outcome]
        job.run_s = (now_s - job.start_s) or _SHORTEST_RUN_S
        job.return_code = pod.exit_code
        if pod.outcome is not PodOutcome.SUCCEEDED:
            job.label = pod.outcome.value
        if hosts.measures_energy:
            before_j = self._energy_before_j.pop(pod.name)
            job.energy_j = hosts.energy_j(job.hosts, now_s) - before_j
        hosts.remove_job(job.hosts, now_s)
        if self._journal is not None:
            self._journal.ended(job, now_s)
        self._record(job)
        self._write_hosts()

    def _reject(self, job: Job, why: str) -> None:
        job.state, job.label = JobState.REJECTED, why
        if self._journal is not None:
            self._journal.rejected(job, self._now_s)
        self._record(job)

    def _record(self, job: Job) -> None:
        self.summary.add(job)
        if self._recorder is not None:
            self._recorder.write_job(job)

    def _write_hosts(self) -> None:
        if self._recorder is not None:
            self._recorder.write_hosts(self._now_s, self.engine.hosts.counts)
