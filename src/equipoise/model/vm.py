"""A virtual machine: its size, its claims, what it asks for now, and where it is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec.structs import replace

from equipoise.model.quantity import (
    Amount,
    Cores,
    HostKey,
    Mhz,
    Mib,
    MibPresent,
    NameKey,
    PoolKey,
    Shares,
    TenantKey,
    VmKey,
)
from equipoise.model.usage import Usage
from equipoise.model.value import Value


class VmState(StrEnum):
    """The life of a VM: ``init`` -> ``ready`` -> ``running`` <-> ``sleeping``, then ``terminated``.

    A running or sleeping VM has a host; in the other states it has none.
    """

    INIT = "init"
    READY = "ready"
    RUNNING = "running"
    SLEEPING = "sleeping"
    TERMINATED = "terminated"

    @property
    def has_host(self) -> bool:
        """Whether a VM in this state lies on a host."""
        return self is VmState.RUNNING or self is VmState.SLEEPING


class CpuSettings(Value):
    """Claims on CPU: what is guaranteed, what is the most, and the weight when it is scarce."""

    reservation_mhz: Mhz = 0
    limit_mhz: Mhz | None = None
    shares: Shares = 1000


class MemorySettings(Value):
    """Claims on memory: what is guaranteed, what is the most, and the weight when it is scarce."""

    reservation_mib: Mib = 0
    limit_mib: Mib | None = None
    shares: Shares = 1000


class Demand(Value):
    """What a VM would use now if nobody else were there."""

    cpu_mhz: Mhz = 0
    memory_mib: Mib = 0
    """Active memory, at most the configured size."""
    named: Mapping[NameKey, Amount] = {}


class Vm(Value):
    """A virtual machine."""

    id: VmKey
    vcpus: Cores
    memory_mib: MibPresent
    state: VmState = VmState.RUNNING
    host: HostKey | None = None
    """Where it runs or sleeps. While it migrates it still runs on the source."""
    cpu: CpuSettings = CpuSettings()
    memory: MemorySettings = MemorySettings()
    demand: Demand = Demand()
    usage: Usage | None = None
    """What was counted of it, in a file instead of ``demand``, which follows from it on reading."""
    consumption: Mapping[NameKey, Amount] = {}
    """What it takes of the shareable resources that its host offers in ``capacity``."""
    pool: PoolKey | None = None
    tenant: TenantKey | None = None
    template: str | None = None
    """What it is forged from."""
    replaceable: bool = False
    """Whether it may be made anew elsewhere, from its template, instead of being moved."""
    agent: bool = False
    """Part of its host's platform: never moved, sleeps and wakes with its host."""
    ft_pair: VmKey | None = None
    """The other half of a fault-tolerant pair; the two never share a host."""
    labels: Mapping[str, str] = {}


def same_but_demand(one: Vm, other: Vm) -> bool:
    """Whether two values of a VM differ in nothing but its demand."""
    return one == replace(other, demand=one.demand)
