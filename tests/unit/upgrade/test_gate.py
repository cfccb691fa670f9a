"""The gate: every move of an upgrade is judged as any other plan, also where there are no rules."""

from __future__ import annotations

from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ResourceId, RuleId, VmId
from equipoise.model.rule import KeepTogether, Rule
from equipoise.model.upgrade.event import CampaignBegan, VmBatchDecided, VmBatchStarted
from equipoise.model.upgrade.work import VmMove
from equipoise.model.vm import MemorySettings, Vm
from equipoise.upgrade import Coordinator
from equipoise.upgrade.cluster import cluster_of
from equipoise.upgrade.moves.gate import admitted, refusal
from equipoise.upgrade.state import State
from upgrade_worlds import (
    Stage,
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_tenant,
    a_vm,
    hypervisors,
    upgrade_of,
)


def a_state(*vms: Vm, places: int = 2, rules: tuple[Rule, ...] = ()) -> State:
    """Four hosts, and VMs of the tenants that they name."""
    owners = dict.fromkeys(str(vm.tenant) for vm in vms)
    own = {name: [vm.id for vm in vms if vm.tenant == name] for name in owners}
    coordinator = Coordinator()
    campaign = a_campaign(
        a_request(a_set("hosts", upgrade_of(["k1"]))),
        hosts=[a_host(n, places) for n in range(1, 5)],
        vms=vms,
        tenants=[a_tenant(name, those, most=len(those)) for name, those in own.items()],
        resources=hypervisors(4),
        rules=rules,
    )
    coordinator.handle(CampaignBegan(at_ms=0, campaign=campaign))
    return coordinator.state


def move(vm: str, source: int, target: int) -> VmMove:
    return VmMove(vm=VmId(vm), source=HostId(f"h{source}"), target=HostId(f"h{target}"))


def large(name: str, host: int, tenant: str, mib: int = 40_000) -> Vm:
    """A VM of which two do not fit on one host, though there are two places."""
    return a_vm(name, host, tenant).but(memory=MemorySettings(reservation_mib=mib))


def test_a_host_without_places_takes_no_vm() -> None:
    state = a_state(a_vm("a", 1, "a"), a_vm("b", 2, "b"), places=1)
    assert "vms on h2" in refusal(state, [move("a", 1, 2)])
    assert not refusal(state, [move("a", 1, 3)])


def test_a_host_without_memory_takes_no_vm() -> None:
    state = a_state(large("a", 1, "a"), large("b", 2, "b"))
    assert "MiB of memory on h2" in refusal(state, [move("a", 1, 2)])


def test_a_place_that_is_left_at_the_same_time_is_not_free_yet() -> None:
    state = a_state(a_vm("a", 1, "a"), a_vm("b", 2, "b"), places=1)
    assert refusal(state, [move("b", 2, 3), move("a", 1, 2)])


def test_a_host_that_is_down_or_out_of_service_takes_no_vm() -> None:
    state = a_state(a_vm("a", 1, "a"))
    down = state.places[HostId("h2")]
    state.places[HostId("h2")] = type(down)(down.host, down.places, up=False)
    isolated = ResourceId("k3")
    state.parts[isolated] = state.parts[isolated].but(isolated=True)
    assert "h2 is failed" in refusal(state, [move("a", 1, 2)])
    assert "h3 is maintenance" in refusal(state, [move("a", 1, 3)])
    shown = {host.id: host.state for host in cluster_of(state).hosts}
    assert [shown[HostId(f"h{n}")] for n in (1, 2, 3)] == [
        HostState.ON, HostState.FAILED, HostState.MAINTENANCE
    ]  # fmt: skip


def test_two_of_a_group_do_not_meet() -> None:
    state = a_state(a_vm("a-1", 1, "a"), a_vm("a-2", 2, "a"), a_vm("a-3", 3, "a"))
    assert refusal(state, [move("a-1", 1, 2)])
    assert refusal(state, [move("a-1", 1, 4), move("a-2", 2, 4)])
    assert not refusal(state, [move("a-1", 1, 4)])


def test_who_shares_a_host_with_its_peer_may_leave_it() -> None:
    state = a_state(a_vm("a-1", 1, "a"), a_vm("a-2", 1, "a"))
    assert not refusal(state, [move("a-1", 1, 2)])


def test_a_vm_that_is_not_there_does_not_move() -> None:
    state = a_state(a_vm("a", 1, "a"))
    assert "a is on h1" in refusal(state, [move("a", 2, 3)])


def test_the_moves_that_pass_are_kept() -> None:
    state = a_state(large("a", 1, "a"), large("b", 2, "b"), a_vm("c", 3, "c"))
    passed, why = admitted(state, [move("a", 1, 4), move("b", 2, 4), move("c", 3, 4)])
    assert passed == (move("a", 1, 4), move("c", 3, 4))
    assert "memory" in why


def test_a_rule_about_others_far_away_is_kept() -> None:
    together = KeepTogether(id=RuleId("both"), vms=(VmId("a"), VmId("b")))
    state = a_state(a_vm("a", 1, "a"), a_vm("b", 1, "b"), rules=(together,))
    assert refusal(state, [move("a", 1, 2)])
    assert not refusal(state, [move("a", 1, 2), move("b", 1, 2)])


def test_a_vm_that_does_not_fit_on_one_host_goes_to_another() -> None:
    """Places say two to a host, memory says one: no rule tells them apart, only the gate."""
    stage = Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, 7)]))),
            hosts=[a_host(n, 2) for n in range(1, 7)],
            vms=[large("a", 1, "a"), large("b", 2, "b"), a_vm("c", 3, "c")],
            tenants=[a_tenant(one, [one], most=1) for one in "abc"],
            resources=hypervisors(6),
        )
    )
    stage.run()
    assert stage.outcomes() == {"hosts": "applied"}
    seats = stage.coordinator.state.seats
    assert seats[VmId("a")].host != seats[VmId("b")].host


def test_where_nothing_fits_it_waits_and_says_why() -> None:
    stage = Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, 5)]))),
            hosts=[a_host(n, 3).but(memory_mib=65_536 if n < 3 else 32_768) for n in range(1, 5)],
            vms=[large("a", 1, "a"), large("b", 2, "b")],
            tenants=[a_tenant(one, [one], most=1) for one in "ab"],
            resources=hypervisors(4),
        )
    )
    stage.run()
    assert not stage.events(VmBatchStarted)
    assert "MiB of memory" in stage.events(VmBatchDecided)[-1].reason
