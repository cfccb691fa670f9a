"""How a VM gets its host in a placement: it starts, resumes or moves; and what it may demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from equipoise.balance.repair.faults import BalanceFault
from equipoise.model.action import Action, Boot, Migrate, Resume
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Demand, Vm, VmState


def start_action(vm: Vm, host: HostId) -> Action:
    """Return the action after which a VM runs on a host."""
    if vm.host is None:
        return Boot(vm=vm.id, target=host)
    if vm.state is VmState.SLEEPING:
        return Resume(vm=vm.id, source=vm.host, target=host)
    return Migrate(vm=vm.id, source=vm.host, target=host)


def is_placeable(vm: Vm, *, resident: bool) -> bool:
    """Return whether a placement may choose a host for a VM; with ``resident``, another host."""
    if vm.agent:
        return False
    if resident and vm.state in {VmState.SLEEPING, VmState.RUNNING}:
        return True
    return vm.state is VmState.READY


def host_to_leave(vm: Vm) -> HostId | None:
    """Return the host on which a VM runs; a sleeping VM may resume on its own."""
    return vm.host if vm.state is VmState.RUNNING else None


def is_demand_known(vm: Vm) -> bool:
    """Return whether the demand of a VM is given."""
    return vm.demand.cpu_mhz > 0 or vm.demand.memory_mib > 0


def at_full_load(vm: Vm, mhz_per_core: int) -> Vm:
    """Return a VM with the maximum demand; the score limits the MHz to what a host can give."""
    demand = Demand(cpu_mhz=vm.vcpus * mhz_per_core, memory_mib=vm.memory_mib, named=vm.consumption)
    return vm.but(demand=demand)


Excess = Mapping[tuple[HostId, int], int]
"""The demand on hosts above their capacity, per host and resource."""


def overload_warnings(vm: VmId, before: Excess, now: Excess) -> Iterator[BalanceFault]:
    """Yield a warning per host that the moves for a VM overload more than before."""
    worse = [
        host for (host, column), excess in now.items() if excess > before.get((host, column), 0)
    ]
    for host in dict.fromkeys(worse):
        detail = f"the moves that make room for {vm} overload {host}; no others are known"
        yield BalanceFault(code="host-overloaded", subject=host, detail=detail, vms=(vm,))
