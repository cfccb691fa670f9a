"""A trial: a cluster, a plan and a constraint, which a scheduler accepts or rejects; its options.

The options say how many hosts and VMs random trials have, in which states, with which actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Final

from msgspec import Meta

from equipoise.model.host import Host, HostState
from equipoise.model.plan import Plan, Step, Violation
from equipoise.model.problem.problem import ActionKind, Mbps, Network
from equipoise.model.quantity import PlanId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap, Value
from equipoise.model.vm import Vm, VmState
from equipoise.plan.network import NetworkJudge, NetworkPaths
from equipoise.plan.verify import replay_violations
from equipoise.spec.requirement import (
    Case,
    CaseViolation,
    Requirement,
    case_holds,
    holds_in_state,
    judge_case,
)

Count = Annotated[int, Meta(ge=0, le=10_000)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[int, Meta(ge=0, le=10_000)]
CountRange = tuple[Count, Count]
"""Minimum and maximum, both included."""
SwitchCount = Annotated[int, Meta(ge=1, le=32)]
SpeedRange = tuple[Mbps, Mbps]
"""Minimum and maximum, in multiples of the minimum: so several flows often just fill a link."""


class PlanSampling(StrEnum):
    """How plans are drawn."""

    CAREFUL = "careful"
    """Every plan can be executed by construction."""
    REJECTED = "rejected"
    """Any plan is drawn; a plan that cannot be executed is drawn again."""
    ANY = "any"
    """Any plan is drawn; some plans cannot be executed."""


class ResourceOptions(Value):
    """A named resource beside CPU and memory."""

    capacity: CountRange = (0, 10)
    consumption: CountRange = (0, 1)
    offered: Fraction = 0.9
    """The fraction of hosts that state a capacity; the other hosts state none."""


class NetworkOptions(Value):
    """A network: every host has a link to a switch, every switch but the first to an earlier one.

    So there are stars, chains and trees. A few extra links add cycles and parallel links.
    """

    switches: tuple[SwitchCount, SwitchCount] = (1, 3)
    hosts_mbps: SpeedRange = (2_000, 10_000)
    """The capacity of the links of hosts. A VM of 1 GiB takes 4.3 s at 2,000 Mbit/s."""
    trunks_mbps: SpeedRange = (2_000, 10_000)
    """The capacity of the links between switches."""
    limited: Fraction = 0.3
    """The fraction of switches that have a capacity of their own."""
    switches_mbps: SpeedRange = (2_000, 20_000)
    """The capacity of such a switch."""
    detours: Fraction = 0.2
    """The fraction of switches with a second link to an earlier switch, perhaps to the same one."""
    hurried: Fraction = 0.2
    """The fraction of migrations that may end before their copy can; none in careful plans."""


class TrialOptions(Value):
    """The ranges from which trials are drawn."""

    hosts: CountRange = (1, 5)
    vms: CountRange = (0, 6)
    host_states: Mapping[HostState, Weight] = FrozenMap(
        {HostState.ON: 18, HostState.STANDBY: 3, HostState.MAINTENANCE: 1}
    )
    vm_states: Mapping[VmState, Weight] = FrozenMap(
        {VmState.RUNNING: 14, VmState.READY: 3, VmState.SLEEPING: 2, VmState.INIT: 1}
    )
    overfull: Fraction = 0.05
    """The fraction of hosts whose capacity is below the consumption of their VMs."""
    agents: Fraction = 0.03
    """The fraction of VMs that are bound to their host; no action changes them."""
    paired: Fraction = 0.05
    """The fraction of VMs that are the fault-tolerance partner of the VM before them."""
    replaceable: Fraction = 0.1
    """The fraction of VMs that may be created again elsewhere instead of being migrated."""
    actions: CountRange = (0, 3)
    """The number of actions of one VM, one after the other."""
    end_states: Mapping[VmState, Weight] = FrozenMap(
        {VmState.RUNNING: 14, VmState.READY: 2, VmState.SLEEPING: 2, VmState.TERMINATED: 1}
    )
    """The weights of the states that an action leads to, where there is a choice."""
    total: CountRange | None = None
    """The number of actions of a plan; unlimited without a range."""
    kinds: frozenset[ActionKind] = frozenset(ActionKind)
    """The actions that plans may have."""
    plans: PlanSampling = PlanSampling.CAREFUL
    allocated: Fraction = 0.1
    """The fraction of VMs without another action that get a new amount of a resource."""
    switched: Fraction = 0.1
    """The fraction of hosts that are powered on or off, if they can be."""
    seconds: CountRange = (1, 4)
    """The duration of actions."""
    waits: CountRange = (0, 1)
    """The delay before an action in seconds: short, so that many actions start or end together."""
    meets: Fraction = 0.6
    """The probability that a VM moves to a host that has an action already, if it can."""
    resources: Mapping[str, ResourceOptions] = FrozenMap({"licences": ResourceOptions()})
    network: NetworkOptions | None = None
    """The network of migrations; without one, durations are not checked."""
    labels: Mapping[str, tuple[str, ...]] = FrozenMap(
        {"zone": ("a", "b"), "rack": ("a", "b"), "flavor": ("a", "b")}
    )
    """The labels that hosts and VMs may have, with their values."""
    labelled: Fraction = 0.5
    """The probability of each label on each host and VM."""
    tenants: tuple[str, ...] = ("a", "b")
    owned: Fraction = 0.7
    """The fraction of VMs that have a tenant."""
    busy: Fraction = 0.5
    """The probability that a single VM or host in an argument is one that has an action."""
    unusual: Fraction = 0.3
    """The fraction of unusual arguments: empty, with one member, or with all members."""
    given: Mapping[str, tuple[str | int, ...]] = {}
    """Values for single arguments that are numbers or words, by their names."""
    continuous: bool | None = None
    """The mode of the constraint; drawn if it is not set, continuous more often."""
    broken_at_first: bool | None = None
    """Whether the constraint is violated before the plan starts; drawn if it is not set."""


DEFAULT_OPTIONS: Final = TrialOptions()


@dataclass(frozen=True)
class Trial:
    """A cluster, a plan for it, and a constraint with its arguments."""

    demand: Requirement
    initial: Snapshot
    steps: tuple[Step, ...]
    network: Network | None = None
    """The network of its migrations; without one, durations are not checked."""

    @cached_property
    def plan(self) -> Plan:
        """The steps as a plan."""
        return Plan(id=PlanId("trial"), base_version=self.initial.version, steps=self.steps)

    @cached_property
    def objections(self) -> tuple[Violation, ...]:
        """Why the plan cannot be executed: the violations of its preconditions and capacities.

        The constraint of the trial plays no part.
        """
        judges = () if self.network is None else (NetworkJudge(NetworkPaths(self.network)),)
        return replay_violations(self.initial, self.plan, judges)

    @cached_property
    def violation(self) -> CaseViolation | None:
        """The first violation of the constraint; ``None`` if the plan satisfies it."""
        return judge_case(self.demand, Case(self.initial, self.steps))

    @cached_property
    def is_broken_at_first(self) -> bool:
        """Whether the constraint is violated before the plan starts."""
        return not holds_in_state(self.demand, self.initial)

    @cached_property
    def is_acceptable(self) -> bool:
        """Whether the plan can be executed and satisfies the constraint."""
        return not self.objections and case_holds(self.demand, Case(self.initial, self.steps))

    def set_known_verdict(self, *, keeps: bool, broken_at_first: bool, careful: bool) -> None:
        """Store the verdict of a batch, so that the trial is not judged again.

        ``careful`` means that the plan can be executed by construction.
        """
        # The names of cached properties: a value in the dictionary is what they return.
        known = vars(self)
        known["is_broken_at_first"] = broken_at_first
        if careful:
            known["objections"] = ()
            known["is_acceptable"] = keeps


def with_machines(trial: Trial, hosts: Iterable[Host], vms: Iterable[Vm]) -> Trial:
    """A copy of a trial with other hosts and VMs, without the links of removed hosts."""
    before = trial.initial
    cluster = before.inventory().but(hosts=tuple(hosts), vms=tuple(vms))
    initial = Snapshot.of(cluster, at_ms=before.at_ms, version=before.version)
    network = trial.network and trial.network.but(
        links=tuple(link for link in trial.network.links if link.host in (None, *initial.hosts))
    )
    return replace(trial, initial=initial, network=network)
