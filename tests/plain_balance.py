"""Balancing once more, in plain Python and from its meaning, as an oracle for the rebalancer.

No arrays, no sums of squares, nothing kept from one question to the next: each is answered by
looking at every VM again. In-flight actions are not understood here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist, pstdev
from typing import NamedTuple

from equipoise.model.action_durations import Estimates
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Pool
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.rule import KeepApart, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm
from plain_entitlement import CPU, MEMORY, entitlements
from plain_limits import memory_for_sizes, vcpus_for_sizes

HAIR = 1e-9
Where = dict[VmId, HostId]


class Wanted(NamedTuple):
    """A VM that could go to a host, and what the imbalance would lose by that."""

    vm: VmId
    host: HostId
    gain: float


class PlainBalance:
    """A cluster in which VMs are moved as a trial."""

    def __init__(self, state: Snapshot, estimates: Estimates) -> None:
        self.state, self.policy, self._estimates = state, state.settings.balance, estimates
        self.hosts = [host for host in state.hosts.values() if host.state is HostState.ON]
        vms = [vm for vm in state.vms.values() if vm.host is not None]
        self.where: Where = {vm.id: HostId(str(vm.host)) for vm in vms}
        offered = {name for host in self.hosts for name in host.capacity}
        used = {name for vm in vms for name in (*vm.consumption, *vm.demand.named)}
        self.resources = ["cpu", "memory", *sorted(offered & used)]
        pools = state.settings.pools
        self._due = {
            "cpu": entitlements(self.hosts, vms, pools, CPU),
            "memory": entitlements(self.hosts, vms, pools, MEMORY),
        }
        self.usable = usable(self.hosts, vms, pools)
        self.heavy_at_first = self.heavy(self.where)
        heavy = {
            name: 3.0 if self.stays_heavy(name) else heavy
            for name, heavy in self.heavy_at_first.items()
        }
        usual = 2 / 3 * len(self.resources) / sum(heavy.values())
        self.weight = {name: usual * heavy[name] for name in heavy}

    # How uneven it is

    def has(self, host: HostId, resource: str) -> float:
        known_host = self.state.hosts[host]
        if resource == "cpu":
            return known_host.usable_cpu_mhz
        if resource == "memory":
            return known_host.usable_memory_mib
        return known_host.capacity.get(ResourceName(resource), 0)

    def due(self, vm: VmId, resource: str) -> float:
        """The entitlement of a VM; of what has no shares, all it asks for."""
        if resource in self._due:
            return self._due[resource][vm]
        return asked(self.state.vms[vm], self.state.vms[vm].demand, resource)

    def load(self, host: HostId, resource: str, where: Where) -> float:
        there = sum(self.due(vm, resource) for vm, at in where.items() if at == host)
        return there / self.has(host, resource)

    def deviation(self, resource: str, where: Where) -> float:
        loads = [
            self.load(host.id, resource, where)
            for host in self.hosts
            if self.has(host.id, resource)
        ]
        return pstdev(loads) if loads else 0.0

    def heavy(self, where: Where) -> dict[str, float]:
        """Three times as much for what some host has to give more of than it has."""
        return {
            resource: 3.0
            if any(
                self.load(host.id, resource, where) > 1 + HAIR
                for host in self.hosts
                if self.has(host.id, resource)
            )
            else 1.0
            for resource in self.resources
        }

    def weighed(self, where: Where, weights: dict[str, float]) -> float:
        return sum(weight * self.deviation(resource, where) for resource, weight in weights.items())

    def stays_heavy(self, resource: str) -> bool:
        """Whether it was scarce in the last pass, and some host is still almost full."""
        return resource in self.state.contended and any(
            self.load(host.id, resource, self.where) > 0.9
            for host in self.hosts
            if self.has(host.id, resource)
        )

    def imbalance(self) -> float:
        """By what is scarce at the beginning."""
        return self.weighed(self.where, self.weight)

    def pressure(self) -> float:
        """The same but for the scale: what is scarce now counts 3, and what is not counts 1."""
        return self.weighed(self.where, self.heavy(self.where))

    # What may be done

    def allows(self, vm: VmId, host: HostId) -> bool:
        guest, target = self.state.vms[vm], self.state.hosts[host]
        if host == self.where[vm] or guest.agent or guest.vcpus > target.cores:
            return False
        return self.has_room(guest, host) and self.keeps_rules(vm, host)

    def has_room(self, vm: Vm, host: HostId) -> bool:
        there = [self.state.vms[other] for other, at in self.where.items() if at == host]
        if any(self.due(vm.id, name) and not self.has(host, name) for name in self.resources):
            return False
        if vm.memory_mib + sum(other.memory_mib for other in there) > memory_for_sizes(
            self.state.hosts[host]
        ):
            return False
        if vm.vcpus + sum(other.vcpus for other in there) > vcpus_for_sizes(self.state.hosts[host]):
            return False
        needs = [reserved(vm, resource) for resource in self.resources]
        return all(
            not need
            or need + sum(reserved(other, resource) for other in there) <= self.has(host, resource)
            for need, resource in zip(needs, self.resources, strict=True)
        )

    def keeps_rules(self, vm: VmId, host: HostId) -> bool:
        for rule in self.state.settings.rules:
            if isinstance(rule, KeepApart) and vm in rule.vms:
                others = [self.where[other] for other in rule.vms if other != vm]
                if host in others:
                    return False
            if isinstance(rule, StayOff) and vm in rule.vms and host in rule.hosts:
                return False
            if isinstance(rule, StayWithin) and vm in rule.vms and host not in rule.hosts:
                return False
        return True

    # What is good enough

    def gain(self, vm: VmId, host: HostId) -> float:
        return self.imbalance() - self.weighed({**self.where, vm: host}, self.weight)

    def overload(self, where: Where | None = None) -> dict[tuple[HostId, str], float]:
        """The demand above the capacity, of each host that has any."""
        there: dict[tuple[HostId, str], float] = {}
        for vm, host in (self.where if where is None else where).items():
            for resource in ("cpu", "memory"):
                there[host, resource] = there.get((host, resource), 0) + self.usable[resource][vm]
        return {
            (host, resource): demand - self.has(host, resource)
            for (host, resource), demand in there.items()
            if demand > self.has(host, resource) * (1 + HAIR)
        }

    def relieves(self, where: Where) -> bool:
        """Whether no host is overloaded more than now, and some host less."""
        now, then = self.overload(), self.overload(where)
        less = any(then.get(key, 0.0) < excess - 1e-6 for key, excess in now.items())
        return less and all(excess <= now.get(key, 0.0) + 1e-6 for key, excess in then.items())

    def crowds(self, vm: VmId, host: HostId) -> bool:
        """Whether a host is overloaded more, or something becomes scarce that was not at first."""
        now, then_over = self.overload(), self.overload({**self.where, vm: host})
        if any(
            then_over.get((host, resource), 0.0) > now.get((host, resource), 0.0)
            for resource in ("cpu", "memory")
        ):
            return True
        then = self.heavy({**self.where, vm: host})
        return any(then[resource] > weight for resource, weight in self.heavy_at_first.items())

    def least_gain(self, home: HostId) -> float:
        """What a move from a host must gain: a part of a host in any case, if it has enough."""
        excess = self.imbalance() - self.policy.imbalance_target
        least = self.policy.goodness * excess / len(self.hosts)
        relaxed = self.imbalance() > self.policy.relaxed_above * self.policy.imbalance_target
        least = least / 10 if relaxed else least
        return least if self.lacks(home) else max(least, self.policy.gain_min / len(self.hosts))

    def lacks(self, host: HostId) -> bool:
        """Whether the VMs on a host ask for more than it has."""
        return any(
            sum(self.now(vm, resource) for vm in self.on(host))
            > self.has(host, resource) * (1 + HAIR)
            for resource in self.resources
            if self.has(host, resource)
        )

    # What it is worth

    def net(self, vm: VmId, host: HostId) -> float:
        """What a move is worth after its cost, in host-seconds."""
        policy, home = self.policy, self.where[vm]
        horizon = policy.horizon_s
        stable = min(self.stable_s(home), self.stable_s(host), horizon)
        evened = self.gain(vm, host) * len(self.hosts)
        total = policy.evenness * evened * stable * (stable / horizon) ** 2
        for resource, weight in self.weight.items():
            size = self.has(host, resource)
            if not size:
                continue
            now = self.relief(vm, home, resource) - self.burden(vm, host, resource)
            worst = self.worst_relief(vm, home, resource) - self.worst_burden(vm, host, resource)
            met = now * stable + worst * (horizon - stable)
            total += weight * (met - (self.cost(vm) if resource == "cpu" else 0)) / size
        return total

    def cost(self, vm: VmId) -> float:
        """MHz-seconds: both hosts work for it, and the VM is slower, as long as it takes."""
        guest = self.state.vms[vm]
        mhz = 2 * self.policy.migration_cpu_mhz + self.policy.slowdown * guest.demand.cpu_mhz
        return mhz * self._estimates.migration_of(guest, self.state) / 1000

    def short(self, demand: float, host: HostId, resource: str) -> float:
        """What is missing on average if demand is spread about what was measured."""
        size, width = self.has(host, resource), self.policy.spread * demand
        if not size or width <= HAIR * size:
            return max(0.0, demand - size) if size else 0.0
        bell = NormalDist()
        z = (demand - size) / width
        return width * (bell.pdf(z) + z * bell.cdf(z))

    def relief(self, vm: VmId, home: HostId, resource: str) -> float:
        there = sum(self.now(other, resource) for other in self.on(home))
        left = there - self.now(vm, resource)
        return self.short(there, home, resource) - self.short(left, home, resource)

    def burden(self, vm: VmId, host: HostId, resource: str) -> float:
        there = sum(self.now(other, resource) for other in self.on(host))
        more = there + self.now(vm, resource)
        return self.short(more, host, resource) - self.short(there, host, resource)

    def worst_relief(self, vm: VmId, home: HostId, resource: str) -> float:
        there = sum(min(self.past(other, resource)) for other in self.on(home))
        left = there - min(self.past(vm, resource))
        return self.over(there, home, resource) - self.over(left, home, resource)

    def worst_burden(self, vm: VmId, host: HostId, resource: str) -> float:
        there = sum(max(self.past(other, resource)) for other in self.on(host))
        more = there + max(self.past(vm, resource))
        return self.over(more, host, resource) - self.over(there, host, resource)

    def over(self, demand: float, host: HostId, resource: str) -> float:
        size = self.has(host, resource)
        return max(0.0, demand - size) if size else 0.0

    def on(self, host: HostId) -> list[VmId]:
        return [vm for vm, at in self.where.items() if at == host]

    def now(self, vm: VmId, resource: str) -> float:
        return asked(self.state.vms[vm], self.state.vms[vm].demand, resource)

    def past(self, vm: VmId, resource: str) -> list[float]:
        """What it asked for within the last hour."""
        guest = self.state.vms[vm]
        demands = [frame.demand.get(vm, guest.demand) for frame in self.state.history]
        return [asked(guest, demand, resource) for demand in (*demands, guest.demand)]

    def stable_s(self, host: HostId) -> float:
        """How long CPU demand stayed about the same on those who are on a host at first."""
        history, at_first = self.state.history, self.state.residents[host]
        if not history:
            return self.policy.horizon_s
        loads = [
            sum(frame.demand[vm].cpu_mhz for vm in at_first) / self.has(host, "cpu")
            for frame in history
        ]
        changes = sum(abs(before - after) > 0.05 for before, after in pairwise(loads))
        span_s = (self.state.at_ms - history[0].at_ms) / 1000
        return max(self.policy.stable_s_min, span_s / (1 + changes))

    # All of it

    def moves(self, hair: float = HAIR) -> list[Wanted]:
        """All moves that are allowed, good enough and worth it, by more than a hair."""
        if self.imbalance() <= self.policy.imbalance_target + hair:
            return []
        found = []
        for vm in self.where:
            least = self.least_gain(self.where[vm])
            for host in self.hosts:
                if not self.allows(vm, host.id) or self.crowds(vm, host.id):
                    continue
                gain = self.gain(vm, host.id)
                if gain <= max(least, HAIR) + hair:
                    continue
                if not self.policy.cost_benefit or self.net(vm, host.id) > 1000 * hair:
                    found.append(Wanted(vm, host.id, gain))
        return found


def usable(
    hosts: Sequence[Host], vms: Sequence[Vm], pools: Sequence[Pool]
) -> dict[str, dict[VmId, float]]:
    """What limits let VMs use of their demand: what they are entitled to on an endless host."""
    free = [
        vm.but(cpu=vm.cpu.but(reservation_mhz=0), memory=vm.memory.but(reservation_mib=0))
        for vm in vms
    ]
    open_pools = [
        pool.but(cpu=pool.cpu.but(reservation_mhz=0), memory=pool.memory.but(reservation_mib=0))
        for pool in pools
    ]
    endless = [host.but(cores=10**4, mhz_per_core=10**5, memory_mib=10**9) for host in hosts[:1]]
    return {
        "cpu": entitlements(endless, free, open_pools, CPU),
        "memory": entitlements(endless, free, open_pools, MEMORY),
    }


def asked(vm: Vm, demand: Demand, resource: str) -> float:
    if resource == "cpu":
        return demand.cpu_mhz
    if resource == "memory":
        return demand.memory_mib
    name = ResourceName(resource)
    return demand.named.get(name, vm.consumption.get(name, 0))


def reserved(vm: Vm, resource: str) -> float:
    if resource == "cpu":
        return vm.cpu.reservation_mhz
    if resource == "memory":
        return vm.memory.reservation_mib
    return vm.consumption.get(ResourceName(resource), 0)
