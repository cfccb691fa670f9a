"""What all benchmarks share: a row of the result, a timer, and generated clusters."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm

BUSY_SHARE = 0.6
"""The part of the VMs that is certainly on the busier half of the hosts."""


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """One measurement."""

    what: str
    seconds: float
    plain: str
    """The plain way it is compared with; empty if there is none."""
    plain_seconds: float | None
    count: int = 1
    """How many of the same were done in that time."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """What else came out of it."""
    note: str = ""
    """What one must know to read it."""

    @property
    def per_second(self) -> float | None:
        """How many were done in a second, if there were several."""
        return self.count / self.seconds if self.count > 1 else None

    @property
    def ratio(self) -> float | None:
        """How many times faster than the plain way."""
        return None if self.plain_seconds is None else self.plain_seconds / self.seconds


def even_cluster(hosts: int, vms: int) -> Inventory:
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


def skewed_cluster(hosts: int, vms: int, seed: int) -> Inventory:
    """A cluster about half full, with most of the load on half of the hosts."""
    rng = np.random.default_rng(seed)
    names = [HostId(f"host-{n:05d}") for n in range(hosts)]
    busy = rng.permutation(hosts)[: max(1, hosts // 2)]
    mhz, mib = 76_800 * 0.55 * hosts / vms, 262_144 * 0.5 * hosts / vms
    at = np.where(
        rng.random(vms) < BUSY_SHARE, rng.choice(busy, vms), rng.integers(hosts, size=vms)
    )
    cpu_mhz = (mhz * rng.uniform(0.3, 1.7, vms)).astype(int).tolist()
    memory_mib = (mib * rng.uniform(0.3, 1.5, vms)).astype(int).tolist()
    return Inventory(
        hosts=tuple(Host(id=n, cores=32, mhz_per_core=2400, memory_mib=262_144) for n in names),
        vms=tuple(
            Vm(
                id=VmId(f"vm-{n:06d}"),
                vcpus=2,
                memory_mib=max(1, int(2 * mib)),
                host=names[where],
                cpu=CpuSettings(reservation_mhz=int(mhz / 10)),
                memory=MemorySettings(reservation_mib=int(mib / 8)),
                demand=Demand(cpu_mhz=cpu_mhz[n], memory_mib=memory_mib[n]),
            )
            for n, where in enumerate(at.tolist())
        ),
    )


def best_time_s(work: Callable[[], object], *, tries: int) -> float:
    """The shortest time that a piece of work took."""
    least = float("inf")
    for _ in range(tries):
        gc.collect()
        began = perf_counter()
        work()
        least = min(least, perf_counter() - began)
    return least
