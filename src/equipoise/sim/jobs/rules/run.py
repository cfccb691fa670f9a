"""Runs a workload in which jobs carry constraints: every start passes the gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from equipoise.sim.jobs.host_set import hosts_of
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.policies import Policy
from equipoise.sim.jobs.rules.gate import JobGate
from equipoise.sim.jobs.runner import JobRun
from equipoise.sim.jobs.work import Job, JobState


@runtime_checkable
class GateUser(Protocol):
    """A policy that asks the gate which hosts a job may start on."""

    def use_gate(self, gate: JobGate) -> None:
        """Receive the gate before the run."""
        ...


class GatedJobRun(JobRun):
    """A run that rejects jobs no empty platform can run, and refuses starts that violate."""

    def __init__(
        self,
        platform: Platform,
        jobs: Iterable[Job],
        policy: Policy,
        gate: JobGate,
        **parts: Any,
    ) -> None:
        super().__init__(platform, jobs, policy, **parts)
        self._gate = gate
        if isinstance(policy, GateUser):
            policy.use_gate(gate)

    def _submit(self, job: Job) -> None:
        if job.hosts_requested <= len(self.engine.platform.hosts):
            job.rejection = self._gate.rejection(job)
        if not job.rejection:
            super()._submit(job)
            return
        job.state = JobState.REJECTED
        job.label = job.label or job.rejection
        if self._journal is not None:
            self._journal.submitted(job, self.engine.now_s)
            self._journal.rejected(job, self.engine.now_s, job.rejection)
        self._record(job)
        self._await_next_job()

    def _start(self, job: Job, hosts: int) -> float:
        executors = hosts_of(hosts)
        self._gate.check_start(job, executors)
        self._gate.started(job, executors)
        return super()._start(job, hosts)

    def _start_awake(self, job: Job, hosts: int) -> float:
        executors = hosts_of(hosts)
        self._gate.check_start(job, executors)
        self._gate.started(job, executors)
        return super()._start_awake(job, hosts)

    def job_ended(self, job: Job) -> None:
        """Free the hosts of the job."""
        self._gate.ended(job)
        super().job_ended(job)
