"""Placement with rules that only the specification can judge: another host, moves, or a fault."""

from __future__ import annotations

from typing import Any

from builders import a_cluster, a_host, a_vm
from equipoise.balance.placement import PlacementAdvice, place_vms
from equipoise.balance.run_pass import run_whatif
from equipoise.model.action_durations import Estimates
from equipoise.model.host import HostState
from equipoise.model.policy.balance import BalancePolicy, HostOverride
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, Satisfy
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm

PER_RACK = """
\"""At most this many running VMs of a tier are in one rack.\"""
AtMostPerRack(tier : string, nb : int) discrete continuous ::=
    !(n : hosts) card({v . v : vms, runs(v), label(v, "tier") = tier,
        label(host(v), "rack") = label(n, "rack")}) <= nb
"""
AHEAD = """
\"""No VM of a tier ever runs in a rack.\"""
Never(tier : string, rack : string) discrete ::=
    always (!(v : vms) label(v, "tier") = tier & runs(v) --> label(host(v), "rack") /= rack)
"""
RACKS = {"n1": "north", "n2": "north", "s1": "south", "e1": "east"}


def front(name: str, host: str | None = None, **fields: Any) -> Vm:
    demand = Demand(cpu_mhz=300, memory_mib=500)
    return a_vm(name, host, **{"labels": {"tier": "front"}, "demand": demand, **fields})


def per_rack(count: int = 2, **fields: Any) -> Satisfy:
    arguments: dict[str, Any] = {"tier": "front", "nb": count}
    return Satisfy(id=RuleId("r"), constraint="AtMostPerRack", arguments=arguments, **fields)


def cluster(*vms: Vm, rules: tuple[Any, ...] = (), text: str = PER_RACK, **fields: Any) -> Snapshot:
    hosts = [a_host(name, labels={"rack": rack}) for name, rack in RACKS.items()]
    return a_cluster(*hosts, vms=vms, rules=rules, specification=text, **fields)


def placed(state: Snapshot, *vms: str) -> PlacementAdvice:
    return place_vms(state, [VmId(vm) for vm in vms], Estimates())


def starts(advice: PlacementAdvice) -> dict[str, str]:
    return {start.vm: start.host for start in advice.placed}


NORTH_IS_FULL = (
    front("f1", "n1"), front("f2", "n1"), front("f3", "s1"), a_vm("b1", "s1"), a_vm("b3", "e1"),
)  # fmt: skip


def test_the_best_host_that_the_rule_allows_is_chosen() -> None:
    unknown = front("f5", demand=Demand())
    state = cluster(*NORTH_IS_FULL, unknown, rules=(per_rack(),))
    advice = placed(state, "f5")
    assert starts(advice) == {"f5": "e1"}
    assert not advice.faults
    assert not advice.moves
    assert [option.host for option in advice.placed[0].alternatives] == ["s1"]
    free = placed(cluster(*NORTH_IS_FULL, unknown), "f5")
    best = {option.host: option.imbalance for option in free.placed[0].alternatives}
    assert advice.placed[0].imbalance == best[HostId("e1")]


def test_a_continuous_rule_chooses_the_same_host() -> None:
    state = cluster(*NORTH_IS_FULL, front("f5"), rules=(per_rack(continuous=True),))
    assert starts(placed(state, "f5")) == {"f5": "e1"}


def test_many_vms_count_together() -> None:
    names = ("f5", "f6", "f7")
    state = cluster(*NORTH_IS_FULL, *map(front, names), rules=(per_rack(),))
    found = starts(placed(state, *names))
    assert sorted(found.values()) == ["e1", "e1", "s1"]


def test_vms_beyond_the_rule_are_a_fault_with_the_rule() -> None:
    names = ("f5", "f6", "f7", "f8")
    state = cluster(*NORTH_IS_FULL, *map(front, names), rules=(per_rack(),))
    advice = placed(state, *names)
    assert len(advice.placed) == 3
    (fault,) = advice.faults
    assert (fault.code, fault.rules) == ("gate-refuses", ("r",))


def test_a_rule_about_the_whole_plan_is_judged_too() -> None:
    never = Satisfy(
        id=RuleId("r"), constraint="Never", arguments={"tier": "front", "rack": "north"}
    )
    state = cluster(*NORTH_IS_FULL[2:], front("f5"), rules=(never,), text=AHEAD)
    assert starts(placed(state, "f5")) == {"f5": "e1"}


def test_a_rule_of_the_library_chooses_another_host() -> None:
    free = placed(cluster(front("f5")), "f5").placed[0]
    arguments: dict[str, Any] = {"ns": (free.host,), "nb": 0}
    rule = Satisfy(id=RuleId("r"), constraint="RunningCapacity", arguments=arguments)
    advice = placed(cluster(front("f5"), rules=(rule,)), "f5")
    assert starts(advice) == {"f5": free.alternatives[0].host}
    assert not advice.faults


