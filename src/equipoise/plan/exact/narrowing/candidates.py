"""Candidate hosts: a greedy guess of which VM moves where, by capacity and by the simplest rules.

All other requirements are left to the solver. The solver gets more than one host for each VM, and
a wider scope when the guess leads to no plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import nsmallest

from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.task import PlanningTask, RuleCondition
from equipoise.spec.evaluate.view import CPU, MEMORY, capacity_of, consumption_of


class AllowedHosts:
    """The hosts that the simplest rules allow for each VM."""

    def __init__(self, task: PlanningTask) -> None:
        self._snapshot = task.snapshot
        self._rules: dict[VmId, list[RuleCondition]] = {}
        for condition in task.hard:
            if (
                isinstance(condition, RuleCondition)
                and condition.requirement.library_name in _PLACEMENT_CONSTRAINTS
            ):
                for vm in condition.named_vms:
                    self._rules.setdefault(vm, []).append(condition)

    def hosts(self, vm: VmId) -> Collection[HostId] | None:
        """Return the hosts that the rules about a VM allow; ``None`` if there is no such rule."""
        allowed: frozenset[HostId] | None = None
        for condition in self._rules.get(vm, ()):
            by_rule = frozenset(self._by(condition, vm))
            allowed = by_rule if allowed is None else allowed & by_rule
        return allowed

    def _by(self, condition: RuleCondition, vm: VmId) -> Iterable[HostId]:
        arguments = condition.requirement.arguments
        if "parts" in arguments:
            return self._among(arguments["parts"], arguments["vs"] - {vm})
        named: frozenset[HostId] = arguments["ns"]
        inside = condition.requirement.name in ("Fence", "MustRunOn")
        return named if inside else self._snapshot.hosts.keys() - named

    def _among(
        self, parts: Collection[frozenset[HostId]], others: Collection[VmId]
    ) -> Iterator[HostId]:
        """Yield the hosts of the groups that the other VMs use already, or of all groups."""
        used = {self._snapshot.placement.get(vm) for vm in others} - {None}
        for part in [part for part in parts if used & part] or parts:
            yield from part


_PLACEMENT_CONSTRAINTS = frozenset({"Fence", "Ban", "MustRunOn", "MustNotRunOn", "Among"})


ResourceAmounts = tuple[int, ...]


class CandidateFinder:
    """Chooses candidate hosts by the free capacity of each host, which it updates."""

    def __init__(self, task: PlanningTask, desired: Snapshot) -> None:
        self._task = task
        self._desired = desired
        names = {name for vm in desired.vms.values() for name in vm.consumption}
        reserved = any(vm.cpu.reservation_mhz for vm in desired.vms.values())
        reserves_memory = any(vm.memory.reservation_mib for vm in desired.vms.values())
        self._resources = (
            *((CPU,) if reserved else ()),
            *((MEMORY,) if reserves_memory else ()),
            *sorted(names),
        )
        self._limits = dict(_limits(task))
        self._free = {host.id: self._free_capacity(host) for host in desired.hosts.values()}
        usable = [host for host in desired.hosts.values() if self._is_usable(host)]
        # Hosts that are on come first, and among them the emptiest.
        usable.sort(key=self._fullness)
        self._hosts = [host.id for host in usable]
        self._turn = 0
        self._allowed = AllowedHosts(task)

    def evicted(self, misplaced: Iterable[VmId]) -> list[VmId]:
        """Return the misplaced VMs that must leave their host.

        On an overfull host, only as many leave as capacity requires. Elsewhere all of them leave.
        """
        by_host: dict[HostId, list[VmId]] = {}
        for vm in sorted(misplaced):
            host = self._desired.vms[vm].host
            if host is not None:
                by_host.setdefault(host, []).append(vm)
        leaving: list[VmId] = []
        for host, vms in by_host.items():
            is_on = self._desired.hosts[host].state is HostState.ON
            leaving += self._shed(host, vms) if is_on and self._is_overfull(host) else vms
        return leaving

    def find_hosts(self, movers: Sequence[VmId], count: int) -> dict[VmId, list[HostId]]:
        """Return candidate hosts for some VMs, the largest VM first.

        The first host of each VM is the guess; its capacity is taken.
        """
        hosts: dict[VmId, list[HostId]] = {}
        for vm in sorted(movers, key=lambda mover: (-sum(self._needs(mover)), mover)):
            hosts[vm] = self._candidates(vm, count)
            if hosts[vm]:
                self._take(hosts[vm][0], self._needs(vm), 1)
        return hosts

    def closest_fit(self, vm: VmId, count: int) -> list[HostId]:
        """Return the hosts that could hold a VM and lack the least capacity for it."""
        needs, allowed = self._needs(vm), self._allowed.hosts(vm)
        short = [
            (self._shortfall(host, needs), host)
            for host in self._hosts
            if (allowed is None or host in allowed) and self._could_hold(host, needs)
        ]
        return [host for _, host in nsmallest(count, short)]

    def _could_hold(self, host: HostId, needs: ResourceAmounts) -> bool:
        host_data = self._desired.hosts[host]
        return all(
            need <= self._capacity(host_data, name)
            for need, name in zip(needs, self._resources, strict=True)
        )

    def _shortfall(self, host: HostId, needs: ResourceAmounts) -> float:
        free = self._free[host]
        return max(
            (
                (need - available) / need
                for need, available in zip(needs, free, strict=True)
                if need > max(0, available)
            ),
            default=0.0,
        )

    # Capacity

    def _needs(self, name: VmId) -> ResourceAmounts:
        vm = self._desired.vms[name]
        wanted = self._task.amounts.get(name)
        if wanted and vm.state is not VmState.RUNNING:
            vm = vm.but(consumption={**vm.consumption, **wanted})
        return self._amounts(vm)

    def _amounts(self, vm: Vm) -> ResourceAmounts:
        return tuple(consumption_of(vm, name) for name in self._resources)

    def _capacity(self, host: Host, name: str) -> int:
        capacity = capacity_of(host, name)
        return min(capacity, self._limits.get((host.id, name), capacity))

    def _free_capacity(self, host: Host) -> list[int]:
        free = [self._capacity(host, name) for name in self._resources]
        for name in self._desired.residents[host.id]:
            vm = self._desired.vms[name]
            if vm.state is VmState.RUNNING or vm.agent:
                for index, amount in enumerate(self._amounts(vm)):
                    free[index] -= amount
        return free

    def _take(self, host: HostId, needs: ResourceAmounts, sign: int) -> None:
        free = self._free[host]
        for index, need in enumerate(needs):
            free[index] -= sign * need

    def _is_overfull(self, host: HostId) -> bool:
        return min(self._free[host], default=0) < 0

    def _shed(self, host: HostId, vms: list[VmId]) -> Iterator[VmId]:
        """Yield few VMs whose leaving makes a host fit: the smallest that suffices, or largest."""
        staying = list(vms)
        free = self._free[host]
        while staying and self._is_overfull(host):
            # Relieve the resource that lacks most.
            worst = min(range(len(free)), key=free.__getitem__)
            staying.sort(key=lambda vm: (self._needs(vm)[worst], vm))
            enough = (vm for vm in staying if self._needs(vm)[worst] >= -free[worst])
            leaver = next(enough, staying[-1])
            staying.remove(leaver)
            self._take(host, self._needs(leaver), -1)
            yield leaver

    # Hosts

    def _candidates(self, vm: VmId, count: int) -> list[HostId]:
        needs, allowed = self._needs(vm), self._allowed.hosts(vm)
        now, chosen = self._desired.vms[vm].host, list[HostId]()
        for offset in range(len(self._hosts)):
            host = self._hosts[(self._turn + offset) % len(self._hosts)]
            free = self._free[host]
            if host == now or (allowed is not None and host not in allowed):
                continue
            if all(need <= amount for need, amount in zip(needs, free, strict=True) if need):
                chosen.append(host)
                if len(chosen) == count:
                    break
        self._turn += 1  # the next VM begins with another host, so that they do not all share one
        return chosen

    def _is_usable(self, host: Host) -> bool:
        conditions = self._task.host_conditions.get(host.id)
        return host.state is HostState.ON or (host.state is HostState.STANDBY and not conditions)

    def _fullness(self, host: Host) -> tuple[bool, float]:
        capacities = (self._capacity(host, name) for name in self._resources)
        shares = (
            free / capacity
            for free, capacity in zip(self._free[host.id], capacities, strict=True)
            if capacity > 0
        )
        return host.state is not HostState.ON, -min(shares, default=0.0)


def _limits(task: PlanningTask) -> Iterator[tuple[tuple[HostId, str], int]]:
    """Yield the limits that rules set on a resource of single hosts; the tightest comes last."""
    limits = [
        (
            condition.requirement.arguments["qty"],
            *condition.requirement.arguments["ns"],
            condition.requirement.arguments["id"],
        )
        for condition in task.hard
        if isinstance(condition, RuleCondition)
        and condition.requirement.library_name == "ResourceCapacity"
        and len(condition.requirement.arguments["ns"]) == 1
    ]
    for most, host, name in sorted(limits, reverse=True):
        yield (host, name), most
