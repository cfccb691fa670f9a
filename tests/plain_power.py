"""Power once more, in plain Python and from its meaning, as an oracle for the arrays.

No arrays, no sums kept: each question is answered by looking at every VM and every observation
again. In-flight actions are not understood here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from math import inf, sqrt
from statistics import fmean, pstdev
from typing import NamedTuple

from equipoise.model.action_durations import Estimates
from equipoise.model.host import Host, HostState
from equipoise.model.policy.balance import HostOverride
from equipoise.model.quantity import HostId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Satisfy, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm, VmState
from plain_limits import memory_for_sizes, vcpus_for_sizes

Where = Mapping[VmId, HostId]
Pair = tuple[float, float]
HAIR = 1e-9
HOUR_S = 3600
NOTABLE = 0.05


class Worth(NamedTuple):
    """What the sleep of a host gives and costs: CPU, then memory, each times seconds."""

    benefit: Pair
    cost: Pair

    @property
    def ratio(self) -> float:
        """How often it is worth its cost, of the resource of which it is less."""
        parts = zip(self.benefit, self.cost, strict=True)
        return min(inf if cost <= HAIR else gain / cost for gain, cost in parts)


@dataclass(frozen=True)
class Window:
    """How long is looked back, and how many standard deviations are added to the mean."""

    seconds: int
    ratio: float


class PlainPower:
    """A cluster in which VMs are moved and hosts switched as a trial."""

    def __init__(
        self, state: Snapshot, where: Where | None = None, asleep: Iterable[HostId] = ()
    ) -> None:
        self.state, self.policy, self.asleep = state, state.settings.power, set(asleep)
        self.without_steps = {
            vm.id: HostId(str(vm.host)) for vm in state.vms.values() if vm.state is VmState.RUNNING
        }
        self.where: Where = {**self.without_steps, **(where or {})}
        policy = self.policy
        self.off = Window(policy.off_window_s, policy.deviations)
        self.on = Window(policy.on_window_s, policy.deviations)
        self.worst = Window(HOUR_S, policy.worst_deviations)

    # What hosts are expected to need

    def hosts(self) -> list[Host]:
        """The hosts that are rebalanced: on, with capacity, and not excluded."""
        alone = self.state.settings.balance.hosts
        return [
            host
            for host in self.state.hosts.values()
            if host.state is HostState.ON
            and host.requested is None
            and host.id not in self.asleep
            and min(has(host)) > 0
            and alone.get(host.id) is not HostOverride.OFF
            and host.id not in self._kept_free()
        ]

    def _kept_free(self) -> set[str]:
        """Hosts that are kept for what may be lost elsewhere."""
        failed = any(host.state is HostState.FAILED for host in self.state.hosts.values())
        all_vms = {vm for vm in self.without_steps if not self.state.vms[vm].agent}
        kept: set[str] = set()
        for rule in self.state.settings.rules:
            if not rule.hard:
                continue
            if isinstance(rule, StayOff) and all_vms and all_vms <= set(rule.vms):
                kept |= set(rule.hosts)
            if isinstance(rule, StayWithin) and all_vms and all_vms <= set(rule.vms):
                kept |= set(self.state.hosts) - set(rule.hosts)
            if isinstance(rule, Satisfy) and rule.constraint == "FailoverHosts":
                names = rule.arguments["ns"]
                assert isinstance(names, tuple)
                kept |= set() if failed or not all_vms else {str(name) for name in names}
        return kept

    def expected(self, host: HostId, window: Window, *coming: VmId) -> Pair:
        """The mean, and so many deviations, of what all VMs on a host asked for together."""
        seen = [self._sum(host, frame, coming) for frame in self._frames(window.seconds)]
        cpu, memory = zip(*seen, strict=True)
        return (
            fmean(cpu) + window.ratio * pstdev(cpu),
            fmean(memory) + window.ratio * pstdev(memory),
        )

    def _sum(self, host: HostId, frame: Mapping[VmId, Demand], coming: Iterable[VmId]) -> Pair:
        some = {vm for vm, at in self.where.items() if at == host} | set(coming)
        asked = [capped(self.state.vms[vm], frame[vm]) for vm in some]
        return sum(cpu for cpu, _ in asked), sum(memory for _, memory in asked)

    def _frames(self, seconds: int) -> list[Mapping[VmId, Demand]]:
        """Observations newer than so many seconds; who was not there was as now; now if none."""
        since_ms = self.state.at_ms - 1000 * seconds
        past: list[Mapping[VmId, Demand]] = [
            sample.demand for sample in self.state.history if sample.at_ms > since_ms
        ]
        now = {vm: self.state.vms[vm].demand for vm in self.where}
        return [{vm: frame.get(vm, now[vm]) for vm in self.where} for frame in past or [{}]]

    def utilisation(self, host: HostId, window: Window, *coming: VmId) -> Pair:
        """What part of a host is expected to be needed."""
        cpu, memory = self.expected(host, window, *coming)
        return cpu / has(self.state.hosts[host])[0], memory / has(self.state.hosts[host])[1]

    def bears(self, host: HostId, *coming: VmId) -> bool:
        """Whether VMs can come to stay: no more is then needed than should be used."""
        windows = self.on, self.off
        most = self.policy.high + HAIR
        return all(max(self.utilisation(host, window, *coming)) <= most for window in windows)

    # Equations 5 and 6

    def high(self) -> Pair:
        """How far hosts are above what they should use."""
        return self._score(
            [
                tuple(part - self.policy.high for part in self.utilisation(host.id, self.on))
                for host in self.hosts()
            ]
        )

    def low(self) -> Pair:
        """How far hosts are below what they should use."""
        return self._score(
            [
                tuple(self.policy.low - part for part in self.utilisation(host.id, self.off))
                for host in self.hosts()
            ]
        )

    @staticmethod
    def _score(distances: list[tuple[float, ...]]) -> Pair:
        cpu = sqrt(sum(max(0.0, distance[0]) ** 2 for distance in distances))
        return cpu, sqrt(sum(max(0.0, distance[1]) ** 2 for distance in distances))

    @property
    def may_wake(self) -> bool:
        """Whether hosts should wake: some have too much to do, of CPU or of memory."""
        return max(self.high()) > HAIR

    @property
    def may_power_off(self) -> bool:
        """Whether standby is due: no host is too busy, and some are under-used by each resource."""
        return not self.may_wake and min(self.low()) > HAIR

    # What a sleep is worth

    def worth(self, host: HostId, going: Where, estimates: Estimates) -> Worth:
        """What it is worth that a host sleeps and that its VMs go elsewhere."""
        after = PlainPower(self.state, {**self.where, **going}, {*self.asleep, host})
        worse = [new - old for old, new in self._pairs(after, self.worst)]
        lacked = [new - old for old, new in self._pairs(after, self.on)]
        touched = {host, *going.values()}
        stable_s = min(self.policy.asleep_s, *(self.stable_s(host) for host in touched))
        moving = [estimates.move_ms(self.state.vms[vm]) / 1000 for vm in going]
        at_once = self.state.settings.limits.parallel_migrations
        leaving_s = sum(moving) / at_once + estimates.power_off_ms / 1000
        coming_s = sum(moving) / at_once + estimates.power_on_ms / 1000 + self.policy.on_window_s
        stays_s = stable_s if max(worse) > HAIR else self.policy.asleep_s
        asleep_s = max(0.0, stays_s - leaving_s - coming_s)
        moved = self._moving(going, moving)
        short = [
            max(0.0, now) * stable_s + max(0.0, worst) * coming_s
            for now, worst in zip(lacked, worse, strict=True)
        ]
        cpu, memory = has(self.state.hosts[host])
        return Worth(
            (cpu * asleep_s, memory * asleep_s),
            (2 * moved[0] + short[0], 2 * moved[1] + short[1]),
        )

    def _pairs(self, after: PlainPower, window: Window) -> Iterator[Pair]:
        return zip(self._short(window), after._short(window), strict=True)

    def _short(self, window: Window) -> Pair:
        """What hosts that are on would lack."""
        lacks = [
            [
                max(0.0, need - there)
                for need, there in zip(self.expected(host.id, window), has(host), strict=True)
            ]
            for host in self.hosts()
        ]
        return sum(lack[0] for lack in lacks), sum(lack[1] for lack in lacks)

    def _moving(self, going: Where, moving: list[float]) -> Pair:
        """What it takes to move VMs: work on both hosts, slower work inside, memory held twice."""
        policy = self.state.settings.balance
        cpu = memory = 0.0
        for vm, seconds in zip(going, moving, strict=True):
            one = self.state.vms[vm]
            cpu += seconds * (2 * policy.migration_cpu_mhz + policy.slowdown * one.demand.cpu_mhz)
            memory += seconds * one.memory_mib
        return cpu, memory

    def stable_s(self, host: HostId) -> float:
        """How long, on average, the CPU demand on a host has stayed about the same."""
        policy, history = self.state.settings.balance, self.state.history
        if not history:
            return policy.horizon_s
        cpu = has(self.state.hosts[host])[0]
        there = [vm for vm, at in self.without_steps.items() if at == host]
        loads = [
            sum(sample.demand.get(vm, self.state.vms[vm].demand).cpu_mhz for vm in there) / cpu
            for sample in history
        ]
        changes = sum(abs(after - before) > NOTABLE for before, after in pairwise(loads))
        seen_s = (self.state.at_ms - history[0].at_ms) / 1000
        return max(policy.stable_s_min, seen_s / (1 + changes))

    # Whether an assignment is right

    def faults(self, going: Where) -> list[str]:
        """What is wrong with sending VMs to hosts, plainly."""
        found = []
        later = PlainPower(self.state, {**self.where, **going}, self.asleep)
        for vm, host in going.items():
            there = self.state.hosts[host]
            closed = self.state.settings.balance.hosts.get(host)
            if there.state is not HostState.ON or there.requested or closed or host in self.asleep:
                found.append(f"{host} takes no VM")
            if self.state.vms[vm].vcpus > there.cores:
                found.append(f"{vm} is too large for {host}")
        for host in sorted(set(going.values())):
            if not later.bears(host):
                found.append(f"{host} has too much to do: {later.utilisation(host, later.off)}")
            found += later._unkept(self.state.hosts[host])
        for rule in self.state.settings.rules:
            if rule.hard and not later._holds(rule) and self._holds(rule):
                found.append(f"rule {rule.id} is broken")
        for name, host in going.items():
            pair = self.state.vms[name].ft_pair
            if pair is not None and later.where.get(pair) == host:
                found.append(f"{name} and its other half share a host")
        return found

    def _unkept(self, host: Host) -> Iterator[str]:
        some = [self.state.vms[vm] for vm, at in self.where.items() if at == host.id]
        cpu = sum(vm.cpu.reservation_mhz for vm in some)
        memory = sum(vm.memory.reservation_mib for vm in some)
        if cpu > has(host)[0] or memory > has(host)[1]:
            yield f"{host.id} has promised more than it has"
        if sum(vm.memory_mib for vm in some) > memory_for_sizes(host):
            yield f"{host.id} has VMs with more memory than it has"
        if sum(vm.vcpus for vm in some) > vcpus_for_sizes(host):
            yield f"{host.id} has VMs with more vCPUs than it may have"

    def _holds(self, rule: object) -> bool:
        match rule:
            case KeepApart():
                hosts = [self.where[vm] for vm in rule.vms if vm in self.where]
                return len(set(hosts)) == len(hosts)
            case KeepTogether():
                return len({self.where[vm] for vm in rule.vms if vm in self.where}) <= 1
            case StayWithin():
                return all(self.where.get(vm, rule.hosts[0]) in rule.hosts for vm in rule.vms)
            case StayOff():
                return all(self.where.get(vm) not in rule.hosts for vm in rule.vms)
            case _:
                return True

    def ways_out(self, host: HostId) -> Iterator[Where]:
        """Every way to send the VMs of a host to others with nothing wrong about it."""
        vms = [vm for vm, at in self.where.items() if at == host and not self.state.vms[vm].agent]
        others = [other.id for other in self.hosts() if other.id != host]
        for chosen in product(others, repeat=len(vms)):
            going = dict(zip(vms, chosen, strict=True))
            if not self.faults(going):
                yield going


def has(host: Host) -> Pair:
    """What a host has for VMs."""
    return host.usable_cpu_mhz, host.usable_memory_mib


def capped(vm: Vm, asked: Demand) -> Pair:
    """What a VM can use of what it asks for: its limits, and its size, are the most."""
    cpu, memory = asked.cpu_mhz, min(asked.memory_mib, vm.memory_mib)
    return (
        cpu if vm.cpu.limit_mhz is None else min(cpu, vm.cpu.limit_mhz),
        memory if vm.memory.limit_mib is None else min(memory, vm.memory.limit_mib),
    )
