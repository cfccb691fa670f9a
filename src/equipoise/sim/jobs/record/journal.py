"""Writes the events of a run of jobs to the journal, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from equipoise.model.event import (
    JobEnded,
    JobEnding,
    JobEvent,
    JobHostActivity,
    JobHostsFailed,
    JobHostsReturned,
    JobHostsSwitched,
    JobRejected,
    JobsRunEnded,
    JobsRunStarted,
    JobStarted,
    JobSubmitted,
)
from equipoise.sim.jobs.host_set import format_host_set
from equipoise.sim.jobs.hosts import JobHostState
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.work import UNLIMITED, Job, JobState
from equipoise.store import Journal

_BATCH: Final = 4096
"""Events per transaction: an append waits for the disk, and a run of jobs acts on nothing real."""
_MS_MAX: Final = 10**15

OUTCOMES: Final = {
    JobState.SUCCEEDED: JobEnding.SUCCEEDED,
    JobState.FAILED: JobEnding.FAILED,
    JobState.TIMED_OUT: JobEnding.TIMED_OUT,
    JobState.KILLED: JobEnding.KILLED,
}
ACTIVITIES: Final = {
    JobHostState.IDLE: JobHostActivity.IDLE,
    JobHostState.SLEEPING: JobHostActivity.SLEEPING,
    JobHostState.SWITCHING_ON: JobHostActivity.SWITCHING_ON,
    JobHostState.SWITCHING_OFF: JobHostActivity.SWITCHING_OFF,
}


class JobJournal:
    """Receives what happens in a run, and appends it to a journal.

    The last events are in the journal after ``flush``, which a run calls however it ends.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._events: list[JobEvent] = []

    def begin(self, source: str, policy: str, platform: Platform) -> None:
        """The run starts."""
        names = tuple(host.name for host in platform.hosts)
        self._add(
            JobsRunStarted(
                at_ms=0,
                at_s=0.0,
                source=source,
                policy=policy,
                hosts=names,
                storages=tuple(host.name for host in platform.storages),
            )
        )

    def submitted(self, job: Job, now_s: float) -> None:
        """A job arrived."""
        self._add(
            JobSubmitted(
                at_ms=_whole_ms(now_s),
                at_s=now_s,
                workload=job.workload,
                job=job.name,
                work=job.work.name,
                submit_s=job.submit_s,
                hosts_requested=job.hosts_requested,
                walltime_s=None if job.walltime_s == UNLIMITED else job.walltime_s,
            )
        )

    def rejected(self, job: Job, now_s: float, code: str = "") -> None:
        """A job will never run."""
        self._add(
            JobRejected(
                at_ms=_whole_ms(now_s),
                at_s=now_s,
                workload=job.workload,
                job=job.name,
                code=code,
                label=job.label,
            )
        )

    def started(self, job: Job, now_s: float) -> None:
        """A job runs on its hosts."""
        hosts = format_host_set(job.hosts)
        self._add(
            JobStarted(
                at_ms=_whole_ms(now_s), at_s=now_s, workload=job.workload, job=job.name, hosts=hosts
            )
        )

    def ended(self, job: Job, now_s: float) -> None:
        """A job is in a final state and its hosts are free."""
        self._add(
            JobEnded(
                at_ms=_whole_ms(now_s),
                at_s=now_s,
                workload=job.workload,
                job=job.name,
                outcome=OUTCOMES[job.state],
                run_s=job.run_s,
                return_code=job.return_code,
                energy_j=job.energy_j,
                label=job.label,
            )
        )

    def switched(
        self,
        hosts: Sequence[int],
        power_state: int,
        states: Sequence[JobHostState] | None,
        now_s: float,
    ) -> None:
        """Hosts begin to switch, or have reached their power state.

        ``states`` has the new states of all hosts of the platform; None if no state changed. Hosts
        of one request may differ: a power state can be a sleep state of some of them only.
        """
        groups: dict[JobHostActivity | None, list[int]] = {}
        for number in hosts:
            activity = None if states is None else ACTIVITIES.get(states[number])
            groups.setdefault(activity, []).append(number)
        for activity, numbers in groups.items():
            self._add(
                JobHostsSwitched(
                    at_ms=_whole_ms(now_s),
                    at_s=now_s,
                    hosts=format_host_set(numbers),
                    power_state=power_state,
                    activity=activity,
                )
            )

    def failed(self, hosts: Sequence[int], now_s: float, passing: Sequence[int] = ()) -> None:
        """Hosts became unavailable; those that are ``passing`` keep their state."""
        numbers, kept = format_host_set(hosts), format_host_set(passing)
        self._add(JobHostsFailed(at_ms=_whole_ms(now_s), at_s=now_s, hosts=numbers, passing=kept))

    def returned(self, hosts: Sequence[int], now_s: float) -> None:
        """Hosts are available again."""
        numbers = format_host_set(hosts)
        self._add(JobHostsReturned(at_ms=_whole_ms(now_s), at_s=now_s, hosts=numbers))

    def end(
        self, now_s: float, energy_j: float, *, switches: int = 0, switched_hosts: int = 0
    ) -> None:
        """The run ended."""
        self._add(
            JobsRunEnded(
                at_ms=_whole_ms(now_s),
                at_s=now_s,
                energy_j=energy_j,
                switches=switches,
                switched_hosts=switched_hosts,
            )
        )
        self.flush()

    def flush(self) -> None:
        """Append the events that wait."""
        if self._events:
            self.journal.append(self._events)
            self._events = []

    def _add(self, event: JobEvent) -> None:
        self._events.append(event)
        if len(self._events) >= _BATCH:
            self.flush()


def _whole_ms(now_s: float) -> int:
    return min(int(now_s * 1000), _MS_MAX)
