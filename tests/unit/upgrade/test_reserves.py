"""What is kept free, figure by figure: steps and limits of tenants, times, both readings."""

from __future__ import annotations

import pytest

from equipoise.control.upgrading import UpgradeLoop
from equipoise.model.quantity import HostId, TenantId
from equipoise.model.resource import DependencyKind
from equipoise.model.upgrade.event import BatchDecided, IterationBegan, VmBatchStarted
from equipoise.model.upgrade.request import Order
from equipoise.model.upgrade.settings import PAPER, UpgradeSettings
from equipoise.sim.upgrading.builtin import builtin_campaign
from equipoise.sim.upgrading.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from equipoise.upgrade.account import account
from equipoise.upgrade.moves.vms import failover, lasting_s, limit
from equipoise.upgrade.room import Seating, growth, largest_step, reserve, whole_hosts
from equipoise.upgrade.scene import look_at_sides
from equipoise.upgrade.sides import old_only, with_new
from equipoise.upgrade.state import Phase, State
from upgrade_worlds import (
    DIVIDED,
    Stage,
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_storage,
    a_tenant,
    a_vm,
    binds,
    hypervisors,
    protects,
    upgrade_of,
)

A, B = TenantId("a"), TenantId("b")


def begun(settings: UpgradeSettings = DIVIDED, disturbed: int = 1, hosts: int = 6) -> Stage:
    """Hosts of two places; a has three VMs and grows by two, b has one and grows by one."""
    a = a_tenant("a", ["a-1", "a-2", "a-3"], most=8)
    groups = (a.anti_affinity[0].but(disturbed_max=disturbed),)
    a = a.but(sla=a.sla.but(scaling_vms=2, cooldown_s=10), anti_affinity=groups)
    b = a_tenant("b", ["b-1"], most=2)
    stage = Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, hosts + 1)]))),
            hosts=[a_host(n, 2) for n in range(1, hosts + 1)],
            vms=[*(a_vm(f"a-{n}", n, "a") for n in (1, 2, 3)), a_vm("b-1", 1, "b")],
            tenants=[a, b],
            resources=hypervisors(hosts),
            settings=settings,
        )
    )
    while not stage.events(IterationBegan):
        stage.step()
    return stage


@pytest.mark.parametrize(
    ("lasts_s", "more"), [(1, 2), (10, 2), (11, 4), (20, 4), (21, 5), (1000, 5), (None, 5)]
)
def test_a_tenant_grows_by_its_step_with_each_cooldown_up_to_its_most(
    lasts_s: int | None, more: int
) -> None:
    assert growth(begun().coordinator.state, [A, B], lasts_s) == {A: more, B: 1}


def test_the_thesis_knows_one_step_for_all_and_whole_hosts() -> None:
    state = begun().coordinator.state
    hosts = list(state.places)
    assert largest_step(state, 11) == 4
    assert [whole_hosts(state, hosts, tenants, 10) for tenants in (0, 1, 2, 3)] == [0, 2, 2, 4]


def test_moving_lasts_as_long_as_the_largest_group_takes_twice() -> None:
    for disturbed, rounds in ((1, 3), (2, 2), (3, 1)):
        state = begun(disturbed=disturbed).coordinator.state
        assert lasting_s(state, look_at_sides(state)) == 2 * 5 * rounds


def kept(state: State, tenants: dict[TenantId, int], spare: int) -> tuple[int, bool]:
    hosts = list(state.places)
    busy = [one for one in hosts if state.residents.get(one)]
    empty = [one for one in hosts if one not in busy]
    made = reserve(state, Seating(state, hosts), tenants, busy=busy, empty=empty, failover=spare)
    return len(made.kept), made.short


def test_free_places_come_first_then_as_few_empty_hosts_as_will_do() -> None:
    state = begun().coordinator.state
    assert kept(state, {}, 0) == (0, False)
    assert kept(state, {B: 2}, 0) == (0, False)  # on the two hosts of a without b
    assert kept(state, {B: 3}, 0) == (1, False)
    assert kept(state, {A: 3}, 0) == (3, False)  # never beside its own
    assert kept(state, {A: 4}, 0) == (3, True)
    assert kept(state, {A: 2}, 1) == (3, False)
    assert kept(state, {A: 2}, 2) == (3, True)


def played(stage: Stage) -> Stage:
    """Until VMs have moved once, and are on both sides."""
    while not stage.events(VmBatchStarted) or stage.coordinator.state.open is not None:
        assert stage.step()
    return stage


