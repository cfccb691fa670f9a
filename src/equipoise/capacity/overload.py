"""Overload: demand that exceeds the capacity of a host.

The demand that counts is what a VM could use if its host had enough: its demand, at most its own
limit and the limits of its pools. A reservation without demand uses nothing. Entitlement is another
figure: it divides the capacity that is there, so it hides how much is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from equipoise.capacity.entitlement import VmClaims
from equipoise.capacity.imbalance import FULL_LOAD
from equipoise.capacity.waterfill import Floats
from equipoise.model.host import Host
from equipoise.model.quantity import VmId
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm


class DemandedResource(NamedTuple):
    """A resource of which hosts can be overloaded."""

    name: str
    unit: str
    code: str
    """The code of a cluster that has too little of it."""
    of_host: Callable[[Host], int]


DEMANDED: Final = (
    DemandedResource("CPU", "MHz", "out-of-cpu", lambda host: host.usable_cpu_mhz),
    DemandedResource("memory", "MiB", "out-of-memory", lambda host: host.usable_memory_mib),
)
"""The columns of every array of demands."""


def usable_demands(state: Snapshot | Draft, vms: Sequence[Vm], *, fast: bool) -> Floats:
    """Return the demand that limits let each VM use: a row per VM, a column per resource."""
    return VmClaims.of(state, vms).usable_demands(fast=fast)


def demand_per_vm(state: Snapshot | Draft, vms: Sequence[Vm]) -> dict[VmId, tuple[int, int]]:
    """Return the usable demand of VMs in whole MHz and MiB, without the VMs that have none."""
    demanding = [vm for vm in vms if vm.demand.cpu_mhz or vm.demand.memory_mib]
    if not demanding:
        return {}
    amounts = np.rint(usable_demands(state, demanding, fast=False)).astype(np.int64).tolist()
    return {vm.id: (row[0], row[1]) for vm, row in zip(demanding, amounts, strict=True)}


def host_capacities(hosts: Iterable[Host]) -> Floats:
    """Return what each host offers to VMs: a row per host, a column per resource."""
    figures = [[resource.of_host(host) for resource in DEMANDED] for host in hosts]
    return np.array(figures, dtype=np.float64).reshape(len(figures), len(DEMANDED))


def overload(demand: Floats, capacity: Floats) -> Floats:
    """Return by how much the demand exceeds the capacity; rounding is no overload."""
    excess: Floats = np.where(demand > capacity * FULL_LOAD, demand - capacity, 0.0)
    return excess
