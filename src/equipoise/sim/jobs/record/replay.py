"""Rebuilds a run of jobs from its events: every job, the times of hosts and the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from equipoise.errors import InputProblem, InvalidInput
from equipoise.model import event as job_events
from equipoise.sim.jobs.fluid import TaskFactory
from equipoise.sim.jobs.host_set import parse_host_set
from equipoise.sim.jobs.hosts import HostStates
from equipoise.sim.jobs.platform import JobHost, Platform, PowerState
from equipoise.sim.jobs.record.journal import ACTIVITIES, OUTCOMES
from equipoise.sim.jobs.runner import JobSummary
from equipoise.sim.jobs.work import Job, JobState, Work

_STATES: Final = {outcome: state for state, outcome in OUTCOMES.items()}
_HOST_STATES: Final = {activity: state for state, activity in ACTIVITIES.items()}


@dataclass(frozen=True, slots=True)
class ReplayedHosts:
    """Stands for the engine of a run: a replay has its hosts only."""

    platform: Platform
    hosts: HostStates


class JobReplay:
    """The state of a run after its events so far.

    It uses the sums of the run itself in the same order, so that its figures have equal bits.
    """

    def __init__(self, source: str = "journal") -> None:
        self.source = source
        self.policy = ""
        self.host_names: tuple[str, ...] = ()
        self.summary = JobSummary()
        self.engine = _idle_hosts((), ())
        self.energy_j = 0.0
        self.switches = 0
        self.switched_hosts = 0
        self.now_s = 0.0
        self.complete = False
        """True if the run ended by itself; a run that was stopped has no last event."""
        self.jobs: list[Job] = []
        """Ended and rejected jobs, in the order of the journal."""
        self.active: dict[tuple[str, str], Job] = {}
        """Jobs that wait or run."""
        self._number = 0

    def replay(self, events: Iterable[Any]) -> JobReplay:
        """Apply all events and return the replay itself."""
        for event in events:
            self.apply(event)
        return self

    def apply(self, event: Any) -> None:
        """Apply one event; ``InvalidInput`` for an event that cannot follow the others."""
        self._number += 1
        effect = _EFFECTS.get(type(event))
        if effect is None:
            raise self._problem("is no event of a run of jobs")
        self.now_s = event.at_s
        effect(self, event)

    def _begin(self, event: job_events.JobsRunStarted) -> None:
        self.source, self.policy, self.host_names = event.source, event.policy, event.hosts
        self.engine = _idle_hosts(event.hosts, event.storages)

    def _submit(self, event: job_events.JobSubmitted) -> None:
        self.active[event.workload, event.job] = Job(
            workload=event.workload,
            name=event.job,
            submit_s=event.submit_s,
            hosts_requested=event.hosts_requested,
            work=Work(name=event.work),
            walltime_s=inf if event.walltime_s is None else event.walltime_s,
            state=JobState.SUBMITTED,
        )

    def _reject(self, event: job_events.JobRejected) -> None:
        job = self._known(event.workload, event.job)
        job.state = JobState.REJECTED
        job.label = event.label
        self._close(job)

    def _start(self, event: job_events.JobStarted) -> None:
        job = self._known(event.workload, event.job)
        job.hosts = self._numbers(event.hosts)
        job.start_s = event.at_s
        job.state = JobState.RUNNING
        self.engine.hosts.add_job(job.hosts, event.at_s)

    def _end(self, event: job_events.JobEnded) -> None:
        job = self._known(event.workload, event.job)
        job.state = _STATES[event.outcome]
        job.run_s, job.return_code = event.run_s, event.return_code
        job.energy_j, job.label = event.energy_j, event.label
        self.engine.hosts.remove_job(job.hosts, event.at_s)
        self._close(job)

    def _close(self, job: Job) -> None:
        del self.active[job.workload, job.name]
        self.summary.add(job)
        self.jobs.append(job)

    def _switch(self, event: job_events.JobHostsSwitched) -> None:
        numbers = self._numbers(event.hosts)
        for number in numbers:
            self.engine.hosts.power_state[number] = event.power_state
        if event.activity is not None:
            self.engine.hosts.change(numbers, _HOST_STATES[event.activity], event.at_s)

    def _fail(self, event: job_events.JobHostsFailed) -> None:
        numbers, passing = self._numbers(event.hosts), self._numbers(event.passing)
        self.engine.hosts.unavailable.update(numbers)
        present = [number for number in numbers if number not in passing]
        self.engine.hosts.set_unavailable(present, event.at_s)

    def _return(self, event: job_events.JobHostsReturned) -> None:
        self.engine.hosts.set_available(self._numbers(event.hosts), event.at_s)

    def _finish(self, event: job_events.JobsRunEnded) -> None:
        self.energy_j = event.energy_j
        self.switches, self.switched_hosts = event.switches, event.switched_hosts
        self.complete = True

    def _known(self, workload: str, name: str) -> Job:
        job = self.active.get((workload, name))
        if job is None:
            raise self._problem(f"names the job {workload}!{name}, which is not under way")
        return job

    def _numbers(self, text: str) -> tuple[int, ...]:
        numbers = parse_host_set(text)
        if numbers and numbers[-1] >= len(self.host_names):
            raise self._problem(f"names host {numbers[-1]} of {len(self.host_names)}")
        return numbers

    def _problem(self, what: str) -> InvalidInput:
        cure = "use a journal that 'equipoise jobs' or 'equipoise batsim' wrote"
        key = f"event {self._number}"
        return InvalidInput(
            self.source, [InputProblem(key=key, what=what, cure=cure, code="event-unexpected")]
        )


def _idle_hosts(hosts: Iterable[str], storages: Iterable[str]) -> ReplayedHosts:
    """Return hosts without speeds and power: the journal has what came of them."""
    state = (PowerState(1.0),)
    compute, storage = (
        [JobHost(name=name, power_states=state) for name in names] for names in (hosts, storages)
    )
    platform = Platform(hosts=compute, storages=storage)
    return ReplayedHosts(platform, HostStates(platform, TaskFactory(platform), energy=False))


_EFFECTS: Final[dict[type[Any], Callable[[JobReplay, Any], None]]] = {
    job_events.JobsRunStarted: JobReplay._begin,
    job_events.JobSubmitted: JobReplay._submit,
    job_events.JobRejected: JobReplay._reject,
    job_events.JobStarted: JobReplay._start,
    job_events.JobEnded: JobReplay._end,
    job_events.JobHostsSwitched: JobReplay._switch,
    job_events.JobHostsFailed: JobReplay._fail,
    job_events.JobHostsReturned: JobReplay._return,
    job_events.JobsRunEnded: JobReplay._finish,
}
