"""Admission: may a VM with a reservation start in its pool, and if not, what is in the way?

What is reserved inside a pool must not exceed what the pool reserves. An expandable pool may take
more from what is free in its parent, and so on up to the cluster itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from equipoise.model.host import Host, HostState
from equipoise.model.pool import Pool
from equipoise.model.quantity import PoolId
from equipoise.model.vm import Vm, VmState
from equipoise.place.pools import parents_first


class Reserved(NamedTuple):
    """How reservations of one resource are read."""

    name: str
    unit: str
    of_vm: Callable[[Vm], int]
    of_pool: Callable[[Pool], int]
    expandable: Callable[[Pool], bool]
    capacity: Callable[[Host], int]


CPU: Final = Reserved(
    "CPU",
    "MHz",
    lambda vm: vm.cpu.reservation_mhz,
    lambda pool: pool.cpu.reservation_mhz,
    lambda pool: pool.cpu_expandable,
    lambda host: host.usable_cpu_mhz,
)
MEMORY: Final = Reserved(
    "memory",
    "MiB",
    lambda vm: vm.memory.reservation_mib,
    lambda pool: pool.memory.reservation_mib,
    lambda pool: pool.memory_expandable,
    lambda host: host.usable_memory_mib,
)


class Shortage(NamedTuple):
    """Why a VM is not admitted."""

    pool: PoolId | None
    """Where it ends: a pool that is not expandable, or ``None`` for the cluster."""
    resource: str
    needed: int
    free: int

    @property
    def sentence(self) -> str:
        """The same for people."""
        where = "the cluster" if self.pool is None else f"pool {self.pool}, which is not expandable"
        return f"{self.needed} more {self.resource} to reserve, and {self.free} free in {where}"


class Books:
    """What is reserved where."""

    def __init__(
        self, hosts: Iterable[Host], vms: Iterable[Vm], pools: Sequence[Pool], resource: Reserved
    ) -> None:
        self._resource = resource
        self._pools = {pool.id: pool for pool in pools}
        self._capacity = sum(resource.capacity(h) for h in hosts if h.state is HostState.ON)
        self._inside: dict[PoolId | None, int] = {pool.id: 0 for pool in pools} | {None: 0}
        for vm in vms:
            if vm.state is VmState.RUNNING:
                self._inside[vm.pool] += resource.of_vm(vm)
        for pool in reversed(parents_first(pools)):
            self._inside[pool.parent] += self.held(pool.id)

    def held(self, pool: PoolId) -> int:
        """What a pool takes from its parent: what it reserves, or more if it has expanded."""
        own = self._resource.of_pool(self._pools[pool])
        return max(own, self._inside[pool])

    def free(self, pool: PoolId | None) -> int:
        """What is left to be reserved directly inside a pool or the cluster, without expanding."""
        if pool is None:
            return self._capacity - self._inside[None]
        return max(0, self._resource.of_pool(self._pools[pool]) - self._inside[pool])

    def admit(self, vm: Vm, *, back: bool = False) -> None:
        """Write down what is reserved for a VM that is let in, or take it ``back``."""
        more, place = self._resource.of_vm(vm) * (-1 if back else 1), vm.pool
        while place is not None:
            before = self.held(place)
            self._inside[place] += more
            more = self.held(place) - before
            place = self._pools[place].parent
        self._inside[None] += more

    def shortage(self, vm: Vm) -> Shortage | None:
        """What keeps a VM from being admitted, if anything does."""
        needed, place = self._resource.of_vm(vm), vm.pool
        name = f"{self._resource.unit} of {self._resource.name}"
        while True:
            needed -= self.free(place) if place is not None else 0
            if needed <= 0:
                return None
            if place is None:
                free = self.free(None)
                return None if needed <= free else Shortage(None, name, needed, max(0, free))
            pool = self._pools[place]
            if not self._resource.expandable(pool):
                wanted = needed + self.free(place)
                return Shortage(place, name, wanted, self.free(place))
            place = pool.parent
