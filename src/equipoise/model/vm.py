"""A virtual machine: size, reservations, place, demand; and demand derived from usage counters.

A hypervisor cannot measure what a VM would use without competition. It measures what the VM used
and how long it waited: ready times (ESX) or pressure stall (Linux). Active memory comes from
sampled pages or, with pressure stall, from the resident memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta
from msgspec.structs import replace

from equipoise.model.quantity import (
    Amount,
    Cores,
    Count,
    HostKey,
    Mhz,
    Mib,
    Milliseconds,
    PoolKey,
    PositiveCount,
    PositiveMib,
    ResourceNameKey,
    Shares,
    TenantKey,
    VmKey,
)
from equipoise.model.value import Value

StallPct = Annotated[float, Meta(ge=0, le=99.99)]
"""Below 100: a VM that was always stalled used nothing, so its demand cannot be derived."""

# The largest amount of ``Mhz``.
_MHZ_MAX: Final = 10**9


class VmUsage(Value):
    """Usage counters of a VM over one interval. A missing counter is unknown."""

    cpu_used_mhz: Mhz | None = None
    """Mean CPU use."""
    cpu_run_ms: Milliseconds | None = None
    """Time that the vCPUs ran, summed over all vCPUs, as are the next two."""
    cpu_sleep_ms: Milliseconds | None = None
    """Time that the vCPUs were idle."""
    cpu_ready_ms: Milliseconds | None = None
    """Time that the vCPUs were ready and waited for a CPU."""
    cpu_stall_pct: StallPct | None = None
    """Instead of the times: CPU pressure stall ("some"), in percent of the time."""
    pages_sampled: PositiveCount | None = None
    """Number of sampled pages."""
    pages_touched: Count | None = None
    """Number of sampled pages that the VM touched."""
    memory_used_mib: Mib | None = None
    """Instead of the pages: resident memory."""
    memory_stall_pct: StallPct | None = None
    """Memory pressure stall ("some"), in percent of the time."""


def demand_from_usage(usage: VmUsage, vm: Vm, mhz_per_core: int | None) -> Demand:
    """Return the demand that follows from usage counters.

    ``mhz_per_core`` is the speed of the host, if known. The demand is at least the use. A derived
    demand is at most what the VM could use.
    """
    return vm.demand.but(
        cpu_mhz=_cpu_demand_mhz(usage, vm, mhz_per_core), memory_mib=_memory_demand_mib(usage, vm)
    )


def _cpu_demand_mhz(usage: VmUsage, vm: Vm, mhz_per_core: int | None) -> int:
    used = usage.cpu_used_mhz or 0
    limit = _MHZ_MAX if vm.cpu.limit_mhz is None else vm.cpu.limit_mhz
    if mhz_per_core is not None:
        limit = min(limit, vm.vcpus * mhz_per_core)
    if usage.cpu_stall_pct is not None:
        demand = _demand_without_stall(used, usage.cpu_stall_pct)
    else:
        # Without the speed of the host, the most that the VM could use is unknown.
        demand = _demand_without_ready_time(usage, used, used if mhz_per_core is None else limit)
    return max(used, round(min(demand, limit)))


def _demand_without_ready_time(usage: VmUsage, used: int, limit: int) -> float:
    """Equation 1 of the DRS paper: used + run / (run + sleep) * ready, in MHz.

    While it was not queued, the VM ran for run / (run + sleep) of the time. It would have run for
    the same fraction of the ready time. The equation adds times, but the use is given in MHz: while
    it ran, the VM had used * (run + sleep + ready) / run. That speed for the fraction of the ready
    time is used * ready / (run + sleep) on the mean of the interval, for any speed of the CPU.

    A VM that slept and never ran would have slept in the ready time too. A VM that did neither was
    always queued: in the limit of no sleep the equation gives all that the VM can use.
    """
    run, sleep, ready = usage.cpu_run_ms or 0, usage.cpu_sleep_ms or 0, usage.cpu_ready_ms or 0
    if run:
        return used * (1 + ready / (run + sleep))
    return limit if ready and not sleep else used


def _memory_demand_mib(usage: VmUsage, vm: Vm) -> int:
    size, limit = vm.memory_mib, vm.memory.limit_mib
    if usage.pages_sampled is not None:
        return round(size * min(1.0, (usage.pages_touched or 0) / usage.pages_sampled))
    used = usage.memory_used_mib or 0
    demand = _demand_without_stall(used, usage.memory_stall_pct or 0)
    return max(used, round(min(demand, size if limit is None else min(size, limit))))


def _demand_without_stall(used: float, stall_pct: float) -> float:
    """Return the demand of a VM that was stalled for a part of the time.

    A VM that was stalled 10 % of the time got 90 % of its demand. "Some" counts the time in which
    any task was stalled, so it overestimates for a VM with several vCPUs. An overestimate is better
    than taking a starved VM for a satisfied one.
    """
    return 100 * used / (100 - stall_pct)


class VmState(StrEnum):
    """The life cycle: ``init`` -> ``ready`` -> ``running`` <-> ``sleeping``, then ``terminated``.

    A running or sleeping VM has a host; in the other states it has none.
    """

    INIT = "init"
    READY = "ready"
    RUNNING = "running"
    SLEEPING = "sleeping"
    TERMINATED = "terminated"

    @property
    def has_host(self) -> bool:
        """Whether a VM in this state is on a host."""
        return self is VmState.RUNNING or self is VmState.SLEEPING


VM_STATES: Final = tuple(VmState)


class CpuSettings(Value):
    """CPU settings: reservation, limit, and shares, the weight under contention."""

    reservation_mhz: Mhz = 0
    limit_mhz: Mhz | None = None
    shares: Shares = 1000


class MemorySettings(Value):
    """Memory settings: reservation, limit, and shares, the weight under contention."""

    reservation_mib: Mib = 0
    limit_mib: Mib | None = None
    shares: Shares = 1000


class Demand(Value):
    """What a VM would use now without contention."""

    cpu_mhz: Mhz = 0
    memory_mib: Mib = 0
    """Active memory, at most the configured size."""
    named: Mapping[ResourceNameKey, Amount] = {}


class RestartPriority(StrEnum):
    """The order in which lost VMs start again."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """A number to sort by: the VMs that start first have the lowest."""
        return list(RestartPriority).index(self)


class Vm(Value):
    """A virtual machine."""

    id: VmKey
    vcpus: Cores
    memory_mib: PositiveMib
    state: VmState = VmState.RUNNING
    host: HostKey | None = None
    """The host of a running or sleeping VM. During a migration this is the source."""
    cpu: CpuSettings = CpuSettings()
    memory: MemorySettings = MemorySettings()
    demand: Demand = Demand()
    usage: VmUsage | None = None
    """Usage counters in a file, instead of ``demand``; reading the file derives the demand."""
    consumption: Mapping[ResourceNameKey, Amount] = {}
    """What the VM consumes of the named resources that its host offers in ``capacity``."""
    pool: PoolKey | None = None
    tenant: TenantKey | None = None
    template: str | None = None
    """The template from which ``Forge`` creates the VM."""
    replaceable: bool = False
    """Whether the VM may be created again on another host, from its template, instead of moved."""
    agent: bool = False
    """Whether the VM belongs to its host: it never moves and follows the state of the host."""
    ft_pair: VmKey | None = None
    """The other VM of a fault-tolerant pair; the two never share a host."""
    labels: Mapping[str, str] = {}
    restart_priority: RestartPriority = RestartPriority.MEDIUM
    """Which VMs start first after their host has failed."""


def equal_except_demand(first: Vm, second: Vm) -> bool:
    """Whether two values of a VM differ only in the demand."""
    return first == replace(second, demand=first.demand)