def test_who_has_vms_on_the_new_side_grows_there_and_nobody_else() -> None:
    stage = played(begun(DIVIDED.but(failover_hosts=0), hosts=20))
    state = stage.coordinator.state
    sides = look_at_sides(state)
    moved = {state.seats[move.vm].tenant for one in stage.events(VmBatchStarted)
             for move in one.batch.moves}  # fmt: skip
    assert moved
    assert set(with_new(state, sides)) == moved
    assert set(old_only(state, sides)) == {A, B} - moved


def test_a_host_that_is_down_is_on_neither_side() -> None:
    stage = begun()
    stage.fail_host("h6")
    sides = look_at_sides(stage.coordinator.state)
    assert HostId("h6") not in {**sides.old, **sides.new}


def test_what_is_taken_back_may_use_what_is_kept_for_failures() -> None:
    stage = played(begun(hosts=20))
    state = stage.coordinator.state
    assert failover(state, look_at_sides(state)) == 1
    stage.command(Order.UNDO, "hosts")
    while not look_at_sides(state).undoing:
        assert stage.step()
    assert failover(state, look_at_sides(state)) == 0


def test_equation_six_counts_empty_hosts_beyond_growth_and_failures() -> None:
    stage = begun(DIVIDED.but(readings=PAPER))
    while stage.coordinator.state.phase is not Phase.MOVING:
        assert stage.step()
    state = stage.coordinator.state
    sides = look_at_sides(state)
    # Z is 6 - 3 - 2 x ceil(2 / 2) - 1 = 0: nothing is changed, so nobody can move.
    assert limit(state, sides) == 0
    assert not sides.new


def test_the_rounds_of_ten_hosts_are_those_of_the_thesis() -> None:
    campaign = builtin_campaign("nabi-compute")
    campaign = campaign.but(settings=campaign.settings.but(readings=PAPER))
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    steps = account(journal.events()).iterations
    assert [one.z for one in steps] == [4, 3, 1, 0, 0, 2]
    assert [one.v for one in steps] == [9, 6, 0, 0, 0, None]
    assert [(each.wanted, each.size) for each in steps[0].rounds] == [(4, 3), (3, 3), (3, 0)]
    assert [(each.wanted, each.size) for each in steps[1].rounds] == [(3, 3), (1, 0)]


def test_no_round_of_making_room_takes_the_host_away_that_is_kept_for_failures() -> None:
    """With b on the second host a failure would need two places, and only the fourth has them."""
    stage = Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k1", "k2", "k3", "k4"]))),
            hosts=[a_host(n, size) for n, size in enumerate([1, 3, 1, 2], 1)],
            vms=[a_vm("a-1", 2, "a"), a_vm("a-2", 4, "a"), a_vm("b-1", 3, "b")],
            tenants=[a_tenant("a", ["a-1", "a-2"], most=2), a_tenant("b", ["b-1"], most=1)],
            resources=hypervisors(4),
        )
    )
    stage.run()
    assert not stage.events(VmBatchStarted)


@pytest.mark.parametrize("bound", ["aggregate", "group"])
def test_where_the_first_of_a_few_is_kept_free_another_goes(bound: str) -> None:
    names = ["k1", "k2", "k3"]  # h1 is kept for what is on h2, so that k3 is all that is left
    built = [binds("store", one, DependencyKind.AGGREGATION) for one in names]
    stage = Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(names))),
            hosts=[a_host(1, 2), a_host(2, 2), a_host(3, 1)],
            vms=[a_vm("a-1", 2, "a"), a_vm("a-2", 2, "a")],
            tenants=[a_tenant("a", [], most=2)],
            resources=[*hypervisors(3), a_storage("store", "vsan")],
            dependencies=built if bound == "aggregate" else (),
            groups=[protects("few", names)] if bound == "group" else (),
        )
    )
    stage.run()
    decided = stage.events(BatchDecided)[0]
    assert decided.batch == ("k3",)
    told = {str(one): each.reason for each in decided.eliminated for one in each.vertices}
    assert told["k1"] == "h1 cannot be spared, only others (1)"


def test_who_waits_for_a_host_is_told_what_the_empty_ones_are_kept_for() -> None:
    stage = Stage(
        a_campaign(
            a_request(a_set("kernels", upgrade_of(["k1", "k2"]))),
            hosts=[a_host(1, 1), a_host(2, 1)],
            vms=[a_vm("v1", 1, "a")],
            tenants=[a_tenant("a", ["v1"], most=2)],
            resources=hypervisors(2),
            settings=UpgradeSettings(vm_move_s=5, failover_hosts=1),
        )
    )
    stage.run()
    told = [
        one.reason
        for decided in stage.events(BatchDecided)
        for one in decided.eliminated
        if "k2" in one.vertices
    ]
    why = "no host can be spared: 1 of 2 hosts empty, tenants may ask for 1 more VM meanwhile"
    assert told == [f"{why} (a for 1), 1 host kept for failures"]
