"""An oracle of the simulated world: a second, simple implementation from the model alone.

It divides all hosts at every event and adds up every interval, so it is slow and short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil, isnan
from typing import NamedTuple

import numpy as np

from equipoise.model.action import Boot, Footprint, Migrate
from equipoise.model.event import (
    ActionFinished,
    ActionStarted,
    ActionTimedOut,
    Event,
    HostFailed,
    HostRecovered,
    VmCrashed,
)
from equipoise.model.host import Host, HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.scenario.faults import ScheduledEvent
from equipoise.model.scenario.physics import MigrationPhysics
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.sim.load import LoadDemands, TraceReader
from plain_division import Claim, divided, is_tight, spread, tree, watts_of, watts_saved, weights
from plain_entitlement import CPU, MEMORY, entitlements

TOLERANCE_MS = 1e-6
"""A time that exceeds a whole millisecond by less than this is not rounded up."""
HOUR_MS = 3_600_000


@dataclass(slots=True)
class Copy:
    """A migration: waiting, in a copy round, or stopped for the last round."""

    go: Migrate
    physics: MigrationPhysics
    active_mib: float = 0
    """The active memory at the start of the copy, which fills the target."""
    used_mhz: float = 0
    """The CPU use at the start of the copy, which determines the dirty rate."""
    begun: bool = False
    stopped: bool = False
    rounds: int = 0
    round_mib: float = 0
    remaining_mib: float = 0
    left_switch_ms: float = 0
    since_ms: int = 0
    is_new: bool = True
    """Whether this round has just started."""
    rate: float = 0
    due_ms: int = 0

    def touches(self, host: HostId) -> bool:
        """Return whether the copy uses resources of a host."""
        return self.begun and host in (self.go.source, self.go.target)

    def begin(self, now_ms: int, size_mib: float, active_mib: float, used_mhz: float) -> None:
        """Start the first round, which copies all memory."""
        self.begun, self.since_ms = True, now_ms
        self.round_mib = self.remaining_mib = size_mib
        self.active_mib, self.used_mhz = active_mib, used_mhz

    def set_rate(self, now_ms: int, most_copies: int) -> None:
        """Set the rate for this many copies; an unchanged rate keeps the end of the round."""
        rate = self.physics.link_mbps * 10**6 / 8 / 2**20 / most_copies
        if rate != self.rate or self.is_new:
            self.rate, self.is_new = rate, False
            more_ms = 1000 * self.remaining_mib / rate + self.left_switch_ms
            self.due_ms = now_ms + max(1, ceil(more_ms - TOLERANCE_MS))

    def progress(self, passed_ms: float) -> None:
        """Copy for a period."""
        needed_ms = 1000 * self.remaining_mib / self.rate
        self.remaining_mib = max(0.0, self.remaining_mib - self.rate * passed_ms / 1000)
        over_ms = max(0.0, passed_ms - needed_ms)
        self.left_switch_ms = max(0.0, self.left_switch_ms - over_ms)

    def end_round(self, now_ms: int) -> None:
        """Start the next round with the dirty pages; it may be the last."""
        passed_s = (now_ms - self.since_ms) / 1000
        written = self.physics.dirty_mib_per_ghz * self.used_mhz / 1000 * passed_s
        following = min(written, self.active_mib * self.physics.dirty_pct_max / 100)
        self.rounds += 1
        short = 1000 * following / self.rate <= self.physics.downtime_ms_max
        many = self.rounds >= self.physics.rounds_max
        if short or many or following >= 0.95 * self.round_mib:
            self.stopped, self.left_switch_ms = True, self.physics.switch_ms
        self.round_mib = self.remaining_mib = following
        self.since_ms, self.is_new = now_ms, True


FACTS = (ActionFinished, HostFailed, HostRecovered, VmCrashed)
SUMS = ("cpu_demand", "memory_demand", "cpu_allocated", "memory_allocated", "ready", "ran", "down")


@dataclass(slots=True)
class Guest:
    """A VM, its demand and allocation now, and the totals of both over time."""

    vm: Vm
    host: HostId | None
    missed: bool = False
    """Whether the VM has lost its host."""
    cpu_demand: float = 0
    memory_demand: float = 0
    cpu_allocated: float = 0
    memory_allocated: float = 0
    ready: float = 0
    stopped: bool = False
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SUMS, 0.0))


class Sample(NamedTuple):
    """The cluster as a report shows it."""

    at_s: float
    imbalance: float
    hosts: dict[HostId, dict[str, float]]
    """By the names of the columns."""
    happiness: dict[VmId, float]


class ActionStart(NamedTuple):
    """A request of the control loop, after this many facts of the same instant."""

    at_ms: int
    facts: int
    event: ActionStarted | ActionTimedOut


def action_starts(journal: Iterable[Event]) -> list[ActionStart]:
    """Return the requests of the control loop, with their times."""
    starts, at_ms, facts = [], -1, 0
    for event in journal:
        if event.at_ms != at_ms:
            at_ms, facts = event.at_ms, 0
        facts += isinstance(event, FACTS)
        if isinstance(event, ActionStarted | ActionTimedOut):
            starts.append(ActionStart(at_ms, facts, event))
    return starts


class PlainWorld:
    """A whole run of a scenario."""

    def __init__(self, scenario: Scenario, asked: Iterable[ActionStart] = ()) -> None:
        self.scenario = scenario
        self.hosts = {host.id: host for host in scenario.cluster.hosts}
        self.guests = {vm.id: Guest(vm, vm.host) for vm in scenario.cluster.vms}
        self.copies: dict[StepId, Copy] = {}
        self.others: dict[StepId, int] = {}
        """The end of each action that takes its planned time."""
        self.steps: dict[StepId, Step] = {}
        self.ended: dict[StepId, int] = {}
        self.samples: list[Sample] = []
        self.tight_ms = [-1, -1]
        """When a sample last found too little CPU, and too little memory, on some host."""
        self.joules = self.joules_saved = self.asleep_s = 0.0
        self.now_ms = 0
        self._cues = list(asked)
        self._events = sorted(scenario.events, key=lambda event: event.at_ms)
        self._changes = list(self._take_loads())
        self._settle()
        self._sample()

    def _take_loads(self) -> Iterator[tuple[int, Guest, str, float]]:
        rows = list(self.guests.values())
        demands = LoadDemands(self.scenario.seed, traces=TraceReader(None))
        for row, guest in enumerate(rows):
            asks = guest.vm.demand
            wants: dict[str, float] = {"cpu_demand": asks.cpu_mhz, "memory_demand": asks.memory_mib}
            if guest.vm.id in self.scenario.vm_loads:
                load = self.scenario.loads[self.scenario.vm_loads[guest.vm.id]]
                demands.add(row, guest.vm, load)
                levels = zip(wants, demands.at(0, np.array([row])), strict=True)
                wants |= {what: level[0] for what, level in levels if not isnan(level[0])}
            for what, level in wants.items():
                setattr(guest, what, float(level))
        found = demands.changes(0, 1000 * self.scenario.duration_s)
        columns = found.at_ms, found.row, found.resource, found.value
        for at, number, which, value in zip(*columns, strict=True):
            yield int(at), rows[number], "memory_demand" if which else "cpu_demand", float(value)

    # Time

    def run(self) -> None:
        """Run to the end."""
        end_ms = 1000 * self.scenario.duration_s
        self._ask()
        self._instant()
        while self.now_ms < end_ms:
            self._pass(min([end_ms, *(at for at in self._coming() if at > self.now_ms)]))
            self._instant()
        if self.samples[-1].at_s * 1000 != end_ms:
            self._sample()

    def _coming(self) -> Iterator[int]:
        sample_ms = 1000 * self.scenario.measuring.sample_s
        yield self.now_ms // sample_ms * sample_ms + sample_ms
        yield from (change[0] for change in self._changes[:1])
        yield from (copy.due_ms for copy in self.copies.values() if copy.begun)
        yield from self.others.values()
        yield from (event.at_ms for event in self._events[:1])
        yield from (cue.at_ms for cue in self._cues[:1])

    def _pass(self, to_ms: int) -> None:
        passed_ms = to_ms - self.now_ms
        for guest in self.guests.values():
            runs, sums = guest.host is not None, guest.sums
            if runs or guest.missed:
                sums["cpu_demand"] += guest.cpu_demand * passed_ms
                sums["memory_demand"] += guest.memory_demand * passed_ms
                sums["down"] += (not runs or guest.stopped) * passed_ms
            if runs:
                sums["cpu_allocated"] += guest.cpu_allocated * passed_ms
                sums["memory_allocated"] += guest.memory_allocated * passed_ms
                sums["ready"] += guest.ready * passed_ms
                sums["ran"] += passed_ms
        for host in self.hosts.values():
            self.joules += self._watts(host) * passed_ms / 1000
            self.joules_saved += watts_saved(host) * passed_ms / 1000
            self.asleep_s += (host.state is HostState.STANDBY) * passed_ms / 1000
        for copy in self.copies.values():
            if copy.begun:
                copy.progress(passed_ms)
        self.now_ms = to_ms

    def _instant(self) -> None:
        """Apply one instant: demands, ends, faults, requests and a reading."""
        facts = 0
        while self._changes and self._changes[0][0] <= self.now_ms:
            _, guest, what, value = self._changes.pop(0)
            setattr(guest, what, value)
        self._settle()
        while self._end_one() or self._fault():
            facts += 1
            self._settle()
            self._ask(facts)
        if self.now_ms and self.now_ms % (1000 * self.scenario.measuring.sample_s) == 0:
            self._sample()
        self._ask(10**9)

    def _ask(self, facts: int = 0) -> None:
        """Apply the requests of this instant, after at most so many facts."""
        while self._cues and self._cues[0][:2] <= (self.now_ms, facts):
            event = self._cues.pop(0).event
            if isinstance(event, ActionStarted):
                self._start(event.step)
            else:
                self._drop(event.step)
            self._settle()

    # What happens

    def _start(self, step: Step) -> None:
        physics = self.scenario.physics.migration
        self.steps[step.id] = step
        if isinstance(step.action, Migrate) and physics is not None:
            self.copies[step.id] = Copy(step.action, physics)
        else:
            self.others[step.id] = self.now_ms + step.duration_ms

    def _drop(self, step: StepId) -> None:
        self.copies.pop(step, None)
        self.others.pop(step, None)
        self.steps.pop(step, None)

    def _end_one(self) -> bool:
        """End what is due now; the end of a copy round is not an event."""
        for copy in self.copies.values():
            if copy.begun and copy.due_ms <= self.now_ms and not copy.stopped:
                copy.end_round(self.now_ms)
                self._settle()
        due = self.others | {s: c.due_ms for s, c in self.copies.items() if c.begun and c.stopped}
        done = [step for step, at_ms in due.items() if at_ms <= self.now_ms]
        if done:
            self._finish(done[0])
        return bool(done)

    def _finish(self, step: StepId) -> None:
        action = self.steps[step].action
        assert isinstance(action, Migrate | Boot)
        self._drop(step)
        self.ended[step] = self.now_ms
        guest = self.guests[action.vm]
        guest.host, guest.missed = action.target, False

    def _fault(self) -> bool:
        if not self._events or self._events[0].at_ms > self.now_ms:
            return False
        self._befall(self._events.pop(0))
        return True

    def _befall(self, event: ScheduledEvent) -> None:
        match event:
            case HostFailed():
                host = self.hosts[event.host]
                self.hosts[host.id] = host.but(state=HostState.FAILED)
                self._fail(lambda guest: guest.host == host.id)
                self._break_off(lambda seen: host.id in seen.hosts)
            case HostRecovered():
                host = self.hosts[event.host]
                if host.state is HostState.FAILED:
                    self.hosts[host.id] = host.but(state=HostState.ON)
            case VmCrashed():
                if self.guests[event.vm].host is not None:
                    self._fail(lambda guest: guest.vm.id == event.vm)
                    self._break_off(lambda seen: seen.vm == event.vm)
            case _:
                raise AssertionError(event)

    def _fail(self, is_hit: Callable[[Guest], bool]) -> None:
        for guest in self.guests.values():
            if is_hit(guest):
                guest.host, guest.missed = None, True

    def _break_off(self, is_hit: Callable[[Footprint], bool]) -> None:
        for step in list(self.steps.values()):
            if is_hit(step.footprint):
                self._drop(step.id)

    # What follows from it

    def _settle(self) -> None:
        """Start the copies that no longer wait, and divide all hosts."""
        self._divide()
        for copy in self.copies.values():
            ends = (copy.go.source, copy.go.target)
            if not copy.begun and all(self._busy(e) < copy.physics.per_host_max for e in ends):
                guest = self.guests[copy.go.vm]
                size, active = guest.vm.memory_mib, guest.memory_demand
                copy.begin(self.now_ms, size, active, guest.cpu_allocated)
                self._divide()
        for copy in self.copies.values():
            if copy.begun:
                most = max(self._busy(copy.go.source), self._busy(copy.go.target))
                copy.set_rate(self.now_ms, most)

    def _busy(self, host: HostId) -> int:
        return sum(copy.touches(host) for copy in self.copies.values())

    def _divide(self) -> None:
        pools = self.scenario.cluster.pools
        running = [guest for guest in self.guests.values() if guest.host is not None]
        of_cpu = weights([guest.vm for guest in running], pools, "cpu")
        of_memory = weights([guest.vm for guest in running], pools, "memory")
        for guest in self.guests.values():
            guest.cpu_allocated = guest.memory_allocated = guest.ready = 0.0
            guest.stopped = False
        for host in self.hosts.values():
            here = [guest for guest in running if guest.host == host.id]
            self._divide_memory(host, here, of_memory)
            self._divide_cpu(host, here, of_cpu)

    def _divide_memory(self, host: Host, here: list[Guest], weight: dict[VmId, float]) -> None:
        claims = {}
        for guest in here:
            claimed, most = guest.vm.memory, guest.vm.memory_mib
            if claimed.limit_mib is not None:
                most = min(most, claimed.limit_mib)
            ceiling = min(guest.memory_demand, most)
            floor = min(claimed.reservation_mib, ceiling)
            claims[guest.vm.id] = Claim(floor, ceiling, weight[guest.vm.id])
        for vm, got in self._shared(self._memory_left(host), claims).items():
            self.guests[vm].memory_allocated = got

    def _divide_cpu(self, host: Host, here: list[Guest], weight: dict[VmId, float]) -> None:
        claims, wants = {}, {}
        for guest in here:
            want = guest.cpu_demand * self._pace(guest) * self._speed(guest)
            limit = guest.vm.cpu.limit_mhz
            ceiling = want if limit is None else min(want, limit)
            floor = min(guest.vm.cpu.reservation_mhz, ceiling)
            claims[guest.vm.id] = Claim(floor, ceiling, weight[guest.vm.id])
            wants[guest.vm.id] = want
        left = max(0.0, host.usable_cpu_mhz - self._copying_mhz(host))
        for vm, got in self._shared(left, claims).items():
            self.guests[vm].cpu_allocated = got
            self.guests[vm].ready = 1 - got / wants[vm] if wants[vm] else 0.0

    def _shared(self, amount: float, claims: dict[VmId, Claim]) -> dict[VmId, float]:
        homes = {vm: self.guests[vm].vm.pool for vm in claims}
        return divided(amount, tree(claims, homes, self.scenario.cluster.pools))

    def _memory_left(self, host: Host) -> float:
        coming = [c for c in self.copies.values() if c.begun and c.go.target == host.id]
        besides = self.scenario.physics.overhead_mib * len(self._here(host))
        filled = sum(copy.active_mib for copy in coming)
        return max(0.0, host.usable_memory_mib - besides - filled)

    def _copying_mhz(self, host: Host) -> float:
        physics = self.scenario.physics.migration
        return 0.0 if physics is None else physics.cpu_mhz * self._busy(host.id)

    def _pace(self, guest: Guest) -> float:
        for copy in self.copies.values():
            if copy.begun and copy.go.vm == guest.vm.id:
                guest.stopped = copy.stopped
                return 0.0 if copy.stopped else 1 - copy.physics.slowdown_pct / 100
        return 1.0

    def _speed(self, guest: Guest) -> float:
        missing = 1 - guest.memory_allocated / guest.memory_demand if guest.memory_demand else 0.0
        return 1 / (1 + self.scenario.physics.memory.swap_slowdown * missing)

    # What is seen of it

    def _here(self, host: Host) -> list[Guest]:
        return [guest for guest in self.guests.values() if guest.host == host.id]

    def _watts(self, host: Host) -> float:
        used = sum(guest.cpu_allocated for guest in self._here(host))
        return watts_of(host, used + self._copying_mhz(host))

    def _taken(self, host: Host) -> tuple[float, float]:
        """Return the ballooned and the swapped memory of a host."""
        here, most = self._here(host), self.scenario.physics.memory.balloon_pct_max / 100
        sizes = sum(guest.vm.memory_mib for guest in here)
        reclaimed = max(0.0, sizes - self._memory_left(host))
        idle = [min(g.vm.memory_mib - g.memory_demand, most * g.vm.memory_mib) for g in here]
        ballooned = min(reclaimed, sum(idle))
        return ballooned, reclaimed - ballooned

    def _sample(self) -> None:
        hosts, vms = self.hosts.values(), [_as_now(guest) for guest in self.guests.values()]
        pools = self.scenario.cluster.pools
        cpu = entitlements(hosts, vms, pools, CPU)
        memory = entitlements(hosts, vms, pools, MEMORY)
        on = [(host, self._here(host)) for host in hosts if host.state is HostState.ON]
        loads = (
            [sum(cpu[g.vm.id] for g in here) / host.usable_cpu_mhz for host, here in on],
            [sum(memory[g.vm.id] for g in here) / host.usable_memory_mib for host, here in on],
        )
        happiness = {}
        for guest in self.guests.values():
            if guest.host is not None:
                due = min(cpu[guest.vm.id], guest.cpu_demand)
                happiness[guest.vm.id] = min(1.0, guest.cpu_allocated / due) if due else 1.0
        hosted = {host.id: self._figures(host) for host in hosts}
        hour_ago_ms = max(0, self.now_ms - HOUR_MS)
        lately = tuple(seen_ms >= hour_ago_ms for seen_ms in self.tight_ms)
        uneven = spread(*loads, (lately[0], lately[1]))
        self.samples.append(Sample(self.now_ms / 1000, uneven, hosted, happiness))
        for number, resource in enumerate(loads):
            if is_tight(resource):
                self.tight_ms[number] = self.now_ms

    def _figures(self, host: Host) -> dict[str, float]:
        here = self._here(host)
        ballooned, swapped = self._taken(host)
        return {
            "cpu_demand_mhz": sum(guest.cpu_demand for guest in here),
            "cpu_used_mhz": sum(guest.cpu_allocated for guest in here),
            "memory_demand_mib": sum(guest.memory_demand for guest in here),
            "memory_used_mib": sum(guest.memory_allocated for guest in here),
            "ballooned_mib": ballooned,
            "swapped_mib": swapped,
            "watts": self._watts(host),
            "watts_saved": watts_saved(host),
        }


def _as_now(guest: Guest) -> Vm:
    state = VmState.READY if guest.host is None else VmState.RUNNING
    demand = Demand(cpu_mhz=round(guest.cpu_demand), memory_mib=round(guest.memory_demand))
    return guest.vm.but(state=state, host=guest.host, demand=demand)
