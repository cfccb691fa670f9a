"""The snapshot as NumPy arrays, for kernels that look at all hosts and VMs at once.

Row ``i`` of a VM array belongs to ``vm_ids[i]``, row ``j`` of a host array to ``host_ids[j]``, both
in the order of the snapshot. The arrays are read-only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState

Integers = npt.NDArray[np.int64]

NO_LIMIT: Final = np.iinfo(np.int64).max
HOST_STATES: Final = tuple(HostState)
VM_STATES: Final = tuple(VmState)


@dataclass(frozen=True, kw_only=True, slots=True)
class HostColumns:
    """One array per figure of a host."""

    state: Integers
    """Index into ``HOST_STATES``."""
    cores: Integers
    usable_cpu_mhz: Integers
    usable_memory_mib: Integers


@dataclass(frozen=True, kw_only=True, slots=True)
class VmColumns:
    """One array per figure of a VM."""

    state: Integers
    """Index into ``VM_STATES``."""
    host: Integers
    """Row of the host it lies on, or -1."""
    vcpus: Integers
    memory_mib: Integers
    cpu_reservation_mhz: Integers
    cpu_limit_mhz: Integers
    """``NO_LIMIT`` where there is none."""
    cpu_shares: Integers
    cpu_demand_mhz: Integers
    memory_reservation_mib: Integers
    memory_limit_mib: Integers
    memory_shares: Integers
    memory_demand_mib: Integers


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """All of it, with the ids that the rows stand for."""

    host_ids: tuple[HostId, ...]
    vm_ids: tuple[VmId, ...]
    host_row: dict[HostId, int]
    vm_row: dict[VmId, int]
    hosts: HostColumns
    vms: VmColumns

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """Build the arrays of a snapshot."""
        host_row = {host: row for row, host in enumerate(snapshot.hosts)}
        vm_row = {vm: row for row, vm in enumerate(snapshot.vms)}
        return cls(
            host_ids=tuple(host_row),
            vm_ids=tuple(vm_row),
            host_row=host_row,
            vm_row=vm_row,
            hosts=_host_columns(tuple(snapshot.hosts.values())),
            vms=_vm_columns(tuple(snapshot.vms.values()), host_row),
        )


def _host_columns(hosts: tuple[Host, ...]) -> HostColumns:
    def column(figure: Callable[[Host], int]) -> Integers:
        return _array(map(figure, hosts), len(hosts))

    state_row = {state: row for row, state in enumerate(HOST_STATES)}
    return HostColumns(
        state=column(lambda host: state_row[host.state]),
        cores=column(lambda host: host.cores),
        usable_cpu_mhz=column(lambda host: host.usable_cpu_mhz),
        usable_memory_mib=column(lambda host: host.usable_memory_mib),
    )


def _vm_columns(vms: tuple[Vm, ...], host_row: dict[HostId, int]) -> VmColumns:
    def column(figure: Callable[[Vm], int]) -> Integers:
        return _array(map(figure, vms), len(vms))

    state_row = {state: row for row, state in enumerate(VM_STATES)}
    return VmColumns(
        state=column(lambda vm: state_row[vm.state]),
        host=column(lambda vm: -1 if vm.host is None else host_row[vm.host]),
        vcpus=column(lambda vm: vm.vcpus),
        memory_mib=column(lambda vm: vm.memory_mib),
        cpu_reservation_mhz=column(lambda vm: vm.cpu.reservation_mhz),
        cpu_limit_mhz=column(lambda vm: _limit(vm.cpu.limit_mhz)),
        cpu_shares=column(lambda vm: vm.cpu.shares),
        cpu_demand_mhz=column(lambda vm: vm.demand.cpu_mhz),
        memory_reservation_mib=column(lambda vm: vm.memory.reservation_mib),
        memory_limit_mib=column(lambda vm: _limit(vm.memory.limit_mib)),
        memory_shares=column(lambda vm: vm.memory.shares),
        memory_demand_mib=column(lambda vm: vm.demand.memory_mib),
    )


def _limit(value: int | None) -> int:
    return NO_LIMIT if value is None else value


def _array(figures: Iterable[int], length: int) -> Integers:
    array = np.fromiter(figures, dtype=np.int64, count=length)
    array.flags.writeable = False
    return array
