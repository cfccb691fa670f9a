"""Reserves for tenants that scale and hosts that fail, and hosts of different sizes."""

from __future__ import annotations

import pytest

from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.model.quantity import HostId, RuleId, TenantId, VmId
from equipoise.model.rule import StayWithin
from equipoise.model.upgrade.campaign import PAPER_READINGS, UpgradeSettings
from equipoise.model.upgrade.event import (
    BatchDecided,
    IterationStarted,
    VmBatchDecided,
    VmBatchStarted,
)
from equipoise.model.upgrade.infrastructure import DependencyKind
from equipoise.model.upgrade.request import CommandKind
from equipoise.sim.builtin import builtin_campaign
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from equipoise.upgrade.graph.host_partitions import tenants_on_old_only, tenants_with_new
from equipoise.upgrade.graph.iteration_view import partition_hosts
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.iteration import IterationPhase
from equipoise.upgrade.summary import summarise_campaign
from equipoise.upgrade.vms.reserves import (
    FreeCapacity,
    expected_growth,
    largest_scaling,
    reserve_hosts,
    scaling_reservation,
)
from equipoise.upgrade.vms.vm_batch import failover_reserve, vm_batch_risk_s, vm_limit_of
from upgrade_clusters import (
    DIVIDED,
    UpgradeHarness,
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


def started_harness(
    settings: UpgradeSettings = DIVIDED, disturbed: int = 1, hosts: int = 6
) -> UpgradeHarness:
    """Hosts for two VMs each; a has three VMs and scales by two, b has one and scales by one."""
    a = a_tenant("a", ["a-1", "a-2", "a-3"], most=8)
    groups = (a.anti_affinity[0].but(disturbed_max=disturbed),)
    a = a.but(sla=a.sla.but(scaling_vms=2, cooldown_s=10), anti_affinity=groups)
    b = a_tenant("b", ["b-1"], most=2)
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, hosts + 1)]))),
            hosts=[a_host(n, 2) for n in range(1, hosts + 1)],
            vms=[*(a_vm(f"a-{n}", n, "a") for n in (1, 2, 3)), a_vm("b-1", 1, "b")],
            tenants=[a, b],
            resources=hypervisors(hosts),
            settings=settings,
        )
    )
    while not harness.events(IterationStarted):
        harness.step()
    return harness


@pytest.mark.parametrize(
    ("duration_s", "more"), [(1, 2), (10, 2), (11, 4), (20, 4), (21, 5), (1000, 5), (None, 5)]
)
def test_a_tenant_scales_by_its_step_per_cooldown_up_to_its_limit(
    duration_s: int | None, more: int
) -> None:
    assert expected_growth(started_harness().coordinator.state, [A, B], duration_s) == {
        A: more,
        B: 1,
    }


def test_the_equations_use_one_step_for_all_tenants_and_whole_hosts() -> None:
    state = started_harness().coordinator.state
    hosts = list(state.cluster.compute_hosts)
    assert largest_scaling(state, 11) == 4
    assert [scaling_reservation(state, hosts, tenants, 10) for tenants in (0, 1, 2, 3)] == [
        0,
        2,
        2,
        4,
    ]


def test_the_risk_time_is_twice_the_moves_of_the_largest_group() -> None:
    for disturbed, rounds in ((1, 3), (2, 2), (3, 1)):
        state = started_harness(disturbed=disturbed).coordinator.state
        assert vm_batch_risk_s(state, partition_hosts(state)) == 2 * 5 * rounds


def reserved(state: UpgradeState, tenants: dict[TenantId, int], failover: int) -> tuple[int, bool]:
    hosts = list(state.cluster.compute_hosts)
    busy = [host for host in hosts if state.cluster.residents.get(host)]
    empty = [host for host in hosts if host not in busy]
    reservation = reserve_hosts(
        state, FreeCapacity(state, hosts), tenants, busy=busy, empty=empty, failover=failover
    )
    return len(reservation.kept), reservation.short


def test_used_hosts_are_reserved_first_then_the_fewest_empty_hosts() -> None:
    state = started_harness().coordinator.state
    assert reserved(state, {}, 0) == (0, False)
    assert reserved(state, {B: 2}, 0) == (0, False)  # on the two hosts of a that have no VM of b
    assert reserved(state, {B: 3}, 0) == (1, False)
    assert reserved(state, {A: 3}, 0) == (3, False)  # anti-affinity: never beside its own VMs
    assert reserved(state, {A: 4}, 0) == (3, True)
    assert reserved(state, {A: 2}, 1) == (3, False)
    assert reserved(state, {A: 2}, 2) == (3, True)


def after_first_moves(harness: UpgradeHarness) -> UpgradeHarness:
    """Run until VMs have moved once and are in both partitions."""
    while (
        not harness.events(VmBatchStarted)
        or harness.coordinator.state.iteration.open_batch is not None
    ):
        assert harness.step()
    return harness


