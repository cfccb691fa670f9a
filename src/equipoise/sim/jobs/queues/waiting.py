"""The waiting jobs of a policy that backfills, with an index for long queues.

Jobs of one width are in one lane, in the order of arrival. Each lane has a tree of the shortest
expected times, so that the next job that fits is found in logarithmic time: a pass over a queue of
100,000 jobs looks at a few nodes per width.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from math import inf
from sys import float_info
from typing import Final

from equipoise.sim.jobs.work import Job

_SMALLEST_LANE: Final = 8
_FOREVER: Final = float_info.max
"""The expected time of a job without one, so that only removed jobs have infinite leaves."""


class _Lane:
    """Waiting jobs of one width.

    ``shortest`` is a binary tree in one list: entry 1 is the root, the entries 2i and 2i + 1 are
    below entry i, and the leaves hold the expected times; a removed job has an infinite leaf.
    """

    __slots__ = ("arrivals", "capacity", "jobs", "shortest", "waiting", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.capacity = _SMALLEST_LANE
        self.waiting = 0
        self.arrivals: list[int] = []
        self.jobs: list[Job | None] = []
        self.shortest = [inf] * (2 * _SMALLEST_LANE)

    def append(self, arrival: int, job: Job) -> None:
        if len(self.arrivals) == self.capacity:
            self._rebuild()
        self._set(len(self.arrivals), min(job.expected_s, _FOREVER))
        self.arrivals.append(arrival)
        self.jobs.append(job)
        self.waiting += 1

    def _rebuild(self) -> None:
        """Forget removed jobs; double the tree if most jobs are still waiting."""
        kept = [
            (arrival, job)
            for arrival, job in zip(self.arrivals, self.jobs, strict=True)
            if job is not None
        ]
        if len(kept) * 2 > self.capacity:
            self.capacity *= 2
        self.arrivals = [arrival for arrival, _ in kept]
        self.jobs = [job for _, job in kept]
        tree = [inf] * (2 * self.capacity)
        for index, (_, job) in enumerate(kept, self.capacity):
            tree[index] = min(job.expected_s, _FOREVER)
        for node in range(self.capacity - 1, 0, -1):
            tree[node] = min(tree[2 * node], tree[2 * node + 1])
        self.shortest = tree

    def _set(self, index: int, expected_s: float) -> None:
        tree = self.shortest
        node = index + self.capacity
        tree[node] = expected_s
        while node > 1:
            other = tree[node ^ 1]
            node >>= 1
            expected_s = min(expected_s, other)
            if tree[node] == expected_s:
                return
            tree[node] = expected_s

    def remove(self, arrival: int) -> Job:
        index = bisect_left(self.arrivals, arrival)
        job = self.jobs[index]
        assert job is not None, "a job is removed once"
        self.jobs[index] = None
        self.waiting -= 1
        self._set(index, inf)
        return job

    def find(self, after: int, seconds: float) -> int:
        """Return the first arrival after one whose expected time is at most ``seconds``; or -1."""
        tree, capacity = self.shortest, self.capacity
        if tree[1] > seconds:
            return -1
        node = bisect_right(self.arrivals, after) + capacity
        if node >= 2 * capacity:
            return -1
        # Up to the first subtree on the right that has a job, then down to its first one.
        while tree[node] > seconds:
            while node & 1:
                node >>= 1
            if node == 0:
                return -1
            node += 1
        while node < capacity:
            node *= 2
            if tree[node] > seconds:
                node += 1
        return self.arrivals[node - capacity]


class WaitingJobs:
    """Jobs in the order of arrival.

    A job enters the index at the first search after its arrival: a job that starts at once never
    does.
    """

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._lanes: dict[int, _Lane] = {}
        self._widths: list[int] = []
        self.arrivals = 0
        self._indexed = 0
        """The last arrival that the index has seen."""
        self._first = 1

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs.values())

    def __getitem__(self, arrival: int) -> Job:
        return self._jobs[arrival]

    def append(self, job: Job) -> None:
        """Add a job; arrivals count from 1."""
        self.arrivals += 1
        self._jobs[self.arrivals] = job

    def _index(self) -> None:
        jobs, lanes = self._jobs, self._lanes
        for arrival in range(max(self._indexed + 1, self._first), self.arrivals + 1):
            job = jobs.get(arrival)
            if job is None:
                continue
            width = job.hosts_requested
            lane = lanes.get(width)
            if lane is None:
                lane = lanes[width] = _Lane(width)
                insort(self._widths, width)
            lane.append(arrival, job)
        self._indexed = self.arrivals

    def first(self) -> tuple[int, Job] | None:
        """Return the first job with its arrival; ``None`` if no job waits."""
        # The first key of a dictionary would be searched behind all that were removed before it.
        jobs, arrival = self._jobs, self._first
        if not jobs:
            return None
        while arrival not in jobs:
            arrival += 1
        self._first = arrival
        return arrival, jobs[arrival]

    def remove(self, arrival: int) -> Job:
        """Remove a job."""
        job = self._jobs.pop(arrival)
        if arrival <= self._indexed:
            width = job.hosts_requested
            lane = self._lanes[width]
            lane.remove(arrival)
            if not lane.waiting:
                # Empty lanes would make every search longer.
                del self._lanes[width]
                del self._widths[bisect_left(self._widths, width)]
        return job

    def find(self, after: int, width: int, seconds: float, spare: int) -> int:
        """Return the first arrival after one that fits now; -1 if none does.

        A job fits if it is no wider than ``spare``, or no wider than ``width`` and no longer
        than ``seconds``.
        """
        if self._indexed != self.arrivals:
            self._index()
        best = -1
        lanes, seconds = self._lanes, min(seconds, _FOREVER)
        for lane_width in self._widths:
            if lane_width > width:
                break
            lane = lanes[lane_width]
            limit_s = seconds if lane_width > spare else _FOREVER
            if lane.shortest[1] <= limit_s:
                found = lane.find(after, limit_s)
                if found > 0 and (best < 0 or found < best):
                    best = found
        return best
