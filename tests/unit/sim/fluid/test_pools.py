"""What pools mean on hosts: their shares, reservations and limits, in parts of their VMs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_host, a_vm
from equipoise.model.pool import Pool
from equipoise.model.quantity import PoolId, VmId
from equipoise.model.story.physics import Physics
from equipoise.model.vm import CpuSettings, Demand, Vm
from equipoise.place.divvy import Divvy
from equipoise.place.pools import Bounds, PoolTree
from equipoise.sim.fluid.fluid import Fluid


def pool(name: str, parent: str | None = None, **cpu: int) -> Pool:
    above = None if parent is None else PoolId(parent)
    return Pool(id=PoolId(name), parent=above, cpu=CpuSettings(**cpu))


def wants(name: str, host: str, mhz: int, inside: str | None, **cpu: int) -> Vm:
    return a_vm(name, host, demand=Demand(cpu_mhz=mhz), pool=inside, cpu=CpuSettings(**cpu))


def settled(pools: tuple[Pool, ...], *vms: Vm) -> Fluid:
    """Two hosts with 4,000 MHz each."""
    fluid = Fluid(PoolTree(pools), Physics())
    for host in ("h1", "h2"):
        fluid.put_host(a_host(host))
    for vm in vms:
        fluid.put_vm(vm)
    fluid.settle()
    return fluid


def got(fluid: Fluid, *names: str) -> list[float]:
    return [round(float(fluid.vms[fluid.vm_row[VmId(n)]]["cpu_got"]), 3) for n in names]


def test_pools_divide_a_host_by_their_shares_and_then_their_vms_do() -> None:
    fluid = settled(
        (pool("gold", shares=3000), pool("lead", shares=1000)),
        wants("a", "h1", 9000, "gold"),
        wants("b", "h1", 9000, "lead"),
        wants("c", "h1", 9000, "lead"),
    )
    assert got(fluid, "a", "b", "c") == [3000, 500, 500]


def test_a_pool_has_on_each_host_the_shares_of_the_vms_it_has_there() -> None:
    fluid = settled(
        (pool("gold", shares=2000), pool("lead", shares=2000)),
        wants("a", "h1", 9000, "gold"),
        wants("b", "h2", 9000, "gold"),
        wants("c", "h1", 9000, "lead"),
    )
    # On h1 gold has half of its shares and lead all of its own.
    assert got(fluid, "a", "b", "c") == [pytest.approx(1333.333), 4000, pytest.approx(2666.667)]


def test_what_a_vm_leaves_goes_to_its_pool_first() -> None:
    fluid = settled(
        (pool("gold", shares=1000), pool("lead", shares=1000)),
        wants("a", "h1", 100, "gold"),
        wants("b", "h1", 9000, "gold"),
        wants("c", "h1", 9000, "lead"),
    )
    assert got(fluid, "a", "b", "c") == [100, 1900, 2000]


def test_a_limit_holds_over_all_hosts_and_goes_where_it_is_asked_for() -> None:
    fluid = settled(
        (pool("small", limit_mhz=3000),),
        wants("a", "h1", 2500, "small"),
        wants("b", "h2", 2500, "small"),
        wants("c", "h2", 0, "small"),
    )
    assert sum(got(fluid, "a", "b", "c")) == pytest.approx(3000)
    assert got(fluid, "a", "b") == [1500, 1500]


def test_a_limit_that_is_not_reached_leaves_room_to_grow() -> None:
    fluid = settled((pool("small", limit_mhz=3000),), wants("a", "h1", 500, "small"))
    fluid.set_demand(np.array([0]), np.array([2000.0]), np.array([np.nan]))
    fluid.settle()
    assert got(fluid, "a") == [2000]


def test_a_reservation_of_a_pool_protects_its_vms() -> None:
    fluid = settled(
        (pool("safe", shares=1, reservation_mhz=3000), pool("loud", shares=10**6)),
        wants("a", "h1", 3500, "safe"),
        wants("b", "h1", 9000, "loud"),
    )
    assert got(fluid, "a", "b") == [pytest.approx(3000, abs=1), pytest.approx(1000, abs=1)]


def test_a_reservation_of_a_vm_holds_in_a_pool_that_reserves_less_or_nothing() -> None:
    for reserved in (0, 500):
        fluid = settled(
            (pool("safe", shares=1, reservation_mhz=reserved), pool("loud", shares=10**6)),
            wants("a", "h1", 3500, "safe", reservation_mhz=3000),
            wants("b", "h1", 9000, "loud"),
            wants("c", "h2", 9000, "safe"),
        )
        assert got(fluid, "a", "b") == [pytest.approx(3000, abs=1), pytest.approx(1000, abs=1)]
        fluid.set_demand(np.array([0]), np.array([200.0]), np.array([np.nan]))
        fluid.settle()
        assert got(fluid, "a", "b") == [pytest.approx(200, abs=1), pytest.approx(3800, abs=1)]


def test_what_a_pool_reserves_without_anybody_in_it_is_for_the_others() -> None:
    fluid = settled(
        (pool("empty", reservation_mhz=2000), pool("inner", "empty", reservation_mhz=1000)),
        wants("a", "h1", 9000, None),
    )
    assert got(fluid, "a") == [4000]


def test_inner_pools_divide_what_outer_ones_have() -> None:
    fluid = settled(
        (pool("outer", limit_mhz=2000), pool("inner", "outer", reservation_mhz=1500)),
        wants("a", "h1", 9000, "outer", shares=9000),
        wants("b", "h1", 9000, "inner"),
    )
    assert sum(got(fluid, "a", "b")) == pytest.approx(2000)
    assert got(fluid, "b")[0] >= 1500 - 1e-6


def test_a_scalable_pool_grows_with_who_comes_and_shrinks_with_who_goes() -> None:
    pools = (pool("each").but(scalable=True), pool("all"))
    fluid = settled(
        pools,
        wants("a", "h1", 9000, "each"),
        wants("b", "h1", 9000, "all"),
    )
    assert got(fluid, "a", "b") == [2000, 2000]
    fluid.put_vm(wants("c", "h1", 9000, "each"))
    fluid.put_vm(wants("d", "h1", 9000, "each"))
    fluid.settle()
    assert got(fluid, "a", "b", "c", "d") == [1000, 1000, 1000, 1000]
    fluid.drop_vm(VmId("d"))
    fluid.settle()
    assert got(fluid, "a", "b", "c") == [pytest.approx(1333.333)] * 3


def test_who_comes_to_a_scalable_pool_elsewhere_is_felt_by_its_siblings_here() -> None:
    pools = (pool("outer"), pool("each", "outer").but(scalable=True))
    fluid = settled(
        pools,
        wants("a", "h1", 9000, "outer"),
        wants("b", "h1", 9000, None),
        wants("c", "h2", 9000, "each"),
    )
    assert got(fluid, "a", "b") == [pytest.approx(1333.333), pytest.approx(2666.667)]
    fluid.put_vm(wants("d", "h2", 9000, "each"))
    fluid.settle()
    assert got(fluid, "a", "b") == [1000, 3000], "a third of the outer pool instead of a half"


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
    divvy = Divvy(tree, rows, bounds, Bounds(ones, zeros, ones * np.inf), want)
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