def test_the_exact_planner_moves_another_vm_out_of_the_way() -> None:
    """Only n1 takes the large VM, and the rule allows it there after a front VM has left."""
    hosts = [
        a_host("n1", labels={"rack": "north"}, cores=8),
        a_host("s1", labels={"rack": "south"}),
    ]
    vms = [front("f1", "n1"), front("f2", "n1"), front("large", vcpus=8)]
    state = a_cluster(*hosts, vms=vms, rules=(per_rack(),), specification=PER_RACK)
    advice = placed(state, "large")
    assert starts(advice) == {"large": "n1"}
    assert [move.target for move in advice.moves] == ["s1"]
    assert not advice.faults


def test_the_exact_planner_starts_no_vm_on_a_closed_host() -> None:
    closed = BalancePolicy(hosts={HostId("e1"): HostOverride.CLOSED})
    vms = (*NORTH_IS_FULL, front("f4", "s1"), front("f5"))
    advice = placed(cluster(*vms, rules=(per_rack(),), balance=closed), "f5")
    assert not advice.placed
    assert [fault.rules for fault in advice.faults] == [("r",)]


def test_a_host_is_powered_on_if_the_rule_allows_no_other() -> None:
    hosts = [
        a_host("n1", labels={"rack": "north"}),
        a_host("e1", labels={"rack": "east"}, state=HostState.STANDBY),
    ]
    vms = [front("f1", "n1"), front("f2", "n1"), front("f3")]
    state = a_cluster(*hosts, vms=vms, rules=(per_rack(),), specification=PER_RACK)
    advice = placed(state, "f3")
    assert (starts(advice), advice.wakes) == ({"f3": "e1"}, ("e1",))
    assert not advice.faults


def test_moves_of_the_fast_search_obey_the_rule() -> None:
    """The fast search moves one VM off n1 for the new one; the rule then needs a second move."""
    hosts = [
        a_host("n1", labels={"rack": "north"}, cores=8),
        a_host("s1", labels={"rack": "south"}),
    ]
    vms = [front("f1", "n1"), front("f2", "n1"), a_vm("b1", "n1"), front("large", vcpus=8)]
    apart = KeepApart(id=RuleId("apart"), vms=(VmId("large"), VmId("b1")))
    state = a_cluster(*hosts, vms=vms, rules=(per_rack(), apart), specification=PER_RACK)
    advice = placed(state, "large")
    assert starts(advice) == {"large": "n1"}
    assert len({move.vm for move in advice.moves}) == 2
    assert "b1" in {move.vm for move in advice.moves}
    assert not advice.faults


def test_a_broken_rule_allows_the_starts_that_do_not_make_it_worse() -> None:
    """Four front VMs are in the north, two too many; there is room in the other racks."""
    vms = (front("f1", "n1"), front("f2", "n1"), front("f3", "n2"), front("f4", "n2"))
    advice = placed(cluster(*vms, front("f5"), front("f6"), rules=(per_rack(),)), "f5", "f6")
    assert sorted(starts(advice).values()) == ["e1", "s1"]
    assert not advice.moves
    assert not advice.faults


def test_a_broken_rule_does_not_concern_a_vm_without_the_label() -> None:
    vms = (front("f1", "n1"), front("f2", "n1"), front("f3", "n2"))
    rule = Satisfy(id=RuleId("r"), constraint="Lonely", arguments={"vs": (VmId("f1"),)})
    advice = placed(cluster(*vms, a_vm("b"), rules=(rule,)), "b")
    assert len(advice.placed) == 1
    assert not advice.moves


def test_restarts_after_a_failure_obey_the_rule() -> None:
    vms = (
        front("f1", "n1"), front("f2", "n1"), front("f3", "e1"), front("f4", "e1"),
        a_vm("b1", "s1", vcpus=4, demand=Demand(cpu_mhz=1900, memory_mib=500)),
    )  # fmt: skip
    result = run_whatif(cluster(*vms, rules=(per_rack(),)), Estimates(), fail=[HostId("e1")])
    assert starts(result.restarts) == {"f3": "s1", "f4": "s1"}
    assert not result.unplaced


def test_both_vms_of_a_fault_tolerant_pair_obey_the_rule() -> None:
    pair = (front("p1", ft_pair=VmId("p2")), front("p2", ft_pair=VmId("p1")))
    vms = (front("f1", "n1"), front("f2", "n1"), front("f3", "s1"), *pair)
    advice = placed(cluster(*vms, rules=(per_rack(),)), "p1", "p2")
    assert sorted(starts(advice).values()) == ["e1", "s1"]
    assert not advice.faults


def test_a_broken_continuous_rule_allows_a_start_elsewhere() -> None:
    vms = (front("f1", "n1"), front("f2", "n1"), front("f3", "n2"), front("f4"))
    advice = placed(cluster(*vms, rules=(per_rack(continuous=True),)), "f4")
    assert starts(advice)["f4"] in {"e1", "s1"}
    assert not advice.moves
    assert not advice.faults


def test_vms_that_a_rule_allows_only_together_start_on_the_best_hosts() -> None:
    """The rule is broken until one front VM runs in each of two racks."""
    text = '"""Both or none."""\nBoth(a : vms, b : vms) ::= runs(a) <--> runs(b)\n'
    both = Satisfy(id=RuleId("r"), constraint="Both", arguments={"a": "f1", "b": "f2"})
    advice = placed(cluster(front("f1"), front("f2"), rules=(both,), text=text), "f1", "f2")
    assert len(advice.placed) == 2
    assert not advice.faults
