"""Scheduled events and random faults: what fails or changes at a given time or rate."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from equipoise.model.event import (
    HostFailed,
    HostJoined,
    HostLeft,
    HostRecovered,
    LayoutChanged,
    ProcessorLocked,
    ProcessorSuspected,
    ProcessorTrusted,
    ProcessorUnlocked,
    RoleMoveRequested,
    VmArrived,
    VmCrashed,
    VmLeft,
)
from equipoise.model.host import RequestedHostState
from equipoise.model.quantity import (
    HostKey,
    Milliseconds,
    PositiveCount,
    PositiveMilliseconds,
    ProcessorKey,
    RoleKey,
    TenantKey,
)
from equipoise.model.scenario.load import NumberSpec, PeriodSeconds
from equipoise.model.scenario.physics import Percent, Rate
from equipoise.model.value import Value

FleetName = Annotated[str, Meta(min_length=1)]


class MonitoringLost(Value, tag="monitoring_lost", tag_field="event"):
    """Monitoring stops for some time: deciders see the last measured demand."""

    at_ms: Milliseconds
    for_ms: PositiveMilliseconds


class MigrationsSlowed(Value, tag="migrations_slowed", tag_field="event"):
    """The migration links have a reduced speed for some time."""

    at_ms: Milliseconds
    for_ms: PositiveMilliseconds
    speed_pct: Annotated[float, Meta(ge=0.1, le=100)]


class PowerOnStuck(Value, tag="power_on_stuck", tag_field="event"):
    """The next power-on of a host never ends by itself."""

    at_ms: Milliseconds
    host: HostKey


class HostRequested(Value, tag="host_requested", tag_field="event"):
    """The operator requests a state of a host; without ``requested``, it is withdrawn."""

    at_ms: Milliseconds
    host: HostKey
    requested: RequestedHostState | None = None


class RoleStartsFail(Value, tag="role_starts_fail", tag_field="event"):
    """The next starts of roles on a processor fail."""

    at_ms: Milliseconds
    processor: ProcessorKey
    role: RoleKey | None = None
    """The role whose starts fail; without it, those of every role."""
    times: PositiveCount = 1
    """Number of starts that fail."""
    hang: bool = False
    """Whether the starts never end by themselves, instead of failing."""


class ControllerLost(Value, tag="controller_lost", tag_field="event"):
    """The controller crashes. After ``for_ms`` another one starts from the journal."""

    at_ms: Milliseconds
    for_ms: PositiveMilliseconds


# Events of the journal first; the others exist in simulated worlds only.
ScheduledEvent = (
    HostFailed
    | HostRecovered
    | HostLeft
    | HostJoined
    | VmCrashed
    | VmLeft
    | VmArrived
    | MonitoringLost
    | MigrationsSlowed
    | PowerOnStuck
    | HostRequested
    | ProcessorSuspected
    | ProcessorTrusted
    | ProcessorLocked
    | ProcessorUnlocked
    | RoleMoveRequested
    | LayoutChanged
    | RoleStartsFail
    | ControllerLost
)
"""The events that a scenario file can schedule. ``at_ms`` counts from the start of the run."""


class HostCrashes(Value):
    """Random crashes of hosts, and their recovery."""

    per_host_day: Rate
    back_after_s: NumberSpec = 600
    """Time from the crash to the recovery. A host recovers without VMs."""


class VmCrashes(Value):
    """Random crashes of VMs."""

    per_vm_day: Rate


class SlowMigrations(Value):
    """Random slow migrations."""

    pct: Percent
    factor: Annotated[float, Meta(ge=1, le=10**6)] = 5
    """Duration of a slow migration as a multiple of the normal one."""


class HangingPowerOns(Value):
    """Random power-ons that never end by themselves."""

    pct: Percent


class MonitoringGaps(Value):
    """Random interruptions of monitoring."""

    per_day: Rate
    for_s: NumberSpec = 600


class HostChurn(Value):
    """Random arrivals of hosts, which leave later."""

    fleet: FleetName
    """The fleet that describes a new host."""
    per_day: Rate
    stay_s: NumberSpec | None = None
    """Time until a new host leaves; without it, the host stays."""


class VmChurn(Value):
    """Random arrivals of VMs, which leave later."""

    fleet: FleetName
    """The fleet that describes a new VM."""
    per_hour: Rate
    stay_s: NumberSpec = 3600


class TenantAutoscaling(Value):
    """A tenant that scales out and in within its SLA."""

    tenant: TenantKey
    fleet: FleetName
    """The fleet that describes a new VM."""
    out_above_pct: Percent = 80
    """Mean CPU demand of its VMs above which the tenant adds VMs, in percent of their vCPUs."""
    in_below_pct: Percent = 30
    """Mean CPU demand below which the tenant removes VMs."""
    every_s: PeriodSeconds = 60
    """Time between two checks; the ``cooldown_s`` of the SLA applies as well."""


class Faults(Value):
    """The random faults and changes of a scenario, drawn from its seed."""

    host_crashes: HostCrashes | None = None
    vm_crashes: VmCrashes | None = None
    slow_migrations: SlowMigrations | None = None
    hanging_power_ons: HangingPowerOns | None = None
    monitoring_gaps: MonitoringGaps | None = None
    hosts: tuple[HostChurn, ...] = ()
    vms: tuple[VmChurn, ...] = ()
    scaling: tuple[TenantAutoscaling, ...] = ()
