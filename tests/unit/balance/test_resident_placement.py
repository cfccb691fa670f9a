"""Placement of VMs that the cluster has already: ready, sleeping and running ones."""

from __future__ import annotations

from pathlib import Path

from builders import a_cluster, a_host, a_vm
from command import answer, refusals
from equipoise.balance.placement import PlacementAdvice, place_vms
from equipoise.model.action import Boot, Migrate, Resume
from equipoise.model.action_durations import Estimates
from equipoise.model.plan import Plan
from equipoise.model.quantity import HostId, PlanId, RuleId, VmId
from equipoise.model.rule import KeepApart, StayOff
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, VmState
from equipoise.plan import VerifiedPlan, verify
from equipoise.plan.order import order

SMALL = str(Path(__file__).parents[3] / "examples" / "small.yaml")
BUSY = Demand(cpu_mhz=3000, memory_mib=1000)


def placed(state: Snapshot, vm: str) -> PlacementAdvice:
    advice = place_vms(state, [VmId(vm)], Estimates(), resident=True)
    plan = order(state, advice.intents, PlanId("p"))
    assert isinstance(plan, Plan)
    assert isinstance(verify(state, plan), VerifiedPlan)
    return advice


def test_a_sleeping_vm_resumes_where_it_overloads_no_host() -> None:
    asleep = a_vm("v", "h1", state=VmState.SLEEPING, demand=BUSY)
    vms = [asleep, a_vm("other", "h1", demand=BUSY)]
    (start,) = placed(a_cluster(a_host("h1"), a_host("h2"), vms=vms), "v").placed
    assert start.action == Resume(vm=VmId("v"), source=HostId("h1"), target=HostId("h2"))
    assert (start.source, start.estimated, start.demand.cpu_mhz) == ("h1", False, 1000)
    (alone,) = placed(a_cluster(a_host("h1"), vms=[asleep]), "v").placed
    assert alone.action == Resume(vm=VmId("v"), source=HostId("h1"), target=HostId("h1"))


def test_a_sleeping_vm_without_room_is_a_fault() -> None:
    asleep = a_vm("v", "h1", state=VmState.SLEEPING, memory_mib=12 * 1024)
    vms = [asleep, a_vm("other", "h1", memory_mib=12 * 1024)]
    advice = placed(a_cluster(a_host("h1"), vms=vms), "v")
    assert not advice.placed
    assert [fault.code for fault in advice.faults] == ["no-target-host"]


def test_a_running_vm_moves_to_the_best_other_host_that_rules_allow() -> None:
    hosts = [a_host(f"h{n}") for n in range(4)]
    vms = [a_vm("v", "h0"), a_vm("apart", "h1"), a_vm("load", "h2", demand=BUSY)]
    off = StayOff(id=RuleId("off"), vms=(VmId("v"),), hosts=(HostId("h3"),))
    apart = KeepApart(id=RuleId("apart"), vms=(VmId("v"), VmId("apart")))
    (start,) = placed(a_cluster(*hosts, vms=vms), "v").placed
    assert start.action == Migrate(vm=VmId("v"), source=HostId("h0"), target=HostId("h1"))
    state = a_cluster(*hosts, vms=vms, rules=(off, apart))
    (start,) = placed(state, "v").placed
    assert start.host == "h2"
    assert not start.alternatives


def test_an_agent_and_a_vm_without_consent_stay() -> None:
    state = a_cluster(
        a_host("h1"), a_host("h2"), vms=[a_vm("a", "h1", agent=True), a_vm("v", "h1")]
    )
    assert [fault.code for fault in placed(state, "a").faults] == ["not-ready"]
    advice = place_vms(state, [VmId("v")], Estimates())
    assert [fault.code for fault in advice.faults] == ["not-ready"]


def test_ready_sleeping_and_running_vms_are_placed_together() -> None:
    vms = [
        a_vm("ready", memory_mib=8192),
        a_vm("asleep", "h1", state=VmState.SLEEPING, memory_mib=8192),
        a_vm("runs", "h1", memory_mib=8192),
    ]
    state = a_cluster(a_host("h1"), a_host("h2"), a_host("h3"), vms=vms)
    advice = place_vms(state, [vm.id for vm in vms], Estimates(), resident=True)
    kinds = {start.vm: type(start.action) for start in advice.placed}
    assert kinds == {"ready": Boot, "asleep": Resume, "runs": Migrate}
    assert isinstance(order(state, advice.intents, PlanId("p")), Plan)


def test_the_command_names_vms_of_the_inventory(tmp_path: Path) -> None:
    vm = answer("show", SMALL)["vms"][0]
    found = answer("place", SMALL, "--vm", vm["id"])
    (row,) = found["placements"]
    assert (row["vm"], row["action"], row["from"]) == (vm["id"], "migrate", vm["host"])
    assert row["host"] != vm["host"]
    assert refusals("place", SMALL, "--vm", "nothing") == [("unknown-name", "nothing")]
    assert refusals("place", SMALL) == [("empty-value", "vms")]
