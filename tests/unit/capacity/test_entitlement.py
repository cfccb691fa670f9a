"""Entitlement of VMs by shares, reservations, limits and pools; the array engine and its oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.capacity.entitlement import build_claim_tree, divide_capacity, vm_entitlements
from equipoise.capacity.pool_tree import ClaimBounds
from equipoise.capacity.spec_function import entitlement
from equipoise.capacity.waterfill import NO_INDEX, Floats, ShareClaim, fill_by_shares
from equipoise.model.host import HostState
from equipoise.model.inventory import Pool
from equipoise.model.quantity import PoolId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState
from equipoise.spec.evaluate.view import StateView
from equipoise.spec.specification import Specification, context_of
from plain_entitlement import CPU, entitlements

NO_LIMIT = float("inf")
Claim = tuple[int, int | None, int]
"""Reservation, limit and shares."""


def settings_of(claims: list[Claim]) -> ClaimBounds:
    return ClaimBounds(
        shares=np.array([float(shares) for _, _, shares in claims]),
        floor=np.array([float(floor) for floor, _, _ in claims]),
        ceiling=np.array([NO_LIMIT if most is None else float(most) for _, most, _ in claims]),
    )


def divided(
    capacity: float,
    parents: list[int],
    pools: list[Claim],
    vms: list[tuple[int, Claim, int]],
    *,
    fast: bool = False,
) -> Floats:
    """Return the parts of VMs, each given by the row of its pool, its bounds and its demand."""
    tree = build_claim_tree(
        np.array(parents, dtype=np.int64), np.array([pool for pool, _, _ in vms], dtype=np.int64)
    )
    want = np.array([float(wanted) for _, _, wanted in vms])
    mine = settings_of([bounds for _, bounds, _ in vms])
    return divide_capacity(capacity, tree, settings_of(pools), mine, want, fast=fast)


def test_the_tree_has_its_root_then_the_pools_then_the_vms() -> None:
    tree = build_claim_tree(np.array([NO_INDEX, 0, NO_INDEX]), np.array([1, NO_INDEX, 0, 1]))
    assert tree["parent"].tolist() == [NO_INDEX, 0, 1, 0, 2, 0, 1, 2]
    assert tree["vm"].tolist() == [NO_INDEX] * 4 + [0, 1, 2, 3]
    for node in range(len(tree)):
        children, child = [], int(tree["child"][node])
        while child != NO_INDEX:
            children.append(child)
            child = int(tree["sibling"][child])
        assert children == [n for n in range(len(tree)) if tree["parent"][n] == node]


def test_a_tree_without_vms_gives_nothing() -> None:
    assert divided(100, [], [], []).tolist() == []
    assert divided(100, [NO_INDEX], [(50, None, 1)], []).tolist() == []


def test_a_pool_without_vms_takes_nothing() -> None:
    vms: list[tuple[int, Claim, int]] = [(NO_INDEX, (0, None, 1), 100)]
    assert divided(100, [NO_INDEX], [(0, None, 1000)], vms).tolist() == [100]
    assert divided(100, [NO_INDEX], [(50, None, 1000)], vms).tolist() == [100]
    empty: list[Claim] = [(50, None, 1000), (20, None, 1000), (0, None, 1)]
    assert divided(100, [NO_INDEX, 0, NO_INDEX], empty, [*vms, (2, (0, None, 1), 0)])[0] == 100


def test_the_limit_of_a_pool_holds_although_capacity_is_free() -> None:
    vms: list[tuple[int, Claim, int]] = [
        (0, (0, None, 1000), 600),
        (0, (0, None, 2000), 600),
        (NO_INDEX, (0, None, 1000), 500),
    ]
    found = divided(10_000, [NO_INDEX], [(0, 600, 1000)], vms)
    assert found.tolist() == pytest.approx([200, 400, 500])


def test_the_limit_of_an_ancestor_pool_holds() -> None:
    vms: list[tuple[int, Claim, int]] = [(1, (0, None, 1), 900), (0, (0, None, 1), 900)]
    found = divided(10_000, [NO_INDEX, 0], [(0, 500, 1), (0, None, 3)], vms)
    assert found.tolist() == pytest.approx([375, 125])


@pytest.mark.parametrize("fast", [False, True])
def test_reservations_hold_under_scarcity_and_shrink_if_they_exceed_the_capacity(
    fast: bool,
) -> None:
    vms: list[tuple[int, Claim, int]] = [
        (NO_INDEX, (600, None, 1), 1000),
        (NO_INDEX, (0, None, 3), 1000),
    ]
    assert divided(1000, [], [], vms, fast=fast).tolist() == pytest.approx([600, 400])
    assert divided(300, [], [], vms, fast=fast).tolist() == pytest.approx([300, 0])


some_bounds = st.tuples(
    st.sampled_from([0, 0, 0, 100, 700]),
    st.none() | st.sampled_from([700, 900, 2500]),
    st.sampled_from([1, 500, 1000, 3000]),
)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[int], list[Claim], list[tuple[int, Claim, int]]]:
    parents = [draw(st.integers(NO_INDEX, n - 1)) for n in range(draw(st.integers(0, 4)))]
    pools = [draw(some_bounds) for _ in parents]
    vm = st.tuples(
        st.integers(NO_INDEX, len(parents) - 1),
        some_bounds,
        st.integers(0, 20).map(lambda n: 150 * n),
    )
    return parents, pools, draw(st.lists(vm, max_size=7))


def as_model(
    cluster: tuple[list[int], list[Claim], list[tuple[int, Claim, int]]],
) -> tuple[list[Pool], list[Vm]]:
    """Return the pools and VMs of a drawn cluster."""
    parents, pools, vms = cluster
    named = [PoolId(f"p{n}") for n in range(len(parents))]
    groups = [
        Pool(
            id=named[n],
            parent=None if parents[n] == NO_INDEX else named[parents[n]],
            cpu=CpuSettings(reservation_mhz=floor, limit_mhz=ceiling, shares=shares),
        )
        for n, (floor, ceiling, shares) in enumerate(pools)
    ]
    guests: list[Vm] = [
        a_vm(
            f"v{n}",
            "h1",
            pool=None if pool == NO_INDEX else named[pool],
            cpu=CpuSettings(reservation_mhz=floor, limit_mhz=ceiling, shares=shares),
            demand=Demand(cpu_mhz=want),
        )
        for n, (pool, (floor, ceiling, shares), want) in enumerate(vms)
    ]
    return groups, guests


@given(clusters(), st.integers(1, 12))
def test_the_array_engine_agrees_with_the_oracle_plain_and_compiled(
    cluster: tuple[list[int], list[Claim], list[tuple[int, Claim, int]]], cores: int
) -> None:
    parents, pools, vms = cluster
    groups, guests = as_model(cluster)
    plain = entitlements([a_host("h1", cores=cores)], guests, groups, CPU)
    slow = divided(1000 * cores, parents, pools, vms)
    assert slow.tolist() == pytest.approx([plain[vm.id] for vm in guests], abs=1e-3)
    quick = divided(1000 * cores, parents, pools, vms, fast=True)
    assert quick.tobytes() == slow.tobytes(), "to the last bit"


# Snapshots with pools


def wants(name: str, mhz: int, pool: str | None = None, **cpu: int) -> Vm:
    return a_vm(name, "h1", demand=Demand(cpu_mhz=mhz), pool=pool, cpu=CpuSettings(**cpu))


def cluster(*vms: Vm, pools: tuple[Pool, ...] = ()) -> Snapshot:
    hosts = [a_host("h1"), a_host("h2"), a_host("h3", state=HostState.STANDBY)]
    return a_cluster(*hosts, vms=vms, pools=pools)


def amounts(state: Snapshot, column: int) -> dict[str, int]:
    running = [vm for vm in state.vms.values() if vm.state is VmState.RUNNING]
    rows = vm_entitlements(state, running, fast=False)
    return {vm.id: round(row[column]) for vm, row in zip(running, rows.tolist(), strict=True)}


def cpu(state: Snapshot) -> dict[str, int]:
    return amounts(state, 0)


def test_the_reservation_of_figure_2_is_divided_as_in_the_paper() -> None:
    """10 GHz: 8 and 2 by shares; of the 8, demands of 3 and 7 get 3 and 5 for equal shares."""
    pools = fill_by_shares(10, [ShareClaim(3, 100, 800), ShareClaim(2, 100, 200)])
    assert pools == [8, 2]
    assert fill_by_shares(pools[0], [ShareClaim(0, 3, 500), ShareClaim(0, 7, 500)]) == [3, 5]


def test_demands_that_can_be_met_are_met() -> None:
    assert cpu(cluster(wants("a", 3000), wants("b", 4000))) == {"a": 3000, "b": 4000}


def test_scarce_capacity_is_divided_by_shares() -> None:
    hungry = cluster(wants("a", 9000, shares=3000), wants("b", 9000), wants("c", 500))
    assert cpu(hungry) == {"a": 5625, "b": 1875, "c": 500}, "8,000 MHz are on"


def test_reservation_and_limit_hold() -> None:
    held = cluster(wants("a", 9000, limit_mhz=1000), wants("b", 100, reservation_mhz=3000))
    assert cpu(held) == {"a": 1000, "b": 3000}
    scarce = cluster(wants("a", 9000), wants("b", 9000, reservation_mhz=5000))
    assert cpu(scarce) == {"a": 3000, "b": 5000}


def test_a_reservation_holds_inside_a_pool_that_reserves_nothing() -> None:
    pools = (Pool(id=PoolId("p")), Pool(id=PoolId("q"), parent=PoolId("p")))
    vms = [wants("a", 9000, "q", reservation_mhz=5000), wants("b", 9000), wants("c", 9000)]
    assert cpu(cluster(*vms, pools=pools)) == {"a": 5000, "b": 1500, "c": 1500}
    many = [*vms, wants("d", 9000, "q", reservation_mhz=11_000)]
    assert cpu(cluster(*many, pools=pools)) == {"a": 2500, "b": 0, "c": 0, "d": 5500}


def test_the_reservation_of_a_pool_without_running_vms_is_free_for_others() -> None:
    empty = Pool(id=PoolId("empty"), cpu=CpuSettings(reservation_mhz=2000))
    inner = empty.but(id=PoolId("inner"), parent=empty.id)
    off = wants("b", 9000, "inner").but(state=VmState.READY, host=None)
    assert cpu(cluster(wants("a", 9000), off, pools=(empty, inner))) == {"a": 8000}
    idle = wants("b", 0, "inner")
    assert cpu(cluster(wants("a", 9000), idle, pools=(empty, inner))) == {"a": 6000, "b": 0}


def test_pools_divide_before_their_vms_do() -> None:
    pools = (
        Pool(id=PoolId("gold"), cpu=CpuSettings(shares=3000)),
        Pool(id=PoolId("lead")),
        Pool(id=PoolId("inner"), parent=PoolId("gold"), cpu=CpuSettings(limit_mhz=2000)),
    )
    vms = [wants("a", 9000, "gold"), wants("b", 9000, "inner"), wants("c", 9000, "lead")]
    assert cpu(cluster(*vms, wants("d", 9000, "lead"), pools=pools)) == {
        "a": 4000,
        "b": 2000,
        "c": 1000,
        "d": 1000,
    }


def test_the_entitlement_to_memory_is_at_most_the_configured_memory() -> None:
    greedy = a_vm("a", "h1", demand=Demand(memory_mib=5000), memory=MemorySettings())
    state = cluster(greedy, a_vm("b", None, state=VmState.READY))
    assert amounts(state, 1) == {"a": 1024}


def test_formulas_can_use_the_entitlement() -> None:
    spec = Specification.read(
        'Fair(vs <: vms) ::= !(v : vs) entitlement(v, "cpu") >= demand(v, "cpu")\n'
        'None(v : vms) ::= entitlement(v, "licences") = 0\n'
    )
    calm, hungry = cluster(wants("a", 3000)), cluster(wants("a", 9000))
    assert spec.holds("Fair", {"vs": frozenset(["a"])}, context_of(calm))
    assert not spec.holds("Fair", {"vs": frozenset(["a"])}, context_of(hungry))
    assert spec.holds("None", {"v": "a"}, context_of(hungry))


@given(clusters(), st.integers(1, 12))
def test_the_function_of_the_language_agrees_with_the_oracle(
    cluster: tuple[list[int], list[Claim], list[tuple[int, Claim, int]]], cores: int
) -> None:
    groups, guests = as_model(cluster)
    host = a_host("h1", cores=cores)
    state = StateView.of(a_cluster(host, vms=guests, pools=tuple(groups)))
    plain = entitlements([host], guests, groups, CPU)
    for vm in guests:
        assert entitlement.act(state, vm.id, "cpu") == pytest.approx(plain[vm.id], abs=1)
        assert entitlement.act(state, vm.id, "licences") == 0
