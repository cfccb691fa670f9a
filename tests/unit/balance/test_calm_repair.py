"""Repairs and placements that overload a host only where no other way exists, and say so."""

from __future__ import annotations

from builders import a_cluster, a_host, a_vm
from equipoise.api.advice import recommend
from equipoise.balance.placement import place_vms
from equipoise.model.action_durations import Estimates
from equipoise.model.host import RequestedHostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import StayOff
from equipoise.model.vm import Demand

GIB = 1024


def test_a_drain_takes_a_further_move_if_that_overloads_no_host() -> None:
    """v must go to h2, the only host that its rule allows; w makes room for its demand."""
    hosts = [
        a_host("h1", requested=RequestedHostState.MAINTENANCE),
        a_host("h2"),
        a_host("h3"),
    ]
    vms = [
        a_vm("v", "h1", vcpus=3, demand=Demand(cpu_mhz=2500)),
        a_vm("w", "h2", vcpus=2, demand=Demand(cpu_mhz=2000)),
        a_vm("x", "h3", vcpus=1, demand=Demand(cpu_mhz=500)),
    ]
    off = StayOff(id=RuleId("off"), vms=(VmId("v"),), hosts=(HostId("h3"),))
    state = a_cluster(*hosts, vms=vms, rules=(off,))
    found = recommend(state)
    assert not found.faults
    assert found.actions is not None
    final = {vm.id: vm.host for vm in found.actions.after.vms.values()}
    assert final == {"v": "h2", "w": "h3", "x": "h3"}


def test_moves_for_a_start_that_would_overload_a_host_are_a_warning() -> None:
    """Only if b leaves h1 does the new VM fit, and h2 then has too little CPU."""
    hosts = [a_host("h1"), a_host("h2", memory_mib=32 * GIB)]
    vms = [
        a_vm("b", "h1", vcpus=3, memory_mib=10 * GIB, demand=Demand(cpu_mhz=3000)),
        a_vm("c", "h2", vcpus=3, memory_mib=20 * GIB, demand=Demand(cpu_mhz=3000)),
        a_vm("new", memory_mib=12 * GIB + 1, demand=Demand(cpu_mhz=100)),
    ]
    advice = place_vms(a_cluster(*hosts, vms=vms), [VmId("new")], Estimates())
    assert [start.host for start in advice.placed] == ["h1"]
    assert [(move.vm, move.target) for move in advice.moves] == [("b", "h2")]
    assert [(found.code, found.subject) for found in advice.warnings] == [("host-overloaded", "h2")]


def test_a_host_that_stays_overloaded_while_it_leaves_is_named() -> None:
    leaving = a_host("h1", requested=RequestedHostState.STANDBY)
    vms = [a_vm(f"v{n}", "h1", vcpus=3, demand=Demand(cpu_mhz=3000)) for n in range(2)]
    faults = recommend(a_cluster(leaving, vms=vms)).faults
    assert ("host-overloaded", "h1") in {(fault.code, fault.subject) for fault in faults}
