"""A live migration once more, for ``plain_world``: copied round by round, then stopped."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from equipoise.model.action import Migrate
from equipoise.model.quantity import HostId
from equipoise.model.story.physics import MigrationPhysics

HAIR_MS = 1e-6
"""What a time may exceed a whole millisecond by and still not be rounded up to the next."""


@dataclass(slots=True)
class Copy:
    """A migration that waits, is being copied, or is stopped for the last round."""

    go: Migrate
    physics: MigrationPhysics
    active_mib: float = 0
    """Its active memory when the copying began, which the target must have room for."""
    used_mhz: float = 0
    """What it used when the copying began: how fast it writes follows from that."""
    begun: bool = False
    stopped: bool = False
    rounds: int = 0
    round_mib: float = 0
    left_mib: float = 0
    left_switch_ms: float = 0
    since_ms: int = 0
    is_new: bool = True
    """Whether this round has just begun."""
    rate: float = 0
    due_ms: int = 0

    def touches(self, host: HostId) -> bool:
        """Whether it takes something from a host."""
        return self.begun and host in (self.go.source, self.go.target)

    def begin(self, now_ms: int, size_mib: float, active_mib: float, used_mhz: float) -> None:
        """Copy all there is."""
        self.begun, self.since_ms = True, now_ms
        self.round_mib = self.left_mib = size_mib
        self.active_mib, self.used_mhz = active_mib, used_mhz

    def set_rate(self, now_ms: int, most_copies: int) -> None:
        """Share the link with others; only if that changes the end of the round does."""
        rate = self.physics.link_mbps * 10**6 / 8 / 2**20 / most_copies
        if rate != self.rate or self.is_new:
            self.rate, self.is_new = rate, False
            more_ms = 1000 * self.left_mib / rate + self.left_switch_ms
            self.due_ms = now_ms + max(1, ceil(more_ms - HAIR_MS))

    def progress(self, passed_ms: float) -> None:
        """Copy for a while."""
        needed_ms = 1000 * self.left_mib / self.rate
        self.left_mib = max(0.0, self.left_mib - self.rate * passed_ms / 1000)
        over_ms = max(0.0, passed_ms - needed_ms)
        self.left_switch_ms = max(0.0, self.left_switch_ms - over_ms)

    def end_round(self, now_ms: int) -> None:
        """What was written meanwhile is the next round; perhaps it is the last."""
        passed_s = (now_ms - self.since_ms) / 1000
        written = self.physics.dirty_mib_per_ghz * self.used_mhz / 1000 * passed_s
        following = min(written, self.active_mib * self.physics.dirty_pct_max / 100)
        self.rounds += 1
        short = 1000 * following / self.rate <= self.physics.downtime_ms_max
        many = self.rounds >= self.physics.rounds_max
        if short or many or following >= 0.95 * self.round_mib:
            self.stopped, self.left_switch_ms = True, self.physics.switch_ms
        self.round_mib = self.left_mib = following
        self.since_ms, self.is_new = now_ms, True
