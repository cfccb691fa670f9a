"""Physics: how the simulated machines behave. Deciders never see it, only what it leads to."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import Count, CountPresent, Mhz, Milliseconds, Seconds
from equipoise.model.value import Value

Percent = Annotated[float, Meta(ge=0, le=100)]
Factor = Annotated[float, Meta(ge=0, le=10**6)]
Rate = Annotated[float, Meta(ge=0, le=10**9)]
Speed = Annotated[float, Meta(ge=0.001, le=10**9)]


class MigrationPhysics(Value):
    """Live migration by pre-copy: copy the memory, then again what was written meanwhile, ..."""

    link_mbps: Speed = 10_000
    """The migration link of each host, in megabits per second, shared by its migrations."""
    dirty_mib_per_ghz: Rate = 60
    """How many MiB a VM writes per second for each GHz it runs at ..."""
    dirty_pct_max: Percent = 50
    """... but never more of its active memory than this within one round."""
    downtime_ms_max: Milliseconds = 500
    """The VM is stopped for the rest once the rest takes no longer than this ..."""
    rounds_max: CountPresent = 30
    """... or after so many rounds."""
    switch_ms: Milliseconds = 100
    """What stopping here and starting there takes besides the copying."""
    cpu_mhz: Mhz = 500
    """What one migration costs on each of the two hosts."""
    slowdown_pct: Percent = 10
    """How much slower a VM runs while it is being copied."""
    per_host_max: CountPresent = 8
    """How many a host carries out at once; the others wait."""
    failed_pct: Percent = 0
    """How many fail, at some point on their way."""


class SwitchPhysics(Value):
    """What it takes to switch hosts and VMs on and off. Each time is varied by ``jitter_pct``."""

    power_on_s: Seconds = 180
    power_off_s: Seconds = 60
    enter_maintenance_s: Seconds = 10
    leave_maintenance_s: Seconds = 10
    boot_s: Seconds = 30
    shutdown_s: Seconds = 20
    forge_s: Seconds = 60
    suspend_mib_per_s: Speed = 500
    """Suspending and resuming take the time to write and read the memory."""
    jitter_pct: Percent = 10
    failed_pct: Percent = 0
    """How many of the power-ons and power-offs fail, at their end."""
    boot_failed_pct: Percent = 0


class MemoryPhysics(Value):
    """What happens when memory does not fit: idle pages are ballooned away, then others swapped."""

    balloon_pct_max: Percent = 65
    """How much of a VM's size the balloon can take."""
    swap_slowdown: Factor = 0.8
    """A VM that misses a part m of its active memory runs at 1 / (1 + swap_slowdown * m)."""


class RolePhysics(Value):
    """What it takes to start and stop roles, besides the time that they say."""

    jitter_pct: Percent = 10
    start_failed_pct: Percent = 0
    stop_failed_pct: Percent = 0


class Physics(Value):
    """How the machines behave. What is left out goes as the plan says."""

    migration: MigrationPhysics | None = None
    switching: SwitchPhysics | None = None
    memory: MemoryPhysics = MemoryPhysics()
    roles: RolePhysics | None = None
    overhead_mib: Count = 0
    """What the hypervisor needs for each VM besides its memory."""
