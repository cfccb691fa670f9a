"""Built-in policies: FCFS, shortest job first, EASY and conservative backfilling.

Jobs receive the lowest numbers that are free for their whole expected time. A reservation names
its hosts, too, as in batsched, so that a backfilled job never runs on a reserved host.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from math import inf
from typing import Final, Protocol

from equipoise.sim.jobs.host_set import FreeHosts, lowest_bits
from equipoise.sim.jobs.queues.conservative import ConservativeBackfilling
from equipoise.sim.jobs.queues.waiting import WaitingJobs
from equipoise.sim.jobs.work import Job

Start = Callable[[Job, int], float]
"""Starts a job on a set of hosts (a bit each), which are no longer free from then on.

Returns when the job begins: later than now if it waits for hosts to wake.
"""


class Policy(Protocol):
    """Chooses which waiting jobs start."""

    def submit(self, job: Job) -> None:
        """A job arrives, which needs no more hosts than the platform has."""
        ...

    def ended(self, job: Job) -> None:
        """A job has ended and its hosts are free."""
        ...

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Start jobs; called once per instant after all arrivals and ends."""
        ...


class HostAwarePolicy(Policy, Protocol):
    """A policy for hosts that can become unavailable; ``free.available`` has the others."""

    def renew(self, waiting: Iterable[Job], free: FreeHosts) -> None:
        """Wait for these jobs only, in this order; each fits on the hosts in service."""
        ...


class Fcfs:
    """Starts jobs in the order of arrival; the first one that does not fit blocks the others."""

    def __init__(self, hosts: int) -> None:
        self._queue: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        """Append the job."""
        self._queue.append(job)

    def ended(self, job: Job) -> None:
        """Nothing to remember."""

    def renew(self, waiting: Iterable[Job], free: FreeHosts) -> None:
        """Wait for these jobs only, in this order."""
        del free
        self._queue = deque(waiting)

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Start jobs from the front."""
        queue = self._queue
        while queue and queue[0].hosts_requested <= free.count:
            job = queue.popleft()
            start(job, free.choose(job.hosts_requested, free.bits))


class ShortestFirst:
    """Starts the shortest waiting job first, by its expected time; it blocks longer ones."""

    def __init__(self, hosts: int) -> None:
        self._queue: list[tuple[float, int, Job]] = []
        self._count = 0

    def submit(self, job: Job) -> None:
        """Insert the job by its expected time; equal ones in the order of arrival."""
        self._count += 1
        heappush(self._queue, (job.expected_s, self._count, job))

    def ended(self, job: Job) -> None:
        """Nothing to remember."""

    def renew(self, waiting: Iterable[Job], free: FreeHosts) -> None:
        """Wait for these jobs only."""
        del free
        self._queue = []
        for job in waiting:
            self.submit(job)

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Start the shortest jobs."""
        queue = self._queue
        while queue and queue[0][2].hosts_requested <= free.count:
            job = heappop(queue)[2]
            start(job, free.choose(job.hosts_requested, free.bits))


