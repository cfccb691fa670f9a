"""Reservations of a long queue, as arrays that compiled kernels search and change."""

from __future__ import annotations

from math import inf
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.capacity.kernels import KernelSet
from equipoise.sim.jobs.queues.profile import AvailabilityProfile
from equipoise.sim.jobs.queues.reservation_kernels import (
    COUNT,
    ENTRY_FUNCTIONS,
    INLINE_FUNCTIONS,
    NOW,
    RESERVATION_FUNCTIONS,
    ROW,
    SPARE,
    STEPS,
    STEPS_OF_CHANGE,
    Notes,
    Queue,
    Steps,
    end_of,
)
from equipoise.sim.jobs.queues.reservations import DueReservations, PlainReservations, Started
from equipoise.sim.jobs.work import Job

KERNELS: Final = KernelSet(
    *RESERVATION_FUNCTIONS,
    inline=INLINE_FUNCTIONS,
    entry_points=ENTRY_FUNCTIONS,
    allocates=False,
)
_BITS: Final = 64
_LIMITS: Final = 16


def _doubled(column: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((column, np.zeros_like(column)))


class CompiledReservations:
    """As ``PlainReservations``, with the same results."""

    def __init__(self, profile: AvailabilityProfile, hosts: int, arrivals: int) -> None:
        self._words = max(-(-hosts // _BITS), 1)
        self._kernels = KERNELS.fast
        times, free = profile.steps()
        size = len(times)
        capacity = 2 * size + 64
        self._times = np.full(capacity, inf)
        self._facts = np.zeros((4, capacity), dtype=np.int64)
        self._free = np.zeros((capacity, self._words), dtype=np.uint64)
        self._spare = np.arange(capacity)[::-1].copy()
        self._meta = np.array([size, capacity - size])
        self._times[:size] = times
        self._facts[COUNT, :size] = [hosts.bit_count() for hosts in free]
        self._facts[ROW, :size] = np.arange(size)
        for index, free_bits in enumerate(free):
            self._free[index] = self._to_words(free_bits)
        self._arrivals = arrivals
        self._jobs: list[Job] = []
        self._used = 0
        self._arrival = np.zeros(256, dtype=np.int64)
        self._start_s = np.zeros(256)
        self._seconds = np.zeros(256)
        self._widths = np.zeros(256, dtype=np.int64)
        self._gone = np.zeros(256, dtype=np.int64)
        self._reserved = np.zeros((256, self._words), dtype=np.uint64)
        self._left = 0
        self._notes = self._make_notes()

    @classmethod
    def of(cls, plain: PlainReservations, hosts: int) -> Self:
        """Return the same reservations."""
        made = cls(plain.profile, hosts, plain.arrivals)
        columns = plain.waiting
        for arrival in sorted(columns.jobs):
            start_s, reserved = columns.starts[arrival], columns.hosts[arrival]
            made._append(arrival, columns.jobs[arrival], start_s, made._to_words(reserved))
        for from_s, to_s, before in plain.freed:
            made._mark_freed(from_s, to_s, before)
        return made

    def to_plain(self) -> PlainReservations:
        """Return the same reservations."""
        size = self._meta[STEPS]
        free = [self._to_bits(self._free[row]) for row in self._facts[ROW, :size].tolist()]
        profile = AvailabilityProfile.of(self._times[:size].tolist(), free)
        plain = PlainReservations(profile, self._arrivals)
        for index in np.flatnonzero(self._gone[: self._used] == 0).tolist():
            plain.waiting.put(
                int(self._arrival[index]),
                self._jobs[index],
                float(self._start_s[index]),
                self._to_bits(self._reserved[index]),
            )
        ends = [*self._times[1:size].tolist(), inf]
        for index in np.flatnonzero(self._facts[NOW, :size]).tolist():
            before = int(self._facts[NOW, index])
            plain.freed.append((float(self._times[index]), ends[index], before))
        return plain

    def _to_words(self, hosts: int) -> NDArray[np.uint64]:
        return np.frombuffer(hosts.to_bytes(8 * self._words, "little"), dtype="<u8")

    def _to_bits(self, words: NDArray[np.uint64]) -> int:
        return int.from_bytes(words.astype("<u8").tobytes(), "little")

    def __len__(self) -> int:
        return self._left

    @property
    def jobs(self) -> list[Job]:
        """The waiting jobs by arrival."""
        return [
            job
            for job, gone in zip(self._jobs, self._gone[: self._used].tolist(), strict=True)
            if not gone
        ]

    @property
    def free_now(self) -> int:
        """The hosts that no job runs on and none has reserved for now."""
        return self._to_bits(self._free[self._facts[ROW, 0]])

    @property
    def _steps(self) -> Steps:
        return Steps(self._times, self._facts, self._free, self._spare, self._meta)

    def advance(self, now_s: float) -> None:
        """Forget what is before the present."""
        size, spare = int(self._meta[STEPS]), int(self._meta[SPARE])
        first = int(np.searchsorted(self._times[:size], now_s, side="right")) - 1
        if first > 0:
            self._spare[spare : spare + first] = self._facts[ROW, :first]
            self._meta[SPARE] += first
            self._meta[STEPS] -= first
            for column in (self._times, *self._facts):
                column[: size - first] = column[first:size].copy()
        self._times[0] = now_s

    def give_back(self, now_s: float, end_s: float, hosts: int) -> None:
        """A job has ended before it was expected to."""
        if end_s > now_s and hosts:
            self._make_room()
            before = self._arrivals + 1
            self._kernels.change(self._steps, now_s, end_s, self._to_words(hosts), before)

    def _mark_freed(self, from_s: float, to_s: float, before: int) -> None:
        """Let the jobs before an arrival try all steps that have a part of a period."""
        times, marks = self._times[: self._meta[STEPS]], self._facts[NOW, :]
        first = max(int(np.searchsorted(times, from_s, side="right")) - 1, 0)
        last = int(np.searchsorted(times, to_s))
        marks[first:last] = np.maximum(marks[first:last], before)

    def due(self, now_s: float) -> DueReservations | None:
        """Return the reservations that begin now; None without such ones."""
        used = self._used
        due = np.flatnonzero((self._start_s[:used] <= now_s) & (self._gone[:used] == 0))
        if not len(due):
            return None
        return DueReservations(
            self._to_bits(np.bitwise_or.reduce(self._reserved[due])),
            any(end_of(self._start_s[job], self._seconds[job]) <= now_s for job in due.tolist()),
        )

    def move(self, now_s: float, first_choice: int | None) -> Started:
        """Let each job in turn move to an earlier hole; return those that start."""
        self._set_first_choice(first_choice)
        used = self._used
        waiting = np.flatnonzero(self._gone[:used] == 0)
        queue = Queue(
            self._arrival[:used], self._start_s[:used], self._seconds[:used],
            self._widths[:used], self._reserved[:used], self._gone[:used],
        )  # fmt: skip
        job = 0
        while job < used:
            self._make_room()
            job = self._kernels.move(self._steps, queue, self._notes, job)
        started = waiting[self._gone[waiting] == 1].tolist()
        self._left -= len(started)
        found = [
            (self._jobs[index], self._to_bits(self._reserved[index]), float(self._start_s[index]))
            for index in started
        ]
        if 2 * self._left < self._used:
            self._forget_gone()
        return found

    def place(self, job: Job, now_s: float, first_choice: int | None) -> int | None:
        """Reserve for a new job; return its hosts if it starts now."""
        self._arrivals += 1
        self._make_room()
        self._set_first_choice(first_choice)
        notes = self._notes
        start_s = self._kernels.place(
            self._steps, notes, job.hosts_requested, float(job.expected_s)
        )
        if start_s <= now_s:
            return self._to_bits(notes.common)
        self._append(self._arrivals, job, start_s, notes.common)
        return None

    def _append(self, arrival: int, job: Job, start_s: float, reserved: NDArray[np.uint64]) -> None:
        index = self._used
        if index == len(self._arrival):
            for name in ("_arrival", "_start_s", "_seconds", "_widths", "_gone", "_reserved"):
                setattr(self, name, _doubled(getattr(self, name)))
            self._notes = self._make_notes()
        self._jobs.append(job)
        self._arrival[index] = arrival
        self._start_s[index] = start_s
        self._seconds[index] = job.expected_s
        self._widths[index] = job.hosts_requested
        self._reserved[index] = reserved
        self._gone[index] = 0
        self._used += 1
        self._left += 1

    def _make_notes(self) -> Notes:
        size, words = len(self._arrival), self._words
        return Notes(
            common=np.zeros(words, dtype=np.uint64),
            limits=np.zeros(_LIMITS),
            limit_marks=np.zeros(_LIMITS, dtype=np.int64),
            left=np.zeros((size, 2)),
            left_marks=np.zeros(size, dtype=np.int64),
            counts=np.zeros(3, dtype=np.int64),
            first_choice=np.zeros(words, dtype=np.uint64),
        )

    def _set_first_choice(self, hosts: int | None) -> None:
        self._notes.counts[:] = 0, 0, hosts is not None
        if hosts is not None:
            self._notes.first_choice[:] = self._to_words(hosts)

    def _make_room(self) -> None:
        """Make longer columns of the profile if steps are missing."""
        if self._meta[SPARE] >= STEPS_OF_CHANGE:
            return
        size = len(self._times)
        self._times = _doubled(self._times)
        self._facts = np.concatenate((self._facts, np.zeros_like(self._facts)), axis=1)
        self._free, self._spare = _doubled(self._free), _doubled(self._spare)
        spare = int(self._meta[SPARE])
        self._spare[spare : spare + size] = np.arange(size, 2 * size)
        self._meta[SPARE] += size

    def _forget_gone(self) -> None:
        """Forget jobs that have started."""
        kept = np.flatnonzero(self._gone[: self._used] == 0)
        count = len(kept)
        columns = (self._arrival, self._start_s, self._seconds, self._widths, self._reserved)
        for column in columns:
            column[:count] = column[kept]
        self._gone[:count] = 0
        self._jobs = [self._jobs[index] for index in kept.tolist()]
        self._used = count
