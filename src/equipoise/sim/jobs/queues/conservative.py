"""Conservative backfilling: every waiting job has a reservation.

When hosts become free early, each job in turn moves to the earliest hole that the reservations of
all others leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, nextafter
from typing import ClassVar

from equipoise.sim.jobs.host_set import FreeHosts, lowest_bits
from equipoise.sim.jobs.queues.compiled_reservations import CompiledReservations
from equipoise.sim.jobs.queues.profile import AvailabilityProfile
from equipoise.sim.jobs.queues.reservation_kernels import end_of
from equipoise.sim.jobs.queues.reservations import PlainReservations, Reservations
from equipoise.sim.jobs.work import Job

Start = Callable[[Job, int], float]


class ConservativeBackfilling:
    """Every waiting job has a reservation; a later job may start if it delays none of them."""

    compiled_from: ClassVar = 200
    """So many waiting jobs are worth the compiled kernels, which take most of a second to load."""
    plain_below: ClassVar = 50

    def __init__(self, hosts: int) -> None:
        profile = AvailabilityProfile(0.0, (1 << hosts) - 1)
        self._waiting: Reservations = PlainReservations(profile)
        self._hosts = hosts
        self._arrived: list[Job] = []
        self._running: dict[Job, tuple[float, int]] = {}
        self._ended: list[tuple[float, int]] = []
        """Expected ends and hosts of the jobs that have ended since the last call."""
        self._outdated = True
        """True if no job has a reservation, and the profile is to be made again for the next."""
        self._woke_hosts = False

    def submit(self, job: Job) -> None:
        """Append the job."""
        self._arrived.append(job)

    def ended(self, job: Job) -> None:
        """Give back the hosts of the job."""
        running = self._running.pop(job)
        if not self._outdated:
            self._ended.append(running)

    def renew(self, waiting: Iterable[Job], free: FreeHosts) -> None:
        """Wait for these jobs only, in this order; reserve again on the hosts in service."""
        del free
        self._arrived = list(waiting)
        self._outdated = True

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Move reservations forward, add those of new jobs; start those whose time is now."""
        if self._outdated or not self._waiting:
            self._outdated = True
            if self._arrived:
                self._start_fitting(now_s, free, start)
            if not self._arrived:
                return
            self._rebuild(now_s, free)
        self._choose_kind()
        self._waiting.advance(now_s)
        hosts_freed = bool(self._ended)
        if hosts_freed:
            for end_s, hosts in self._ended:
                self._waiting.give_back(now_s, end_s, hosts & free.available)
            self._ended = []
        due = self._waiting.due(now_s)
        # A job may hold hosts beyond its expected end that a reservation counts on.
        counted_on = self._waiting.free_now | (due.hosts if due is not None else 0)
        if counted_on & ~free.bits or (due is not None and due.ended):
            self._wait_again(now_s, free)
        elif hosts_freed or due is not None:
            for job, hosts, start_s in self._waiting.move(now_s, _first_choice(free)):
                self._begin(job, hosts, start_s, now_s, start)
        self._place_arrived(now_s, free, start)
        while self._woke_hosts:
            # A job that waits for its hosts to wake holds them longer than it had reserved.
            self._wait_again(now_s, free)
            self._place_arrived(now_s, free, start)

    def _start_fitting(self, now_s: float, free: FreeHosts, start: Start) -> None:
        """Start jobs up to the first that does not fit: no reservation limits them."""
        if free.asleep:
            return
        started = 0
        for job in self._arrived:
            if job.hosts_requested > free.count:
                break
            self._begin(job, lowest_bits(free.bits, job.hosts_requested), now_s, now_s, start)
            started += 1
        del self._arrived[:started]

    def _choose_kind(self) -> None:
        """Use the compiled kernels for a long queue, and plain Python for a short one."""
        count, waiting = len(self._waiting) + len(self._arrived), self._waiting
        if isinstance(waiting, PlainReservations):
            if count >= self.compiled_from:
                self._waiting = CompiledReservations.of(waiting, self._hosts)
        elif isinstance(waiting, CompiledReservations) and count < self.plain_below:
            self._waiting = waiting.to_plain()

    def _begin(self, job: Job, hosts: int, start_s: float, now_s: float, start: Start) -> None:
        begin_s = start(job, hosts)
        # A job that starts late, by rounding, keeps the end of its reservation.
        counted_s = begin_s if begin_s > now_s else start_s
        self._running[job] = end_of(counted_s, job.expected_s), hosts
        self._woke_hosts |= begin_s > now_s

    def _place_arrived(self, now_s: float, free: FreeHosts, start: Start) -> None:
        if not self._arrived:
            return
        for job in self._arrived:
            hosts = self._waiting.place(job, now_s, _first_choice(free))
            if hosts is not None:
                self._begin(job, hosts, now_s, now_s, start)
        self._arrived = []

    def _wait_again(self, now_s: float, free: FreeHosts) -> None:
        """Forget all reservations; the jobs keep their order."""
        self._arrived = [*self._waiting.jobs, *self._arrived]
        self._rebuild(now_s, free)

    def _rebuild(self, now_s: float, free: FreeHosts) -> None:
        ends: dict[float, int] = {}
        soon_s = nextafter(now_s, inf)
        for job, (end_s, hosts) in self._running.items():
            if end_s < soon_s:
                # An end that is overdue comes later than now; it gives back what is reserved here.
                self._running[job] = soon_s, hosts
                ends[soon_s] = ends.get(soon_s, 0) | hosts
            else:
                ends[end_s] = ends.get(end_s, 0) | hosts
        profile = AvailabilityProfile.of_ends(now_s, free.available, ends)
        self._waiting = PlainReservations(profile)
        self._choose_kind()
        self._ended = []
        self._outdated = self._woke_hosts = False


def _first_choice(free: FreeHosts) -> int | None:
    return free.bits & ~free.asleep if free.asleep else None
