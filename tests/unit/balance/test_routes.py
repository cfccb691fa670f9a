"""Moves that have no order on their own: VMs are parked on a third host on the way."""

from __future__ import annotations

from builders import a_cluster, a_host, a_vm
from equipoise.api.advice import recommend
from equipoise.balance.advice import BalanceCode
from equipoise.balance.repair.placement_state import PlacementState
from equipoise.balance.repair.repair_search import search_repair
from equipoise.balance.rules import read_rules
from equipoise.model.action import Migrate
from equipoise.model.host import RequestedHostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import VerifiedPlan, verify

GIB = 1024


def swap(*sizes_gib: int) -> Snapshot:
    """Two VMs of 12 GiB on hosts of 16 GiB, which must change places, and further hosts."""
    hosts = [a_host("h1"), a_host("h2")]
    hosts += [a_host(f"x{n}", memory_mib=GIB * size) for n, size in enumerate(sizes_gib)]
    vms = [a_vm(vm, host, memory_mib=12 * GIB) for vm, host in (("a", "h1"), ("b", "h2"))]
    rules = (
        StayWithin(id=RuleId("ra"), vms=(VmId("a"),), hosts=(HostId("h2"),)),
        StayWithin(id=RuleId("rb"), vms=(VmId("b"),), hosts=(HostId("h1"),)),
    )
    return a_cluster(*hosts, vms=vms, rules=rules)


def moves_of(state: Snapshot) -> list[tuple[str, str, str]]:
    plan = recommend(state).plan
    assert isinstance(verify(state, plan), VerifiedPlan)
    actions = [step.action for step in plan.steps]
    return [(act.vm, act.source, act.target) for act in actions if isinstance(act, Migrate)]


def test_two_vms_on_full_hosts_swap_by_way_of_a_third_host() -> None:
    state = swap(12)
    moves = moves_of(state)
    assert len(moves) == 3
    parked, other, back = moves
    assert parked[0] == back[0] != other[0]
    assert parked[2] == back[1] == "x0"
    advice = recommend(state)
    assert not advice.faults
    assert [(move.parking, move.code) for move in advice.moves] == [
        (True, BalanceCode.FREE_CAPACITY),
        (False, BalanceCode.RULE),
        (False, BalanceCode.RULE),
    ]
    final = advice.actions
    assert final is not None
    assert {vm.id: vm.host for vm in final.after.vms.values()} == {"a": "h2", "b": "h1"}


def test_without_a_host_that_takes_one_of_them_the_swap_is_a_fault() -> None:
    advice = recommend(swap(8))
    assert not advice.moves
    assert {fault.code for fault in advice.faults} == {"gate-refuses"}


def test_a_swap_that_needs_no_third_host_parks_nothing() -> None:
    state = swap()
    small = state.inventory().but(
        vms=tuple(vm.but(memory_mib=4 * GIB) for vm in state.vms.values())
    )
    assert sorted(moves_of(Snapshot.of(small))) == [("a", "h1", "h2"), ("b", "h2", "h1")]


def test_a_search_never_adds_to_what_it_has_given_up() -> None:
    """Two VMs that fit on neither host: no move of one to the other's host repairs anything."""
    hosts = [a_host("h1"), a_host("h2")]
    state = a_cluster(*hosts, vms=[a_vm(vm, host, memory_mib=20 * GIB) for vm, host in (
        ("a", "h1"), ("b", "h2"))])  # fmt: skip
    advice = recommend(state)
    assert not advice.moves
    over = [fault for fault in advice.faults if fault.code == "overcommitted"]
    assert [fault.subject for fault in over] == ["h1", "h2"]
    assert "gate-refuses" not in {fault.code for fault in advice.faults}


def test_a_group_that_cannot_be_separated_takes_no_further_vm() -> None:
    """Agents of a group share h1; the third VM, which must leave h3, does not join them."""
    hosts = [a_host("h1"), a_host("h2"), a_host("h3", requested=RequestedHostState.MAINTENANCE)]
    vms = [a_vm("a", "h1", agent=True), a_vm("b", "h1", agent=True), a_vm("c", "h3")]
    rule = KeepApart(id=RuleId("r"), vms=(VmId("a"), VmId("b"), VmId("c")))
    state = a_cluster(*hosts, vms=vms, rules=(rule,))
    placement = PlacementState(state, read_rules(state))
    placement.find_problems()
    result = search_repair(placement)
    assert [(found.vm, found.host) for found in result.assignments] == [("c", "h2")]


def test_a_standby_host_that_is_too_small_is_no_remedy() -> None:
    hosts = [a_host("h1"), a_host("s", state="standby")]
    advice = recommend(a_cluster(*hosts, vms=[a_vm("a", "h1", memory_mib=20 * GIB)]))
    (fault,) = [fault for fault in advice.faults if fault.code == "overcommitted"]
    assert "wake" not in fault.unblock
