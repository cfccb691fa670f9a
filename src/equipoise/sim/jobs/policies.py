"""Built-in policies: FCFS, shortest job first, EASY and conservative backfilling.

Jobs receive the lowest numbers that are free for their whole expected time. A reservation names
its hosts, too, as in batsched, so that a backfilled job never runs on a reserved host.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from math import inf
from typing import Final, Protocol

from equipoise.sim.jobs.host_set import FreeHosts, lowest_bits
from equipoise.sim.jobs.waiting import WaitingJobs
from equipoise.sim.jobs.work import Job

Start = Callable[[Job, int], None]
"""Starts a job on a set of hosts (a bit each), which are no longer free from then on."""


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


class Fcfs:
    """Starts jobs in the order of arrival; the first one that does not fit blocks the others."""

    def __init__(self, hosts: int) -> None:
        self._queue: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        """Append the job."""
        self._queue.append(job)

    def ended(self, job: Job) -> None:
        """Nothing to remember."""

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Start jobs from the front."""
        queue = self._queue
        while queue and queue[0].hosts_requested <= free.count:
            job = queue.popleft()
            start(job, lowest_bits(free.bits, job.hosts_requested))


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

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Start the shortest jobs."""
        queue = self._queue
        while queue and queue[0][2].hosts_requested <= free.count:
            job = heappop(queue)[2]
            start(job, lowest_bits(free.bits, job.hosts_requested))


class EasyBackfilling:
    """FCFS, but a later job may start if it does not delay the first waiting job."""

    def __init__(self, hosts: int) -> None:
        self._waiting = WaitingJobs()
        self._ends: list[tuple[float, int, Job]] = []
        """Running jobs by their expected end."""
        self._count = 0
        self._reserved: tuple[float, int] | None = None
        """When the first waiting job starts at the latest, and its hosts; until a job ends."""
        self._searched = 0
        """No job that arrived up to here fits, unless a job ends."""

    def submit(self, job: Job) -> None:
        """Append the job."""
        self._waiting.append(job)

    def ended(self, job: Job) -> None:
        """Forget the expected end of the job."""
        self._reserved = None
        self._searched = 0
        index = bisect_right(self._ends, (job.start_s + job.expected_s, -1, job))
        while self._ends[index][2] is not job:
            index += 1
        del self._ends[index]

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Start jobs from the front, then backfill."""
        waiting = self._waiting
        first = waiting.first()
        while first is not None and first[1].hosts_requested <= free.count:
            arrival, job = first
            waiting.remove(arrival)
            self._run(job, lowest_bits(free.bits, job.hosts_requested), now_s, start)
            first = waiting.first()
            self._searched = 0
        if first is not None and free.count and len(waiting) > 1:
            self._backfill(first, now_s, free, start)

    def _run(self, job: Job, hosts: int, now_s: float, start: Start) -> None:
        self._count += 1
        self._reserved = None
        insort(self._ends, (now_s + job.expected_s, self._count, job))
        start(job, hosts)

    def _backfill(
        self, first: tuple[int, Job], now_s: float, free: FreeHosts, start: Start
    ) -> None:
        waiting = self._waiting
        after = max(first[0], self._searched)
        if after == waiting.arrivals:
            return
        if self._reserved is None:
            self._reserved = self._reserve(first[1].hosts_requested, free.bits)
        shadow_s, reserved = self._reserved
        # The index compares durations, whose rounding differs from that of the dates below.
        seconds = (shadow_s - now_s) * (1 + 1e-9)
        spare = free.bits & ~reserved
        while free.count:
            after = waiting.find(after, free.count, seconds, spare.bit_count())
            if after < 0:
                break
            job = waiting[after]
            if now_s + job.expected_s <= shadow_s:
                hosts = lowest_bits(free.bits, job.hosts_requested)
            elif job.hosts_requested <= spare.bit_count():
                hosts = lowest_bits(spare, job.hosts_requested)
            else:
                continue
            waiting.remove(after)
            self._run(job, hosts, now_s, start)
            spare &= ~hosts
        self._searched = waiting.arrivals

    def _reserve(self, needed: int, hosts: int) -> tuple[float, int]:
        """Return when the first waiting job can start at the latest, and on which hosts."""
        shadow_s = inf
        count = hosts.bit_count()
        for end_s, _, job in self._ends:
            if end_s > shadow_s:
                break  # all jobs with the same expected end free their hosts together
            hosts |= job.host_bits
            count += job.hosts_requested
            if count >= needed:
                shadow_s = end_s
        return shadow_s, lowest_bits(hosts, needed)


