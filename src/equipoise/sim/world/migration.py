"""Live migration by pre-copy: how long it takes, and what it costs hosts and VMs meanwhile.

The memory of the VM is copied while the VM runs. Pages that the VM writes meanwhile (dirty pages)
are copied again, round after round, until the rest is small enough to stop the VM for it. Copies
share the links of their hosts equally, so a copy gets slower or faster when another one starts or
ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import NamedTuple

from equipoise.model.action import Migrate
from equipoise.model.event import Event
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.scenario.faults import SlowMigrations
from equipoise.model.scenario.physics import MigrationPhysics
from equipoise.sim.random_streams import RandomStream
from equipoise.sim.world.event_queue import EventPriority, EventQueue
from equipoise.sim.world.ground_truth import GroundTruth

MIB_PER_MEGABIT = 1_000_000 / 8 / 1024 / 1024
CONVERGENCE_MAX = 0.95
"""A round must be shorter than this share of the one before; otherwise pre-copy does not converge
and the VM is stopped for the rest."""


class ActionFault(NamedTuple):
    """Why an action fails."""

    code: str
    """A key of ``errors.CODES``."""
    reason: str


@dataclass(slots=True, kw_only=True)
class MigrationCopy:
    """The copy of the memory of one migrating VM."""

    step: StepId
    attempt: int
    vm: VmId
    source: HostId
    target: HostId
    memory_mib: float
    dirty_mib_per_s: float = 0.0
    """The rate at which the running VM writes pages."""
    dirty_mib_max: float = 0.0
    """The maximum of dirty pages in one round: the pages that the VM writes at all."""
    speed: float = 1.0
    """The share of its link rate that the copy gets; less than 1 for a slow migration."""
    fails_at_mib: float | None = None
    """The copy fails when so much of the first round remains."""
    target_memory_mib: float = 0.0
    """Memory that the copy occupies on the target."""
    round: int = 0
    """0 is the first full copy."""
    round_mib: float = 0.0
    """The size of this round."""
    remaining_mib: float = 0.0
    """The part of this round that is not copied yet."""
    dirty_mib: float = 0.0
    """Dirty pages so far, which the next round copies."""
    stopped: bool = False
    """Whether the VM is stopped for the last round."""
    switch_ms: float = 0.0
    """The remaining time of the switch between the hosts, after the last round."""
    rate_mib_per_ms: float = 0.0
    """The current rate."""
    since_ms: int = 0
    revision: int = 0
    """Raised with every change. An event that was scheduled for an earlier revision is void."""

    def __post_init__(self) -> None:
        self.round_mib = self.remaining_mib = self.memory_mib

    def advance(self, now_ms: int) -> None:
        """Copy up to now, at the rate since the last call."""
        elapsed_ms = now_ms - self.since_ms
        self.since_ms = now_ms
        copied = self.rate_mib_per_ms * elapsed_ms
        if self.stopped and copied > self.remaining_mib:
            self.switch_ms -= elapsed_ms - self.remaining_mib / self.rate_mib_per_ms
        self.remaining_mib = max(0.0, self.remaining_mib - copied)
        if not self.stopped:
            dirty = self.dirty_mib + self.dirty_mib_per_s * elapsed_ms / 1000
            self.dirty_mib = min(self.dirty_mib_max, dirty)

    def next_change_in_ms(self) -> int:
        """Return the time until the round ends, the copy fails, or the migration is complete."""
        goal = self.fails_at_mib if self.round == 0 and self.fails_at_mib is not None else 0.0
        copying_ms = max(0.0, self.remaining_mib - goal) / self.rate_mib_per_ms
        return max(1, ceil(copying_ms + (self.switch_ms if self.stopped else 0.0)))

    def next_round(self, physics: MigrationPhysics) -> None:
        """Start the next round with the dirty pages; stop the VM if it is the last round."""
        rest, previous = self.dirty_mib, self.round_mib
        self.round += 1
        self.round_mib = self.remaining_mib = rest
        self.dirty_mib = 0.0
        is_short = rest <= self.rate_mib_per_ms * physics.downtime_ms_max
        diverges = rest >= CONVERGENCE_MAX * previous
        self.stopped = is_short or diverges or self.round >= physics.rounds_max
        self.switch_ms = physics.switch_ms

    @property
    def has_failed(self) -> bool:
        """Whether the copy has reached the point where it fails."""
        if self.round or self.fails_at_mib is None:
            return False
        # Times are whole milliseconds, so the remainder can be up to one millisecond off.
        return self.remaining_mib <= self.fails_at_mib + self.rate_mib_per_ms


class MigrationLinks:
    """The active copies, and those that wait because a host has ``per_host_max`` copies."""

    def __init__(self, physics: MigrationPhysics) -> None:
        self.physics = physics
        self.speed = 1.0
        """The current speed of the links, as a share of their nominal speed."""
        self.copies: dict[StepId, MigrationCopy] = {}
        self._waiting: dict[StepId, MigrationCopy] = {}
        self._by_host: dict[HostId, dict[StepId, MigrationCopy]] = {}

    def add(self, copy: MigrationCopy, now_ms: int) -> list[MigrationCopy]:
        """Start a copy, or queue it. Return all copies that started or changed their rate."""
        self._waiting[copy.step] = copy
        return self._admit(now_ms)

    def drop(self, step: StepId, now_ms: int) -> list[MigrationCopy]:
        """Remove a copy that ended or was cancelled. Return the copies that this affects."""
        self._waiting.pop(step, None)
        copy = self.copies.pop(step, None)
        if copy is None:
            return []
        copy.revision += 1
        for host in (copy.source, copy.target):
            del self._by_host[host][step]
        admitted = self._admit(now_ms)
        return [*admitted, *self._update_rates((copy.source, copy.target), now_ms, admitted)]

    def set_speed(self, speed: float, now_ms: int) -> list[MigrationCopy]:
        """Set the speed of all links. Return the copies that this affects."""
        self.speed = speed
        return self._update_rates(tuple(self._by_host), now_ms, [])

    def _admit(self, now_ms: int) -> list[MigrationCopy]:
        """Start the waiting copies, in order, whose two hosts allow one more."""
        changed: dict[StepId, MigrationCopy] = {}
        for copy in list(self._waiting.values()):
            hosts = (copy.source, copy.target)
            limit = self.physics.per_host_max
            # A copy that waits for its hosts does not delay later copies between other hosts.
            if any(len(self._by_host.get(host, ())) >= limit for host in hosts):
                continue
            del self._waiting[copy.step]
            copy.since_ms = now_ms
            self.copies[copy.step] = copy
            for host in hosts:
                self._by_host.setdefault(host, {})[copy.step] = copy
            changed |= {updated.step: updated for updated in self._update_rates(hosts, now_ms, [])}
        return list(changed.values())

    def _update_rates(
        self, hosts: Iterable[HostId], now_ms: int, done: list[MigrationCopy]
    ) -> list[MigrationCopy]:
        """Advance the copies of these hosts to now, except ``done``, and set their new rates."""
        copies = {
            step: copy for host in hosts for step, copy in self._by_host.get(host, {}).items()
        }
        changed = [copy for copy in copies.values() if copy not in done]
        link = self.physics.link_mbps * MIB_PER_MEGABIT / 1000 * self.speed
        for copy in changed:
            copy.advance(now_ms)
            # The busier of the two links is the bottleneck.
            sharing = max(len(self._by_host[copy.source]), len(self._by_host[copy.target]))
            copy.rate_mib_per_ms = link / sharing * copy.speed
            copy.revision += 1
        return changed


OnEnd = Callable[[StepId, int, ActionFault | None], Event | None]
"""Called with the step, the attempt and the fault when a migration ends."""


class LiveMigrations:
    """All migrations under way, and what they cost the hosts and VMs."""

    def __init__(
        self,
        physics: MigrationPhysics,
        slowness: SlowMigrations | None,
        truth: GroundTruth,
        event_queue: EventQueue[int],
    ) -> None:
        self._physics = physics
        self._slowness = slowness
        self._truth = truth
        self._event_queue = event_queue
        self._links = MigrationLinks(physics)
        self._active: dict[StepId, MigrationCopy] = {}
        """Copies that have started and use resources; waiting copies use none."""
        self._on_end: dict[StepId, OnEnd] = {}

    @property
    def count(self) -> int:
        """The number of VMs whose memory is being copied."""
        return len(self._active)

    def begin(self, step: Step, attempt: int, rng: RandomStream, on_end: OnEnd) -> None:
        """Start a migration, or queue it until its hosts allow one more copy."""
        assert isinstance(step.action, Migrate)
        copy = self._new_copy(step, step.action, attempt, rng)
        self._on_end[step.id] = on_end
        self._schedule(self._links.add(copy, self._truth.now_ms))

    def set_speed(self, speed: float) -> None:
        """Set the speed of all links."""
        self._schedule(self._links.set_speed(speed, self._truth.now_ms))

    def drop_ended(self) -> None:
        """Drop the copies whose migration has finished or failed, and free what they used."""
        in_flight = self._truth.state.in_flight
        for step in [step for step in self._on_end if step not in in_flight]:
            del self._on_end[step]
            copy = self._active.pop(step, None)
            if copy is not None:
                self._charge_hosts(copy, -1)
                self._truth.allocator.set_vm_speed(copy.vm, 1.0)
            self._schedule(self._links.drop(step, self._truth.now_ms))

    def _new_copy(
        self, step: Step, action: Migrate, attempt: int, rng: RandomStream
    ) -> MigrationCopy:
        slow = self._slowness is not None and rng.uniform() * 100 < self._slowness.pct
        fails = rng.uniform() * 100 < self._physics.failed_pct
        memory_mib = float(self._truth.state.vms[action.vm].memory_mib)
        return MigrationCopy(
            step=step.id,
            attempt=attempt,
            vm=action.vm,
            source=action.source,
            target=action.target,
            memory_mib=memory_mib,
            speed=1 / self._slowness.factor if slow and self._slowness is not None else 1.0,
            fails_at_mib=memory_mib * rng.uniform() if fails else None,
        )

    def _schedule(self, copies: Iterable[MigrationCopy]) -> None:
        for copy in copies:
            if copy.step not in self._active:
                self._measure_dirty_rate(copy)
                self._active[copy.step] = copy
                self._charge_hosts(copy, 1)
                self._truth.allocator.set_vm_speed(copy.vm, 1 - self._physics.slowdown_pct / 100)
            due_ms = self._truth.now_ms + copy.next_change_in_ms()
            self._event_queue.schedule(
                due_ms, EventPriority.END, partial(self._end_round, copy, copy.revision)
            )

    def _measure_dirty_rate(self, copy: MigrationCopy) -> None:
        """Set the dirty rate of a copy that starts, from the CPU that its VM gets."""
        allocator, physics = self._truth.allocator, self._physics
        allocator.reallocate()
        vm = allocator.vms[allocator.vm_row[copy.vm]]
        copy.dirty_mib_per_s = physics.dirty_mib_per_ghz * float(vm["cpu_allocated"]) / 1000
        copy.dirty_mib_max = float(vm["memory_demand"]) * physics.dirty_pct_max / 100
        copy.target_memory_mib = float(vm["memory_demand"])

    def _end_round(self, copy: MigrationCopy, revision: int) -> Event | None:
        """End a round of a copy, unless its rate has changed since the end was scheduled."""
        if copy.revision != revision:
            return None
        copy.advance(self._truth.now_ms)
        on_end = self._on_end[copy.step]
        if copy.has_failed:
            fault = ActionFault("migration-failed", "the migration lost its connection")
            return on_end(copy.step, copy.attempt, fault)
        if copy.stopped:
            return on_end(copy.step, copy.attempt, None)
        copy.next_round(self._physics)
        copy.revision += 1
        if copy.stopped:
            self._truth.allocator.set_vm_speed(copy.vm, 0.0)
        self._schedule([copy])
        return None

    def _charge_hosts(self, copy: MigrationCopy, sign: int) -> None:
        """Add (sign 1) or remove (sign -1) the CPU and memory that a copy uses on its hosts."""
        cpu_mhz = sign * self._physics.cpu_mhz
        self._truth.allocator.add_host_overhead(copy.source, cpu_mhz, 0)
        self._truth.allocator.add_host_overhead(copy.target, cpu_mhz, sign * copy.target_memory_mib)
