"""Searches hosts for a job whose start must satisfy constraints.

The result is the set that comes first in the order of host numbers. Hosts that no constraint
distinguishes are interchangeable: if one of them fails at a place, all of them do. If all
constraints stay true when executors leave, a partial set that violates one is not completed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from equipoise.sim.jobs.host_set import hosts_of, lowest_bits
from equipoise.sim.jobs.rules.judge import JobJudge, Placement
from equipoise.sim.jobs.work import Job

EVALUATIONS_MAX: Final = 2_000
"""The number of sets that one search judges at most."""


@dataclass(frozen=True, slots=True)
class LaterStart:
    """A start that is promised: it must stay possible beside the job that is searched for."""

    job: Job
    hosts: Sequence[int]
    others: Placement


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A job that needs hosts out of the free ones, beside others."""

    job: Job
    free: int
    others: Placement
    later: tuple[LaterStart, ...] = ()
    hints: tuple[int, ...] = ()
    """Sets that were right in another state, tried when the search ends without a result."""


@dataclass(slots=True)
class HostSearch:
    """Finds sets of hosts on one platform."""

    judge: JobJudge
    evaluations_max: int = EVALUATIONS_MAX
    exhausted: int = 0
    """The number of searches that ended at the limit."""
    _kinds: dict[frozenset[Job], list[int]] = field(default_factory=dict)

    def find(self, request: HostRequest) -> int:
        """Return the first set of hosts that is right, a bit each; 0 if none is known."""
        count = request.job.hosts_requested
        if request.free.bit_count() < count:
            return 0
        lowest = lowest_bits(request.free, count)
        if self.accepts(request, lowest):
            return lowest
        ruled = self._ruled(request)
        search = _Descent(self, request, self._kinds_of(ruled), self.judge.is_closed(ruled))
        found = search.run(self.evaluations_max)
        if found or not search.is_exhausted:
            return found
        self.exhausted += 1
        for hint in request.hints:
            if hint & ~request.free == 0 and self.accepts(request, hint):
                return hint
        return 0

    def accepts(self, request: HostRequest, bits: int) -> bool:
        """Whether the job may start on these hosts, and every promised start stays possible."""
        job, hosts = request.job, hosts_of(bits)
        return self.judge.accepts(job, hosts, request.others) and all(
            self.judge.accepts(later.job, later.hosts, {**later.others, job: hosts})
            for later in request.later
        )

    def _ruled(self, request: HostRequest) -> frozenset[Job]:
        """Return the jobs whose constraints the start may violate."""
        jobs = {request.job, *request.others}
        for later in request.later:
            jobs.update((later.job, *later.others))
        return frozenset(job for job in jobs if job.constraints)

    def _kinds_of(self, ruled: frozenset[Job]) -> list[int]:
        """Return for each host the set of hosts that the constraints do not distinguish from it."""
        known = self._kinds.get(ruled)
        if known is None:
            keys = self.judge.host_kinds(ruled)
            members: dict[object, int] = {}
            for number, key in enumerate(keys):
                members[key] = members.get(key, 0) | 1 << number
            self._kinds.clear()  # the jobs of the next question are often the same
            known = self._kinds[ruled] = [members[key] for key in keys]
        return known


class _Descent:
    """One search: hosts in ascending order, each taken first and then left out with its kind."""

    def __init__(
        self, search: HostSearch, request: HostRequest, kinds: Sequence[int], closed: bool
    ) -> None:
        self._search = search
        self._request = request
        self._kinds = kinds
        self._closed = closed
        self._left = 0
        self.is_exhausted = False

    def run(self, evaluations_max: int) -> int:
        """Return the first right set, 0 if there is none or the limit is reached."""
        self._left = evaluations_max
        taken: list[tuple[int, int]] = []
        bits, skipped, place = 0, 0, 0
        needed = self._request.job.hosts_requested
        while True:
            rest = self._request.free & ~skipped & ~((1 << place) - 1)
            missing = needed - len(taken)
            if rest.bit_count() < missing:
                if not taken:
                    return 0
                number, skipped = taken.pop()
                bits &= ~(1 << number)
            else:
                accepted = self._accepted(bits, rest, missing)
                if self.is_exhausted:
                    return 0
                chosen = hosts_of(lowest_bits(rest, accepted) if accepted else 0)
                for host in chosen:
                    taken.append((host, skipped))
                    bits |= 1 << host
                if accepted == missing:
                    return bits
                rest &= ~bits
                number = (rest & -rest).bit_length() - 1
            # The host is wrong here, and so are all of its kind.
            skipped |= self._kinds[number]
            place = number + 1

    def _accepted(self, bits: int, rest: int, missing: int) -> int:
        """Return how many of the lowest hosts of the rest can be added; the next one cannot.

        Without closed constraints only a complete set is judged: all but its last host are added.
        """
        if not self._closed:
            return missing if self._accepts(bits | lowest_bits(rest, missing)) else missing - 1
        if self._accepts(bits | lowest_bits(rest, missing)):
            return missing
        low, high, step = 0, missing, 1
        while high - low > 1 and not self.is_exhausted:
            probe = min(low + step, high - 1)
            if self._accepts(bits | lowest_bits(rest, probe)):
                low, step = probe, step * 2
            else:
                high, step = probe, 1
        return low

    def _accepts(self, bits: int) -> bool:
        if self._left == 0:
            self.is_exhausted = True
            return False
        self._left -= 1
        return self._search.accepts(self._request, bits)