class EasyBackfilling:
    """FCFS, but a later job may start if it does not delay the first waiting job."""

    def __init__(self, hosts: int) -> None:
        del hosts
        self._waiting = WaitingJobs()
        self._ends: list[tuple[float, int, Job]] = []
        """Running jobs by their expected end."""
        self._end_of: dict[Job, tuple[float, int]] = {}
        self._count = 0
        self._promise: tuple[float, int] | None = None
        """When the first waiting job starts at the latest, and how many hosts are left then."""
        self._reserved: int | None = None
        """The hosts of that promise, once a search needs them."""
        self._searched = 0
        """No job that arrived up to here fits, unless a job ends."""

    def submit(self, job: Job) -> None:
        """Append the job."""
        self._waiting.append(job)

    def ended(self, job: Job) -> None:
        """Forget the expected end of the job."""
        self._forget_promise()
        end_s, number = self._end_of.pop(job)
        del self._ends[bisect_left(self._ends, (end_s, number))]

    def renew(self, waiting: Iterable[Job], free: FreeHosts) -> None:
        """Wait for these jobs only, in this order; the hosts in service have changed."""
        del free
        self._waiting = WaitingJobs()
        for job in waiting:
            self._waiting.append(job)
        self._forget_promise()

    def _forget_promise(self) -> None:
        self._promise = self._reserved = None
        self._searched = 0

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Start jobs from the front, then backfill."""
        waiting = self._waiting
        first = waiting.first()
        while first is not None and first[1].hosts_requested <= free.count:
            arrival, job = first
            waiting.remove(arrival)
            self._run(job, free.choose(job.hosts_requested, free.bits), start)
            self._forget_promise()
            first = waiting.first()
        if first is not None and free.count and len(waiting) > 1:
            after = max(first[0], self._searched)
            if after < waiting.arrivals:
                self._backfill(first[1], after, now_s, free, start)

    def _run(self, job: Job, hosts: int, start: Start) -> None:
        self._count += 1
        end_s = start(job, hosts) + job.expected_s
        self._end_of[job] = end_s, self._count
        insort(self._ends, (end_s, self._count, job))

    def _backfill(
        self, first: Job, after: int, now_s: float, free: FreeHosts, start: Start
    ) -> None:
        waiting = self._waiting
        needed = first.hosts_requested
        shadow_s, spare = self._promise or self._find_promise(needed, free)
        # The index compares durations, whose rounding differs from that of the dates below.
        seconds = (shadow_s - now_s) * (1 + 1e-9)
        while free.count:
            # At most so many free hosts are not reserved; their exact number costs more to find.
            after = waiting.find(after, free.count, seconds, min(spare, free.count))
            if after < 0:
                break
            job = waiting[after]
            hosts = self._hosts_until(shadow_s, job, now_s, free)
            if not hosts:
                if job.hosts_requested > spare:
                    continue
                unreserved = free.bits & ~self._reserved_hosts(needed, shadow_s, free)
                if job.hosts_requested > unreserved.bit_count():
                    continue
                hosts = free.choose(job.hosts_requested, unreserved)
                spare -= job.hosts_requested
            waiting.remove(after)
            self._run(job, hosts, start)
            self._promise = shadow_s, spare
        self._searched = waiting.arrivals

    def _hosts_until(self, shadow_s: float, job: Job, now_s: float, free: FreeHosts) -> int:
        """Return hosts on which the job ends before the first waiting job needs them; or 0."""
        if now_s + job.expected_s > shadow_s:
            return 0
        hosts = free.choose(job.hosts_requested, free.bits)
        if hosts & free.asleep and now_s + free.delay_s(hosts) + job.expected_s > shadow_s:
            return 0
        return hosts

    def _find_promise(self, needed: int, free: FreeHosts) -> tuple[float, int]:
        shadow_s = inf
        count = free.count
        available = free.available
        in_service = available == free.everything
        for end_s, _, job in self._ends:
            if end_s > shadow_s:
                break  # all jobs with the same expected end free their hosts together
            if in_service:
                count += job.hosts_requested
            else:
                count += (job.host_bits & available).bit_count()
            if count >= needed:
                shadow_s = end_s
        self._promise = shadow_s, count - needed
        self._reserved = None
        return self._promise

    def _reserved_hosts(self, needed: int, shadow_s: float, free: FreeHosts) -> int:
        """Return the hosts of the first waiting job: the lowest that are free at the promise."""
        if self._reserved is None:
            hosts = free.bits
            for end_s, _, job in self._ends:
                if end_s > shadow_s:
                    break
                hosts |= job.host_bits
            self._reserved = lowest_bits(hosts & free.available, needed)
        return self._reserved


POLICIES: Final[Mapping[str, Callable[[int], HostAwarePolicy]]] = {
    "fcfs": Fcfs,
    "sjf": ShortestFirst,
    "easy": EasyBackfilling,
    "conservative": ConservativeBackfilling,
}
"""The policies by name; each is made with the number of hosts."""
