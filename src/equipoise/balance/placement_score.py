"""The score of a host for a new VM: the imbalance of the cluster with the VM on that host."""

from __future__ import annotations

import numpy as np

from equipoise.balance.repair.placement_state import PlacementState
from equipoise.capacity.entitlement import vm_entitlements
from equipoise.capacity.imbalance import imbalance
from equipoise.capacity.waterfill import Floats
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState


class PlacementScore:
    """The loads of all hosts that are on, updated as VMs are placed."""

    def __init__(self, snapshot: Snapshot, placement_state: PlacementState) -> None:
        self._hosts = [
            host
            for host in snapshot.hosts.values()
            if host.state is HostState.ON and min(_capacity(host)) > 0
        ]
        self._row = {host.id: row for row, host in enumerate(self._hosts)}
        self._loads = np.zeros((len(self._hosts), 2))
        self._size = np.array([_capacity(host) for host in self._hosts]).reshape(-1, 2)
        running = [vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING]
        self._entitlements = dict(
            zip(
                (vm.id for vm in running),
                vm_entitlements(snapshot, running, fast=False),
                strict=True,
            )
        )
        for vm, host in placement_state.host_of.items():
            if host in self._row:
                self._loads[self._row[host]] += self._load(placement_state.vms[vm], host)

    def imbalance_with(self, vm: Vm, host: HostId) -> float:
        """Return the imbalance with a VM on a host."""
        row = self._row[host]
        before = self._loads[row].copy()
        self._loads[row] += self._load(vm, host)
        result = imbalance(self._loads)
        self._loads[row] = before
        return result

    def add(self, vm: Vm, host: HostId) -> None:
        """Add the load of a VM to a host."""
        self._loads[self._row[host]] += self._load(vm, host)

    def remove(self, vm: Vm, host: HostId) -> None:
        """Remove the load of a VM from a host."""
        self._loads[self._row[host]] -= self._load(vm, host)

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
        cpu_mhz = min(vm.demand.cpu_mhz, vm.vcpus * self._hosts[row].mhz_per_core)
        memory_mib = min(vm.demand.memory_mib, vm.memory_mib)
        if vm.cpu.limit_mhz is not None:
            cpu_mhz = min(cpu_mhz, vm.cpu.limit_mhz)
        if vm.memory.limit_mib is not None:
            memory_mib = min(memory_mib, vm.memory.limit_mib)
        load: Floats = np.array([cpu_mhz, memory_mib]) / self._size[row]
        return load


def _capacity(host: Host) -> tuple[int, int]:
    return host.usable_cpu_mhz, host.usable_memory_mib
