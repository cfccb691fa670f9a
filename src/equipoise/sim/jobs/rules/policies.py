"""The built-in policies for workloads in which jobs carry constraints.

They are the policies of ``sim/jobs/policies.py``, with hosts that the gate chooses. Without
constraints both start every job at the same time on the same hosts. They keep plain lists, since a
judged start costs more than a pass over the queue.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping
from math import inf
from typing import Final

from equipoise.sim.jobs.host_set import FreeHosts, hosts_of
from equipoise.sim.jobs.policies import Policy, Start
from equipoise.sim.jobs.rules.gate import JobGate, later_start
from equipoise.sim.jobs.rules.search import LaterStart
from equipoise.sim.jobs.work import Job


class RuledInOrder:
    """FCFS: the first waiting job that finds no hosts blocks the others."""

    def __init__(self, gate: JobGate) -> None:
        self._gate = gate
        self._waiting: list[tuple[float, int, Job]] = []
        self._count = 0

    def submit(self, job: Job) -> None:
        """Add the job at its place in the order."""
        self._count += 1
        insort(self._waiting, (self._rank(job), self._count, job))

    def _rank(self, job: Job) -> float:
        return 0.0

    def ended(self, job: Job) -> None:
        """Nothing to remember."""

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Start jobs from the front."""
        while self._waiting:
            job = self._waiting[0][2]
            hosts = self._gate.choose(job, free.bits)
            if not hosts:
                return
            del self._waiting[0]
            start(job, hosts)


class RuledShortestFirst(RuledInOrder):
    """The shortest waiting job first; it blocks longer ones."""

    def _rank(self, job: Job) -> float:
        return job.expected_s


class RuledEasy:
    """EASY: a later job may start if the first waiting job keeps its reservation.

    The reservation is the earliest expected end at which hosts satisfy the constraints of the
    first job beside those that still run. A job that runs longer stays off its hosts and must
    leave the reserved start allowed, also by its own constraints.
    """

    def __init__(self, gate: JobGate) -> None:
        self._gate = gate
        self._waiting: list[Job] = []
        self._running: dict[Job, tuple[float, int]] = {}

    def submit(self, job: Job) -> None:
        """Append the job."""
        self._waiting.append(job)

    def ended(self, job: Job) -> None:
        """Forget the expected end of the job."""
        del self._running[job]

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Start jobs from the front, then backfill."""
        waiting = self._waiting
        while waiting and (hosts := self._gate.choose(waiting[0], free.bits)):
            self._run(waiting.pop(0), hosts, now_s, start)
        if not waiting or not free.count:
            return
        shadow_s, reserved = self._reserve(waiting[0])
        for job in waiting[1:]:
            if now_s + job.expected_s <= shadow_s:
                hosts = self._gate.choose(job, free.bits)
            else:
                kept = self._reserved_start(waiting[0], shadow_s, reserved)
                hosts = self._gate.choose(job, free.bits & ~reserved, later=[kept])
            if hosts:
                waiting.remove(job)
                self._run(job, hosts, now_s, start)

    def _run(self, job: Job, hosts: int, now_s: float, start: Start) -> None:
        self._running[job] = now_s + job.expected_s, hosts
        start(job, hosts)

    def _still_running(self, at_s: float) -> dict[Job, int]:
        return {job: hosts for job, (end_s, hosts) in self._running.items() if end_s > at_s}

    def _reserve(self, first: Job) -> tuple[float, int]:
        """Return when the first waiting job can start at the latest, and on which hosts."""
        for at_s in sorted({end_s for end_s, _ in self._running.values() if end_s < inf}):
            busy = self._still_running(at_s)
            free = self._gate.all_hosts
            for hosts in busy.values():
                free &= ~hosts
            found = self._gate.choose(first, free, others=_placement(busy))
            if found:
                return at_s, found
        return inf, 0

    def _reserved_start(self, first: Job, at_s: float, reserved: int) -> LaterStart:
        return later_start(first, reserved, _placement(self._still_running(at_s)))


class RuledConservative:
    """Conservative: every waiting job has a reservation that later jobs keep.

    A reservation must be allowed beside the jobs that run then, and must leave every reserved
    start during the job allowed.
    """

    def __init__(self, gate: JobGate) -> None:
        self._gate = gate
        self._reserved: dict[Job, tuple[float, int]] = {}
        self._arrived: list[Job] = []
        self._running: dict[Job, tuple[float, float, int]] = {}
        self._hosts_freed = False

    def submit(self, job: Job) -> None:
        """Append the job."""
        self._arrived.append(job)

    def ended(self, job: Job) -> None:
        """Forget the hosts of the job."""
        del self._running[job]
        self._hosts_freed = True

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Move reservations forward, add those of new jobs; start those whose time is now."""
        moved = list(self._reserved) if self._hosts_freed else []
        for job in [*moved, *self._arrived]:
            self._reserved.pop(job, None)
            start_s, hosts = self._find(job, now_s)
            if start_s <= now_s:
                self._running[job] = now_s, now_s + job.expected_s, hosts
                start(job, hosts)
            else:
                self._reserved[job] = start_s, hosts
        self._arrived, self._hosts_freed = [], False

    def _periods(self) -> dict[Job, tuple[float, float, int]]:
        planned = {
            job: (start_s, start_s + job.expected_s, hosts)
            for job, (start_s, hosts) in self._reserved.items()
            if start_s < inf
        }
        return self._running | planned

    def _find(self, job: Job, now_s: float) -> tuple[float, int]:
        """Return the earliest time at which the job can start, and the first hosts for it."""
        periods = self._periods()
        for at_s in sorted({now_s, *(end_s for _, end_s, _ in periods.values() if end_s < inf)}):
            end_s = at_s + job.expected_s
            free = self._gate.all_hosts
            for begin_s, until_s, hosts in periods.values():
                if begin_s < end_s and until_s > at_s:
                    free &= ~hosts
            if free.bit_count() < job.hosts_requested:
                continue
            later = [
                later_start(
                    waiting_job, hosts, _placement(_running_at(periods, begin_s, waiting_job))
                )
                for waiting_job, (begin_s, _, hosts) in periods.items()
                if at_s < begin_s < end_s
            ]
            others = _placement(_running_at(periods, at_s, job))
            found = self._gate.choose(job, free, others=others, later=later)
            if found:
                return at_s, found
        return inf, 0


def _running_at(
    periods: Mapping[Job, tuple[float, float, int]], at_s: float, without: Job
) -> dict[Job, int]:
    return {
        job: hosts
        for job, (begin_s, end_s, hosts) in periods.items()
        if begin_s <= at_s < end_s and job is not without
    }


def _placement(hosts: Mapping[Job, int]) -> dict[Job, tuple[int, ...]]:
    return {job: hosts_of(bits) for job, bits in hosts.items()}


RULED_POLICIES: Final[Mapping[str, Callable[[JobGate], Policy]]] = {
    "fcfs": RuledInOrder,
    "sjf": RuledShortestFirst,
    "easy": RuledEasy,
    "conservative": RuledConservative,
}
"""The policies by name; each is made with the gate."""
