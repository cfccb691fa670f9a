"""A problem: a cluster, what it is to become, and what counts on the way."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from equipoise.model.estimate import Estimates
from equipoise.model.inventory import Inventory
from equipoise.model.problem.duration import Duration
from equipoise.model.problem.network import Network
from equipoise.model.quantity import (
    CountPresent,
    HostKey,
    PlannedPresent,
    RuleKey,
    SecondsPresent,
    VmKey,
)
from equipoise.model.value import Value


class VmAim(StrEnum):
    """What a VM is to become. One without an aim stays in the state it is in."""

    RUNNING = "running"
    READY = "ready"
    SLEEPING = "sleeping"
    KILLED = "killed"
    FORGED = "forged"
    """Made from its template, and ready."""


class HostAim(StrEnum):
    """What a host is to become. One without an aim is switched only where that helps."""

    ONLINE = "online"
    OFFLINE = "offline"
    MAINTENANCE = "maintenance"


class Measure(StrEnum):
    """What is to be as small as possible."""

    MTTR = "mttr"
    """The sum of the ends of all actions: everything is done soon."""
    MIGRATIONS = "migrations"
    """How often VMs move: how many migrations there are, and how many are made anew elsewhere."""
    MOVED_MEMORY = "moved_memory"
    """The memory of the VMs that migrate, each time they do."""
    MAKESPAN = "makespan"
    """When the last action ends."""
    HOSTS_USED = "hosts_used"
    """How many hosts run something in the end."""
    ENERGY = "energy"
    """What the hosts that are on in the end draw, by what is reserved on them."""
    IMBALANCE = "imbalance"
    """The largest share of CPU, memory or another resource that is taken of a host in the end."""


class ActionKind(StrEnum):
    """The kinds of action, as plans name them."""

    POWER_ON = "power_on"
    POWER_OFF = "power_off"
    ENTER_MAINTENANCE = "enter_maintenance"
    LEAVE_MAINTENANCE = "leave_maintenance"
    FORGE = "forge"
    BOOT = "boot"
    SHUTDOWN = "shutdown"
    MIGRATE = "migrate"
    REINSTANTIATE = "reinstantiate"
    SUSPEND = "suspend"
    RESUME = "resume"
    ALLOCATE = "allocate"
    KILL = "kill"


MOVES_MAX: Final = 4
"""How often a VM may be made to move by any problem."""
MovesMax = Annotated[int, Meta(ge=1, le=MOVES_MAX)]
Goal = Measure | Mapping[Measure, CountPresent]


class Problem(Value):
    """A cluster and the wish for another state of it. Its rules hold in the end, or all along."""

    cluster: Inventory
    vms: Mapping[VmKey, VmAim] = {}
    hosts: Mapping[HostKey, HostAim] = {}
    durations: Mapping[ActionKind, Duration] = {}
    """How long actions take; those of other kinds take what is estimated."""
    estimates: Estimates = Estimates()
    grid_ms: PlannedPresent = 1
    """Durations are rounded up to a multiple of it: fewer times to choose from are sooner tried."""
    network: Network | None = None
    """With one, migrations are as fast as the narrowest part of their way, and share links."""
    horizon_s: SecondsPresent | None = None
    """When all must have ended; without one, it takes as long as it takes."""
    moves_max: MovesMax = 2
    """How often a VM may move: twice, so that two may swap places by way of a third host."""
    objective: tuple[Goal, ...] = (Measure.MTTR,)
    """What counts, the first most; several with weights count together."""
    weights: Mapping[RuleKey, CountPresent] = {}
    """How much it counts to break a soft rule; else 1. That counts before any objective."""
