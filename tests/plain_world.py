"""The simulated world once more: plain, slow, written from its meaning and not from its code.

One VM, one host and one moment at a time. What VMs ask for is taken as given (loads have an oracle
of their own), and so is when the control loop starts an action; what follows is worked out here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import isnan
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
from equipoise.model.story.scenario import Scenario
from equipoise.model.story.unrest import Happening
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.place.entitlement import CPU, MEMORY, entitlements
from equipoise.sim.load import Demands, TraceReader
from plain_copy import Copy
from plain_division import Claim, divided, spread, tree, watts_of, watts_saved, weights

FACTS = (ActionFinished, HostFailed, HostRecovered, VmCrashed)
SUMS = ("cpu_want", "memory_want", "cpu_got", "memory_got", "ready", "ran", "down")


@dataclass(slots=True)
class Guest:
    """A VM, what it wants and gets now, and the sums of both over time."""

    vm: Vm
    host: HostId | None
    missed: bool = False
    """Whether it has lost its host."""
    cpu_want: float = 0
    memory_want: float = 0
    cpu_got: float = 0
    memory_got: float = 0
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


class Cue(NamedTuple):
    """Something the control loop asked for, after so many facts of the same instant."""

    at_ms: int
    facts: int
    event: ActionStarted | ActionTimedOut


def cues(journal: Iterable[Event]) -> list[Cue]:
    """What the control loop asked for, and when."""
    found, at_ms, facts = [], -1, 0
    for event in journal:
        if event.at_ms != at_ms:
            at_ms, facts = event.at_ms, 0
        facts += isinstance(event, FACTS)
        if isinstance(event, ActionStarted | ActionTimedOut):
            found.append(Cue(at_ms, facts, event))
    return found


class PlainWorld:
    """All of a scenario, from its start to its end."""

    def __init__(self, scenario: Scenario, asked: Iterable[Cue] = ()) -> None:
        self.scenario = scenario
        self.hosts = {host.id: host for host in scenario.cluster.hosts}
        self.guests = {vm.id: Guest(vm, vm.host) for vm in scenario.cluster.vms}
        self.copies: dict[StepId, Copy] = {}
        self.others: dict[StepId, int] = {}
        """When actions end that just take as long as planned."""
        self.steps: dict[StepId, Step] = {}
        self.ended: dict[StepId, int] = {}
        self.samples: list[Sample] = []
        self.joules = self.joules_saved = self.asleep_s = 0.0
        self.now_ms = 0
        self._cues = list(asked)
        self._happenings = sorted(scenario.happenings, key=lambda one: one.at_ms)
        self._changes = list(self._take_loads())
        self._settle()
        self._sample()

    def _take_loads(self) -> Iterator[tuple[int, Guest, str, float]]:
        rows = list(self.guests.values())
        demands = Demands(self.scenario.seed, traces=TraceReader(None))
        for row, guest in enumerate(rows):
            asks = guest.vm.demand
            wants: dict[str, float] = {"cpu_want": asks.cpu_mhz, "memory_want": asks.memory_mib}
            if guest.vm.id in self.scenario.vm_loads:
                load = self.scenario.loads[self.scenario.vm_loads[guest.vm.id]]
                demands.add(row, guest.vm, load)
                told = zip(wants, demands.at(0, np.array([row])), strict=True)
                wants |= {what: level[0] for what, level in told if not isnan(level[0])}
            for what, level in wants.items():
                setattr(guest, what, float(level))
        found = demands.changes(0, 1000 * self.scenario.duration_s)
        columns = found.at_ms, found.row, found.resource, found.value
        for at, number, which, value in zip(*columns, strict=True):
            yield int(at), rows[number], "memory_want" if which else "cpu_want", float(value)

    # Time

    def run(self) -> None:
        """To the end."""
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
        yield from (one.at_ms for one in self._happenings[:1])
        yield from (cue.at_ms for cue in self._cues[:1])

    def _pass(self, to_ms: int) -> None:
        passed_ms = to_ms - self.now_ms
        for guest in self.guests.values():
            runs, sums = guest.host is not None, guest.sums
            if runs or guest.missed:
                sums["cpu_want"] += guest.cpu_want * passed_ms
                sums["memory_want"] += guest.memory_want * passed_ms
                sums["down"] += (not runs or guest.stopped) * passed_ms
            if runs:
                sums["cpu_got"] += guest.cpu_got * passed_ms
                sums["memory_got"] += guest.memory_got * passed_ms
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
        """All that happens now: demands, ends, faults, what is asked for then, and a look."""
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
        """Take in what is asked for now, after at most so many facts."""
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
        """End what is due now; nobody learns that a round of copying has ended."""
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
        if not self._happenings or self._happenings[0].at_ms > self.now_ms:
            return False
        self._befall(self._happenings.pop(0))
        return True

    def _befall(self, happening: Happening) -> None:
        match happening:
            case HostFailed():
                host = self.hosts[happening.host]
                self.hosts[host.id] = host.but(state=HostState.FAILED)
                self._lose(lambda guest: guest.host == host.id)
                self._break_off(lambda seen: host.id in seen.hosts)
            case HostRecovered():
                host = self.hosts[happening.host]
                if host.state is HostState.FAILED:
                    self.hosts[host.id] = host.but(state=HostState.ON)
            case VmCrashed():
                if self.guests[happening.vm].host is not None:
                    self._lose(lambda guest: guest.vm.id == happening.vm)
                    self._break_off(lambda seen: seen.vm == happening.vm)
            case _:
                raise AssertionError(happening)

    def _lose(self, is_hit: Callable[[Guest], bool]) -> None:
        for guest in self.guests.values():
            if is_hit(guest):
                guest.host, guest.missed = None, True

    def _break_off(self, is_hit: Callable[[Footprint], bool]) -> None:
        for step in list(self.steps.values()):
            if is_hit(step.footprint):
                self._drop(step.id)

    # What follows from it

    def _settle(self) -> None:
        """Begin what need not wait any more, and divide everything anew."""
        self._divide()
        for copy in self.copies.values():
            ends = (copy.go.source, copy.go.target)
            if not copy.begun and all(self._busy(e) < copy.physics.per_host_max for e in ends):
                guest = self.guests[copy.go.vm]
                size, active = guest.vm.memory_mib, guest.memory_want
                copy.begin(self.now_ms, size, active, guest.cpu_got)
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
        of_cpu = weights([one.vm for one in running], pools, "cpu")
        of_memory = weights([one.vm for one in running], pools, "memory")
        for guest in self.guests.values():
            guest.cpu_got = guest.memory_got = guest.ready = 0.0
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
            ceiling = min(guest.memory_want, most)
            floor = min(claimed.reservation_mib, ceiling)
            claims[guest.vm.id] = Claim(floor, ceiling, weight[guest.vm.id])
        for vm, got in self._shared(self._memory_left(host), claims).items():
            self.guests[vm].memory_got = got

    def _divide_cpu(self, host: Host, here: list[Guest], weight: dict[VmId, float]) -> None:
        claims, wants = {}, {}
        for guest in here:
            want = guest.cpu_want * self._pace(guest) * self._speed(guest)
            limit = guest.vm.cpu.limit_mhz
            ceiling = want if limit is None else min(want, limit)
            floor = min(guest.vm.cpu.reservation_mhz, ceiling)
            claims[guest.vm.id] = Claim(floor, ceiling, weight[guest.vm.id])
            wants[guest.vm.id] = want
        left = max(0.0, host.usable_cpu_mhz - self._copying_mhz(host))
        for vm, got in self._shared(left, claims).items():
            self.guests[vm].cpu_got = got
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
        missing = 1 - guest.memory_got / guest.memory_want if guest.memory_want else 0.0
        return 1 / (1 + self.scenario.physics.memory.swap_slowdown * missing)

    # What is seen of it

    def _here(self, host: Host) -> list[Guest]:
        return [guest for guest in self.guests.values() if guest.host == host.id]

    def _watts(self, host: Host) -> float:
        used = sum(guest.cpu_got for guest in self._here(host))
        return watts_of(host, used + self._copying_mhz(host))

    def _taken(self, host: Host) -> tuple[float, float]:
        """What is ballooned away and what is swapped."""
        here, most = self._here(host), self.scenario.physics.memory.balloon_pct_max / 100
        sizes = sum(guest.vm.memory_mib for guest in here)
        reclaimed = max(0.0, sizes - self._memory_left(host))
        idle = [min(g.vm.memory_mib - g.memory_want, most * g.vm.memory_mib) for g in here]
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
                due = min(cpu[guest.vm.id], guest.cpu_want)
                happiness[guest.vm.id] = min(1.0, guest.cpu_got / due) if due else 1.0
        hosted = {host.id: self._figures(host) for host in hosts}
        self.samples.append(Sample(self.now_ms / 1000, spread(*loads), hosted, happiness))

    def _figures(self, host: Host) -> dict[str, float]:
        here = self._here(host)
        ballooned, swapped = self._taken(host)
        return {
            "cpu_demand_mhz": sum(guest.cpu_want for guest in here),
            "cpu_used_mhz": sum(guest.cpu_got for guest in here),
            "memory_demand_mib": sum(guest.memory_want for guest in here),
            "memory_used_mib": sum(guest.memory_got for guest in here),
            "ballooned_mib": ballooned,
            "swapped_mib": swapped,
            "watts": self._watts(host),
            "watts_saved": watts_saved(host),
        }


def _as_now(guest: Guest) -> Vm:
    state = VmState.READY if guest.host is None else VmState.RUNNING
    demand = Demand(cpu_mhz=round(guest.cpu_want), memory_mib=round(guest.memory_want))
    return guest.vm.but(state=state, host=guest.host, demand=demand)
