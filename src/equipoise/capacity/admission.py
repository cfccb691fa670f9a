"""Admission control: may a VM with a reservation start in its pool?

The reservations inside a pool must not exceed the reservation of the pool. An expandable pool may
take more from the free reservation of its parent, and so on up to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from equipoise.capacity import ledger
from equipoise.capacity.ledger import LedgerResource
from equipoise.capacity.pool_tree import parents_first
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Pool
from equipoise.model.quantity import PoolId
from equipoise.model.vm import Vm, VmState


class ReservableResource(NamedTuple):
    """A resource of hosts and VMs that pools reserve too."""

    claimed: LedgerResource
    of_pool: Callable[[Pool], int]
    expandable: Callable[[Pool], bool]


CPU_RESERVATIONS: Final = ReservableResource(
    ledger.CPU, lambda pool: pool.cpu.reservation_mhz, lambda pool: pool.cpu_expandable
)
MEMORY_RESERVATIONS: Final = ReservableResource(
    ledger.MEMORY, lambda pool: pool.memory.reservation_mib, lambda pool: pool.memory_expandable
)


class AdmissionShortage(NamedTuple):
    """The reason why a VM is not admitted: too little can be reserved."""

    pool: PoolId | None
    """The pool that is not expandable, or ``None`` for the cluster."""
    resource: str
    needed: int
    free: int

    @property
    def sentence(self) -> str:
        """The shortage in words."""
        where = "the cluster" if self.pool is None else f"pool {self.pool}, which is not expandable"
        needed = f"it needs {self.needed} more {self.resource}"
        return f"{needed}, and {self.free} can be reserved in {where}"


class PoolReservations:
    """The reservations of one resource in every pool and in the cluster."""

    def __init__(
        self,
        hosts: Iterable[Host],
        vms: Iterable[Vm],
        pools: Sequence[Pool],
        resource: ReservableResource,
    ) -> None:
        self._resource = resource
        self._pools = {pool.id: pool for pool in pools}
        self._capacity = sum(
            resource.claimed.of_host(host) for host in hosts if host.state is HostState.ON
        )
        self._inside: dict[PoolId | None, int] = {pool.id: 0 for pool in pools} | {None: 0}
        for vm in vms:
            if vm.state is VmState.RUNNING:
                self._inside[vm.pool] += resource.claimed.of_vm(vm)
        # Children first: what a pool takes from its parent includes what its children take.
        for pool in reversed(parents_first(pools)):
            self._inside[pool.parent] += self.held(pool.id)

    def held(self, pool: PoolId) -> int:
        """Return what a pool takes from its parent: its reservation, or more if it has expanded."""
        own = self._resource.of_pool(self._pools[pool])
        return max(own, self._inside[pool])

    def free(self, pool: PoolId | None) -> int:
        """Return what can still be reserved in a pool or the cluster without expansion."""
        if pool is None:
            return self._capacity - self._inside[None]
        return max(0, self._resource.of_pool(self._pools[pool]) - self._inside[pool])

    def admit(self, vm: Vm) -> None:
        """Add the reservation of a VM to its pool, and to every ancestor that has to expand."""
        self._add(vm, self._resource.claimed.of_vm(vm))

    def release(self, vm: Vm) -> None:
        """Remove the reservation of a VM, as if it had not been admitted."""
        self._add(vm, -self._resource.claimed.of_vm(vm))

    def _add(self, vm: Vm, more: int) -> None:
        pool = vm.pool
        while pool is not None:
            before = self.held(pool)
            self._inside[pool] += more
            # The parent is concerned only by the part that exceeds the reservation of the pool.
            more = self.held(pool) - before
            pool = self._pools[pool].parent
        self._inside[None] += more

    def shortage(self, vm: Vm) -> AdmissionShortage | None:
        """Return what prevents the admission of a VM, or ``None``."""
        needed, pool_id = self._resource.claimed.of_vm(vm), vm.pool
        name = self._resource.claimed.label
        while True:
            needed -= self.free(pool_id) if pool_id is not None else 0
            if needed <= 0:
                return None
            if pool_id is None:
                free = self.free(None)
                return (
                    None if needed <= free else AdmissionShortage(None, name, needed, max(0, free))
                )
            pool = self._pools[pool_id]
            if not self._resource.expandable(pool):
                # ``needed`` is without what is free here; the message names both figures.
                missing = needed + self.free(pool_id)
                return AdmissionShortage(pool_id, name, missing, self.free(pool_id))
            pool_id = pool.parent
