"""Input of the planner and the judge: a problem with network and durations, or a case."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from equipoise.model.estimate import Estimates
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.quantity import (
    HostKey,
    PositiveCount,
    PositivePlanMilliseconds,
    PositiveSeconds,
    ResourceNameKey,
    RuleKey,
    VmKey,
)
from equipoise.model.rule import Argument
from equipoise.model.value import Value

MEMORY_RESOURCE: Final = "memory"
PerUnitMilliseconds = Annotated[float, Meta(ge=0, le=10**9)]


class ActionDuration(Value):
    """The duration of one kind of action."""

    ms: PositivePlanMilliseconds = 1_000
    """The fixed part. For a migration over a network it is added to the time of copying."""
    per_unit_ms: PerUnitMilliseconds = 0
    """The time per unit of ``resource`` that the VM uses."""
    resource: str = MEMORY_RESOURCE
    """``memory`` for the size of the VM in MiB, or a named resource for its consumption."""
    of: Mapping[str, PositivePlanMilliseconds] = {}
    """The total duration for single VMs or hosts, instead of the formula."""


Mbps = Annotated[int, Meta(ge=1, le=10**9)]


class NetworkSwitch(Value):
    """A switch, which connects links."""

    id: ResourceNameKey
    capacity_mbps: Mbps | None = None
    """The total bandwidth; without it, the switch is never the bottleneck."""


class NetworkLink(Value):
    """A link from a switch to a host or to another switch. Each direction has the capacity."""

    id: ResourceNameKey
    switch: ResourceNameKey
    host: HostKey | None = None
    to: ResourceNameKey | None = None
    """The other switch, instead of a host."""
    capacity_mbps: Mbps


class Network(Value):
    """Switches and links. Concurrent migrations share their bandwidth."""

    switches: tuple[NetworkSwitch, ...] = ()
    links: tuple[NetworkLink, ...] = ()


class DesiredVmState(StrEnum):
    """The desired state of a VM. A VM without one keeps its state."""

    RUNNING = "running"
    READY = "ready"
    SLEEPING = "sleeping"
    KILLED = "killed"
    FORGED = "forged"
    """Created from its template, and ready."""


class DesiredHostState(StrEnum):
    """The desired state of a host. The planner may change a host without one if that helps."""

    ONLINE = "online"
    OFFLINE = "offline"
    MAINTENANCE = "maintenance"


class ObjectiveMeasure(StrEnum):
    """A measure that the planner minimises."""

    MTTR = "mttr"
    """The sum of the end times of all actions (mean time to repair)."""
    MIGRATIONS = "migrations"
    """The number of migrations and reinstantiations."""
    MOVED_MEMORY = "moved_memory"
    """The memory of the migrating VMs, summed over all migrations."""
    MAKESPAN = "makespan"
    """The end time of the last action."""
    HOSTS_USED = "hosts_used"
    """The number of hosts with VMs in the final state."""
    ENERGY = "energy"
    """The power draw of the hosts that are on in the final state, by their reservations."""
    IMBALANCE = "imbalance"
    """The highest utilisation of CPU, memory or a named resource of any host in the final state."""


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
"""The highest ``moves_max`` that a problem can have."""
MovesMax = Annotated[int, Meta(ge=1, le=MOVES_MAX)]
ObjectiveTerm = ObjectiveMeasure | Mapping[ObjectiveMeasure, PositiveCount]


class PlanningProblem(Value):
    """A cluster and its desired state. Discrete rules hold at the end, continuous ones always."""

    cluster: Inventory
    vms: Mapping[VmKey, DesiredVmState] = {}
    hosts: Mapping[HostKey, DesiredHostState] = {}
    durations: Mapping[ActionKind, ActionDuration] = {}
    """Durations of actions; other kinds use ``estimates``."""
    estimates: Estimates = Estimates()
    grid_ms: PositivePlanMilliseconds = 1
    """Durations are rounded up to a multiple of it. A coarse grid makes the search faster."""
    network: Network | None = None
    """With a network, a migration is as fast as the bottleneck of its path, and shares links."""
    horizon_s: PositiveSeconds | None = None
    """The time by which all actions must have ended; without it, there is no limit."""
    moves_max: MovesMax = 2
    """Most moves per VM. Two allow two VMs to swap their hosts by way of a third host."""
    objective: tuple[ObjectiveTerm, ...] = (ObjectiveMeasure.MTTR,)
    """The measures to minimise, in lexicographic order; a mapping is a weighted sum."""
    weights: Mapping[RuleKey, PositiveCount] = {}
    """The cost of violating a soft rule, by default 1. It is minimised before the objective."""


class CaseFile(Value):
    """A case: the input on which a constraint is judged."""

    cluster: Inventory
    """The state before the plan. The rules of this cluster are not judged."""
    plan: Plan | None = None
    """The plan to judge; without it, the cluster itself is judged."""
    arguments: Mapping[str, Argument] = {}
    """The arguments of the constraint by their names."""
    continuous: bool = False
    """Whether every moment of the plan is judged, or only its end."""
    network: Network | None = None
    """The network of the migrations. No constraint uses it; campaigns use it to check whether the
    plan can be executed."""
