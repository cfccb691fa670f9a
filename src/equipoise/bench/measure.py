"""What all benchmarks share: a row of the result, a timer, and generated clusters."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np

from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm

BUSY_SHARE = 0.6
"""The fraction of VMs that are placed on the busier half of the hosts."""


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """One measurement."""

    what: str
    seconds: float
    plain: str
    """The plain method of the comparison; empty without a comparison."""
    plain_seconds: float | None
    count: int = 1
    """The number of operations in that time."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Other results of the measurement."""
    note: str = ""
    """What a reader of the row must know."""

    @property
    def per_second(self) -> float | None:
        """The operations per second, if there were several."""
        return self.count / self.seconds if self.count > 1 else None

    @property
    def ratio(self) -> float | None:
        """How many times faster than the plain method."""
        return None if self.plain_seconds is None else self.plain_seconds / self.seconds


def even_cluster(hosts: int, vms: int) -> Inventory:
    """A cluster with the VMs in turn on all hosts, half of the memory reserved.

    It commits more memory than its hosts have: the sizes of VMs limit nothing, as on ESX.
    """
    names = [HostId(f"host-{n:05d}") for n in range(hosts)]
    return Inventory(
        memory_overcommit=10,
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
    """A cluster about half full, with most of the load on half of the hosts.

    The VMs are twice as large as their active memory, and their sizes limit nothing, as on ESX.
    """
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
        memory_overcommit=10,
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
    # The shortest time: other processes can only make a try longer.
    least = float("inf")
    for _ in range(tries):
        # Otherwise garbage of earlier work is collected during the measurement.
        gc.collect()
        began = perf_counter()
        work()
        least = min(least, perf_counter() - began)
    return least


def run_alone(work: Callable[..., float], *arguments: str | int) -> tuple[float, float]:
    """Call a function of a module in a process of its own, whose memory is its own.

    Returns the seconds that the function returns, and the peak of the memory in MiB.
    """
    program = (
        f"from {work.__module__} import {work.__name__} as work;"
        f"seconds = work(*{arguments!r});"
        f"from {__name__} import peak_memory_mib; print(seconds, peak_memory_mib())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    seconds, peak_mib = map(float, done.stdout.split())
    return seconds, peak_mib


def peak_memory_mib() -> float:
    """Return the peak of the memory of this process.

    The figure of ``getrusage`` begins with the memory of the process that started this one.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
    (peak_kib,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return float(peak_kib) / 1024
