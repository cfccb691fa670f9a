"""The laws of consolidation, against brute force over all reachable placements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.model.quantity import HostId, VmId
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSettings, VmCompatibility
from equipoise.model.upgrade.event import BatchDecided, IterationStarted, VmBatchStarted
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.graph.iteration_view import build_view
from equipoise.upgrade.select_batch import select_batch
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.vms.consolidation import hosts_needed
from equipoise.upgrade.vms.rounds import after_moves
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

PLACEMENTS_MAX = 4000
"""Clusters with more reachable placements are skipped."""


@st.composite
def full_clusters(draw: st.DrawFn) -> UpgradeCampaign:
    """Draw a few hosts of small capacity, with VMs on most of them."""
    random = Random(draw(st.integers(0, 2**32)))
    capacities = draw(st.lists(st.integers(1, 3), min_size=3, max_size=5))
    if draw(st.booleans()):
        capacities = [2] * len(capacities)
    free = list(capacities)
    vms, tenants = [], []
    for number, size in enumerate(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))):
        with_capacity = [host for host, left in enumerate(free) if left]
        names = []
        for count, host in enumerate(random.sample(with_capacity, min(size, len(with_capacity)))):
            free[host] -= 1
            names.append(f"t{number}-{count}")
            vms.append(a_vm(names[-1], host + 1, f"t{number}"))
        most = len(names) + draw(st.integers(0, 1))
        tenants.append(a_tenant(f"t{number}", names, most=most, least=len(names)))
    return a_campaign(
        a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, len(capacities) + 1)]))),
        hosts=[a_host(n, size) for n, size in enumerate(capacities, 1)],
        vms=vms,
        tenants=[tenant for tenant in tenants if tenant.anti_affinity],
        resources=hypervisors(len(capacities)),
        settings=UpgradeSettings(
            vm_move_s=5,
            failover_hosts=draw(st.integers(0, 2)),
            vms=draw(st.sampled_from(list(VmCompatibility))),
        ),
    )


def reachable_placements(state: UpgradeState) -> list[tuple[HostId, ...]] | None:
    """Return every placement that single moves can reach; None if there are too many."""
    groups = [placement.group for placement in state.cluster.placements.values()]
    start = tuple(
        placement.host
        for placement in state.cluster.placements.values()
        if placement.host is not None
    )
    seen, queue = {start: None}, [start]
    for hosts in queue:
        for vm, host in product(range(len(hosts)), state.cluster.compute_hosts):
            beside = [other for other, there in enumerate(hosts) if there == host]
            full = len(beside) >= state.cluster.compute_hosts[host].vms_max
            if not full and all(groups[other] != groups[vm] for other in beside):
                moved = (*hosts[:vm], host, *hosts[vm + 1 :])
                if moved not in seen:
                    seen[moved] = None
                    queue.append(moved)
        if len(seen) > PLACEMENTS_MAX:
            return None
    return queue


def batches(state: UpgradeState, ways: Sequence[tuple[HostId, ...]]) -> Iterator[int]:
    """Yield the batch size for each placement; VMs of one group are interchangeable."""
    seen = set()
    for hosts in ways:
        pairs = list(zip(state.cluster.placements.values(), hosts, strict=True))
        key = frozenset((placement.group or placement.vm, host) for placement, host in pairs)
        if key not in seen:
            seen.add(key)
            moves = [
                VmMove(vm=placement.vm, source=placement.host, target=host)
                for placement, host in pairs
                if placement.host is not None and placement.host != host
            ]
            yield len(select_batch(build_view(after_moves(state, moves), with_vms=False)).batch)


@given(full_clusters())
@settings(max_examples=120, deadline=None)
def test_the_best_consolidation_is_found_if_one_lets_hosts_change(
    campaign: UpgradeCampaign,
) -> None:
    """For hosts of different sizes only some orders are tried, so the best may be missed."""
    harness = UpgradeHarness(campaign)
    while not harness.events(IterationStarted):
        harness.step()
    state = harness.coordinator.state
    refused = bool(state.requests.refused_sets)
    ways = None if refused else reachable_placements(state)
    if ways is None or select_batch(build_view(state, with_vms=False)).batch:
        return
    best = max(batches(state, ways))
    while not harness.events(BatchDecided):
        assert harness.step()
    decided = harness.events(BatchDecided)[0]
    moved = [move.vm for event in harness.events(VmBatchStarted) for move in event.batch.moves]
    assert len(moved) == len(set(moved)), "a VM moved twice"
    assert bool(moved) <= bool(decided.batch), "VMs moved without a result"
    capacity = sum(
        state.cluster.compute_hosts[HostId(f"h{name[1:]}")].vms_max for name in decided.batch
    )
    assert len(decided.batch) <= best
    if len({host.vms_max for host in state.cluster.compute_hosts.values()}) == 1:
        assert len(decided.batch) == best or capacity >= len(state.cluster.placements)


@given(
    groups=st.lists(st.integers(1, 4), max_size=4),
    places=st.lists(st.integers(0, 4), max_size=4),
)
@settings(max_examples=300, deadline=None)
def test_the_number_of_hosts_needed_follows_from_the_sizes(
    groups: list[int], places: list[int]
) -> None:
    """Compared with trying each group in turn on every choice of hosts."""

    def fits(rest: list[int], free: list[int]) -> bool:
        if not rest:
            return True
        for chosen in product((0, 1), repeat=len(free)):
            left = [capacity - taken for capacity, taken in zip(free, chosen, strict=True)]
            if sum(chosen) == rest[0] and min(left, default=0) >= 0 and fits(rest[1:], left):
                return True
        return False

    tried = (count for count in range(len(places) + 1) if fits(groups, places[:count]))
    assert hosts_needed(groups, places) == next(tried, None)


def test_a_full_cluster_with_two_failover_hosts_is_upgraded() -> None:
    """Sixty hosts, none empty, 90 % of the capacity used: no single host would help."""
    hosts, capacity, size = 60, 8, 6
    random = Random(7)
    free = [capacity] * hosts
    vms, tenants = [], []
    for number in range(hosts * capacity * 9 // 10 // size):
        name = f"t{number}"
        order = sorted(range(hosts), key=lambda host: (-free[host], random.random()))
        names = [f"{name}-{count}" for count in range(size)]
        for vm, host in zip(names, order, strict=False):
            free[host] -= 1
            vms.append(a_vm(vm, host + 1, name))
        tenants.append(a_tenant(name, names, most=size, least=size))
    assert max(free) < capacity
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, hosts + 1)]))),
            hosts=[a_host(n, capacity) for n in range(1, hosts + 1)],
            vms=vms,
            tenants=tenants,
            resources=hypervisors(hosts),
            settings=UpgradeSettings(vm_move_s=5, failover_hosts=2),
        )
    )
    harness.run()
    assert harness.outcomes() == {"hosts": "applied"}
    vm_batches = harness.events(VmBatchStarted)
    assert {
        VmId(move.vm) for event in vm_batches if not event.why for move in event.batch.moves
    } == {vm.id for vm in vms}, "each VM moves to a changed host"
    assert {event.batch.id.split("/")[0] for event in vm_batches if event.why} == {"1"}, (
        "consolidation happens once"
    )
    for event in vm_batches:
        names = [move.vm.split("-")[0] for move in event.batch.moves]
        assert len(names) == len(set(names)), "two VMs of a group are disturbed at once"
    assert sum(bool(event.why) for event in vm_batches) > 1, "consolidation takes several rounds"
    assert (
        max(placement.moves for placement in harness.coordinator.state.cluster.placements.values())
        == 2
    )
    # The capacity of six hosts is free, two of them are reserved for failures: four at a time.
    sizes = [len(event.batch) for event in harness.events(BatchDecided)]
    assert sizes[0] == 4
    assert len(sizes) <= 17
