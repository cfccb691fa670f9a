"""Our own deciders as schedulers under test: propose, arbitrate, order, verify.

Sizes and demands are not drawn. They are derived from the drawn resources, so that the same trial
can be judged without them: a VM reserves what it consumes of ``memory_gib`` and ``cpu_ghz``, and a
host has what it offers. Labels state the demand of a VM and the request of the operator for a host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from equipoise.adapters.targets.balancer import MEMORY, MIB_PER_GIB
from equipoise.adapters.targets.scheduler import (
    MAKES_ITS_OWN_PLAN,
    SchedulerCrash,
    SchedulerEntry,
    UnsupportedTrial,
    require_no_network,
)
from equipoise.adapters.targets.trial import ResourceOptions, Trial, TrialOptions
from equipoise.balance.propose import BalanceDecider
from equipoise.control.arbitrate import arbitrate, ask_deciders
from equipoise.control.ports import Decider
from equipoise.fuzz.trial.stored import written_arguments
from equipoise.model.action_durations import Estimates
from equipoise.model.host import Host, HostState, PowerProfile, RequestedHostState
from equipoise.model.plan import Step
from equipoise.model.quantity import OVERCOMMIT_MAX, HostId, PlanId, ResourceName, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState
from equipoise.plan import Refusal, order, verify
from equipoise.power.propose import PowerDecider
from equipoise.spec.evaluate.domains import in_order

CPU: Final = ResourceName("cpu_ghz")
DEMAND_LABEL: Final = "demand_mhz"
REQUEST_LABEL: Final = "request"
_OLD_LABELS: Final = {DEMAND_LABEL: "asks_mhz", REQUEST_LABEL: "wish"}
"""The names of these labels in cases of older versions."""
MHZ_PER_GHZ: Final = 1000
VCPUS: Final = 4
WATTS: Final = PowerProfile(idle_watts=150, peak_watts=300, standby_watts=10)
NOT_REPAIRED: Final = "the constraint is violated initially, and the decider finds no repair"

DECIDER_OPTIONS: Final = TrialOptions(
    hosts=(1, 5),
    vms=(0, 8),
    host_states=FrozenMap({HostState.ON: 16, HostState.STANDBY: 3, HostState.MAINTENANCE: 1}),
    vm_states=FrozenMap({VmState.RUNNING: 16, VmState.READY: 1, VmState.SLEEPING: 2}),
    actions=(0, 0),
    allocated=0,
    switched=0,
    resources=FrozenMap(
        {
            MEMORY: ResourceOptions(capacity=(4, 12), consumption=(0, 4), offered=1.0),
            CPU: ResourceOptions(capacity=(4, 8), consumption=(0, 2), offered=1.0),
            "licences": ResourceOptions(),
        }
    ),
    labels=FrozenMap(
        {
            DEMAND_LABEL: ("500", "2000", "4000"),
            REQUEST_LABEL: (*RequestedHostState, "none", "none"),
            "rack": ("a", "b"),
            "flavor": ("a", "b"),
        }
    ),
    labelled=0.4,
    given=FrozenMap({"id": ("licences", MEMORY, CPU)}),
)
"""Trials without a plan, in clusters that need balancing and power changes."""


class DeciderScheduler:
    """The plan that the control loop makes of the proposals of some deciders.

    A proposal that cannot be ordered, or that the gate refuses, is a crash: all of our deciders
    promise that this never happens. Without the gate, the plan is judged as it was ordered.

    A decider may leave an initial violation in place with a reason. Then only a plan that cannot be
    executed is a defect.
    """

    def __init__(self, make: Callable[[], Sequence[Decider]], *, gate: str = "on") -> None:
        self._make, self._gate = make, gate

    def plan(self, trial: Trial) -> tuple[Step, ...]:
        """The steps that the control loop would execute."""
        require_no_network(trial)
        if trial.steps:
            raise UnsupportedTrial(MAKES_ITS_OWN_PLAN, "unsupported-plan")
        steps = self._decided(decider_snapshot(trial))
        made = replace(trial, steps=steps)
        if trial.is_broken_at_first and not made.is_acceptable and not made.objections:
            raise UnsupportedTrial(NOT_REPAIRED, "already-violated")
        return steps

    def _decided(self, cluster: Snapshot) -> tuple[Step, ...]:
        proposals = ask_deciders(self._make(), cluster)
        intents, _, repaired = arbitrate(proposals, PlanId("p"))
        if not intents:
            return ()
        plan = order(cluster, intents, PlanId("p"), repaired)
        if isinstance(plan, Refusal):
            raise SchedulerCrash(f"its proposal cannot be ordered: {plan.violations[0].constraint}")
        if self._gate == "on":
            verdict = verify(cluster, plan)
            if isinstance(verdict, Refusal):
                raise SchedulerCrash(
                    f"the gate refuses its proposal: {verdict.violations[0].constraint}"
                )
        return plan.steps


def decider_snapshot(trial: Trial) -> Snapshot:
    """The cluster of a trial with sizes, demands and requests, and the constraint as a rule."""
    before = trial.initial
    cluster = before.inventory().but(
        hosts=tuple(map(_host, before.hosts.values())),
        vms=tuple(map(_vm, before.vms.values())),
        rules=(rule_of(trial),),
    )
    return Snapshot.of(cluster, at_ms=before.at_ms, version=before.version)


def rule_of(trial: Trial) -> Rule:
    """The constraint as a rule of an operator: with its own kind if there is one."""
    demand, name = trial.demand, RuleId("trial")
    vms: tuple[VmId, ...] = in_order(demand.arguments.get("vs", ()))
    hosts: tuple[HostId, ...] = in_order(demand.arguments.get("ns", ()))
    match demand.name:
        # Rules of these kinds need that many members; smaller sets go through ``satisfy``.
        case "KeepApart" if len(vms) > 1:
            return KeepApart(id=name, vms=vms, continuous=demand.continuous)
        case "KeepTogether" if len(vms) > 1:
            return KeepTogether(id=name, vms=vms, continuous=demand.continuous)
        case "MustRunOn" if vms and hosts:
            return StayWithin(id=name, vms=vms, hosts=hosts, continuous=demand.continuous)
        case "MustNotRunOn" if vms and hosts:
            return StayOff(id=name, vms=vms, hosts=hosts, continuous=demand.continuous)
    arguments = written_arguments(demand)
    return Satisfy(
        id=name, constraint=demand.name, arguments=arguments, continuous=demand.continuous
    )


def _host(host: Host) -> Host:
    request = _label(host, REQUEST_LABEL, "none")
    is_requested = host.state is HostState.ON and request != "none"
    return host.but(
        cores=max(1, host.capacity.get(CPU, 0)),
        mhz_per_core=MHZ_PER_GHZ,
        memory_mib=MIB_PER_GIB * max(1, host.capacity.get(MEMORY, 0)),
        power=WATTS,
        requested=RequestedHostState(request) if is_requested else None,
        # A trial limits what VMs consume, and says nothing about their size.
        memory_overcommit=OVERCOMMIT_MAX,
    )


def _vm(vm: Vm) -> Vm:
    memory_mib = MIB_PER_GIB * vm.consumption.get(MEMORY, 0)
    return vm.but(
        vcpus=VCPUS,
        memory_mib=max(MIB_PER_GIB, memory_mib),
        cpu=CpuSettings(reservation_mhz=MHZ_PER_GHZ * vm.consumption.get(CPU, 0)),
        memory=MemorySettings(reservation_mib=memory_mib),
        demand=Demand(cpu_mhz=int(_label(vm, DEMAND_LABEL, "0")), memory_mib=memory_mib),
    )


def _label(machine: Host | Vm, name: str, default: str) -> str:
    return machine.labels.get(name, machine.labels.get(_OLD_LABELS[name], default))


def _balance(*, gate: str) -> DeciderScheduler:
    return DeciderScheduler(lambda: (BalanceDecider(Estimates()),), gate=gate)


def _power(*, beside: str, gate: str) -> DeciderScheduler:
    if beside == "none":
        return DeciderScheduler(lambda: (PowerDecider(Estimates(), balanced=False),), gate=gate)
    return DeciderScheduler(
        lambda: (BalanceDecider(Estimates()), PowerDecider(Estimates())), gate=gate
    )


GATE_SETTINGS: Final = ("on", "off")
BALANCE: Final = SchedulerEntry(
    name="balance",
    about="our decider that repairs rules and balances load, up to the gate",
    make=_balance,
    question="plan",
    options=DECIDER_OPTIONS,
    settings={"gate": GATE_SETTINGS},
)
POWER: Final = SchedulerEntry(
    name="power",
    about="our decider that puts hosts on standby and wakes them, up to the gate",
    make=_power,
    question="plan",
    options=DECIDER_OPTIONS,
    settings={"beside": ("balance", "none"), "gate": GATE_SETTINGS},
)
