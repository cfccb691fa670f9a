"""How good a host is for a new VM: how uneven the cluster would be with it there."""

from __future__ import annotations

import numpy as np

from equipoise.balance.mending.standing import Standing
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.place.deserve import entitled
from equipoise.place.imbalance import imbalance
from equipoise.place.water import Floats


class Goodness:
    """The loads of all hosts that are on, as VMs come to them in mind."""

    def __init__(self, snapshot: Snapshot, standing: Standing) -> None:
        self._hosts = [
            host
            for host in snapshot.hosts.values()
            if host.state is HostState.ON and min(_size(host)) > 0
        ]
        self._row = {host.id: row for row, host in enumerate(self._hosts)}
        self._loads = np.zeros((len(self._hosts), 2))
        self._size = np.array([_size(host) for host in self._hosts]).reshape(-1, 2)
        running = [vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING]
        self._due = dict(
            zip((vm.id for vm in running), entitled(snapshot, running, fast=False), strict=True)
        )
        for vm, host in standing.where.items():
            if host in self._row:
                self._loads[self._row[host]] += self._load(standing.vms[vm], host)

    def with_(self, vm: Vm, host: HostId) -> float:
        """The imbalance with a VM on a host."""
        row = self._row[host]
        before = self._loads[row].copy()
        self._loads[row] += self._load(vm, host)
        found = imbalance(self._loads)
        self._loads[row] = before
        return found

    def add(self, vm: Vm, host: HostId) -> None:
        """Let a VM be on a host."""
        self._loads[self._row[host]] += self._load(vm, host)

    def take(self, vm: Vm, host: HostId) -> None:
        """Let a VM no longer be on a host."""
        self._loads[self._row[host]] -= self._load(vm, host)

    def move(self, vm: Vm, source: HostId, target: HostId) -> None:
        """Let a VM be on another host."""
        self.take(vm, source)
        self.add(vm, target)

    def _load(self, vm: Vm, name: HostId) -> Floats:
        """What a VM deserves of a host or, if it is new, what it can use there, as a part of it."""
        row = self._row[name]
        if vm.id in self._due:
            found: Floats = self._due[vm.id] / self._size[row]
            return found
        cpu_mhz = min(vm.demand.cpu_mhz, vm.vcpus * self._hosts[row].mhz_per_core)
        memory_mib = min(vm.demand.memory_mib, vm.memory_mib)
        if vm.cpu.limit_mhz is not None:
            cpu_mhz = min(cpu_mhz, vm.cpu.limit_mhz)
        if vm.memory.limit_mib is not None:
            memory_mib = min(memory_mib, vm.memory.limit_mib)
        asked: Floats = np.array([cpu_mhz, memory_mib]) / self._size[row]
        return asked


def _size(host: Host) -> tuple[int, int]:
    return host.usable_cpu_mhz, host.usable_memory_mib
