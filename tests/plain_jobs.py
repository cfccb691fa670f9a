"""A second, plain implementation of batch jobs under the built-in policies, by definition alone.

It keeps no index and no profile: every decision searches all jobs and all hosts. Times are whole
numbers, so that no rounding hides a difference. It imports nothing of ``equipoise.sim``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import inf


@dataclass(slots=True, eq=False)
class PlainJob:
    """A job that waits for a fixed time, and ends at its limit at the latest."""

    number: int
    submit_s: int
    width: int
    seconds: int
    limit_s: int | None
    start_s: float = -1
    hosts: tuple[int, ...] = ()

    @property
    def expected_s(self) -> int:
        """What a policy knows: the limit, or the true time without one."""
        return self.seconds if self.limit_s is None else self.limit_s

    @property
    def end_s(self) -> float:
        """The true end."""
        return self.start_s + min(self.seconds, self.expected_s)


PlainState = Mapping[PlainJob, Sequence[int]]
"""The hosts of the jobs that run at one moment."""


def always_allowed(state: PlainState) -> bool:
    """No job has a constraint."""
    del state
    return True


@dataclass(slots=True)
class PlainRun:
    """The state of one run, and the promises that the policy has given."""

    policy: str
    hosts: int
    jobs: Sequence[PlainJob]
    waiting: list[PlainJob] = field(default_factory=list)
    running: list[PlainJob] = field(default_factory=list)
    reserved: dict[PlainJob, tuple[float, tuple[int, ...]]] = field(default_factory=dict)
    promises: list[tuple[PlainJob, float]] = field(default_factory=list)
    """A job, and the time of its latest start as the policy computed it."""
    allowed: Callable[[PlainState], bool] = always_allowed
    """Whether the constraints of all jobs of a state hold."""

    def run(self) -> None:
        """Run until no job waits or runs."""
        fitting = [job for job in self.jobs if self._choose(job, range(self.hosts), {})]
        now_s: float = -1
        while True:
            times = [job.submit_s for job in fitting if job.submit_s > now_s]
            ends = [job.end_s for job in self.running]
            calls = [start_s for start_s, _ in self.reserved.values()]
            now_s = min([*times, *ends, *calls], default=inf)
            if now_s == inf:
                return
            ended = [job for job in self.running if job.end_s == now_s]
            self.running = [job for job in self.running if job.end_s > now_s]
            arrived = [job for job in fitting if job.submit_s == now_s]
            if self.policy == "conservative":
                self._conservative(now_s, arrived, hosts_freed=bool(ended))
            else:
                self.waiting += arrived
                self._start_in_order(now_s)
                if self.policy == "easy" and self.waiting:
                    self._backfill(now_s)

    def _choose(
        self,
        job: PlainJob,
        free: Sequence[int],
        others: PlainState,
        later: Sequence[PlainState] = (),
    ) -> tuple[int, ...]:
        """Return the first free hosts that are allowed, and that leave later states allowed."""
        for hosts in combinations(free, job.width):
            if all(self.allowed({**state, job: hosts}) for state in (others, *later)):
                return hosts
        return ()

    def _placed(self, *, after_s: float = -1) -> dict[PlainJob, tuple[int, ...]]:
        """Return the running jobs whose expected end is after a time."""
        return {job: job.hosts for job in self.running if job.start_s + job.expected_s > after_s}

    def _free(self) -> list[int]:
        busy = {host for job in self.running for host in job.hosts}
        return [host for host in range(self.hosts) if host not in busy]

    def _start(self, job: PlainJob, hosts: Sequence[int], now_s: float) -> None:
        job.start_s, job.hosts = now_s, tuple(hosts)
        self.running.append(job)

    def _start_in_order(self, now_s: float) -> None:
        while self.waiting:
            first = self.waiting[0]
            if self.policy == "sjf":
                first = min(self.waiting, key=lambda job: job.expected_s)
            hosts = self._choose(first, self._free(), self._placed())
            if not hosts:
                return
            self.waiting.remove(first)
            self._start(first, hosts, now_s)

    def _backfill(self, now_s: float) -> None:
        first, *others = self.waiting
        latest_s, kept = self._reservation_of_first(first)
        self.promises.append((first, latest_s))
        for job in others:
            free = self._free()
            spare = [host for host in free if host not in kept]
            if now_s + job.expected_s <= latest_s:
                chosen = self._choose(job, free, self._placed())
            else:
                then = {**self._placed(after_s=latest_s), first: kept}
                chosen = self._choose(job, spare, self._placed(), [then])
            if not chosen:
                continue
            self.waiting.remove(job)
            self._start(job, chosen, now_s)

    def _reservation_of_first(self, first: PlainJob) -> tuple[float, tuple[int, ...]]:
        for at_s in sorted(job.start_s + job.expected_s for job in self.running):
            later = self._placed(after_s=at_s)
            busy = {host for hosts in later.values() for host in hosts}
            free = [host for host in range(self.hosts) if host not in busy]
            chosen = self._choose(first, free, later)
            if chosen:
                return at_s, chosen
        raise AssertionError("every running job has an expected end")

    def _conservative(self, now_s: float, arrived: list[PlainJob], *, hosts_freed: bool) -> None:
        due = [job for job, (start_s, _) in self.reserved.items() if start_s <= now_s]
        moved = list(self.reserved) if hosts_freed or due else []
        for job in [*moved, *arrived]:
            before = self.reserved.pop(job, None)
            start_s, hosts = self._earliest(job, now_s)
            assert before is None or start_s <= before[0], "a reservation never moves back"
            self.promises.append((job, start_s))
            if start_s == now_s:
                self._start(job, hosts, now_s)
            else:
                self.reserved[job] = (start_s, hosts)

    def _periods(self) -> Iterator[tuple[PlainJob, float, float, tuple[int, ...]]]:
        for job in self.running:
            yield job, job.start_s, job.start_s + job.expected_s, job.hosts
        for job, (start_s, hosts) in self.reserved.items():
            yield job, start_s, start_s + job.expected_s, hosts

    def _earliest(self, job: PlainJob, now_s: float) -> tuple[float, tuple[int, ...]]:
        periods = list(self._periods())

        def state_at(at_s: float) -> PlainState:
            return {job: hosts for job, start_s, end_s, hosts in periods if start_s <= at_s < end_s}

        for at_s in sorted({now_s, *(end_s for _, _, end_s, _ in periods)}):
            during = [
                (start_s, hosts)
                for _, start_s, end_s, hosts in periods
                if start_s < at_s + job.expected_s and end_s > at_s
            ]
            busy = {host for _, hosts in during for host in hosts}
            free = [host for host in range(self.hosts) if host not in busy]
            later = [state_at(start_s) for start_s, _ in during if start_s > at_s]
            chosen = self._choose(job, free, state_at(at_s), later)
            if chosen:
                return at_s, chosen
        raise AssertionError("all hosts are free after the last period")