def test_only_tenants_with_vms_in_the_new_partition_scale_there() -> None:
    harness = after_first_moves(started_harness(DIVIDED.but(failover_hosts=0), hosts=20))
    state = harness.coordinator.state
    host_partitions = partition_hosts(state)
    moved = {state.cluster.placements[move.vm].tenant for event in harness.events(VmBatchStarted)
             for move in event.batch.moves}  # fmt: skip
    assert moved
    assert set(tenants_with_new(state, host_partitions)) == moved
    assert set(tenants_on_old_only(state, host_partitions)) == {A, B} - moved


def test_a_failed_host_is_in_no_partition() -> None:
    harness = started_harness()
    harness.fail_host("h6")
    host_partitions = partition_hosts(harness.coordinator.state)
    assert HostId("h6") not in {**host_partitions.old, **host_partitions.new}


def test_an_undo_may_use_the_failover_reserve() -> None:
    harness = after_first_moves(started_harness(hosts=20))
    state = harness.coordinator.state
    assert failover_reserve(state, partition_hosts(state)) == 1
    harness.command(CommandKind.UNDO, "hosts")
    while not partition_hosts(state).undoing:
        assert harness.step()
    assert failover_reserve(state, partition_hosts(state)) == 0


def test_equation_6_counts_empty_hosts_beyond_the_reserves() -> None:
    harness = started_harness(DIVIDED.but(readings=PAPER_READINGS))
    while harness.coordinator.state.iteration.phase is not IterationPhase.MOVING:
        assert harness.step()
    state = harness.coordinator.state
    host_partitions = partition_hosts(state)
    # Z is 6 - 3 - 2 x ceil(2 / 2) - 1 = 0: no host changes, so no VM can move.
    assert vm_limit_of(state, host_partitions) == 0
    assert not host_partitions.new


def test_the_rounds_of_ten_hosts_match_the_thesis() -> None:
    campaign = builtin_campaign("nabi-compute")
    campaign = campaign.but(settings=campaign.settings.but(readings=PAPER_READINGS))
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    iterations = summarise_campaign(journal.events()).iterations
    assert [iteration.z for iteration in iterations] == [4, 3, 1, 0, 0, 2]
    assert [iteration.v for iteration in iterations] == [9, 6, 0, 0, 0, None]
    assert [(round_.wanted, round_.size) for round_ in iterations[0].rounds] == [
        (4, 3),
        (3, 3),
        (3, 0),
    ]
    assert [(round_.wanted, round_.size) for round_ in iterations[1].rounds] == [(3, 3), (1, 0)]


def test_consolidation_keeps_the_failover_host() -> None:
    """With b on the second host, a failure needs capacity for two VMs: only the fourth has it."""
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k1", "k2", "k3", "k4"]))),
            hosts=[a_host(n, size) for n, size in enumerate([1, 3, 1, 2], 1)],
            vms=[a_vm("a-1", 2, "a"), a_vm("a-2", 4, "a"), a_vm("b-1", 3, "b")],
            tenants=[a_tenant("a", ["a-1", "a-2"], most=2), a_tenant("b", ["b-1"], most=1)],
            resources=hypervisors(4),
        )
    )
    harness.run()
    assert not harness.events(VmBatchStarted)


@pytest.mark.parametrize("bound", ["aggregate", "group"])
def test_another_peer_changes_if_the_host_of_the_first_is_reserved(bound: str) -> None:
    names = ["k1", "k2", "k3"]  # h1 is reserved for the VMs of h2, so only k3 can change
    built = [binds("store", name, DependencyKind.AGGREGATION) for name in names]
    harness = UpgradeHarness(
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
    harness.run()
    decided = harness.events(BatchDecided)[0]
    assert decided.batch == ("k3",)
    codes = {
        str(vertex): elimination.code
        for elimination in decided.eliminated
        for vertex in elimination.vertices
    }
    assert codes["k1"] == "no-spare-host"


def test_the_reason_names_the_use_of_the_reserved_hosts() -> None:
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("kernels", upgrade_of(["k1", "k2"]))),
            hosts=[a_host(1, 1), a_host(2, 1)],
            vms=[a_vm("v1", 1, "a")],
            tenants=[a_tenant("a", ["v1"], most=2)],
            resources=hypervisors(2),
            settings=UpgradeSettings(vm_move_s=5, failover_hosts=1),
        )
    )
    harness.run()
    (waits,) = [
        elimination
        for decided in harness.events(BatchDecided)
        for elimination in decided.eliminated
        if "k2" in elimination.vertices
    ]
    assert waits.code == "no-spare-host"
    for figure in ("1 of 2 hosts empty", "1 more VM", "a for 1", "1 host reserved"):
        assert figure in waits.reason


def hosts_upgraded(sizes: list[int], settings: UpgradeSettings, most: int = 9) -> UpgradeHarness:
    """Two tenants with a VM each on the first two hosts; the request changes all hosts."""
    count = len(sizes)
    return UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, count + 1)]))),
            hosts=[a_host(n, size) for n, size in enumerate(sizes, 1)],
            vms=[a_vm("a-1", 1, "a"), a_vm("b-1", 2, "b")],
            tenants=[a_tenant("a", ["a-1"], most=most), a_tenant("b", ["b-1"], most=most)],
            resources=hypervisors(count),
            settings=settings,
        )
    )


