"""Input of the planner and the judge: a problem with network and durations, or a case."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, get_args

from msgspec import Meta

from equipoise.model.action import HOST_TRANSITIONS, HostAction, VmAction, kind_of
from equipoise.model.action_durations import Estimates
from equipoise.model.host import HostState
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.quantity import (
    HostId,
    HostKey,
    PositiveCount,
    PositivePlanMilliseconds,
    PositiveSeconds,
    ResourceName,
    ResourceNameKey,
    RuleId,
    RuleKey,
    VmId,
    VmKey,
)
from equipoise.model.rule import Argument, Rule, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import snapshot_after_actions
from equipoise.model.value import Value
from equipoise.model.vm import Vm, VmState

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


# Each further move multiplies the states that the planner has to consider for a VM.
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


def problem_reaching(problem: PlanningProblem, plan: Plan) -> PlanningProblem:
    """Return the problem whose desired state is the one that a plan leads to.

    The hosts of its VMs become hard rules, with ids that no rule of the cluster has.
    """
    before = Snapshot.of(problem.cluster)
    after = snapshot_after_actions(before, (step.action for step in plan.steps))
    taken = {rule.id for rule in problem.cluster.rules}
    rules: list[Rule] = []
    vms: dict[VmId, DesiredVmState] = {}
    for name, vm in after.vms.items():
        if vm == before.vms[name]:
            continue
        if vm.state is not before.vms[name].state:
            killed = vm.state is VmState.TERMINATED
            vms[name] = DesiredVmState.KILLED if killed else DesiredVmState(vm.state)
        if vm.host is not None and vm.state is VmState.RUNNING:
            number = len(rules) + 1
            while (rule := RuleId(f"plan-{number}")) in taken:
                number += 1
            taken.add(rule)
            rules.append(StayWithin(id=rule, vms=(name,), hosts=(vm.host,)))
    hosts = {
        name: _DESIRED_STATES[host.state]
        for name, host in after.hosts.items()
        if host.state is not before.hosts[name].state
    }
    cluster = problem.cluster.but(rules=(*problem.cluster.rules, *rules))
    return problem.but(
        cluster=cluster, vms={**problem.vms, **vms}, hosts={**problem.hosts, **hosts}
    )


_DESIRED_STATES: Final = {
    HostState.ON: DesiredHostState.ONLINE,
    HostState.STANDBY: DesiredHostState.OFFLINE,
    HostState.MAINTENANCE: DesiredHostState.MAINTENANCE,
}
"""The desired state that keeps a host in the state to which an action leads."""


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


HOST_ACTIONS: Final[Mapping[ActionKind, type[HostAction]]] = {
    ActionKind(kind_of(action)): action for action in HOST_TRANSITIONS
}
"""The actions that change the state of a host, by their kinds."""
_ACTIONS: Final[Mapping[ActionKind, type[HostAction | VmAction]]] = {
    ActionKind(kind_of(action)): action for action in get_args(HostAction | VmAction)
}
REINSTANTIATION_STEPS: Final = (ActionKind.FORGE, ActionKind.BOOT, ActionKind.SHUTDOWN)
"""The steps of a reinstantiation, one after the other."""
_BITS_PER_MIB: Final = 8 * 1024 * 1024
_BITS_PER_MS: Final = 1_000
"""At one Mbit/s."""
MIB_PER_S_BY_MBPS: Final = 1_000 * _BITS_PER_MS / _BITS_PER_MIB
_ANY_FIELDS: Final[Mapping[str, Any]] = {"source": "", "target": "", "resource": "x", "amount": 0}
"""Fields of an action that its estimated duration does not depend on."""


def action_of(kind: ActionKind, fields: Mapping[str, Any]) -> HostAction | VmAction:
    """Return an action of a kind, with those of the fields that it has."""
    action = _ACTIONS[kind]
    return action(**{name: fields[name] for name in action.__struct_fields__})


class ProblemDurations:
    """The durations of actions: those of the problem, or else the estimates."""

    def __init__(self, problem: PlanningProblem, snapshot: Snapshot) -> None:
        self._problem = problem
        self._snapshot = snapshot

    def vm_ms(self, kind: ActionKind, vm: VmId) -> int:
        """Return the duration of an action on a VM."""
        given = self._problem.durations.get(kind)
        if given is None:
            if kind is ActionKind.REINSTANTIATE:
                # Each part is on the grid already, and so is their sum.
                return sum(self.vm_ms(step, vm) for step in REINSTANTIATION_STEPS)
            ms = self._problem.estimates.duration_ms(
                action_of(kind, {"vm": vm, **_ANY_FIELDS}), self._snapshot
            )
        else:
            ms = given.of.get(vm) or _scaled_duration_ms(given, self._snapshot.vms[vm])
        return self._on_grid(ms)

    def move_ms(self, vm: VmId, mbps: int) -> int:
        """Return the duration of a migration over a path whose bottleneck has this bandwidth."""
        estimates = self._problem.estimates
        given = self._problem.durations.get(ActionKind.MIGRATE)
        if given is not None:
            if vm in given.of:
                return self._on_grid(given.of[vm])
            estimates = estimates.but(migration_ms=given.ms)
        speed = min(estimates.migration_mib_per_s, mbps * MIB_PER_S_BY_MBPS)
        over_links = estimates.but(migration_mib_per_s=speed)
        return self._on_grid(over_links.move_ms(self._snapshot.vms[vm]))

    def copying_ms(self, vm: VmId, mbps: int) -> int:
        """Return the shortest duration of a migration: one copy of the memory at this bandwidth.

        It is 0 if the problem gives the duration for the VM: the copied amount is then unknown.
        """
        given = self._problem.durations.get(ActionKind.MIGRATE)
        if given is not None and vm in given.of:
            return 0
        # Rounded up in whole numbers: a float could end a copy a millisecond before its last bit.
        return -(-self._snapshot.vms[vm].memory_mib * _BITS_PER_MIB // (mbps * _BITS_PER_MS))

    def _on_grid(self, ms: int) -> int:
        """Return a duration rounded up to a multiple of the grid."""
        grid = self._problem.grid_ms
        return -(-ms // grid) * grid

    def host_ms(self, kind: ActionKind, host: HostId) -> int:
        """Return the duration of an action on a host."""
        given = self._problem.durations.get(kind)
        if given is None:
            action = action_of(kind, {"host": host})
            return self._on_grid(self._problem.estimates.duration_ms(action, self._snapshot))
        return self._on_grid(given.of.get(host) or given.ms)


def _scaled_duration_ms(given: ActionDuration, vm: Vm) -> int:
    if not given.per_unit_ms:
        return given.ms
    units = (
        vm.memory_mib
        if given.resource == MEMORY_RESOURCE
        else vm.consumption.get(ResourceName(given.resource), 0)
    )
    return given.ms + round(given.per_unit_ms * units)
