"""Small random clusters with power figures, a past, rules and a power policy, and what is done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.balance import BalanceDecider
from equipoise.control.arbitrate import arbitrate, ask_deciders
from equipoise.model.action_durations import Estimates
from equipoise.model.event import ActionFinished, ActionStarted, DemandObserved, Event
from equipoise.model.host import Host, HostReserve, HostState, PowerProfile, RequestedHostState
from equipoise.model.plan import Plan, Proposal
from equipoise.model.policy.balance import BalancePolicy, HostOverride
from equipoise.model.policy.power import PowerOverride, PowerPolicy, StandbyPreference
from equipoise.model.quantity import HostId, PlanId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state import transition
from equipoise.model.state.snapshot import DemandSample, LastPowerChange, Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState
from equipoise.plan import Refusal, order
from equipoise.power import PowerDecider

SELDOM = st.sampled_from([False, False, False, False, True])
NOW_MS = 3 * 3_600_000
KNOWN = PowerProfile(idle_watts=100, peak_watts=200, standby_watts=5)
EAGER = PowerPolicy(observe_s=0, cooldown_s=0, benefit_times=1, threshold=5, hosts_on_min=1)


def known(name: str, *, asleep: bool = False, **fields: Any) -> Host:
    """A host with power figures."""
    state = HostState.STANDBY if asleep else HostState.ON
    return a_host(name, **{"power": KNOWN, "state": state} | fields)


def wants(name: str, host: str, mhz: int, mib: int = 0, **fields: Any) -> Vm:
    """A VM that asks for something."""
    return a_vm(name, host, demand=Demand(cpu_mhz=mhz, memory_mib=mib), **fields)


@st.composite
def a_machine(draw: st.DrawFn, name: str) -> Host:
    """A host that is mostly on and mostly known."""
    states = [HostState.ON] * 6 + [HostState.STANDBY] * 3 + [HostState.FAILED]
    state = HostState.ON if name == "h0" else draw(st.sampled_from(states))
    has_request = draw(SELDOM) and draw(SELDOM)
    return a_host(
        name,
        cores=draw(st.integers(1, 4)),
        memory_mib=draw(st.sampled_from([2048, 4096, 8192])),
        state=state,
        requested=draw(st.sampled_from(list(RequestedHostState))) if has_request else None,
        power=PowerProfile() if draw(SELDOM) and draw(SELDOM) else KNOWN,
        reserve=HostReserve(cpu_mhz=100, memory_mib=256) if draw(SELDOM) else HostReserve(),
        temperature_c=draw(st.sampled_from([None, 20.0, 40.0])),
        labels={"rack": draw(st.sampled_from("ab"))},
        memory_overcommit=draw(st.sampled_from([None, None, 1.5])),
        cpu_overcommit=draw(st.sampled_from([None, None, None, 2.0])),
    )


demands = st.builds(
    Demand, cpu_mhz=st.integers(0, 900), memory_mib=st.sampled_from([0, 100, 300, 600, 1000])
)


@st.composite
def a_guest(draw: st.DrawFn, name: str, hosts: list[Host]) -> Vm:
    """A VM that mostly runs and may mostly be moved."""
    agent = draw(SELDOM) and draw(st.booleans())
    places = [candidate for candidate in hosts if agent or candidate.state is HostState.ON]
    host = draw(st.sampled_from(places))
    asleep = host.state is not HostState.ON or (not agent and draw(SELDOM) and draw(SELDOM))
    limited = draw(SELDOM)
    return a_vm(
        name,
        host.id,
        state=VmState.SLEEPING if asleep else VmState.RUNNING,
        vcpus=draw(st.sampled_from([1, 1, 1, 2])),
        memory_mib=draw(st.sampled_from([512, 1024, 2048])),
        agent=agent,
        cpu=CpuSettings(
            reservation_mhz=draw(st.sampled_from([0, 0, 0, 400])),
            limit_mhz=draw(st.integers(400, 800)) if limited else None,
        ),
        memory=MemorySettings(
            reservation_mib=draw(st.sampled_from([0, 0, 0, 400])),
            limit_mib=draw(st.integers(400, 900)) if limited else None,
        ),
        demand=draw(demands),
    )


@st.composite
def a_rule(draw: st.DrawFn, name: str, hosts: list[Host], vms: list[Vm], words: bool) -> Rule:
    """A rule about VMs and hosts or, in the words of the library, about what must be spare."""
    ids, everywhere = [vm.id for vm in vms], tuple(host.id for host in hosts)
    several = tuple(draw(st.lists(st.sampled_from(ids), min_size=2, max_size=3, unique=True)))
    where = tuple(draw(st.lists(st.sampled_from(everywhere), min_size=1, unique=True)))
    given: dict[str, Any] = {
        "id": RuleId(name),
        "continuous": draw(st.booleans()),
        "hard": not draw(SELDOM),
    }
    plain: list[Rule] = [
        KeepApart(vms=several, **given),
        KeepTogether(vms=several, **given),
        StayWithin(vms=several[:1], hosts=where, **given),
        StayOff(vms=several[:1], hosts=where[:1], **given),
    ]
    kind, percent = draw(st.sampled_from(["cpu", "memory"])), draw(st.sampled_from([10, 40]))
    spare: list[tuple[str, dict[str, Any]]] = [
        ("MinOnline", {"ns": everywhere, "nb": draw(st.integers(1, len(hosts)))}),
        ("Failover", {"nb": 1, "id": kind}),
        ("FailoverPercentage", {"id": kind, "percent": percent}),
        ("FailoverHosts", {"ns": where[:1]}),
        ("MaxPerHost", {"vs": tuple(ids), "nb": 3}),
    ]
    if words and draw(st.booleans()):
        constraint, arguments = draw(st.sampled_from(spare))
        return Satisfy(constraint=constraint, arguments=arguments, **given)
    return draw(st.sampled_from(plain))


@st.composite
def a_policy(draw: st.DrawFn, hosts: list[Host]) -> PowerPolicy:
    """A power policy that is mostly eager."""
    order = draw(st.permutations(list(StandbyPreference)))
    overrides = {
        host.id: draw(st.sampled_from(list(PowerOverride))) for host in hosts if draw(SELDOM)
    }
    return EAGER.but(
        threshold=draw(st.sampled_from([1, 3, 3, 5, 5, 5])),
        target=draw(st.sampled_from([0.5, 0.63, 0.8])),
        tolerance=draw(st.sampled_from([0.0, 0.18, 0.2])),
        off_window_s=draw(st.sampled_from([600, 2400])),
        deviations=draw(st.sampled_from([0.0, 1.0, 2.0])),
        benefit_times=draw(st.sampled_from([1, 1, 10, 40])),
        hosts_on_min=draw(st.sampled_from([0, 1, 1, 2])),
        cooldown_s=draw(st.sampled_from([0, 1800])),
        hosts=overrides,
        order=tuple(order[: draw(st.integers(0, 4))]),
        cap_watts=draw(st.sampled_from([None, None, None, 300, 500])),
        moves_per_pass=draw(st.sampled_from([1, 3, 1000])),
    )


@st.composite
def a_past(draw: st.DrawFn, state: Snapshot, now_ms: int = NOW_MS) -> Snapshot:
    """The same cluster, observed some times within the last hour or never."""
    ago_s = draw(st.lists(st.integers(0, 3599), max_size=4, unique=True))
    frames = []
    for seconds in sorted(ago_s, reverse=True):
        seen = {vm: draw(demands) for vm in state.vms if not draw(SELDOM)}
        frames.append(DemandSample(now_ms - 1000 * seconds, FrozenMap(seen)))
    switches = {
        host: LastPowerChange(now_ms - 1000 * draw(st.integers(0, 3600)), *draw(_ways))
        for host in state.hosts
        if draw(SELDOM)
    }
    return replace(
        state, at_ms=now_ms, history=tuple(frames), switches=FrozenMap(switches), version=7
    )


_ways = st.tuples(st.booleans(), st.booleans())


@st.composite
def clusters(draw: st.DrawFn, *, words: bool = True, past: bool = True) -> Snapshot:
    """A small cluster in which some hosts could go into standby and some should wake."""
    hosts = [draw(a_machine(f"h{n}")) for n in range(draw(st.integers(2, 4)))]
    vms = [draw(a_guest(f"v{n}", hosts)) for n in range(draw(st.integers(0, 6)))]
    if len(vms) > 1 and vms[0].host != vms[1].host and draw(SELDOM):
        vms[:2] = vms[0].but(ft_pair=vms[1].id), vms[1].but(ft_pair=vms[0].id)
    count = draw(st.integers(0, 2)) if len(vms) > 1 else 0
    rules = tuple(draw(a_rule(f"r{n}", hosts, vms, words)) for n in range(count))
    closed = st.sampled_from(list(HostOverride))
    alone = {host.id: draw(closed) for host in hosts if draw(SELDOM) and draw(SELDOM)}
    still = draw(st.booleans())
    state = a_cluster(
        *hosts,
        vms=vms,
        rules=rules,
        power=draw(a_policy(hosts)),
        balance=BalancePolicy(hosts=alone, rules_only=still),
    )
    return draw(a_past(state)) if past else replace(state, at_ms=NOW_MS, version=7)


# Proposals and plans


def proposals(state: Snapshot, seed: int = 0) -> list[Proposal]:
    """Return the proposals of both deciders, as the loop does."""
    balance = BalanceDecider(Estimates(), seed=seed, powered=True)
    deciders = (balance, PowerDecider(Estimates()))
    return ask_deciders(deciders, state)


def planned(state: Snapshot, some: list[Proposal]) -> Plan | Refusal | None:
    """Return the plan of the loop; ``None`` if there is nothing to do."""
    intents, _, repairs = arbitrate(some, PlanId("p"))
    return order(state, intents, PlanId("p"), repairs) if intents else None


def applied(state: Snapshot, plan: Plan) -> Snapshot:
    """The cluster once all steps have gone as planned."""
    events: list[tuple[int, int, Event]] = []
    start_ms = state.at_ms
    for step in plan.steps:
        begins, ends = start_ms + step.start_ms, start_ms + step.end_ms
        events.append((begins, 1, ActionStarted(at_ms=begins, step=step, attempt=1)))
        events.append((ends, 0, ActionFinished(at_ms=ends, step=step.id, attempt=1)))
    events.sort(key=lambda entry: entry[:2])
    return transition.replay(state, (entry for *_, entry in events))


def observed(state: Snapshot, at_ms: int) -> Snapshot:
    """The same cluster later, with the same demand."""
    demand = {vm.id: vm.demand for vm in state.vms.values()}
    return transition.apply(state, DemandObserved(at_ms=at_ms, demand=demand))


def is_over_cap(state: Snapshot) -> bool:
    """Whether hosts could draw more than all may together: then as many sleep as it takes."""
    cap = state.settings.power.cap_watts
    watts = 0
    for host in state.hosts.values():
        if host.state is HostState.STANDBY:
            watts += host.power.standby_watts
        elif host.state is not HostState.FAILED:
            watts += host.power.max_watts
    return cap is not None and watts > cap


def hosts_on(state: Snapshot) -> set[HostId]:
    """Who is on."""
    return {host.id for host in state.hosts.values() if host.state is HostState.ON}


def guests_of(state: Snapshot, host: HostId) -> list[VmId]:
    """The VMs on a host, without its agents."""
    return [vm for vm in state.residents[host] if not state.vms[vm].agent]
