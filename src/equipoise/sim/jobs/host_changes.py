"""Hosts that sleep when they are idle, and hosts that leave and return while jobs run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Protocol

from equipoise.sim.jobs.engine import JobEngine
from equipoise.sim.jobs.host_set import FreeHosts, bits_of, hosts_of
from equipoise.sim.jobs.hosts import JobHostState
from equipoise.sim.jobs.platform import JobHost
from equipoise.sim.jobs.work import Job

if TYPE_CHECKING:
    from equipoise.sim.jobs.record.journal import JobJournal


@dataclass(frozen=True, slots=True)
class AvailabilityChange:
    """Hosts leave or return. A running job goes on; no other job starts on hosts that left."""

    at_s: float
    hosts: tuple[int, ...]
    available: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """What happens to hosts beside jobs."""

    shutdown_after_s: float = inf
    """A host that was idle for so long sleeps; infinite: no host sleeps."""
    keep_awake: int = 0
    """So many idle hosts stay awake."""
    changes: Sequence[AvailabilityChange] = ()

    @property
    def is_needed(self) -> bool:
        """True if hosts change beside the starts and ends of jobs."""
        return self.shutdown_after_s < inf or bool(self.changes)


class PowerRecorder(Protocol):
    """Writes rows of energy and of power states while they happen."""

    def write_energy(self, now_s: float, kind: str) -> None:
        """Write the energy so far: at the start (s) or end (e) of a job, or a switch (p)."""
        ...

    def write_switch(
        self, now_s: float, hosts: Sequence[int], state: int, *, begins: bool, sleeps: bool
    ) -> None:
        """Hosts begin to switch, or have reached their power state."""
        ...


def sleep_state_of(host: JobHost) -> int | None:
    """Return the sleep state that draws the least power; ``None`` if the host has none."""
    states = sorted(host.sleep_states)
    return min(states, key=lambda state: host.power_states[state].idle_w, default=None)


def waking_state_of(host: JobHost) -> int:
    """Return the state in which a host computes after it has slept."""
    if host.is_computing_state(host.initial_state):
        return host.initial_state
    states = range(len(host.power_states))
    return next(state for state in states if host.is_computing_state(state))


class IdleShutdown:
    """Lets hosts sleep that have been idle for long, and wakes them for jobs."""

    def __init__(
        self,
        engine: JobEngine,
        free: FreeHosts,
        rules: HostRules,
        power: PowerRecorder | None = None,
    ) -> None:
        self._engine = engine
        self._free = free
        self._after_s = rules.shutdown_after_s
        self._keep_awake = rules.keep_awake
        self._power = power
        hosts = engine.platform.hosts
        self._can_sleep = bits_of(n for n, host in enumerate(hosts) if host.sleep_states)
        self._idle_since_s = [0.0] * len(hosts)
        self._expired = 0
        """Idle for long enough, but kept awake."""
        self._not_awake = 0
        self._asleep = 0
        """Those of them that sleep; the others are switching."""
        self._ready_s: dict[int, float] = {}
        """When the present switch of a host ends."""
        self._starting: dict[Job, int] = {}
        """Jobs that wait for hosts to wake, with these hosts."""
        self.switches = 0
        self.switched_hosts = 0
        free.delay_s = self.delay_s
        sleeping = [n for n, host in enumerate(hosts) if host.initial_state in host.sleep_states]
        if sleeping:
            engine.hosts.change(sleeping, JobHostState.SLEEPING, 0.0)
            for state in sorted({hosts[number].initial_state for number in sleeping}):
                group = [n for n in sleeping if hosts[n].initial_state == state]
                engine.observer.hosts_arrived(group, state, changed=True)
            self._arrived(bits_of(sleeping), asleep=True)

    def _wake_s(self, number: int) -> float:
        host = self._engine.platform.hosts[number]
        state = self._engine.hosts.power_state[number]
        if state not in host.sleep_states:
            state = sleep_state_of(host) or 0
        return 1.0 / host.power_states[host.sleep_states[state].waking].speed_flops

    def delay_s(self, hosts: int) -> float:
        """Return how long a job would wait until all these hosts are awake."""
        now_s, longest_s = self._engine.now_s, 0.0
        for number in hosts_of(hosts & self._not_awake):
            left_s = self._ready_s.get(number, now_s) - now_s
            longest_s = max(longest_s, left_s + self._wake_s(number))
        return longest_s

    def idle(self, hosts: int) -> None:
        """Hosts have become idle; look at them again when they have been so for long."""
        hosts &= self._can_sleep & ~self._not_awake
        if self._after_s == inf or not hosts:
            return
        now_s = self._engine.now_s
        for number in hosts_of(hosts):
            self._idle_since_s[number] = now_s
        self._engine.time.at(now_s + self._after_s, partial(self._let_sleep, hosts))

    def _let_sleep(self, hosts: int) -> None:
        now_s, since_s = self._engine.now_s, self._idle_since_s
        awake = self._free.bits & ~self._not_awake
        candidates = [
            number
            for number in hosts_of((hosts | self._expired) & awake)
            if since_s[number] + self._after_s <= now_s
        ]
        allowed = max(awake.bit_count() - self._keep_awake, 0)
        kept = max(len(candidates) - allowed, 0)
        self._expired = bits_of(candidates[:kept])
        sleeping = bits_of(candidates[kept:])
        if sleeping:
            self._switch(sleeping, asleep=True)

    def _switch(self, hosts: int, *, asleep: bool) -> None:
        """Switch hosts, all that have the same target state together."""
        engine, now_s = self._engine, self._engine.now_s
        groups: dict[int, list[int]] = {}
        for number in hosts_of(hosts):
            host = engine.platform.hosts[number]
            state = sleep_state_of(host) if asleep else waking_state_of(host)
            assert state is not None, "only hosts with a sleep state are switched"
            groups.setdefault(state, []).append(number)
        self._not_awake |= hosts
        self._asleep &= ~hosts
        for state, numbers in sorted(groups.items()):
            self.switches += 1
            self.switched_hosts += len(numbers)
            if self._power is not None:
                self._power.write_energy(now_s, "p")
            for number in numbers:
                passing_s = self._passing_s(number, state, asleep=asleep)
                self._ready_s[number] = now_s + passing_s
            ready_s = max(self._ready_s[number] for number in numbers)
            self._ready_s.update(dict.fromkeys(numbers, ready_s))
            done = partial(self._arrived, bits_of(numbers), asleep=asleep)
            engine.set_power_state(numbers, state, done)
        self._mark_delayed()

    def _passing_s(self, number: int, state: int, *, asleep: bool) -> float:
        host = self._engine.platform.hosts[number]
        if asleep:
            return 1.0 / host.power_states[host.sleep_states[state].falling_asleep].speed_flops
        return self._wake_s(number)

    def _mark_delayed(self) -> None:
        """Tell policies which hosts a job would wait for."""
        delayed = [n for n in hosts_of(self._not_awake) if self.delay_s(1 << n) > 0]
        self._free.asleep = bits_of(delayed)

    def _arrived(self, hosts: int, *, asleep: bool) -> None:
        for number in hosts_of(hosts):
            self._ready_s.pop(number, None)
        if asleep:
            self._not_awake |= hosts
            self._asleep |= hosts
            wanted = 0
            for missing in self._starting.values():
                wanted |= missing & hosts
            if wanted:
                self._switch(wanted, asleep=False)
        else:
            self._not_awake &= ~hosts
            for job, missing in list(self._starting.items()):
                if missing & hosts:
                    self._starting[job] = missing & ~hosts
                    if not missing & ~hosts:
                        del self._starting[job]
                        self._engine.start(job, hosts_of(job.host_bits))
        self._mark_delayed()

    def start(self, job: Job, hosts: int) -> float:
        """Start a job as soon as its hosts are awake; return that time."""
        missing = hosts & self._not_awake
        now_s = self._engine.now_s
        if not missing:
            self._engine.start(job, hosts_of(hosts))
            return now_s
        begin_s = now_s + self.delay_s(missing)
        self._starting[job] = missing
        if missing & self._asleep:
            self._switch(missing & self._asleep, asleep=False)
        return begin_s


class Availability:
    """Takes hosts out of service and back; jobs that fit nowhere wait outside the policy."""

    def __init__(
        self,
        engine: JobEngine,
        free: FreeHosts,
        changed: Callable[[int], None],
        journal: JobJournal | None = None,
    ) -> None:
        self._engine = engine
        self._journal = journal
        self._free = free
        self._changed = changed
        self.busy = 0
        """Hosts that are given to jobs."""

    def schedule(self, changes: Sequence[AvailabilityChange]) -> None:
        """Plan all changes."""
        for change in changes:
            self._engine.time.at(change.at_s, partial(self._apply, change))

    def _apply(self, change: AvailabilityChange) -> None:
        free, states, now_s = self._free, self._engine.hosts, self._engine.now_s
        bits = bits_of(change.hosts)
        if change.available:
            bits &= ~free.available
            free.available |= bits
            free.add(bits & ~self.busy)
            states.set_available(hosts_of(bits), now_s)
            if self._journal is not None and bits:
                self._journal.returned(hosts_of(bits), now_s)
            self._changed(bits & ~self.busy)
        else:
            bits &= free.available
            free.available &= ~bits
            free.remove(bits)
            numbers = hosts_of(bits)
            states.unavailable.update(numbers)
            # A host that sleeps or switches goes on with that.
            gone = {JobHostState.UNAVAILABLE}
            present = {JobHostState.IDLE, JobHostState.COMPUTING}
            failed = [number for number in numbers if states.state[number] in present]
            states.set_unavailable(failed, now_s)
            if self._journal is not None and bits:
                passing = [number for number in numbers if states.state[number] not in gone]
                self._journal.failed(numbers, now_s, passing)
            self._changed(0)
