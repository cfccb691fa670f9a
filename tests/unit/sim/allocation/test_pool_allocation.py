"""Pools on hosts: the parts of their shares, reservations and limits that VMs have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_host, a_vm
from equipoise.capacity.pool_split import PoolSplit
from equipoise.capacity.pool_tree import ClaimBounds, PoolTree
from equipoise.model.inventory import Pool
from equipoise.model.quantity import PoolId, VmId
from equipoise.model.scenario.physics import Physics
from equipoise.model.vm import CpuSettings, Demand, Vm
from equipoise.sim.allocation.allocator import ResourceAllocator


def pool(name: str, parent: str | None = None, **cpu: int) -> Pool:
    above = None if parent is None else PoolId(parent)
    return Pool(id=PoolId(name), parent=above, cpu=CpuSettings(**cpu))


def wants(name: str, host: str, mhz: int, inside: str | None, **cpu: int) -> Vm:
    return a_vm(name, host, demand=Demand(cpu_mhz=mhz), pool=inside, cpu=CpuSettings(**cpu))


def settled(pools: tuple[Pool, ...], *vms: Vm) -> ResourceAllocator:
    """Two hosts with 4,000 MHz each."""
    allocator = ResourceAllocator(PoolTree(pools), Physics())
    for host in ("h1", "h2"):
        allocator.put_host(a_host(host))
    for vm in vms:
        allocator.put_vm(vm)
    allocator.reallocate()
    return allocator


def got(allocator: ResourceAllocator, *names: str) -> list[float]:
    return [
        round(float(allocator.vms[allocator.vm_row[VmId(n)]]["cpu_allocated"]), 3) for n in names
    ]


def test_pools_divide_a_host_by_their_shares_and_then_their_vms_do() -> None:
    allocator = settled(
        (pool("gold", shares=3000), pool("lead", shares=1000)),
        wants("a", "h1", 9000, "gold"),
        wants("b", "h1", 9000, "lead"),
        wants("c", "h1", 9000, "lead"),
    )
    assert got(allocator, "a", "b", "c") == [3000, 500, 500]


def test_a_pool_has_the_shares_of_its_vms_on_each_host() -> None:
    allocator = settled(
        (pool("gold", shares=2000), pool("lead", shares=2000)),
        wants("a", "h1", 9000, "gold"),
        wants("b", "h2", 9000, "gold"),
        wants("c", "h1", 9000, "lead"),
    )
    # On h1 gold has half of its shares and lead all of its own.
    assert got(allocator, "a", "b", "c") == [pytest.approx(1333.333), 4000, pytest.approx(2666.667)]


def test_unused_cpu_goes_to_the_pool_first() -> None:
    allocator = settled(
        (pool("gold", shares=1000), pool("lead", shares=1000)),
        wants("a", "h1", 100, "gold"),
        wants("b", "h1", 9000, "gold"),
        wants("c", "h1", 9000, "lead"),
    )
    assert got(allocator, "a", "b", "c") == [100, 1900, 2000]


def test_a_pool_limit_holds_over_all_hosts_and_follows_demand() -> None:
    allocator = settled(
        (pool("small", limit_mhz=3000),),
        wants("a", "h1", 2500, "small"),
        wants("b", "h2", 2500, "small"),
        wants("c", "h2", 0, "small"),
    )
    assert sum(got(allocator, "a", "b", "c")) == pytest.approx(3000)
    assert got(allocator, "a", "b") == [1500, 1500]


def test_a_limit_that_is_not_reached_allows_growth() -> None:
    allocator = settled((pool("small", limit_mhz=3000),), wants("a", "h1", 500, "small"))
    allocator.set_demand(np.array([0]), np.array([2000.0]), np.array([np.nan]))
    allocator.reallocate()
    assert got(allocator, "a") == [2000]


def test_a_reservation_of_a_pool_protects_its_vms() -> None:
    allocator = settled(
        (pool("safe", shares=1, reservation_mhz=3000), pool("loud", shares=10**6)),
        wants("a", "h1", 3500, "safe"),
        wants("b", "h1", 9000, "loud"),
    )
    assert got(allocator, "a", "b") == [pytest.approx(3000, abs=1), pytest.approx(1000, abs=1)]


def test_a_reservation_of_a_vm_holds_in_a_pool_that_reserves_less_or_nothing() -> None:
    for reserved in (0, 500):
        allocator = settled(
            (pool("safe", shares=1, reservation_mhz=reserved), pool("loud", shares=10**6)),
            wants("a", "h1", 3500, "safe", reservation_mhz=3000),
            wants("b", "h1", 9000, "loud"),
            wants("c", "h2", 9000, "safe"),
        )
        assert got(allocator, "a", "b") == [pytest.approx(3000, abs=1), pytest.approx(1000, abs=1)]
        allocator.set_demand(np.array([0]), np.array([200.0]), np.array([np.nan]))
        allocator.reallocate()
        assert got(allocator, "a", "b") == [pytest.approx(200, abs=1), pytest.approx(3800, abs=1)]


def test_the_reservation_of_an_empty_pool_is_free() -> None:
    allocator = settled(
        (pool("empty", reservation_mhz=2000), pool("inner", "empty", reservation_mhz=1000)),
        wants("a", "h1", 9000, None),
    )
    assert got(allocator, "a") == [4000]


def test_inner_pools_divide_what_outer_ones_have() -> None:
    allocator = settled(
        (pool("outer", limit_mhz=2000), pool("inner", "outer", reservation_mhz=1500)),
        wants("a", "h1", 9000, "outer", shares=9000),
        wants("b", "h1", 9000, "inner"),
    )
    assert sum(got(allocator, "a", "b")) == pytest.approx(2000)
    assert got(allocator, "b")[0] >= 1500 - 1e-6


def test_a_scalable_pool_grows_and_shrinks_with_its_vms() -> None:
    pools = (pool("each").but(scalable=True), pool("all"))
    allocator = settled(
        pools,
        wants("a", "h1", 9000, "each"),
        wants("b", "h1", 9000, "all"),
    )
    assert got(allocator, "a", "b") == [2000, 2000]
    allocator.put_vm(wants("c", "h1", 9000, "each"))
    allocator.put_vm(wants("d", "h1", 9000, "each"))
    allocator.reallocate()
    assert got(allocator, "a", "b", "c", "d") == [1000, 1000, 1000, 1000]
    allocator.drop_vm(VmId("d"))
    allocator.reallocate()
    assert got(allocator, "a", "b", "c") == [pytest.approx(1333.333)] * 3


def test_a_new_vm_of_a_scalable_pool_affects_the_pool_on_all_hosts() -> None:
    pools = (pool("outer"), pool("each", "outer").but(scalable=True))
    allocator = settled(
        pools,
        wants("a", "h1", 9000, "outer"),
        wants("b", "h1", 9000, None),
        wants("c", "h2", 9000, "each"),
    )
    assert got(allocator, "a", "b") == [pytest.approx(1333.333), pytest.approx(2666.667)]
    allocator.put_vm(wants("d", "h2", 9000, "each"))
    allocator.reallocate()
    assert got(allocator, "a", "b") == [1000, 3000], "a third of the outer pool instead of a half"


POOLS = (
    pool("p", shares=3000, reservation_mhz=900, limit_mhz=4000),
    pool("q", "p", shares=700, limit_mhz=1500),
    pool("r", shares=100, reservation_mhz=300),
)


@given(
    st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 3000)), min_size=1, max_size=12),
)
def test_parts_add_up_to_what_the_pools_have(vms: list[tuple[int, int]]) -> None:
    tree = PoolTree(POOLS)
    rows = np.array([tree.row[PoolId("pqr"[p])] if p >= 0 else -1 for p, _ in vms])
    want = np.array([float(mhz) for _, mhz in vms])
    zeros, ones = np.zeros(len(vms)), np.ones(len(vms))
    bounds = tree.cpu(rows, ones)
    divvy = PoolSplit(tree, rows, bounds, ClaimBounds(ones, zeros, ones * np.inf), want)
    floor, ceiling = divvy.reservations().vms, divvy.limits().vms
    p, q, r = (tree.row[PoolId(name)] for name in "pqr")
    below = (rows == p) | (rows == q)
    assert floor[below].sum() == pytest.approx(900 if below.any() else 0)
    assert floor[rows == r].sum() == pytest.approx(300 if (rows == r).any() else 0)
    assert ceiling[below].sum() <= 4000 + 1e-6
    assert ceiling[rows == q].sum() <= 1500 + 1e-6
    assert np.isinf(ceiling[rows == r]).all()
    assert np.isinf(ceiling[rows == -1]).all()
    weights = tree.weights(rows, ones * 1000, bounds)
    if below.any():
        assert weights[below].sum() == pytest.approx(3000)
