"""Room and rules: hosts of different sizes, tenants with limits of their own, the gate."""

from __future__ import annotations

from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import StayWithin
from equipoise.model.upgrade.event import BatchDecided, VmBatchDecided, VmBatchStarted
from equipoise.model.upgrade.settings import PAPER, UpgradeSettings
from upgrade_worlds import (
    DIVIDED,
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


def hosts_upgraded(sizes: list[int], settings: UpgradeSettings, most: int = 9) -> Stage:
    """Two tenants with a VM each on the first two hosts, all hosts to be changed."""
    count = len(sizes)
    return Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, count + 1)]))),
            hosts=[a_host(n, size) for n, size in enumerate(sizes, 1)],
            vms=[a_vm("a-1", 1, "a"), a_vm("b-1", 2, "b")],
            tenants=[a_tenant("a", ["a-1"], most=most), a_tenant("b", ["b-1"], most=most)],
            resources=hypervisors(count),
            settings=settings,
        )
    )


def first_z(stage: Stage) -> int:
    while not stage.events(BatchDecided):
        assert stage.step()
    return stage.events(BatchDecided)[0].z


def test_whole_hosts_are_kept_where_the_thesis_says_so() -> None:
    literal = DIVIDED.but(readings=PAPER)
    # Six hosts, two used, one for two tenants that may grow by one each, one that may fail.
    assert first_z(hosts_upgraded([2] * 6, literal)) == 2


def test_free_places_on_hosts_in_use_are_a_reserve_too() -> None:
    # Each tenant could grow on the other's host: only the failover host is kept.
    assert first_z(hosts_upgraded([2] * 6, DIVIDED)) == 3


def test_a_tenant_at_its_limit_needs_no_reserve() -> None:
    assert first_z(hosts_upgraded([1] * 6, DIVIDED, most=1)) == 3
    assert first_z(hosts_upgraded([1] * 6, DIVIDED, most=2)) == 1


def test_the_failover_host_takes_whatever_could_be_on_the_one_that_fails() -> None:
    names = ["a-1", "b-1", "c-1"]
    tenants = [a_tenant(vm[0], [vm], most=1) for vm in names]
    stage = Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k1", "k2", "k3", "k4"]))),
            hosts=[a_host(n, size) for n, size in enumerate([3, 3, 1, 1], 1)],
            vms=[a_vm(vm, 1, vm[0]) for vm in names],
            tenants=tenants,
            resources=hypervisors(4),
            settings=DIVIDED,
        )
    )
    while not stage.events(BatchDecided):
        stage.step()
    # Three VMs run on the first host: if it fails only the second can take them.
    assert stage.events(BatchDecided)[0].batch == ("k3", "k4")


def test_hosts_of_different_sizes_are_no_obstacle() -> None:
    stage = hosts_upgraded([4, 1, 1, 1, 4], DIVIDED, most=1)
    stage.run()
    assert stage.outcomes() == {"hosts": "applied"}


def pinned(*hosts: str) -> Stage:
    rule = StayWithin(
        id=RuleId("pin"),
        vms=(VmId("a-1"),),
        hosts=tuple(HostId(one) for one in hosts),
        continuous=True,
    )
    return Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k1", "k2", "k3", "k4"]))),
            hosts=[a_host(n, 2) for n in range(1, 5)],
            vms=[a_vm("a-1", 1, "a")],
            tenants=[a_tenant("a", ["a-1"], most=1)],
            resources=hypervisors(4),
            rules=[rule],
        )
    )


def test_no_vm_moves_against_a_rule() -> None:
    stage = pinned("h1")
    stage.run()
    assert not stage.events(VmBatchStarted)
    assert stage.outcomes() == {"hosts": "scheduled"}
    assert "a-1" in stage.events(VmBatchDecided)[-1].reason
    assert stage.version("k1") == "v1"
    assert stage.version("k4") == "v2"


def test_a_rule_that_leaves_a_way_is_no_obstacle() -> None:
    stage = pinned("h1", "h4")
    stage.run()
    assert [move.target for one in stage.events(VmBatchStarted) for move in one.batch.moves] == [
        "h4"
    ]
    assert stage.outcomes() == {"hosts": "applied"}


def test_a_vm_moves_once() -> None:
    stage = hosts_upgraded([2] * 6, UpgradeSettings(vm_move_s=5))
    stage.run()
    assert stage.outcomes() == {"hosts": "applied"}
    assert {seat.moves for seat in stage.coordinator.state.seats.values()} == {1}


def test_one_large_host_is_kept_rather_than_several_small_ones() -> None:
    # Both tenants fill the first host and may grow by one: the third takes both, the second one.
    stage = Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k1", "k2", "k3"]))),
            hosts=[a_host(n, size) for n, size in enumerate([2, 1, 2], 1)],
            vms=[a_vm("a-1", 1, "a"), a_vm("b-1", 1, "b")],
            tenants=[a_tenant("a", ["a-1"], most=2), a_tenant("b", ["b-1"], most=2)],
            resources=hypervisors(3),
            settings=UpgradeSettings(vm_move_s=5, failover_hosts=0),
        )
    )
    assert first_z(stage) == 1
    assert stage.events(BatchDecided)[0].batch == ("k2",)


def test_a_host_that_is_kept_for_growth_may_fail_too() -> None:
    # If the fourth were kept for both tenants and failed, one place would not do for two VMs.
    stage = Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, 6)]))),
            hosts=[a_host(n, size) for n, size in enumerate([1, 1, 1, 2, 1], 1)],
            vms=[a_vm("a-1", 2, "a"), a_vm("b-1", 3, "b")],
            tenants=[a_tenant("a", ["a-1"], most=2), a_tenant("b", ["b-1"], most=2)],
            resources=hypervisors(5),
        )
    )
    assert first_z(stage) == 0
