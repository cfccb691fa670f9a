"""Physics: how the simulated machines behave. Deciders see only the effects."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import Count, Mhz, Milliseconds, PositiveCount, Seconds
from equipoise.model.value import Value

Percent = Annotated[float, Meta(ge=0, le=100)]
Factor = Annotated[float, Meta(ge=0, le=10**6)]
Rate = Annotated[float, Meta(ge=0, le=10**9)]
Speed = Annotated[float, Meta(ge=0.001, le=10**9)]


class MigrationPhysics(Value):
    """Live migration by pre-copy: copy all memory, then in rounds the pages written meanwhile."""

    link_mbps: Speed = 10_000
    """Migration link of each host in megabits per second; its migrations share it."""
    dirty_mib_per_ghz: Rate = 60
    """MiB that a VM writes per second and GHz."""
    dirty_pct_max: Percent = 50
    """Most memory that a VM writes within one round, in percent of its active memory."""
    downtime_ms_max: Milliseconds = 500
    """The VM is stopped for the last round when that takes no longer than this."""
    rounds_max: PositiveCount = 30
    """The VM is stopped for the last round after this many rounds in any case."""
    switch_ms: Milliseconds = 100
    """Time to stop the VM on the source and start it on the target, besides the copying."""
    cpu_mhz: Mhz = 500
    """CPU cost of a migration on each of its two hosts."""
    slowdown_pct: Percent = 10
    """Slowdown of a VM during its migration."""
    per_host_max: PositiveCount = 8
    """Concurrent migrations per host; further ones wait."""
    failed_pct: Percent = 0
    """Percentage of migrations that fail, at a random time before their end."""


class PowerPhysics(Value):
    """Durations of power and life cycle actions. ``jitter_pct`` varies each of them at random."""

    power_on_s: Seconds = 180
    power_off_s: Seconds = 60
    enter_maintenance_s: Seconds = 10
    leave_maintenance_s: Seconds = 10
    boot_s: Seconds = 30
    shutdown_s: Seconds = 20
    forge_s: Seconds = 60
    suspend_mib_per_s: Speed = 500
    """Speed of writing the memory at a suspend and of reading it at a resume."""
    jitter_pct: Percent = 10
    failed_pct: Percent = 0
    """Percentage of power-ons and power-offs that fail, at their end."""
    boot_failed_pct: Percent = 0


class MemoryPhysics(Value):
    """Memory overcommitment: idle pages are ballooned first, then active pages are swapped."""

    balloon_pct_max: Percent = 65
    """Most memory that the balloon reclaims, in percent of the size of a VM."""
    swap_slowdown: Factor = 0.8
    """A VM with a swapped fraction m of its active memory runs at 1 / (1 + swap_slowdown * m)."""


class RolePhysics(Value):
    """Variation and failures of role starts and stops; the role gives the durations."""

    jitter_pct: Percent = 10
    start_failed_pct: Percent = 0
    stop_failed_pct: Percent = 0


class Physics(Value):
    """The behaviour of the simulated machines. A missing part behaves as planned."""

    migration: MigrationPhysics | None = None
    switching: PowerPhysics | None = None
    memory: MemoryPhysics = MemoryPhysics()
    roles: RolePhysics | None = None
    overhead_mib: Count = 0
    """Memory overhead of the hypervisor per VM."""
