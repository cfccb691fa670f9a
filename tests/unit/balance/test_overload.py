"""Overloaded hosts: relief before evenness, what is said when it ends, and placement by load."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import a_cluster, a_host, a_vm
from equipoise.balance.advice import BalanceAdvice, BalanceCode
from equipoise.balance.explain import BalanceExplainer
from equipoise.balance.placement import PlacementAdvice, place_vms
from equipoise.balance.run_pass import run_balance_pass
from equipoise.documents.advice import place_document, recommend_document
from equipoise.model.action_durations import Estimates
from equipoise.model.host import HostState, RequestedHostState
from equipoise.model.policy.balance import BalancePolicy, VmOverride
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Satisfy, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm

ESTIMATES = Estimates()
GIB = 1024


def wants(name: str, host: str | None, mhz: int, mib: int = 0, **more: Any) -> Vm:
    return a_vm(name, host, demand=Demand(cpu_mhz=mhz, memory_mib=mib), **more)


def advised(state: Snapshot, **policy: Any) -> BalanceAdvice:
    settings = state.settings.but(balance=BalancePolicy(**policy))
    state = replace(state, settings=settings)
    return run_balance_pass(state, ESTIMATES, alternatives=True).advice


def ways(advice: BalanceAdvice) -> list[tuple[str, str, str]]:
    return [(move.vm, move.target, move.code) for move in advice.moves]


# Relief


def a_full_host(**more: Any) -> Snapshot:
    """A host asks for 105 % CPU, another for 90 %: the imbalance is 0.075."""
    full = [wants(f"v{n}", "h1", 1050) for n in range(4)]
    calm = [wants("w", "h2", 3550)]
    return a_cluster(a_host("h1"), a_host("h2", cores=5), vms=[*full, *calm], **more)


def test_overload_is_relieved_although_the_imbalance_is_within_the_target() -> None:
    advice = advised(a_full_host(), imbalance_target=1.0)
    assert ways(advice) == [("v0", "h2", BalanceCode.RELIEF)]
    move = advice.moves[0]
    assert move.priority == 2
    assert move.gain["cpu_overload_mhz"] == 200
    assert advice.crowded == 0
    assert advice.overload == ()


def test_overloaded_hosts_are_relieved_in_turn_over_all_their_links() -> None:
    full = [wants(f"{host}-{n}", host, 1000) for host in ("h1", "h2") for n in range(8)]
    empty = [a_host(f"h{n}") for n in (3, 4)]
    advice = advised(a_cluster(a_host("h1"), a_host("h2"), *empty, vms=full), moves_per_pass=4)
    assert [move.source for move in advice.moves] == ["h1", "h2", "h1", "h2"]


def test_the_cost_benefit_analysis_does_not_forbid_relief() -> None:
    """The worst case of the target counts for evenness only; here it is far above its capacity."""
    careful = {"imbalance_target": 1.0, "horizon_s": 3600, "spread": 1.0, "slowdown": 1.0}
    assert ways(advised(a_full_host(), **careful)) == [("v0", "h2", BalanceCode.RELIEF)]


def test_relief_that_is_not_worth_its_migration_is_not_made() -> None:
    tiny = [wants(f"v{n}", "h1", 1001, memory_mib=16384) for n in range(4)]
    state = a_cluster(a_host("h1"), a_host("h2"), vms=tiny)
    dear = {"imbalance_target": 1.0, "migration_cpu_mhz": 4000}
    assert ways(advised(state, **dear, cost_benefit=True)) == []
    assert len(ways(advised(state, **dear, cost_benefit=False))) == 1


def test_no_move_overloads_its_target() -> None:
    """Both hosts together have too little: a move would only change which VMs wait."""
    vms = [wants(f"v{n}", "h1", 2000) for n in range(4)] + [wants("w", "h2", 3000)]
    advice = advised(a_cluster(a_host("h1"), a_host("h2"), vms=vms), cost_benefit=False)
    assert ways(advice) == []
    assert [fault.code for fault in advice.overload] == ["out-of-cpu", "host-overloaded"]
    assert advice.overload[0].figures == {"asked": 11000, "there": 8000, "lacking": 3000}


def test_a_vm_makes_room_for_relief() -> None:
    """Only h2 may take the VM that is too much, and only if another one leaves h2 first."""
    rule = StayWithin(id=RuleId("r"), vms=(VmId("big"),), hosts=(HostId("h1"), HostId("h2")))
    vms = [
        wants("big", "h1", 3000),
        wants("fix", "h1", 2000),
        wants("gives", "h2", 1500),
    ]
    pinned = {VmId("fix"): VmOverride.OFF}
    state = a_cluster(a_host("h1"), a_host("h2"), a_host("h3", cores=2), vms=vms, rules=(rule,))
    advice = advised(state, vms=pinned)
    assert ways(advice) == [
        ("gives", "h3", BalanceCode.FREE_CAPACITY),
        ("big", "h2", BalanceCode.RELIEF),
    ]


def test_two_vms_change_places_for_relief() -> None:
    vms = [wants("a", "h1", 2500), wants("b", "h1", 2500), wants("c", "h2", 1500)]
    advice = advised(a_cluster(a_host("h1"), a_host("h2"), vms=vms), imbalance_target=1.0)
    assert advice.crowded == 0
    assert {move.target for move in advice.moves} <= {"h1", "h2"}


def test_a_soft_rule_yields_to_relief() -> None:
    vms = [wants(f"v{n}", "h1", 1500) for n in range(3)]
    names = tuple(vm.id for vm in vms)
    soft = StayOff(id=RuleId("r"), vms=names, hosts=(HostId("h2"),), hard=False)
    advice = advised(a_cluster(a_host("h1"), a_host("h2"), vms=vms, rules=(soft,)))
    assert [code for _, _, code in ways(advice)] == [BalanceCode.RELIEF]


def test_a_drain_prefers_hosts_that_it_does_not_overload() -> None:
    """h1 has the lower sum of both loads, but no CPU is left there."""
    vms = [
        wants("v", "h0", 1000, GIB),
        wants("x", "h1", 3500, GIB),
        wants("y", "h2", 2500, 8 * GIB, memory_mib=8 * GIB),
    ]
    hosts = [a_host("h0", requested=RequestedHostState.MAINTENANCE), a_host("h1"), a_host("h2")]
    advice = advised(a_cluster(*hosts, vms=vms), rules_only=True)
    assert [(move.vm, move.target) for move in advice.moves] == [("v", "h2")]


@pytest.mark.parametrize(
    ("policy", "codes"),
    [({"rules_only": True}, set()), ({"threshold": 1}, {"below-threshold"})],
)
def test_a_policy_without_relief_reports_the_overload(
    policy: dict[str, Any], codes: set[str]
) -> None:
    advice = advised(a_full_host(), **policy)
    assert ways(advice) == []
    assert {rejection.code for rejection in advice.rejected} == codes
    assert [fault.code for fault in advice.overload] == ["host-overloaded"]
    assert advice.overload[0].subject == "h1"
    assert advice.overload[0].figures["cpu_asked"] == 4200


def test_demand_above_a_limit_overloads_no_host() -> None:
    capped = CpuSettings(limit_mhz=1000)
    vms = [wants(f"v{n}", "h1", 3000, cpu=capped) for n in range(4)]
    advice = advised(a_cluster(a_host("h1"), a_host("h2"), vms=vms), imbalance_target=1.0)
    assert ways(advice) == []
    assert advice.crowded == 0


# What would help


def a_short_cluster(*standby: tuple[str, int]) -> Snapshot:
    """VMs demand 180 GiB, 128 GiB are there."""
    hosts = [a_host(name, memory_mib=64 * GIB) for name in ("h1", "h2")]
    hosts += [
        a_host(name, memory_mib=size * GIB, state=HostState.STANDBY) for name, size in standby
    ]
    vms = [wants(f"v{n}", f"h{1 + n % 2}", 100, 15 * GIB, memory_mib=15 * GIB) for n in range(12)]
    return a_cluster(*hosts, vms=vms)


def test_a_cluster_that_has_too_little_says_how_much_is_missing() -> None:
    advice = advised(a_short_cluster())
    shortage = advice.overload[0]
    assert shortage.code == "out-of-memory"
    assert shortage.figures == {
        "asked": 180 * GIB, "there": 128 * GIB, "lacking": 52 * GIB
    }  # fmt: skip
    assert shortage.hosts == ()
    assert "target" not in advice.summary
    assert [fault.code for fault in advice.overload[1:]] == ["host-overloaded"] * 2


def test_the_smallest_standby_host_that_is_enough_is_named() -> None:
    advice = advised(a_short_cluster(("s1", 32), ("s2", 72), ("s3", 256)))
    assert advice.overload[0].hosts == ("s2",)
    assert advice.overload[0].figures["lacking"] == 0


def test_several_standby_hosts_and_the_rest_are_named() -> None:
    advice = advised(a_short_cluster(("s1", 16), ("s2", 31)))
    assert set(advice.overload[0].hosts) == {"s1", "s2"}
    assert advice.overload[0].figures["lacking"] == (52 - 16 - 31) * GIB


def test_a_standby_host_helps_a_host_whose_vms_fit_nowhere() -> None:
    """The cluster has enough, but in pieces that are too small."""
    vms = [wants("a", "h1", 2500), wants("b", "h1", 2500), wants("c", "h2", 2000)]
    hosts = [a_host("h1"), a_host("h2"), a_host("s", state=HostState.STANDBY)]
    advice = advised(a_cluster(*hosts, vms=vms), imbalance_target=1.0)
    assert [(fault.code, fault.hosts) for fault in advice.overload] == [("host-overloaded", ("s",))]


def test_overload_is_in_the_document_and_in_the_explanations() -> None:
    vms = [wants("a", "h1", 3000), wants("b", "h1", 3000), wants("c", "h2", 3000)]
    state = a_cluster(a_host("h1"), a_host("h2"), vms=vms)
    result = run_balance_pass(state, ESTIMATES, alternatives=True)
    document = recommend_document(result, wall_s=0.0)
    assert [row.code for row in document.faults] == ["out-of-cpu", "host-overloaded"]
    explainer = BalanceExplainer(result)
    assert explainer.vm(VmId("a")).code == "no-relief"
    assert explainer.host(HostId("h1")).code == "host-overloaded"


# Placement


def placed(state: Snapshot, **more: Any) -> PlacementAdvice:
    return place_vms(state, [vm.id for vm in state.vms.values() if vm.host is None], ESTIMATES)


def starts(advice: PlacementAdvice) -> dict[str, str]:
    return {start.vm: start.host for start in advice.placed}


def reserving(name: str, host: str | None, mib: int = 20_000) -> Vm:
    return a_vm(name, host, memory_mib=mib, memory=MemorySettings(reservation_mib=mib))


FAILOVER = Satisfy(id=RuleId("f"), constraint="Failover", arguments={"nb": 1, "id": "memory"})


def test_a_placement_keeps_the_failover_reserve() -> None:
    hosts = [a_host(f"h{n}", memory_mib=32 * GIB) for n in range(3)]
    vms = [reserving("a", "h0"), reserving("b", "h1"), reserving("c", None)]
    advice = placed(a_cluster(*hosts, vms=vms, rules=(FAILOVER,)))
    assert starts(advice) == {}
    assert [(fault.code, fault.subject) for fault in advice.faults] == [("failover-reserve", "c")]
    assert advice.faults[0].rules == ("f",)
    small = placed(
        a_cluster(*hosts, vms=[*vms[:2], reserving("c", None, 12_000)], rules=(FAILOVER,))
    )
    assert len(starts(small)) == 1


def test_a_standby_host_is_woken_for_the_failover_reserve() -> None:
    hosts = [a_host(f"h{n}", memory_mib=32 * GIB) for n in range(3)]
    standby = a_host("s", memory_mib=32 * GIB, state=HostState.STANDBY)
    vms = [reserving("a", "h0"), reserving("b", "h1"), reserving("c", None)]
    advice = placed(a_cluster(*hosts, standby, vms=vms, rules=(FAILOVER,)))
    assert advice.wakes == ("s",)
    assert len(starts(advice)) == 1
    assert advice.faults == ()


def test_a_reserve_that_is_lost_already_blocks_no_start() -> None:
    hosts = [a_host(f"h{n}", memory_mib=32 * GIB) for n in range(2)]
    vms = [reserving("a", "h0"), reserving("b", "h1"), reserving("c", None, 1000)]
    lost = a_cluster(*hosts, vms=vms, rules=(FAILOVER.but(constraint="Failover"),))
    assert "failover-reserve" not in {fault.code for fault in placed(lost).faults}


def two_busy_hosts(*more: Vm) -> list[Vm]:
    return [wants("a", "h1", 3800), wants("b", "h2", 3700), *more]


def test_a_standby_host_is_woken_if_each_fit_would_overload() -> None:
    hosts = [a_host("h1"), a_host("h2"), a_host("s", state=HostState.STANDBY)]
    advice = placed(a_cluster(*hosts, vms=two_busy_hosts(wants("c", None, 900))))
    assert (advice.wakes, starts(advice)) == (("s",), {"c": "s"})
    modest = placed(a_cluster(*hosts, vms=two_busy_hosts(wants("c", None, 300))))
    assert (modest.wakes, starts(modest)) == ((), {"c": "h2"})


def test_without_a_standby_host_the_overload_is_a_warning() -> None:
    state = a_cluster(a_host("h1"), a_host("h2"), vms=two_busy_hosts(a_vm("c")))
    advice = placed(state)
    assert starts(advice) == {"c": "h2"}
    assert [(fault.code, fault.subject) for fault in advice.warnings] == [("host-overloaded", "h2")]
    row = place_document(advice).placements[0]
    assert (row.cpu_mhz, row.memory_mib, row.estimated) == (1000, 1024, True)


@pytest.mark.parametrize(
    ("rule", "host"),
    [
        (StayOff(id=RuleId("r"), vms=(VmId("c"),), hosts=(HostId("h2"),), hard=False), "h1"),
        (StayWithin(id=RuleId("r"), vms=(VmId("c"),), hosts=(HostId("h1"),), hard=False), "h1"),
        (KeepApart(id=RuleId("r"), vms=(VmId("b"), VmId("c")), hard=False), "h1"),
        (KeepTogether(id=RuleId("r"), vms=(VmId("a"), VmId("c")), hard=False), "h1"),
        (KeepApart(id=RuleId("r"), vms=(VmId("a"), VmId("c")), hard=False), "h2"),
    ],
)
def test_a_placement_keeps_soft_rules_if_no_host_is_overloaded(rule: Any, host: str) -> None:
    vms = [wants("a", "h1", 1200), wants("b", "h2", 1000), wants("c", None, 900)]
    assert starts(placed(a_cluster(a_host("h1"), a_host("h2"), vms=vms, rules=(rule,)))) == {
        "c": host
    }
    full = [vms[0].but(demand=Demand(cpu_mhz=3500)), *vms[1:]]
    state = a_cluster(a_host("h1"), a_host("h2"), vms=full, rules=(rule,))
    assert starts(placed(state)) == {"c": "h2"}


def test_a_start_leaves_headroom() -> None:
    """By imbalance alone the start would fill the CPU of h1."""
    vms = [
        wants("a", "h1", 2900, 0),
        wants("b", "h2", 2000, 12 * GIB, memory_mib=12 * GIB),
        wants("c", None, 900, 100),
    ]
    assert starts(placed(a_cluster(a_host("h1"), a_host("h2"), vms=vms))) == {"c": "h2"}