def first_z(harness: UpgradeHarness) -> int:
    while not harness.events(BatchDecided):
        assert harness.step()
    return harness.events(BatchDecided)[0].z


def test_the_literal_reading_reserves_whole_hosts() -> None:
    literal = DIVIDED.but(readings=PAPER_READINGS)
    # Six hosts: two used, one for two tenants that may scale by one each, one for a failure.
    assert first_z(hosts_upgraded([2] * 6, literal)) == 2


def test_free_capacity_of_used_hosts_is_a_reserve_too() -> None:
    # Each tenant can scale on the host of the other: only the failover host is reserved.
    assert first_z(hosts_upgraded([2] * 6, DIVIDED)) == 3


def test_a_tenant_at_its_limit_needs_no_reserve() -> None:
    assert first_z(hosts_upgraded([1] * 6, DIVIDED, most=1)) == 3
    assert first_z(hosts_upgraded([1] * 6, DIVIDED, most=2)) == 1


def test_the_failover_host_can_run_all_vms_of_any_failing_host() -> None:
    names = ["a-1", "b-1", "c-1"]
    tenants = [a_tenant(vm[0], [vm], most=1) for vm in names]
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k1", "k2", "k3", "k4"]))),
            hosts=[a_host(n, size) for n, size in enumerate([3, 3, 1, 1], 1)],
            vms=[a_vm(vm, 1, vm[0]) for vm in names],
            tenants=tenants,
            resources=hypervisors(4),
            settings=DIVIDED,
        )
    )
    while not harness.events(BatchDecided):
        harness.step()
    # Three VMs run on the first host: if it fails only the second can take them.
    assert harness.events(BatchDecided)[0].batch == ("k3", "k4")


def test_hosts_of_different_sizes_are_upgraded() -> None:
    harness = hosts_upgraded([4, 1, 1, 1, 4], DIVIDED, most=1)
    harness.run()
    assert harness.outcomes() == {"hosts": "applied"}


def pinned(*hosts: str) -> UpgradeHarness:
    rule = StayWithin(
        id=RuleId("pin"),
        vms=(VmId("a-1"),),
        hosts=tuple(HostId(host) for host in hosts),
        continuous=True,
    )
    return UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k1", "k2", "k3", "k4"]))),
            hosts=[a_host(n, 2) for n in range(1, 5)],
            vms=[a_vm("a-1", 1, "a")],
            tenants=[a_tenant("a", ["a-1"], most=1)],
            resources=hypervisors(4),
            rules=[rule],
        )
    )


def test_no_vm_moves_against_a_rule_of_the_cluster() -> None:
    harness = pinned("h1")
    harness.run()
    assert not harness.events(VmBatchStarted)
    assert harness.outcomes() == {"hosts": "scheduled"}
    decided = harness.events(VmBatchDecided)[-1]
    assert decided.code == "moves-refused"
    assert "a-1" in decided.reason
    assert harness.version("k1") == "v1"
    assert harness.version("k4") == "v2"


def test_a_vm_moves_to_a_host_that_the_rule_allows() -> None:
    harness = pinned("h1", "h4")
    harness.run()
    assert [
        move.target for event in harness.events(VmBatchStarted) for move in event.batch.moves
    ] == ["h4"]
    assert harness.outcomes() == {"hosts": "applied"}


def test_a_vm_moves_once() -> None:
    harness = hosts_upgraded([2] * 6, UpgradeSettings(vm_move_s=5))
    harness.run()
    assert harness.outcomes() == {"hosts": "applied"}
    assert {
        placement.moves for placement in harness.coordinator.state.cluster.placements.values()
    } == {1}


def test_one_large_host_is_reserved_instead_of_several_small_ones() -> None:
    # Both tenants fill the first host and may scale by one: the third host can run both VMs.
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k1", "k2", "k3"]))),
            hosts=[a_host(n, size) for n, size in enumerate([2, 1, 2], 1)],
            vms=[a_vm("a-1", 1, "a"), a_vm("b-1", 1, "b")],
            tenants=[a_tenant("a", ["a-1"], most=2), a_tenant("b", ["b-1"], most=2)],
            resources=hypervisors(3),
            settings=UpgradeSettings(vm_move_s=5, failover_hosts=0),
        )
    )
    assert first_z(harness) == 1
    assert harness.events(BatchDecided)[0].batch == ("k2",)


def test_a_host_reserved_for_scaling_may_fail_too() -> None:
    # If the fourth host ran the new VMs of both tenants and failed, no host could run two VMs.
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, 6)]))),
            hosts=[a_host(n, size) for n, size in enumerate([1, 1, 1, 2, 1], 1)],
            vms=[a_vm("a-1", 2, "a"), a_vm("b-1", 3, "b")],
            tenants=[a_tenant("a", ["a-1"], most=2), a_tenant("b", ["b-1"], most=2)],
            resources=hypervisors(5),
        )
    )
    assert first_z(harness) == 0
