"""Unrest: what goes wrong or changes by itself, at a foretold moment or at random by a rate."""

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
    RoleMoveAsked,
    VmArrived,
    VmCrashed,
    VmLeft,
)
from equipoise.model.host import HostWish
from equipoise.model.quantity import (
    CountPresent,
    HostKey,
    Milliseconds,
    MillisecondsPresent,
    ProcessorKey,
    RoleKey,
    TenantKey,
)
from equipoise.model.story.load import Level, Period
from equipoise.model.story.physics import Percent, Rate
from equipoise.model.value import Value

FleetName = Annotated[str, Meta(min_length=1)]


class MonitoringLost(Value, tag="monitoring_lost", tag_field="event"):
    """For some time nobody measures demand; the last figures stay."""

    at_ms: Milliseconds
    for_ms: MillisecondsPresent


class MigrationsSlowed(Value, tag="migrations_slowed", tag_field="event"):
    """For some time migration links carry only a part of what they should."""

    at_ms: Milliseconds
    for_ms: MillisecondsPresent
    speed_pct: Annotated[float, Meta(ge=0.1, le=100)]


class PowerOnStuck(Value, tag="power_on_stuck", tag_field="event"):
    """From now on a host hangs when it is woken, until somebody gives up on it, for once."""

    at_ms: Milliseconds
    host: HostKey


class HostRequested(Value, tag="host_requested", tag_field="event"):
    """Somebody wants a host to go into maintenance or standby; without a wish, to stay on."""

    at_ms: Milliseconds
    host: HostKey
    wish: HostWish | None = None


class RoleStartsFail(Value, tag="role_starts_fail", tag_field="event"):
    """From now on a processor fails to start roles, or one of them, so many times."""

    at_ms: Milliseconds
    processor: ProcessorKey
    role: RoleKey | None = None
    """Which one; all without it."""
    times: CountPresent = 1
    hang: bool = False
    """Whether they never end by themselves, instead of failing."""


class ControllerLost(Value, tag="controller_lost", tag_field="event"):
    """The controller dies; later another one takes over, with nothing but the journal."""

    at_ms: Milliseconds
    for_ms: MillisecondsPresent


Happening = (
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
    | RoleMoveAsked
    | LayoutChanged
    | RoleStartsFail
    | ControllerLost
)
"""What a file may foretell; each carries its ``at_ms``, counted from the start."""


class Outages(Value):
    """Hosts that crash at random and come back."""

    per_host_day: Rate
    back_after_s: Level = 600
    """Counted from the crash; hosts come back empty."""


class Crashes(Value):
    """VMs that crash at random."""

    per_vm_day: Rate


class Slowness(Value):
    """Migrations of which some are slow."""

    pct: Percent
    factor: Annotated[float, Meta(ge=1, le=10**6)] = 5
    """How many times as long a slow one takes."""


class Hanging(Value):
    """Power-ons of which some never end by themselves."""

    pct: Percent


class Gaps(Value):
    """Times in which nobody measures."""

    per_day: Rate
    for_s: Level = 600


class HostChurn(Value):
    """Hosts that are added and, later, removed."""

    fleet: FleetName
    """What a new host is like."""
    per_day: Rate
    stay_s: Level | None = None
    """How long a new host stays; for ever, if left out."""


class VmChurn(Value):
    """VMs that arrive and leave."""

    fleet: FleetName
    """What a new VM is like."""
    per_hour: Rate
    stay_s: Level = 3600


class Scaling(Value):
    """A tenant that scales out and in as its SLA allows."""

    tenant: TenantKey
    fleet: FleetName
    """What a new VM is like."""
    out_above_pct: Percent = 80
    """More VMs when those it has are asked for more than this part of their CPUs, on average ..."""
    in_below_pct: Percent = 30
    """... and fewer below this."""
    every_s: Period = 60
    """How often the tenant looks; its ``cooldown_s`` comes on top."""


class Unrest(Value):
    """What goes on at random."""

    host_crashes: Outages | None = None
    vm_crashes: Crashes | None = None
    slow_migrations: Slowness | None = None
    hanging_power_ons: Hanging | None = None
    monitoring_gaps: Gaps | None = None
    hosts: tuple[HostChurn, ...] = ()
    vms: tuple[VmChurn, ...] = ()
    scaling: tuple[Scaling, ...] = ()
