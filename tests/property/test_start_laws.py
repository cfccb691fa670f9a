"""Laws of placement with rules that only the specification can judge, against every host."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.balance.advice import IntentBuilder
from equipoise.balance.placement import place_vms
from equipoise.model.action import Boot
from equipoise.model.action_durations import Estimates
from equipoise.model.plan import Plan
from equipoise.model.quantity import HostId, PlanId, RuleId, StepId, VmId
from equipoise.model.rule import KeepApart, Satisfy
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, MemorySettings
from equipoise.plan import VerifiedPlan, order, verify
from equipoise.plan.order import GateFilter

ESTIMATES = Estimates()
HOSTS = ("h1", "h2", "h3", "h4")
OLD, NEW = ("v1", "v2", "v3", "v4"), ("n1", "n2")
VMS = (*OLD, *NEW)
RACKS = {"h1": "a", "h2": "a", "h3": "b", "h4": "b"}
OWN = """
\"""At most this many running VMs of a role are in one rack.\"""
AtMostPerRack(role : string, nb : int) discrete continuous ::=
    !(n : hosts) card({v. v : vms, runs(v) & label(v, "role") = role
        & label(host(v), "rack") = label(n, "rack")}) <= nb
\"""No VM of a role ever runs in a rack.\"""
Never(role : string, rack : string) discrete ::=
    always (!(v : vms) label(v, "role") = role & runs(v) --> label(host(v), "rack") /= rack)
\"""VMs of a role run in both racks.\"""
InBoth(role : string) discrete continuous ::=
    (?(v : vms) runs(v) & label(v, "role") = role & label(host(v), "rack") = "a")
    & (?(v : vms) runs(v) & label(v, "role") = role & label(host(v), "rack") = "b")
\"""A VM does not start on a host with these many VMs on it or on their way to it.\"""
Hosted(n : hosts, nb : int) discrete continuous ::= card(hosted(n)) <= nb
"""


def some(names: tuple[str, ...], size: int = 1) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(names), min_size=size, unique=True).map(tuple)


ROLES = st.sampled_from(["web", "db"])
HALVES = st.just((HOSTS[:2], HOSTS[2:]))
ARGUMENTS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "AtMostPerRack": {"role": ROLES, "nb": st.integers(0, 3)},
    "Never": {"role": ROLES, "rack": st.sampled_from("ab")},
    "InBoth": {"role": ROLES},
    "Hosted": {"n": st.sampled_from(HOSTS), "nb": st.integers(0, 2)},
    "Lonely": {"vs": some(VMS)},
    "Split": {"parts": st.just((VMS[:3], VMS[3:]))},
    "Among": {"vs": some(VMS), "parts": HALVES},
    "RunningCapacity": {"ns": some(HOSTS), "nb": st.integers(0, 3)},
    "MostlySpread": {"vs": some(VMS), "nb": st.integers(0, 4)},
    "PodAntiAffinity": {"v": st.sampled_from(NEW), "others": some(OLD), "key": st.just("rack")},
    "TopologySpread": {"vs": some(VMS, 2), "key": st.just("rack"), "skew": st.integers(1, 2)},
    "Failover": {"nb": st.just(1), "id": st.just("memory")},
}
DISCRETE_ONLY = ("Never",)


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Draw four hosts in two racks, VMs that run, two that do not, and one to three rules."""
    rules: list[Any] = []
    for number in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(ARGUMENTS)))
        arguments = {key: draw(value) for key, value in ARGUMENTS[name].items()}
        continuous = name not in DISCRETE_ONLY and draw(st.booleans())
        rule = Satisfy(
            id=RuleId(f"r{number}"), constraint=name, arguments=arguments, continuous=continuous
        )
        rules.append(rule)
    if draw(st.booleans()):
        rules.append(KeepApart(id=RuleId("apart"), vms=(VmId("v1"), VmId("n1"))))
    vms = [
        a_vm(
            vm,
            draw(st.sampled_from(HOSTS)) if vm in OLD else None,
            labels={"role": draw(ROLES)},
            memory_mib=draw(st.sampled_from([1024, 6000])),
            memory=MemorySettings(reservation_mib=draw(st.sampled_from([0, 1000]))),
            demand=Demand(cpu_mhz=draw(st.sampled_from([100, 900])), memory_mib=500),
        )
        for vm in VMS
    ]
    hosts = [a_host(host, labels={"rack": RACKS[host]}) for host in HOSTS]
    return a_cluster(*hosts, vms=vms, rules=tuple(rules), specification=OWN)


def legal_hosts(cluster: Snapshot, vm: VmId) -> list[str]:
    """Return the hosts on which the gate accepts the start of a VM, by asking for every host."""
    gate, builder = GateFilter(cluster), IntentBuilder(cluster, ESTIMATES)
    boots = {host: Boot(vm=vm, target=HostId(host)) for host in HOSTS}
    return [
        host for host, boot in boots.items() if not gate.objections([builder.of(StepId("s"), boot)])
    ]


@settings(deadline=None)
@given(clusters(), st.booleans())
def test_the_gate_accepts_whatever_a_placement_starts(cluster: Snapshot, one: bool) -> None:
    vms = [VmId(vm) for vm in (NEW[:1] if one else NEW)]
    advice = place_vms(cluster, vms, ESTIMATES)
    if advice.intents:  # a broken continuous rule refuses even a plan without a step
        plan = order(cluster, advice.intents, PlanId("p"))
        assert isinstance(plan, Plan)
        assert isinstance(verify(cluster, plan), VerifiedPlan)
    assert {start.vm for start in advice.placed} | {fault.subject for fault in advice.faults} == {
        *vms
    }


@settings(deadline=None)
@given(clusters())
def test_a_vm_starts_on_the_best_host_that_the_gate_accepts(cluster: Snapshot) -> None:
    vm = VmId(NEW[0])
    legal = legal_hosts(cluster, vm)
    advice = place_vms(cluster, [vm], ESTIMATES)
    if not legal:
        assert advice.moves or advice.faults
        return
    (start,) = advice.placed
    assert not advice.faults
    if advice.moves:
        return
    assert start.host in legal
    free = place_vms(Snapshot.of(cluster.inventory().but(rules=())), [vm], ESTIMATES).placed[0]
    scores = {free.host: free.imbalance}
    scores |= {option.host: option.imbalance for option in free.alternatives}
    assert start.imbalance == min(scores[HostId(host)] for host in legal)
