"""The score of hosts in a placement: load, soft rules, headroom and imbalance."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import numpy as np

from equipoise.balance.repair.placement_state import PlacementState
from equipoise.balance.rules import read_rules
from equipoise.capacity.entitlement import vm_entitlements
from equipoise.capacity.imbalance import imbalance
from equipoise.capacity.overload import demand_per_vm, host_capacities
from equipoise.capacity.waterfill import Floats
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.rule import KeepApart, KeepTogether
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm, VmState

HEADROOM_LOAD: Final = 0.9
"""A host above this load has no headroom: a small rise of the demand overloads it."""


class SoftRules:
    """The soft rules that a start on a host would break."""

    def __init__(self, snapshot: Snapshot, placement_state: PlacementState) -> None:
        self._host_of = placement_state.host_of
        hard = read_rules(snapshot).bans
        self._banned: dict[VmId, list[frozenset[HostId]]] = defaultdict(list)
        for ban in read_rules(snapshot, with_soft=True).bans:
            for vm in () if ban in hard else ban.vms:
                self._banned[vm].append(ban.hosts)
        soft = [rule for rule in snapshot.settings.rules if not rule.hard]
        self._apart = [rule.vms for rule in soft if isinstance(rule, KeepApart)]
        self._together = [rule.vms for rule in soft if isinstance(rule, KeepTogether)]

    def broken_by(self, vm: VmId, host: HostId) -> int:
        """Return how many soft rules a VM breaks on a host."""
        broken = sum(host in hosts for hosts in self._banned.get(vm, ()))
        for vms in self._apart:
            broken += vm in vms and any(self._at(other) == host for other in vms if other != vm)
        for vms in self._together:
            others = {self._at(other) for other in vms if other != vm} - {None, host}
            broken += vm in vms and bool(others)
        return broken

    def _at(self, vm: str) -> HostId | None:
        return self._host_of.get(VmId(vm))


class PlacementScore:
    """The loads of all hosts that are on, updated as VMs are placed."""

    def __init__(self, snapshot: Snapshot, placement_state: PlacementState) -> None:
        self._hosts = [
            host
            for host in snapshot.hosts.values()
            # A host without usable capacity would divide by zero and accepts no VM anyway.
            if host.state is HostState.ON and min(host.usable_cpu_mhz, host.usable_memory_mib) > 0
        ]
        self._row = {host.id: row for row, host in enumerate(self._hosts)}
        self._loads = np.zeros((len(self._hosts), 2))
        self._demands = np.zeros((len(self._hosts), 2))
        self._size = host_capacities(self._hosts)
        running = [vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING]
        self._entitlements = dict(
            zip(
                (vm.id for vm in running),
                vm_entitlements(snapshot, running, fast=False),
                strict=True,
            )
        )
        self._demand_of = demand_per_vm(snapshot, running)
        self._soft = SoftRules(snapshot, placement_state)
        for vm, host in placement_state.host_of.items():
            if host is not None and host in self._row:
                self.add(placement_state.vms[vm], host)

    def rank(self, vm: Vm, host: HostId) -> tuple[float, int, float]:
        """Return a sort key of a host for a VM: overload, broken soft rules, lack of headroom.

        The overload is how far the demand on the host would exceed its capacity more than now.
        """
        row = self._row[host]
        now = self._demands[row]
        then = now + self._demand(vm, host)
        over = float((np.maximum(then - 1.0, 0.0) - np.maximum(now - 1.0, 0.0)).sum())
        full = max(0.0, float(then.max()) - HEADROOM_LOAD)
        return round(over, 9), self._soft.broken_by(vm.id, host), round(full, 9)

    def assumed(self, vm: Vm, host: HostId) -> Demand:
        """Return the demand that a VM is assumed to have on a host."""
        cpu_mhz, memory_mib = self._demand(vm, host) * self._size[self._row[host]]
        return Demand(cpu_mhz=round(cpu_mhz), memory_mib=round(memory_mib))

    def imbalance_with(self, vm: Vm, host: HostId) -> float:
        """Return the imbalance with a VM on a host."""
        row = self._row[host]
        # Copy and restore: subtracting the load again would leave rounding errors, and ties between
        # equal hosts would depend on the order in which they were tried.
        before = self._loads[row].copy()
        self._loads[row] += self._load(vm, host)
        result = imbalance(self._loads)
        self._loads[row] = before
        return result

    def add(self, vm: Vm, host: HostId) -> None:
        """Add the load of a VM to a host."""
        self._loads[self._row[host]] += self._load(vm, host)
        self._demands[self._row[host]] += self._demand(vm, host)

    def remove(self, vm: Vm, host: HostId) -> None:
        """Remove the load of a VM from a host."""
        self._loads[self._row[host]] -= self._load(vm, host)
        self._demands[self._row[host]] -= self._demand(vm, host)

    def move(self, vm: Vm, source: HostId, target: HostId) -> None:
        """Move the load of a VM to another host."""
        self.remove(vm, source)
        self.add(vm, target)

    def _load(self, vm: Vm, name: HostId) -> Floats:
        """Return the load of a VM on a host, as a part of the capacity of the host.

        For a VM that runs it is the entitlement; for a new VM it is what it can use at most there.
        """
        row = self._row[name]
        if vm.id in self._entitlements:
            entitled: Floats = self._entitlements[vm.id] / self._size[row]
            return entitled
        return self._demand(vm, name)

    def _demand(self, vm: Vm, name: HostId) -> Floats:
        """Return the demand of a VM on a host, as a part of the capacity of the host."""
        row = self._row[name]
        if vm.id in self._entitlements:
            known: Floats = np.array(self._demand_of.get(vm.id, (0, 0))) / self._size[row]
            return known
        # A vCPU runs on one core at a time, so the demand of a new VM depends on the core speed of
        # the host.
        cpu_mhz = min(vm.demand.cpu_mhz, vm.vcpus * self._hosts[row].mhz_per_core)
        memory_mib = min(vm.demand.memory_mib, vm.memory_mib)
        if vm.cpu.limit_mhz is not None:
            cpu_mhz = min(cpu_mhz, vm.cpu.limit_mhz)
        if vm.memory.limit_mib is not None:
            memory_mib = min(memory_mib, vm.memory.limit_mib)
        load: Floats = np.array([cpu_mhz, memory_mib]) / self._size[row]
        return load