class ConservativeBackfilling:
    """Every waiting job has a reservation; a later job may start if it delays none of them.

    When hosts become free early, each job in turn moves to the earliest hole that the reservations
    of all others leave.
    """

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts
        self._reserved: dict[Job, tuple[float, int]] = {}
        """Waiting jobs in the order of arrival, with the start and the hosts (a bit each)."""
        self._arrived: list[Job] = []
        self._running: dict[Job, tuple[float, int]] = {}
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
        profile = AvailabilityProfile(now_s, self._hosts)
        for end_s, hosts in self._running.values():
            profile.reserve(now_s, end_s, hosts)
        for job, (start_s, hosts) in self._reserved.items():
            profile.reserve(start_s, start_s + job.expected_s, hosts)
        moved = list(self._reserved) if self._hosts_freed else []
        for job in moved:
            start_s, hosts = self._reserved.pop(job)
            profile.release(start_s, start_s + job.expected_s, hosts)
            self._reserve(job, profile, now_s, start)
        for job in self._arrived:
            self._reserve(job, profile, now_s, start)
        self._arrived, self._hosts_freed = [], False

    def _reserve(self, job: Job, profile: AvailabilityProfile, now_s: float, start: Start) -> None:
        start_s, hosts = profile.find(job.hosts_requested, job.expected_s)
        profile.reserve(start_s, start_s + job.expected_s, hosts)
        if start_s <= now_s:
            self._running[job] = (now_s + job.expected_s, hosts)
            start(job, hosts)
        else:
            self._reserved[job] = (start_s, hosts)


class AvailabilityProfile:
    """The free hosts over time: steps, each with a bit per host."""

    def __init__(self, now_s: float, hosts: int) -> None:
        self._times = [now_s]
        self._free = [(1 << hosts) - 1]

    def find(self, count: int, seconds: float) -> tuple[float, int]:
        """Return the earliest time with so many free hosts for so long, and the lowest of them.

        The time is infinite if hosts never become free, because jobs without a limit hold them.
        """
        times, free = self._times, self._free
        for index, start_s in enumerate(times):
            common = free[index]
            end = index + 1
            while common.bit_count() >= count:
                if end == len(times) or times[end] >= start_s + seconds:
                    return start_s, lowest_bits(common, count)
                common &= free[end]
                end += 1
        return inf, 0

    def reserve(self, start_s: float, end_s: float, hosts: int) -> None:
        """Take hosts, a bit each, out of a period."""
        for index in self._steps(start_s, end_s):
            self._free[index] &= ~hosts

    def release(self, start_s: float, end_s: float, hosts: int) -> None:
        """Give back hosts that were reserved for this period."""
        for index in self._steps(start_s, end_s):
            self._free[index] |= hosts

    def _steps(self, start_s: float, end_s: float) -> range:
        if end_s <= start_s or start_s == inf:
            return range(0)
        first = self._cut(start_s)
        return range(first, self._cut(end_s) if end_s < inf else len(self._times))

    def _cut(self, at_s: float) -> int:
        index = bisect_right(self._times, at_s) - 1
        if self._times[index] == at_s:
            return index
        self._times.insert(index + 1, at_s)
        self._free.insert(index + 1, self._free[index])
        return index + 1


POLICIES: Final[Mapping[str, Callable[[int], Policy]]] = {
    "fcfs": Fcfs,
    "sjf": ShortestFirst,
    "easy": EasyBackfilling,
    "conservative": ConservativeBackfilling,
}
"""The policies by name; each is made with the number of hosts."""
