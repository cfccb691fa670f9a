"""Live migration by pre-copy, as a hypervisor does it.

The memory of the VM is copied while it runs; what it has written meanwhile is copied again, round
after round, until the rest is so little that the VM can be stopped for it. Copies share the links
of their hosts evenly, so each copy gets slower or faster when another one starts or ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.story.physics import MigrationPhysics

MIB_PER_MEGABIT = 1_000_000 / 8 / 1024 / 1024
CONVERGES = 0.95
"""A round must be shorter than this part of the one before, or going on is no use."""


@dataclass(slots=True, kw_only=True)
class Copy:
    """A VM on its way."""

    step: StepId
    attempt: int
    vm: VmId
    source: HostId
    target: HostId
    memory_mib: float
    dirty_mib_per_s: float = 0.0
    """What it writes while it runs ..."""
    dirty_mib_max: float = 0.0
    """... and the most it can have written anew in one round."""
    speed: float = 1.0
    """A slow copy gets only a part of its share of the links."""
    fails_at_mib: float | None = None
    """It breaks once so much of the first round is left."""
    taken_mib: float = 0.0
    """What it fills on the target meanwhile."""
    round: int = 0
    """0 is the first full copy."""
    round_mib: float = 0.0
    """What this round has to copy in all, ..."""
    left_mib: float = 0.0
    """... what is left of it, ..."""
    written_mib: float = 0.0
    """... and what the next one will have to."""
    stopped: bool = False
    switch_ms: float = 0.0
    """What is left of the switch from one host to the other, once all is copied."""
    rate: float = 0.0
    """MiB per millisecond, now."""
    since_ms: int = 0
    turn: int = 0
    """Raised with every change; what was planned in an earlier turn is void."""

    def __post_init__(self) -> None:
        self.round_mib = self.left_mib = self.memory_mib

    def go_on(self, now_ms: int) -> None:
        """Copy on, at the rate it has had."""
        passed = now_ms - self.since_ms
        self.since_ms = now_ms
        copied = self.rate * passed
        if self.stopped and copied > self.left_mib:
            self.switch_ms -= passed - self.left_mib / self.rate
        self.left_mib = max(0.0, self.left_mib - copied)
        if not self.stopped:
            written = self.written_mib + self.dirty_mib_per_s * passed / 1000
            self.written_mib = min(self.dirty_mib_max, written)

    def wait_ms(self) -> int:
        """How long until something happens to it: a round ends, it breaks, or it has arrived."""
        goal = self.fails_at_mib if self.round == 0 and self.fails_at_mib is not None else 0.0
        copying_ms = max(0.0, self.left_mib - goal) / self.rate
        return max(1, ceil(copying_ms + (self.switch_ms if self.stopped else 0.0)))

    def next_round(self, physics: MigrationPhysics) -> None:
        """A round has ended: go on with what was written meanwhile, or stop the VM for the rest."""
        rest, before = self.written_mib, self.round_mib
        self.round += 1
        self.round_mib = self.left_mib = rest
        self.written_mib = 0.0
        short = rest <= self.rate * physics.downtime_ms_max
        self.stopped = short or self.round >= physics.rounds_max or rest >= CONVERGES * before
        self.switch_ms = physics.switch_ms

    @property
    def is_broken(self) -> bool:
        """Whether it has come to where it breaks."""
        if self.round or self.fails_at_mib is None:
            return False
        return self.left_mib <= self.fails_at_mib + self.rate


class Links:
    """The copies that are under way, and those that wait because their hosts have enough to do."""

    def __init__(self, physics: MigrationPhysics) -> None:
        self.physics = physics
        self.speed = 1.0
        """What part of their speed the links have now."""
        self.copies: dict[StepId, Copy] = {}
        self._waiting: dict[StepId, Copy] = {}
        self._at: dict[HostId, dict[StepId, Copy]] = {}

    def add(self, copy: Copy, now_ms: int) -> list[Copy]:
        """Begin a copy, or let it wait. Gives all copies that have begun or changed their speed."""
        self._waiting[copy.step] = copy
        return self._admit(now_ms)

    def drop(self, step: StepId, now_ms: int) -> list[Copy]:
        """A copy has ended, or is broken off."""
        self._waiting.pop(step, None)
        copy = self.copies.pop(step, None)
        if copy is None:
            return []
        copy.turn += 1
        for host in (copy.source, copy.target):
            del self._at[host][step]
        began = self._admit(now_ms)
        return [*began, *self._retime((copy.source, copy.target), now_ms, began)]

    def set_speed(self, speed: float, now_ms: int) -> list[Copy]:
        """All links become slower or faster."""
        self.speed = speed
        return self._retime(tuple(self._at), now_ms, [])

    def _admit(self, now_ms: int) -> list[Copy]:
        """Begin, in their order, the copies whose two hosts have a place for one more."""
        changed: dict[StepId, Copy] = {}
        for copy in list(self._waiting.values()):
            ends = (copy.source, copy.target)
            if any(len(self._at.get(one, ())) >= self.physics.per_host_max for one in ends):
                continue
            del self._waiting[copy.step]
            copy.since_ms = now_ms
            self.copies[copy.step] = copy
            for host in ends:
                self._at.setdefault(host, {})[copy.step] = copy
            changed |= {one.step: one for one in self._retime(ends, now_ms, [])}
        return list(changed.values())

    def _retime(self, hosts: Iterable[HostId], now_ms: int, done: list[Copy]) -> list[Copy]:
        """Let the copies at these hosts go on to now, and give them their new speeds."""
        found = {step: copy for host in hosts for step, copy in self._at.get(host, {}).items()}
        changed = [copy for step, copy in found.items() if copy not in done]
        link = self.physics.link_mbps * MIB_PER_MEGABIT / 1000 * self.speed
        for copy in changed:
            copy.go_on(now_ms)
            crowd = max(len(self._at[copy.source]), len(self._at[copy.target]))
            copy.rate = link / crowd * copy.speed
            copy.turn += 1
        return changed
