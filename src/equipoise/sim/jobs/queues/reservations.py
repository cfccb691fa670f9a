"""The reservations of waiting jobs: each job in turn moves to the earliest hole that others leave.

With a long queue only those jobs are tried that a freed period can help: a job fits nowhere else
than before, because other reservations only take hosts away.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import ClassVar, Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.sim.jobs.queues.profile import AvailabilityProfile
from equipoise.sim.jobs.queues.reservation_kernels import end_of
from equipoise.sim.jobs.work import Job

_NO_JOB: Final = 0
_T = TypeVar("_T", np.int64, np.float64)
FreedPeriod = tuple[float, float, int]
"""From when to when hosts became free, and the arrival before which no job has tried them yet."""
Started = list[tuple[Job, int, float]]
"""Jobs that start now, in order, with their hosts, and the starts of their reservations."""


class DueReservations(NamedTuple):
    """The reservations that begin now, or that a late message has left behind."""

    hosts: int
    ended: bool
    """True if one of them has already ended: other jobs may have reserved its hosts for now."""


class Reservations(Protocol):
    """The free hosts over time, and the waiting jobs with the hosts that they have reserved."""

    def __len__(self) -> int:
        """How many jobs wait."""
        ...

    @property
    def jobs(self) -> list[Job]:
        """The waiting jobs by arrival."""
        ...

    @property
    def free_now(self) -> int:
        """The hosts that no job runs on and none has reserved for now."""
        ...

    def advance(self, now_s: float) -> None:
        """Forget what is before the present."""
        ...

    def give_back(self, now_s: float, end_s: float, hosts: int) -> None:
        """A job has ended before it was expected to."""
        ...

    def due(self, now_s: float) -> DueReservations | None:
        """Return the reservations that begin now; None without such ones."""
        ...

    def move(self, now_s: float, first_choice: int | None) -> Started:
        """Let each job in turn move to an earlier hole; return those that start."""
        ...

    def place(self, job: Job, now_s: float, first_choice: int | None) -> int | None:
        """Reserve for a new job; return its hosts if it starts now.

        A start at once takes hosts of ``first_choice`` before others.
        """
        ...


def _moved(column: NDArray[_T], kept: NDArray[np.int64], size: int) -> NDArray[_T]:
    fresh = np.zeros(size, dtype=column.dtype)
    fresh[: len(kept)] = column[kept]
    return fresh


class _Columns:
    """The waiting jobs by arrival, and their reservations as columns."""

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        self.hosts: dict[int, int] = {}
        self.starts: dict[int, float] = {}
        """The reserved starts."""
        self._slots: dict[int, int] = {}
        self._used = 0
        self._arrivals = np.zeros(64, dtype=np.int64)
        self._start_s = np.zeros(64)
        self._seconds = np.zeros(64)
        self._widths = np.zeros(64, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.jobs)

    def put(self, arrival: int, job: Job, start_s: float, hosts: int) -> None:
        """Add a reservation, or move it."""
        slot = self._slots.get(arrival)
        if slot is None:
            if self._used == len(self._arrivals):
                self._make_room()
            slot = self._slots[arrival] = self._used
            self._used += 1
            self.jobs[arrival] = job
            self._arrivals[slot] = arrival
            self._seconds[slot] = job.expected_s
            self._widths[slot] = job.hosts_requested
        self._start_s[slot] = self.starts[arrival] = start_s
        self.hosts[arrival] = hosts

    def remove(self, arrival: int) -> None:
        """Remove a job that starts."""
        self._arrivals[self._slots.pop(arrival)] = _NO_JOB
        del self.jobs[arrival], self.hosts[arrival], self.starts[arrival]

    def _make_room(self) -> None:
        """Forget jobs that are gone; double the columns if most are still waiting."""
        kept = np.flatnonzero(self._arrivals[: self._used])
        size = len(self._arrivals) * (2 if 2 * len(kept) > len(self._arrivals) else 1)
        self._arrivals = _moved(self._arrivals, kept, size)
        self._start_s = _moved(self._start_s, kept, size)
        self._seconds = _moved(self._seconds, kept, size)
        self._widths = _moved(self._widths, kept, size)
        self._used = len(kept)
        self._slots = {
            int(arrival): slot for slot, arrival in enumerate(self._arrivals[: len(kept)])
        }

    def due(self, now_s: float) -> list[int]:
        """Return the jobs whose reservation begins now."""
        return [arrival for arrival, start_s in self.starts.items() if start_s <= now_s]

    def helped_by(
        self, profile: AvailabilityProfile, period: tuple[float, float], after: int, before: float
    ) -> list[int]:
        """Return the jobs between two arrivals that may move because hosts are free in a period."""
        from_s, to_s = period
        used = self._used
        arrivals, seconds = self._arrivals[:used], self._seconds[:used]
        start_s, widths = self._start_s[:used], self._widths[:used]
        mask = (arrivals > after) & (arrivals < before) & (arrivals != _NO_JOB)
        mask &= (start_s + seconds > from_s) | (start_s >= from_s)
        # Its own reservation makes room for a job that moves by less than its length.
        near = mask & (start_s < to_s + seconds)
        far = mask & ~near & (widths <= profile.most_hosts(from_s, to_s))
        chosen = near
        for width in np.unique(widths[far]).tolist():
            longest_s = profile.longest_s(width, from_s, to_s)
            # The lengths of periods are rounded, and those of jobs are not.
            chosen = chosen | (far & (widths == width) & (seconds <= longest_s * (1 + 1e-9) + 1e-9))
        return [int(arrival) for arrival in arrivals[chosen]]


class PlainReservations:
    """Reservations over an availability profile, for queues of up to some hundred jobs."""

    few_jobs: ClassVar = 24
    """With so few waiting jobs all are tried, which costs less than to find those to try."""

    def __init__(self, profile: AvailabilityProfile, arrivals: int = 0) -> None:
        self.profile = profile
        self.waiting = _Columns()
        self.arrivals = arrivals
        self.freed: list[FreedPeriod] = []

    def __len__(self) -> int:
        return len(self.waiting.jobs)

    @property
    def jobs(self) -> list[Job]:
        """The waiting jobs by arrival."""
        waiting = self.waiting.jobs
        return [waiting[arrival] for arrival in sorted(waiting)]

    @property
    def free_now(self) -> int:
        """The hosts that no job runs on and none has reserved for now."""
        return self.profile.free_now

    def advance(self, now_s: float) -> None:
        """Forget what is before the present."""
        self.profile.advance(now_s)

    def give_back(self, now_s: float, end_s: float, hosts: int) -> None:
        """A job has ended before it was expected to."""
        if end_s > now_s and hosts:
            self.profile.release(now_s, end_s, hosts)
        if len(self) > self.few_jobs:
            self.freed.append((now_s, end_s, self.arrivals + 1))

    def due(self, now_s: float) -> DueReservations | None:
        """Return the reservations that begin now; None without such ones."""
        waiting = self.waiting
        due = waiting.due(now_s)
        if not due:
            return None
        hosts, ended = 0, False
        for arrival in due:
            hosts |= waiting.hosts[arrival]
            ended |= end_of(waiting.starts[arrival], waiting.jobs[arrival].expected_s) <= now_s
        return DueReservations(hosts, ended)

    def move(self, now_s: float, first_choice: int | None) -> Started:
        """Let each job in turn move to an earlier hole; return those that start."""
        waiting = self.waiting
        started: Started = []
        if len(waiting) <= self.few_jobs:
            self.freed = []
            for arrival in list(waiting.jobs):
                self._try(arrival, now_s, first_choice, started)
            return started
        todo = set(waiting.due(now_s))
        for from_s, to_s, before in self.freed:
            if to_s > now_s:
                period = max(from_s, now_s), to_s
                todo.update(waiting.helped_by(self.profile, period, 0, before))
        self.freed = []
        order = list(todo)
        heapify(order)
        while order:
            arrival = heappop(order)
            left = self._try(arrival, now_s, first_choice, started)
            if left is None:
                continue
            self.freed.append((*left, arrival))
            for other in waiting.helped_by(self.profile, left, arrival, inf):
                if other not in todo:
                    todo.add(other)
                    heappush(order, other)
        return started

    def _try(
        self, arrival: int, now_s: float, first_choice: int | None, started: Started
    ) -> tuple[float, float] | None:
        """Reserve again for a job; return the period that it has left, if it has moved."""
        waiting = self.waiting
        job, before = waiting.jobs[arrival], waiting.hosts[arrival]
        before_s = waiting.starts[arrival]
        end_s = end_of(before_s, job.expected_s)
        if now_s < before_s < inf:
            found = self.profile.find_instead(before_s, end_s, before, job.expected_s, first_choice)
            if found is None:
                return None
            start_s, hosts = found
        else:
            self.profile.release(before_s, end_s, before)
            start_s, hosts = self.profile.find(job.hosts_requested, job.expected_s, first_choice)
            if before_s <= now_s < start_s:
                # A message came so late, by rounding, that the next reservation is in the way.
                start_s, hosts = before_s, before
        self.profile.reserve(start_s, end_of(start_s, job.expected_s), hosts)
        if start_s <= now_s:
            waiting.remove(arrival)
            started.append((job, hosts, start_s))
        else:
            waiting.put(arrival, job, start_s, hosts)
        if (start_s, hosts) == (before_s, before):
            return None
        return (before_s, end_s) if before else None

    def place(self, job: Job, now_s: float, first_choice: int | None) -> int | None:
        """Reserve for a new job; return its hosts if it starts now."""
        self.arrivals += 1
        start_s, hosts = self.profile.find(job.hosts_requested, job.expected_s, first_choice)
        self.profile.reserve(start_s, end_of(start_s, job.expected_s), hosts)
        if start_s <= now_s:
            return hosts
        self.waiting.put(self.arrivals, job, start_s, hosts)
        return None
