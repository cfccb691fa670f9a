"""What VMs deserve, on arrays: the same as ``entitlements``, at both speeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_host, a_vm
from equipoise.model.pool import Pool
from equipoise.model.quantity import PoolId
from equipoise.model.vm import CpuSettings, Demand, Vm
from equipoise.place.deserve import deserve, pool_tree
from equipoise.place.entitlement import CPU, entitlements
from equipoise.place.pools import Bounds
from equipoise.place.water import NOBODY, Floats

NO_LIMIT = float("inf")
Claim = tuple[int, int | None, int]
"""Reservation, limit and shares."""


def settings_of(claims: list[Claim]) -> Bounds:
    return Bounds(
        shares=np.array([float(shares) for _, _, shares in claims]),
        floor=np.array([float(floor) for floor, _, _ in claims]),
        ceiling=np.array([NO_LIMIT if most is None else float(most) for _, most, _ in claims]),
    )


def deserved(
    capacity: float,
    parents: list[int],
    pools: list[Claim],
    vms: list[tuple[int, Claim, int]],
    *,
    fast: bool = False,
) -> Floats:
    """VMs are the row of their pool, their bounds and what they want."""
    tree = pool_tree(
        np.array(parents, dtype=np.int64), np.array([pool for pool, _, _ in vms], dtype=np.int64)
    )
    want = np.array([float(wanted) for _, _, wanted in vms])
    mine = settings_of([bounds for _, bounds, _ in vms])
    return deserve(capacity, tree, settings_of(pools), mine, want, fast=fast)


def test_the_tree_has_its_root_then_the_pools_then_the_vms() -> None:
    tree = pool_tree(np.array([NOBODY, 0, NOBODY]), np.array([1, NOBODY, 0, 1]))
    assert tree["parent"].tolist() == [NOBODY, 0, 1, 0, 2, 0, 1, 2]
    assert tree["vm"].tolist() == [NOBODY] * 4 + [0, 1, 2, 3]
    for node in range(len(tree)):
        children, child = [], int(tree["child"][node])
        while child != NOBODY:
            children.append(child)
            child = int(tree["sibling"][child])
        assert children == [n for n in range(len(tree)) if tree["parent"][n] == node]


def test_a_tree_of_nobody_gives_nothing() -> None:
    assert deserved(100, [], [], []).tolist() == []
    assert deserved(100, [NOBODY], [(50, None, 1)], []).tolist() == []


def test_an_empty_pool_takes_nothing_from_the_others() -> None:
    vms: list[tuple[int, Claim, int]] = [(NOBODY, (0, None, 1), 100)]
    assert deserved(100, [NOBODY], [(0, None, 1000)], vms).tolist() == [100]
    assert deserved(100, [NOBODY], [(50, None, 1000)], vms).tolist() == [100]
    empty: list[Claim] = [(50, None, 1000), (20, None, 1000), (0, None, 1)]
    assert deserved(100, [NOBODY, 0, NOBODY], empty, [*vms, (2, (0, None, 1), 0)])[0] == 100


def test_a_pool_is_held_to_its_limit_although_there_is_enough() -> None:
    vms: list[tuple[int, Claim, int]] = [
        (0, (0, None, 1000), 600),
        (0, (0, None, 2000), 600),
        (NOBODY, (0, None, 1000), 500),
    ]
    found = deserved(10_000, [NOBODY], [(0, 600, 1000)], vms)
    assert found.tolist() == pytest.approx([200, 400, 500])


def test_a_limit_further_up_holds_as_well() -> None:
    vms: list[tuple[int, Claim, int]] = [(1, (0, None, 1), 900), (0, (0, None, 1), 900)]
    found = deserved(10_000, [NOBODY, 0], [(0, 500, 1), (0, None, 3)], vms)
    assert found.tolist() == pytest.approx([375, 125])


@pytest.mark.parametrize("fast", [False, True])
def test_reservations_are_kept_when_it_is_scarce_and_shrink_when_they_do_not_fit(
    fast: bool,
) -> None:
    vms: list[tuple[int, Claim, int]] = [
        (NOBODY, (600, None, 1), 1000),
        (NOBODY, (0, None, 3), 1000),
    ]
    assert deserved(1000, [], [], vms, fast=fast).tolist() == pytest.approx([600, 400])
    assert deserved(300, [], [], vms, fast=fast).tolist() == pytest.approx([300, 0])


some_bounds = st.tuples(
    st.sampled_from([0, 0, 0, 100, 700]),
    st.none() | st.sampled_from([700, 900, 2500]),
    st.sampled_from([1, 500, 1000, 3000]),
)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[int], list[Claim], list[tuple[int, Claim, int]]]:
    parents = [draw(st.integers(NOBODY, n - 1)) for n in range(draw(st.integers(0, 4)))]
    pools = [draw(some_bounds) for _ in parents]
    vm = st.tuples(
        st.integers(NOBODY, len(parents) - 1),
        some_bounds,
        st.integers(0, 20).map(lambda n: 150 * n),
    )
    return parents, pools, draw(st.lists(vm, max_size=7))


@given(clusters(), st.integers(1, 12))
def test_it_is_the_same_as_the_plain_way_at_both_speeds(
    cluster: tuple[list[int], list[Claim], list[tuple[int, Claim, int]]], cores: int
) -> None:
    parents, pools, vms = cluster
    named = [PoolId(f"p{n}") for n in range(len(parents))]
    groups = [
        Pool(
            id=named[n],
            parent=None if parents[n] == NOBODY else named[parents[n]],
            cpu=CpuSettings(reservation_mhz=floor, limit_mhz=ceiling, shares=shares),
        )
        for n, (floor, ceiling, shares) in enumerate(pools)
    ]
    guests: list[Vm] = [
        a_vm(
            f"v{n}",
            "h1",
            pool=None if pool == NOBODY else named[pool],
            cpu=CpuSettings(reservation_mhz=floor, limit_mhz=ceiling, shares=shares),
            demand=Demand(cpu_mhz=want),
        )
        for n, (pool, (floor, ceiling, shares), want) in enumerate(vms)
    ]
    plain = entitlements([a_host("h1", cores=cores)], guests, groups, CPU)
    slow = deserved(1000 * cores, parents, pools, vms)
    assert slow.tolist() == pytest.approx([plain[vm.id] for vm in guests], abs=1e-3)
    quick = deserved(1000 * cores, parents, pools, vms, fast=True)
    assert quick.tobytes() == slow.tobytes(), "to the last bit"
