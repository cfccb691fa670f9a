"""The free hosts over time, as steps between reservations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from math import inf
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.sim.jobs.host_set import lowest_bits

_FEW_STEPS: Final = 48
"""A plain loop over so few steps is faster than a search in arrays."""
_ROUNDING: Final = 1e-9
"""The arrays compare lengths, the loop compares dates; their rounding differs by less."""


class AvailabilityProfile:
    """Steps, each with a bit per host that is free from its time to the time of the next step.

    For many steps, the number of free hosts of each is in an array beside them: it finds the few
    places that have enough hosts for long enough, and only those are searched bit by bit.
    """

    def __init__(self, now_s: float, hosts: int) -> None:
        self._times = [now_s]
        self._free = [hosts]
        self._has_arrays = False
        self._at_s = np.zeros(0)
        self._counts = np.zeros(0, dtype=np.int64)

    @classmethod
    def of(cls, times: list[float], free: list[int]) -> Self:
        """Return the profile of these steps."""
        made = cls(times[0], free[0])
        made._times, made._free = times, free
        return made

    @classmethod
    def of_ends(cls, now_s: float, hosts: int, ends: Mapping[float, int]) -> Self:
        """Return the profile of these hosts if some of them are busy until some later times."""
        busy = 0
        for until in ends.values():
            busy |= until
        times, free = [now_s], [hosts & ~busy]
        for end_s in sorted(ends):
            if end_s < inf:
                times.append(end_s)
                free.append(free[-1] | (ends[end_s] & hosts))
        return cls.of(times, free)

    def steps(self) -> tuple[list[float], list[int]]:
        """Return when each step begins, and its free hosts."""
        return self._times, self._free

    def __len__(self) -> int:
        return len(self._times)

    @property
    def now_s(self) -> float:
        """The time at which the profile begins."""
        return self._times[0]

    @property
    def free_now(self) -> int:
        """The hosts that are free at the start of the profile."""
        return self._free[0]

    def advance(self, now_s: float) -> None:
        """Forget what is before the present."""
        first = bisect_right(self._times, now_s) - 1
        if first > 0:
            left = len(self._times) - first
            del self._times[:first], self._free[:first]
            if self._has_arrays:
                self._at_s[:left] = self._at_s[first : first + left]
                self._counts[:left] = self._counts[first : first + left]
        self._times[0] = now_s
        if self._has_arrays:
            self._at_s[0] = now_s
            # They cost more than they save while there are few steps.
            self._has_arrays = 2 * len(self._times) > _FEW_STEPS

    def find(
        self, count: int, seconds: float, first_choice: int | None = None
    ) -> tuple[float, int]:
        """Return the earliest time with so many free hosts for so long, and the lowest of them.

        A start at once takes hosts of ``first_choice`` before others. The time is infinite if
        hosts never become free, because jobs without a limit hold them.
        """
        if len(self._times) <= _FEW_STEPS:
            return self._search(0, len(self._times), count, seconds, first_choice)
        for first, end in self._long_enough(count, seconds):
            start_s, hosts = self._search(first, end, count, seconds, first_choice)
            if start_s != inf:
                return start_s, hosts
        return inf, 0

    def _search(
        self, first: int, last: int, count: int, seconds: float, first_choice: int | None
    ) -> tuple[float, int]:
        times, free = self._times, self._free
        size = len(times)
        index = first
        while index < last:
            common = free[index]
            if common.bit_count() < count:
                index += 1
                continue
            start_s = times[index]
            until_s = start_s + seconds
            end = index + 1
            while end < size and times[end] < until_s:
                common &= free[end]
                if common.bit_count() < count:
                    break
                end += 1
            else:
                if index == 0 and first_choice is not None:
                    preferred = common & first_choice
                    if preferred.bit_count() >= count:
                        common = preferred
                return start_s, lowest_bits(common, count)
            # Every later start up to the step that failed includes it; go on with the first one
            # that has enough hosts in common with it.
            index = end
            common = free[index]
            if common.bit_count() < count:
                index += 1
                continue
            while (common := common & free[index - 1]).bit_count() >= count:
                index -= 1
        return inf, 0

    def _long_enough(self, count: int, seconds: float) -> list[tuple[int, int]]:
        """Return the runs of steps with enough hosts that are long enough, in order."""
        first, end = self._runs(count)
        lengths = self._ends(end) - self._at_s[first]
        kept = lengths >= seconds * (1 - _ROUNDING) - _ROUNDING
        return list(zip(first[kept].tolist(), end[kept].tolist(), strict=True))

    def _runs(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first step of each run of steps with so many hosts, and the one after it."""
        if not self._has_arrays:
            self._make_arrays()
        size = len(self._times)
        few = np.flatnonzero(self._counts[:size] < count)
        first = np.concatenate(([0], few + 1))
        end = np.concatenate((few, [size]))
        real = first < end
        return first[real], end[real]

    def _make_arrays(self) -> None:
        rest = len(self._times)
        counts = [hosts.bit_count() for hosts in self._free]
        self._at_s = np.concatenate((self._times, np.full(rest, inf)))
        self._counts = np.concatenate((counts, np.zeros(rest, dtype=np.int64)))
        self._has_arrays = True

    def _ends(self, end: NDArray[np.int64]) -> NDArray[np.float64]:
        size = len(self._times)
        at_s = self._at_s[np.minimum(end, size - 1)]
        return np.where(end < size, at_s, inf)

    def longest_s(self, count: int, start_s: float, end_s: float) -> float:
        """Return the length of the longest run with so many hosts that touches a period."""
        first, end = self._runs(count)
        ends = self._ends(end)
        starts = self._at_s[first]
        touching = (starts < end_s) & (ends > start_s)
        if not touching.any():
            return -inf
        return float((ends - starts)[touching].max())

    def most_hosts(self, start_s: float, end_s: float) -> int:
        """Return the largest number of free hosts at any time of a period."""
        first = max(bisect_right(self._times, start_s) - 1, 0)
        last = bisect_right(self._times, end_s)
        return max(hosts.bit_count() for hosts in self._free[first : max(last, first + 1)])

    def reserve(self, start_s: float, end_s: float, hosts: int) -> None:
        """Take free hosts, a bit each, out of a period."""
        self._take(*self._steps(start_s, end_s), hosts)

    def release(self, start_s: float, end_s: float, hosts: int) -> None:
        """Give back hosts that were reserved for this period."""
        first, last = self._steps(start_s, end_s)
        self._give(first, last, hosts)
        self._join_around(first, last)

    def find_instead(
        self, start_s: float, end_s: float, hosts: int, seconds: float, first_choice: int | None
    ) -> tuple[float, int] | None:
        """Give back hosts and find an earlier start or lower hosts; None if there are none.

        Without them, the reservation stays.
        """
        first, last = self._steps(start_s, end_s)
        self._give(first, last, hosts)
        found = self.find(hosts.bit_count(), seconds, first_choice)
        if found == (start_s, hosts):
            self._take(first, last, hosts)
            return None
        self._join_around(first, last)
        return found

    def _take(self, first: int, last: int, hosts: int) -> None:
        free, others = self._free, ~hosts
        for index in range(first, last):
            free[index] &= others
        if self._has_arrays:
            self._counts[first:last] -= hosts.bit_count()

    def _give(self, first: int, last: int, hosts: int) -> None:
        free = self._free
        for index in range(first, last):
            free[index] |= hosts
        if self._has_arrays:
            self._counts[first:last] += hosts.bit_count()

    def _join_around(self, first: int, last: int) -> None:
        free = self._free
        # Steps that no reservation divides any more become one, so that moves leave no trace.
        for index in (last, first):
            if 0 < index < len(free) and free[index] == free[index - 1]:
                self._join(index)

    def _join(self, index: int) -> None:
        size = len(self._times)
        del self._times[index], self._free[index]
        if self._has_arrays:
            self._at_s[index : size - 1] = self._at_s[index + 1 : size]
            self._counts[index : size - 1] = self._counts[index + 1 : size]

    def _steps(self, start_s: float, end_s: float) -> tuple[int, int]:
        start_s = max(start_s, self._times[0])
        if end_s <= start_s or start_s == inf:
            return 0, 0
        first = self._cut(start_s)
        return first, self._cut(end_s) if end_s < inf else len(self._times)

    def _cut(self, at_s: float) -> int:
        times = self._times
        index = bisect_right(times, at_s) - 1
        if times[index] == at_s:
            return index
        index += 1
        if self._has_arrays:
            size = len(times)
            if size == len(self._at_s):
                self._at_s = np.concatenate((self._at_s, np.full(size, inf)))
                self._counts = np.concatenate((self._counts, np.zeros(size, dtype=np.int64)))
            self._at_s[index + 1 : size + 1] = self._at_s[index:size]
            self._counts[index + 1 : size + 1] = self._counts[index:size]
            self._at_s[index] = at_s
            self._counts[index] = self._counts[index - 1]
        times.insert(index, at_s)
        self._free.insert(index, self._free[index - 1])
        return index
