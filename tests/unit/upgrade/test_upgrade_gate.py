"""The gate: every VM move of an upgrade is verified like any plan, also without rules."""

from __future__ import annotations

import re

from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ResourceId, RuleId, VmId
from equipoise.model.rule import KeepTogether, Rule
from equipoise.model.upgrade.event import CampaignStarted, VmBatchDecided, VmBatchStarted
from equipoise.model.upgrade.work import VmMove
from equipoise.model.vm import MemorySettings, Vm
from equipoise.upgrade import Coordinator
from equipoise.upgrade.inventory_view import current_inventory
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.vms.gate import admit_moves, refusal_reason
from upgrade_campaigns import campaign
from upgrade_clusters import (
    UpgradeHarness,
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_tenant,
    a_vm,
    hypervisors,
    upgrade_of,
)


def a_state(*vms: Vm, vms_max: int = 2, rules: tuple[Rule, ...] = ()) -> UpgradeState:
    """Return four hosts, and VMs of the tenants that they name."""
    owners = dict.fromkeys(str(vm.tenant) for vm in vms)
    vms_of = {name: [vm.id for vm in vms if vm.tenant == name] for name in owners}
    coordinator = Coordinator()
    campaign = a_campaign(
        a_request(a_set("hosts", upgrade_of(["k1"]))),
        hosts=[a_host(n, vms_max) for n in range(1, 5)],
        vms=vms,
        tenants=[a_tenant(name, names, most=len(names)) for name, names in vms_of.items()],
        resources=hypervisors(4),
        rules=rules,
    )
    coordinator.handle(CampaignStarted(at_ms=0, campaign=campaign))
    return coordinator.state


def move(vm: str, source: int, target: int) -> VmMove:
    return VmMove(vm=VmId(vm), source=HostId(f"h{source}"), target=HostId(f"h{target}"))


def large(name: str, host: int, tenant: str, mib: int = 40_000) -> Vm:
    """Return a VM of which two do not fit into the memory of one host."""
    return a_vm(name, host, tenant).but(memory=MemorySettings(reservation_mib=mib))


def test_a_host_at_its_vm_limit_accepts_no_vm() -> None:
    state = a_state(a_vm("a", 1, "a"), a_vm("b", 2, "b"), vms_max=1)
    assert "vms on h2" in refusal_reason(state, [move("a", 1, 2)])
    assert not refusal_reason(state, [move("a", 1, 3)])


def test_a_host_without_free_memory_accepts_no_vm() -> None:
    state = a_state(large("a", 1, "a"), large("b", 2, "b"))
    assert re.search(r"\d MiB .* h2\b", refusal_reason(state, [move("a", 1, 2)]))


def test_capacity_of_a_leaving_vm_is_not_free_yet() -> None:
    state = a_state(a_vm("a", 1, "a"), a_vm("b", 2, "b"), vms_max=1)
    assert refusal_reason(state, [move("b", 2, 3), move("a", 1, 2)])


def test_a_failed_or_isolated_host_accepts_no_vm() -> None:
    state = a_state(a_vm("a", 1, "a"))
    state.cluster.fail_host(HostId("h2"))
    state.resources.put(state.resources.states[ResourceId("k3")].but(isolated=True))
    assert "h2 is failed" in refusal_reason(state, [move("a", 1, 2)])
    assert "h3 is maintenance" in refusal_reason(state, [move("a", 1, 3)])
    states = {host.id: host.state for host in current_inventory(state).hosts}
    assert [states[HostId(f"h{n}")] for n in (1, 2, 3)] == [
        HostState.ON, HostState.FAILED, HostState.MAINTENANCE
    ]  # fmt: skip


def test_two_vms_of_a_group_do_not_share_a_host() -> None:
    state = a_state(a_vm("a-1", 1, "a"), a_vm("a-2", 2, "a"), a_vm("a-3", 3, "a"))
    assert refusal_reason(state, [move("a-1", 1, 2)])
    assert refusal_reason(state, [move("a-1", 1, 4), move("a-2", 2, 4)])
    assert not refusal_reason(state, [move("a-1", 1, 4)])


def test_a_vm_may_leave_a_host_that_it_shares_with_its_group() -> None:
    state = a_state(a_vm("a-1", 1, "a"), a_vm("a-2", 1, "a"))
    assert not refusal_reason(state, [move("a-1", 1, 2)])


def test_a_vm_moves_only_from_its_own_host() -> None:
    state = a_state(a_vm("a", 1, "a"))
    assert "a is on h1" in refusal_reason(state, [move("a", 2, 3)])


def test_moves_that_pass_the_gate_are_kept() -> None:
    state = a_state(large("a", 1, "a"), large("b", 2, "b"), a_vm("c", 3, "c"))
    passed, why = admit_moves(state, [move("a", 1, 4), move("b", 2, 4), move("c", 3, 4)])
    assert passed == (move("a", 1, 4), move("c", 3, 4))
    assert "memory" in why


def test_a_rule_about_vms_on_other_hosts_is_kept() -> None:
    together = KeepTogether(id=RuleId("both"), vms=(VmId("a"), VmId("b")))
    state = a_state(a_vm("a", 1, "a"), a_vm("b", 1, "b"), rules=(together,))
    assert refusal_reason(state, [move("a", 1, 2)])
    assert not refusal_reason(state, [move("a", 1, 2), move("b", 1, 2)])


def test_a_vm_that_does_not_fit_moves_to_another_host() -> None:
    """Capacity allows two VMs per host, memory one: only the gate separates them."""
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, 7)]))),
            hosts=[a_host(n, 2) for n in range(1, 7)],
            vms=[large("a", 1, "a"), large("b", 2, "b"), a_vm("c", 3, "c")],
            tenants=[a_tenant(name, [name], most=1) for name in "abc"],
            resources=hypervisors(6),
        )
    )
    harness.run()
    assert harness.outcomes() == {"hosts": "applied"}
    placements = harness.coordinator.state.cluster.placements
    assert placements[VmId("a")].host != placements[VmId("b")].host


def test_vms_wait_with_the_reason_of_the_gate_if_no_host_fits() -> None:
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, 5)]))),
            hosts=[a_host(n, 3).but(memory_mib=65_536 if n < 3 else 32_768) for n in range(1, 5)],
            vms=[large("a", 1, "a"), large("b", 2, "b")],
            tenants=[a_tenant(name, [name], most=1) for name in "ab"],
            resources=hypervisors(4),
        )
    )
    harness.run()
    assert not harness.events(VmBatchStarted)
    decided = harness.events(VmBatchDecided)[-1]
    assert decided.code == "moves-refused"
    assert re.search(r"\d MiB", decided.reason)


def test_restarts_and_scaling_leave_hosts_without_memory_alone() -> None:
    """Host h2 may run two VMs, and has memory for one of this size; h3 has too little for any."""
    plain = campaign({"a": (1,), "b": (2,)}, hosts=3)
    cluster = plain.cluster.but(
        vms=tuple(vm.but(memory_mib=12_288) for vm in plain.cluster.vms),
        hosts=tuple(
            host.but(memory_mib=8192) if host.id == "h3" else host for host in plain.cluster.hosts
        ),
    )
    for factor, restarted in ((1.0, False), (1.5, True)):
        harness = UpgradeHarness(plain.but(cluster=cluster.but(memory_overcommit=factor)))
        harness.fail_host("h1")
        placements = harness.coordinator.state.cluster.placements
        assert (placements[VmId("a1")].host is not None) == restarted
        harness.scale("b", 1)
        assert (VmId("b-new-1") in placements) == restarted
