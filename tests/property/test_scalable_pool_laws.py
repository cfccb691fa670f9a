"""Laws of scalable pools, whose shares are per VM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.capacity.pool_split import split_pools_over_hosts
from equipoise.capacity.pool_tree import PoolTree, cpu_claims
from equipoise.model.inventory import Pool
from equipoise.model.quantity import PoolId, VmId
from equipoise.model.vm import CpuSettings, Demand, Vm
from plain_division import weights
from plain_entitlement import CPU, entitlements

CAPACITY = 4000
"""What the one host has, in MHz."""
ENDLESS = 10**9
some_shares = st.sampled_from([1, 500, 1000, 1234, 4000, 10**7])


@st.composite
def trees(draw: st.DrawFn, scalable: st.SearchStrategy[bool] | None = None) -> list[Pool]:
    """Pools without bounds, parents first."""
    made: list[Pool] = []
    for number in range(draw(st.integers(1, 6))):
        made.append(
            Pool(
                id=PoolId(f"p{number}"),
                parent=draw(st.sampled_from([None, *(pool.id for pool in made)])),
                cpu=CpuSettings(shares=draw(some_shares)),
                scalable=draw(st.booleans() if scalable is None else scalable),
            )
        )
    return made


@st.composite
def members(draw: st.DrawFn, pools: Sequence[Pool], hungry: bool = False) -> list[Vm]:
    """VMs in the pools and outside of them."""
    asked = st.just(ENDLESS) if hungry else st.integers(0, 3000)
    homes = st.sampled_from([None, *(pool.id for pool in pools)])
    return [
        a_vm(
            f"v{number}",
            "h1",
            pool=draw(homes),
            cpu=CpuSettings(shares=draw(some_shares)),
            demand=Demand(cpu_mhz=draw(asked)),
        )
        for number in range(draw(st.integers(1, 8)))
    ]


def cpu_entitlements(vms: Iterable[Vm], pools: Iterable[Pool]) -> dict[VmId, float]:
    return entitlements([a_host("h1")], vms, pools, CPU)


def close(found: object) -> object:
    return pytest.approx(found, rel=1e-9, abs=1e-6)


@given(st.data())
def test_the_weights_agree_with_the_oracle(data: st.DataObject) -> None:
    pools = data.draw(trees())
    vms = data.draw(members(pools))
    tree, (own, _) = PoolTree(pools), cpu_claims(vms)
    rows = tree.rows_of(vms)
    found = tree.weights(rows, own.shares, tree.cpu(rows, own.shares))
    assert dict(zip((vm.id for vm in vms), found.tolist(), strict=True)) == pytest.approx(
        weights(vms, pools, "cpu"), rel=1e-9
    )


@given(st.data(), st.randoms(use_true_random=False))
def test_names_and_order_of_pools_do_not_matter(data: st.DataObject, chance: Random) -> None:
    pools = data.draw(trees())
    vms = data.draw(members(pools))
    numbers = list(range(len(pools)))
    chance.shuffle(numbers)
    named = {pool.id: PoolId(f"x{number}") for pool, number in zip(pools, numbers, strict=True)}
    other_pools = [
        pool.but(id=named[pool.id], parent=None if pool.parent is None else named[pool.parent])
        for pool in pools
    ]
    other_vms = [vm.but(pool=None if vm.pool is None else named[vm.pool]) for vm in vms]
    chance.shuffle(other_pools)
    chance.shuffle(other_vms)
    assert cpu_entitlements(other_vms, other_pools) == close(cpu_entitlements(vms, pools))


def neutral(pools: Iterable[Pool]) -> list[Pool]:
    return [pool.but(scalable=True, cpu=CpuSettings()) for pool in pools]


@given(st.data())
def test_neutral_pools_weigh_as_much_as_their_vms(data: st.DataObject) -> None:
    pools = neutral(data.draw(trees()))
    vms = data.draw(members(pools))
    tree, (own, _) = PoolTree(pools), cpu_claims(vms)
    rows = tree.rows_of(vms)
    found = tree.weights(rows, own.shares, tree.cpu(rows, own.shares))
    assert found.tolist() == pytest.approx(own.shares.tolist(), rel=1e-9)


@given(st.data())
def test_neutral_pools_change_nothing_if_demand_is_unlimited(data: st.DataObject) -> None:
    """Who is not hungry leaves the rest to its own pool first, as in any pool."""
    pools = neutral(data.draw(trees()))
    vms = data.draw(members(pools, hungry=True))
    assert cpu_entitlements(vms, pools) == close(
        cpu_entitlements([vm.but(pool=None) for vm in vms], [])
    )


@given(st.integers(1, 9), st.integers(1, 9))
def test_a_vm_in_a_pool_of_twice_the_shares_gets_twice_as_much(few: int, many: int) -> None:
    gold, lead = (PoolId(name) for name in ("gold", "lead"))
    pools = [
        Pool(id=gold, scalable=True, cpu=CpuSettings(shares=2000)),
        Pool(id=lead, scalable=True),
    ]
    vms = [
        a_vm(
            f"v{number}", "h1", pool=gold if number < few else lead, demand=Demand(cpu_mhz=ENDLESS)
        )
        for number in range(few + many)
    ]
    found = cpu_entitlements(vms, pools)
    assert found[VmId("v0")] == pytest.approx(2 * found[VmId(f"v{few}")])
    assert sum(found.values()) == pytest.approx(CAPACITY)


@given(st.data())
def test_a_pool_that_is_not_scalable_keeps_its_shares(data: st.DataObject) -> None:
    pools = data.draw(trees())
    vms = data.draw(members(pools))
    tree, (own, _) = PoolTree(pools), cpu_claims(vms)
    rows = tree.rows_of(vms)
    found = tree.cpu(rows, own.shares)
    for pool in pools:
        if not pool.scalable:
            assert found.shares[tree.row[pool.id]] == pool.cpu.shares


@given(st.data())
def test_an_empty_pool_has_no_part(data: st.DataObject) -> None:
    pools = data.draw(trees())
    vms = data.draw(members(pools))
    above = data.draw(st.sampled_from([None, *(pool.id for pool in pools)]))
    reserved = CpuSettings(reservation_mhz=data.draw(st.sampled_from([0, 900, CAPACITY])))
    scalable = data.draw(st.booleans())
    empty = Pool(id=PoolId("empty"), parent=above, scalable=scalable, cpu=reserved)
    inner = Pool(id=PoolId("inner"), parent=empty.id, cpu=reserved)
    assert cpu_entitlements(vms, [*pools, empty, inner]) == close(cpu_entitlements(vms, pools))


@given(st.data())
def test_the_sum_is_the_capacity_or_the_demand(data: st.DataObject) -> None:
    pools = data.draw(trees(st.just(True)))
    vms = data.draw(members(pools))
    found = cpu_entitlements(vms, pools)
    asked = sum(vm.demand.cpu_mhz for vm in vms)
    assert sum(found.values()) == close(min(CAPACITY, asked))
    assert all(found[vm.id] <= vm.demand.cpu_mhz + 1e-6 for vm in vms)


def test_deep_trees_of_extreme_shares_are_still_divided() -> None:
    for shares in (1, 10**7):
        deep = [
            Pool(
                id=PoolId(f"p{depth}"),
                parent=PoolId(f"p{depth - 1}") if depth else None,
                cpu=CpuSettings(shares=shares),
                scalable=True,
            )
            for depth in range(200)
        ]
        vms = [
            a_vm("a", "h1", pool=PoolId("p199"), demand=Demand(cpu_mhz=ENDLESS)),
            a_vm("b", "h1", demand=Demand(cpu_mhz=3000)),
        ]
        assert sum(cpu_entitlements(vms, deep).values()) == pytest.approx(CAPACITY)
        tree, (own, _) = PoolTree(deep), cpu_claims(vms)
        rows = tree.rows_of(vms)
        found = tree.weights(rows, own.shares, tree.cpu(rows, own.shares))
        assert np.isfinite(found).all()
        assert (found > 0).all()


def test_host_settings_have_the_scaled_shares() -> None:
    pool = Pool(id=PoolId("gold"), scalable=True, cpu=CpuSettings(shares=2000))
    vms = [a_vm("a", "h1", pool=pool.id), a_vm("b", "h2", pool=pool.id)]
    vms += [a_vm("c", "h2", pool=pool.id)]
    state = a_cluster(a_host("h1"), a_host("h2"), vms=vms, pools=(pool,))
    told = {
        host: pools[pool.id].cpu.shares for host, pools in split_pools_over_hosts(state).items()
    }
    assert told == {"h1": 2000, "h2": 4000}
