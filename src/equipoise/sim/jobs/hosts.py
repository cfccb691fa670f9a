"""The states of hosts that run jobs: time in each state, power and energy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from equipoise.sim.jobs.fluid import Task, TaskFactory
from equipoise.sim.jobs.platform import Platform, PowerState


class JobHostState(IntEnum):
    """What a host does."""

    IDLE = 0
    COMPUTING = 1
    SLEEPING = 2
    SWITCHING_ON = 3
    SWITCHING_OFF = 4
    UNAVAILABLE = 5


class HostStates:
    """States and energy of all compute hosts.

    A period counts when it ends, as in the summaries of Batsim: the time since the last change
    of a host is in no total.

    With ``sampled`` the power at the end of a period counts for the whole period, and a period ends
    only when a part of a job ends on the host or when the energy is read. So a change of the load
    in between is charged from the last end on, as by SimGrid's plugin of energy.
    """

    def __init__(
        self, platform: Platform, tasks: TaskFactory, *, energy: bool, sampled: bool = False
    ) -> None:
        count = len(platform.hosts)
        self._platform = platform
        self._tasks = tasks
        self.state = [JobHostState.IDLE] * count
        self.power_state = [host.initial_state for host in platform.hosts]
        self.jobs = [0] * count
        """Running jobs per host; more than one only if jobs share hosts."""
        self.counts = [0] * len(JobHostState)
        self.counts[JobHostState.IDLE] = count
        self.total_s = [0.0] * len(JobHostState)
        self._since_s = [0.0] * count
        self.measures_energy = energy
        self._sampled = sampled
        # Storage hosts, which follow the compute hosts, draw power too, but never switch.
        with_storages = count + len(platform.storages)
        self._joules = [0.0] * with_storages
        self._watts = [self._watts_at(number, 0.0) for number in range(with_storages)]
        self._updated_s = [0.0] * with_storages
        self._loaded: set[int] = set()
        self._reserved: set[int] = set()
        self.unavailable: set[int] = set()
        """Hosts that have failed; a running job goes on, and then the host takes no job."""

    def _watts_at(self, number: int, load: float) -> float:
        return self._figures(number).watts_at(load)

    def _figures(self, number: int) -> PowerState:
        host = self._platform.host(number)
        if number < len(self.power_state):
            return host.power_states[self.power_state[number]]
        return host.power_states[host.initial_state]

    def change(self, hosts: Iterable[int], state: JobHostState, now_s: float) -> None:
        """Set the state of hosts; those that are in it already stay as they are."""
        states, since, totals, counts = self.state, self._since_s, self.total_s, self.counts
        # The hosts of a job are in one state most often, so a state is summed up at once.
        before, sum_s, same = state, totals[state], 0
        for number in hosts:
            if states[number] is not before:
                totals[before] = sum_s
                counts[before] -= same
                counts[state] += same
                before = states[number]
                sum_s, same = totals[before], 0
            sum_s += now_s - since[number]
            since[number] = now_s
            states[number] = state
            same += 1
        totals[before] = sum_s
        counts[before] -= same
        counts[state] += same

    def reserve(self, hosts: Iterable[int]) -> None:
        """A job is about to start on these hosts."""
        self._reserved.update(hosts)

    def is_busy(self, number: int) -> bool:
        """True if a job runs on the host or is about to start."""
        return self.jobs[number] > 0 or number in self._reserved

    def add_job(self, hosts: Sequence[int], now_s: float) -> None:
        """A job starts on these hosts."""
        jobs = self.jobs
        for number in hosts:
            jobs[number] += 1
        if self._reserved:
            self._reserved.difference_update(hosts)
        self.change(hosts, JobHostState.COMPUTING, now_s)

    def remove_job(self, hosts: Sequence[int], now_s: float) -> None:
        """A job ends on these hosts; those without another job are idle."""
        jobs = self.jobs
        shared = 0
        for number in hosts:
            left = jobs[number] = jobs[number] - 1
            shared += left
        released = [number for number in hosts if jobs[number] == 0] if shared else hosts
        if self.unavailable:
            failed = self.unavailable.intersection(released)
            self.change(sorted(failed), JobHostState.UNAVAILABLE, now_s)
            released = [number for number in released if number not in failed]
        self.change(released, JobHostState.IDLE, now_s)

    def set_unavailable(self, hosts: Iterable[int], now_s: float) -> None:
        """Hosts fail; their jobs go on, but count no longer as computing."""
        self.unavailable.update(hosts)
        self.change(hosts, JobHostState.UNAVAILABLE, now_s)

    def set_available(self, hosts: Iterable[int], now_s: float) -> None:
        """Hosts that have failed return."""
        self.unavailable.difference_update(hosts)
        back = [number for number in hosts if self.state[number] is JobHostState.UNAVAILABLE]
        busy = [number for number in back if self.jobs[number]]
        self.change(busy, JobHostState.COMPUTING, now_s)
        self.change([n for n in back if not self.jobs[n]], JobHostState.IDLE, now_s)

    def set_power_state(self, number: int, power_state: int, now_s: float) -> None:
        """Change the power state of a host; its speed and its power follow."""
        self._update(number, now_s)
        self.power_state[number] = power_state
        self._tasks.set_power_state(number, power_state)
        self._watts[number] = self._watts_at(number, 0.0)

    def set_switching_load(self, number: int, now_s: float) -> None:
        """A host that switches draws the full power of its transition."""
        self._update(number, now_s)
        self._watts[number] = self._watts_at(number, 1.0)

    def set_loads(self, tasks: Iterable[Task], now_s: float) -> None:
        """Take the loads of hosts from the present rates of tasks."""
        if not self.measures_energy:
            return
        loads: dict[int, float] = {}
        for task in tasks:
            for number, flops in task.host_flops.items():
                loads[number] = loads.get(number, 0.0) + task.rate * flops
        for number in self._loaded - loads.keys():
            self._set_watts(number, 0.0, now_s)
        self._apply_loads(loads, now_s)
        self._loaded = set(loads)

    def set_load(self, number: int, load: float, now_s: float) -> None:
        """The load of one host changes, for a reason other than tasks; from 0 to 1."""
        if self.measures_energy:
            self._set_watts(number, load, now_s)

    def _apply_loads(self, loads: Mapping[int, float], now_s: float) -> None:
        for number, flops_per_s in loads.items():
            self._set_watts(number, flops_per_s / self._tasks.capacity(number), now_s)

    def _set_watts(self, number: int, load: float, now_s: float) -> None:
        if not self._sampled:
            self._update(number, now_s)
        self._watts[number] = self._watts_at(number, load)

    def end_period(self, hosts: Iterable[int], now_s: float) -> None:
        """A part of a job ends on these hosts; their power up to now is charged."""
        if self.measures_energy and self._sampled:
            for number in hosts:
                self._update(number, now_s)

    def _update(self, number: int, now_s: float) -> None:
        self._joules[number] += self._watts[number] * (now_s - self._updated_s[number])
        self._updated_s[number] = now_s

    def energy_j(self, hosts: Iterable[int], now_s: float) -> float:
        """Return the energy of hosts since the start."""
        for number in hosts:
            self._update(number, now_s)
        return sum(self._joules[number] for number in hosts)

    def total_energy_j(self, now_s: float) -> float:
        """Return the energy of all hosts since the start."""
        return self.energy_j(range(len(self._joules)), now_s)

    def energies_j(self, now_s: float) -> list[float]:
        """Return the energy of each host since the start."""
        for number in range(len(self._joules)):
            self._update(number, now_s)
        return list(self._joules)

    def measured_energy_j(self, now_s: float) -> float:
        """Return the energy of all hosts so far; changes no sum and no rounding."""
        return sum(
            joules + watts * (now_s - updated_s)
            for joules, watts, updated_s in zip(
                self._joules, self._watts, self._updated_s, strict=True
            )
        )

    def base_watts(self) -> float:
        """Return the power of all hosts at their smallest load, in their present power states."""
        return sum(self._figures(number).base_w for number in range(len(self._joules)))
