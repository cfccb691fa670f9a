"""What all benchmarks share: a row of the table, a large cluster, and a clock."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement."""

    what: str
    seconds: float
    plain: str
    """The plain way it is compared with; empty if there is none."""
    plain_seconds: float | None
    count: int = 1
    """How many of the same were done in that time."""

    @property
    def per_second(self) -> float | None:
        """How many were done in a second, if there were several."""
        return self.count / self.seconds if self.count > 1 else None

    @property
    def ratio(self) -> float | None:
        """How many times faster than the plain way."""
        return None if self.plain_seconds is None else self.plain_seconds / self.seconds


def a_cluster(hosts: int, vms: int) -> Inventory:
    """A cluster with VMs dealt out evenly, half of the memory reserved."""
    names = [HostId(f"host-{n:05d}") for n in range(hosts)]
    return Inventory(
        hosts=tuple(Host(id=n, cores=32, mhz_per_core=2400, memory_mib=262_144) for n in names),
        vms=tuple(
            Vm(
                id=VmId(f"vm-{n:06d}"),
                vcpus=2,
                memory_mib=8192,
                host=names[n % hosts],
                cpu=CpuSettings(reservation_mhz=500),
                memory=MemorySettings(reservation_mib=4096),
                demand=Demand(cpu_mhz=700, memory_mib=3000),
            )
            for n in range(vms)
        ),
    )


def best(work: Callable[[], object], *, tries: int) -> float:
    """The shortest time that a piece of work took."""
    least = float("inf")
    for _ in range(tries):
        gc.collect()
        began = perf_counter()
        work()
        least = min(least, perf_counter() - began)
    return least
