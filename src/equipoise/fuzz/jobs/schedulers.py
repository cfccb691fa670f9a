"""The batch schedulers that campaigns can test: the built-in policies, and faulty ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from equipoise.fuzz.jobs.trial import JobTrial
from equipoise.sim.jobs.host_set import FreeHosts, hosts_of, lowest_bits
from equipoise.sim.jobs.policies import EasyBackfilling, Fcfs, Policy, ShortestFirst, Start
from equipoise.sim.jobs.rules.gate import JobGate
from equipoise.sim.jobs.rules.policies import RULED_POLICIES, RuledEasy, RuledInOrder
from equipoise.sim.jobs.rules.run import GatedJobRun
from equipoise.sim.jobs.runner import JobRun
from equipoise.sim.jobs.work import Job


class UngatedJobRun(GatedJobRun):
    """A run in which the gate knows all jobs and refuses no start: the judge finds violations."""

    def _start(self, job: Job, hosts: int) -> float:
        self._gate.started(job, hosts_of(hosts))
        return JobRun._start(self, job, hosts)


@dataclass(frozen=True, slots=True)
class BatchScheduler:
    """A batch scheduler under test."""

    name: str
    about: str
    make: Callable[[JobGate, int], Policy]
    """Makes the policy for a gate and a number of hosts."""
    promise: str = ""
    """The policy whose promises it claims."""

    def run(self, trial: JobTrial) -> list[Job]:
        """Run a trial; return its jobs with what happened to them."""
        platform, jobs = trial.platform(), trial.workload()
        gate = JobGate(platform)
        policy = self.make(gate, len(platform.hosts))
        UngatedJobRun(platform, jobs, policy, gate).run()
        return jobs


class _BusyHosts(RuledInOrder):
    """Starts a job on the lowest hosts, busy or not, when it is alone in the queue."""

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        super().schedule(now_s, free, start)
        if len(self._waiting) == 1 and free.count and not self._waiting[0][2].constraints:
            job = self._waiting.pop()[2]
            start(job, lowest_bits(self._gate.all_hosts, job.hosts_requested))


class _IgnoresReservation(RuledEasy):
    """Backfills any job that fits, also if it delays the first waiting job."""

    def _reserve(self, first: Job) -> tuple[float, int]:
        return float("inf"), 0


_REMEMBERED: Final = 3


class _ForgetsFourthJob(RuledInOrder):
    """Forgets a job that arrives while three others wait."""

    def submit(self, job: Job) -> None:
        if len(self._waiting) < _REMEMBERED:
            super().submit(job)


class _NewestFirst(RuledInOrder):
    """Starts jobs of one length in the reverse order of arrival."""

    def submit(self, job: Job) -> None:
        self._count += 1
        self._waiting.append((job.expected_s, -self._count, job))
        self._waiting.sort(key=lambda entry: entry[:2])


class _BlindToRules:
    """A policy for jobs without constraints: it ignores those that jobs carry."""

    def __init__(self, plain: Policy) -> None:
        self._plain = plain

    def submit(self, job: Job) -> None:
        """Pass the job on."""
        self._plain.submit(job)

    def ended(self, job: Job) -> None:
        """Pass the end on."""
        self._plain.ended(job)

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Start jobs without a look at constraints."""
        self._plain.schedule(now_s, free, start)


def _ruled(name: str) -> Callable[[JobGate, int], Policy]:
    return lambda gate, hosts: RULED_POLICIES[name](gate)


def _entries() -> Iterable[BatchScheduler]:
    for name in RULED_POLICIES:
        yield BatchScheduler(
            f"jobs-{name}", f"our batch policy {name}, in process", _ruled(name), name
        )
    faulty: tuple[tuple[str, type[RuledInOrder] | type[RuledEasy], str], ...] = (
        ("busy", _BusyHosts, ""),
        ("hasty", _IgnoresReservation, "easy"),
        ("forgetful", _ForgetsFourthJob, "fcfs"),
        ("ties", _NewestFirst, "sjf"),
    )
    for name, kind, promise in faulty:
        about = (kind.__doc__ or "").strip().rstrip(".")
        yield BatchScheduler(f"jobs-faulty-{name}", f"faulty: {about}", _faulty(kind), promise)
    plain_policies: dict[str, Callable[[int], Policy]] = {
        "fcfs": Fcfs,
        "sjf": ShortestFirst,
        "easy": EasyBackfilling,
    }
    for name, plain in plain_policies.items():
        yield BatchScheduler(
            f"jobs-faulty-blind-{name}", f"faulty: {name} that ignores constraints", _blind(plain)
        )


def _faulty(kind: Callable[[JobGate], Policy]) -> Callable[[JobGate, int], Policy]:
    return lambda gate, hosts: kind(gate)


def _blind(kind: Callable[[int], Policy]) -> Callable[[JobGate, int], Policy]:
    return lambda gate, hosts: _BlindToRules(kind(hosts))


BATCH_SCHEDULERS: Final[Mapping[str, BatchScheduler]] = {
    scheduler.name: scheduler for scheduler in _entries()
}
"""The batch schedulers by name."""
