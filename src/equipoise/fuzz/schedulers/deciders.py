"""Our own deciders, asked as the control loop asks them: propose, arbitrate, order, verify.

Chance draws no sizes and no demand. They are read from what it does draw, so that the same trial is
judged by those who know nothing of them: a VM takes of ``memory_gib`` and ``cpu_ghz`` what it has
reserved, and a host offers as much as it has. Labels say what a VM asks for, and what an operator
wishes of a host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from equipoise.balance.propose import Balance
from equipoise.control.arbitrate import arbitrate
from equipoise.control.ports import Decider
from equipoise.fuzz.generate.options import Amounts, Options
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.schedulers.scheduler import TAKES_NO_PLAN, Crash, Unsupported, without_network
from equipoise.fuzz.trial.stored import written_arguments
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.estimate import Estimates
from equipoise.model.host import Host, HostState, HostWish, PowerFigures
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, PlanId, ResourceName, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState
from equipoise.plan import Refusal, order, verify
from equipoise.power.propose import Power
from equipoise.spec.choose import in_order

MIB_PER_GIB: Final = 1024
MEMORY: Final = ResourceName("memory_gib")
CPU: Final = ResourceName("cpu_ghz")
ASKED: Final = "asks_mhz"
WISH: Final = "wish"
MHZ_PER_GHZ: Final = 1000
VCPUS: Final = 4
WATTS: Final = PowerFigures(idle_watts=150, peak_watts=300, standby_watts=10)
BROKEN: Final = "the constraint is broken at first, and it finds nothing that mends it"

OPTIONS: Final = Options(
    hosts=(1, 5),
    vms=(0, 8),
    host_states=FrozenMap({HostState.ON: 16, HostState.STANDBY: 3, HostState.MAINTENANCE: 1}),
    vm_states=FrozenMap({VmState.RUNNING: 16, VmState.READY: 1, VmState.SLEEPING: 2}),
    actions=(0, 0),
    allocated=0,
    switched=0,
    resources=FrozenMap(
        {
            MEMORY: Amounts(capacity=(4, 12), consumption=(0, 4), offered=1.0),
            CPU: Amounts(capacity=(4, 8), consumption=(0, 2), offered=1.0),
            "licences": Amounts(),
        }
    ),
    labels=FrozenMap(
        {
            ASKED: ("500", "2000", "4000"),
            WISH: (*HostWish, "none", "none"),
            "rack": ("a", "b"),
            "flavor": ("a", "b"),
        }
    ),
    labelled=0.4,
    given=FrozenMap({"id": ("licences", MEMORY, CPU)}),
)
"""Trials without a plan, in which there is something to level and something to switch."""


class Decided:
    """What comes of the proposals of some deciders in the control loop.

    What cannot be ordered, or what the gate refuses, is a decider that has broken: all of ours
    promise that this never happens. Without the gate, the plan is judged as it was ordered.

    Who finds a constraint broken may leave it so and say why; only a plan that machines could not
    carry out is held against it then.
    """

    def __init__(self, make: Callable[[], Sequence[Decider]], *, gate: str = "on") -> None:
        self._make, self._gate = make, gate

    def plan(self, trial: Trial) -> tuple[Step, ...]:
        """The steps that would be carried out."""
        without_network(trial)
        if trial.steps:
            raise Unsupported(TAKES_NO_PLAN)
        steps = self._decided(dressed(trial))
        made = replace(trial, steps=steps)
        if trial.is_broken_at_first and not made.is_right and not made.objections:
            raise Unsupported(BROKEN)
        return steps

    def _decided(self, cluster: Snapshot) -> tuple[Step, ...]:
        proposals = [decider.propose(cluster) for decider in self._make()]
        intents, _, mends = arbitrate(proposals, PlanId("p"))
        if not intents:
            return ()
        plan = order(cluster, intents, PlanId("p"), mends)
        if isinstance(plan, Refusal):
            raise Crash(f"its proposal cannot be ordered: {plan.violations[0].constraint}")
        if self._gate == "on":
            verdict = verify(cluster, plan)
            if isinstance(verdict, Refusal):
                raise Crash(f"the gate refuses its proposal: {verdict.violations[0].constraint}")
        return plan.steps


def dressed(trial: Trial) -> Snapshot:
    """The cluster of a trial with sizes, demand and wishes, and with the constraint as a rule."""
    before = trial.initial
    cluster = before.inventory().but(
        hosts=tuple(map(_host, before.hosts.values())),
        vms=tuple(map(_vm, before.vms.values())),
        rules=(rule_of(trial),),
    )
    return Snapshot.of(cluster, at_ms=before.at_ms, version=before.version)


def rule_of(trial: Trial) -> Rule:
    """The constraint as an operator would write it: a rule with a kind of its own, if it has."""
    demand, name = trial.demand, RuleId("trial")
    vms: tuple[VmId, ...] = in_order(demand.arguments.get("vs", ()))
    hosts: tuple[HostId, ...] = in_order(demand.arguments.get("ns", ()))
    match demand.name:
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
    wish = host.labels.get(WISH, "none")
    is_wished = host.state is HostState.ON and wish != "none"
    return host.but(
        cores=max(1, host.capacity.get(CPU, 0)),
        mhz_per_core=MHZ_PER_GHZ,
        memory_mib=MIB_PER_GIB * max(1, host.capacity.get(MEMORY, 0)),
        power=WATTS,
        requested=HostWish(wish) if is_wished else None,
    )


def _vm(vm: Vm) -> Vm:
    memory_mib = MIB_PER_GIB * vm.consumption.get(MEMORY, 0)
    return vm.but(
        vcpus=VCPUS,
        memory_mib=max(MIB_PER_GIB, memory_mib),
        cpu=CpuSettings(reservation_mhz=MHZ_PER_GHZ * vm.consumption.get(CPU, 0)),
        memory=MemorySettings(reservation_mib=memory_mib),
        demand=Demand(cpu_mhz=int(vm.labels.get(ASKED, 0)), memory_mib=memory_mib),
    )


def _balance(*, gate: str) -> Decided:
    return Decided(lambda: (Balance(Estimates()),), gate=gate)


def _power(*, beside: str, gate: str) -> Decided:
    if beside == "nobody":
        return Decided(lambda: (Power(Estimates(), balanced=False),), gate=gate)
    return Decided(lambda: (Balance(Estimates()), Power(Estimates())), gate=gate)


GATE: Final = ("on", "off")
BALANCE: Final = Known(
    name="balance",
    about="our decider that mends rules and levels load, up to the gate",
    make=_balance,
    question="plan",
    options=OPTIONS,
    settings={"gate": GATE},
)
POWER: Final = Known(
    name="power",
    about="our decider that puts hosts to sleep and wakes them, up to the gate",
    make=_power,
    question="plan",
    options=OPTIONS,
    settings={"beside": ("balance", "nobody"), "gate": GATE},
)
