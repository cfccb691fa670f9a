"""Share-, reservation- and limit-divvy, pool settings per host, and admission control."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.capacity.admission import CPU_RESERVATIONS, PoolReservations
from equipoise.capacity.pool_split import (
    HostResourceSettings,
    PoolSplit,
    host_pool_changes,
    split_pools_over_hosts,
)
from equipoise.capacity.pool_tree import ClaimBounds, PoolTree
from equipoise.model.inventory import Pool
from equipoise.model.quantity import HostId, PoolId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, Demand, Vm

NO_LIMIT = float("inf")


def pool(name: str, parent: str | None = None, *, expandable: bool = True, **cpu: int) -> Pool:
    above = None if parent is None else PoolId(parent)
    return Pool(id=PoolId(name), parent=above, cpu=CpuSettings(**cpu), cpu_expandable=expandable)


def column(*figures: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(figures, dtype=np.float64)


def figure_2() -> tuple[PoolTree, PoolSplit]:
    """RP1 has four fifths of the shares; its VMs ask for 3 and 7 GHz, those of RP2 for 2 and 3."""
    tree = PoolTree(
        (
            pool("RP1", shares=800, reservation_mhz=3),
            pool("RP2", shares=200, reservation_mhz=2),
        )
    )
    own = ClaimBounds(column(500, 500, 300, 700), column(0, 0, 0, 0), column(*[NO_LIMIT] * 4))
    rows = np.array([0, 0, 1, 1])
    return tree, PoolSplit(tree, rows, tree.cpu(rows, own.shares), own, column(3, 7, 2, 3))


@pytest.mark.parametrize("follow_paper", [True, False])
def test_the_reservation_of_figure_2_is_divided_as_in_the_paper(follow_paper: bool) -> None:
    _, divvy = figure_2()
    found = divvy.reservations(10, follow_paper=follow_paper)
    assert found.pools.tolist() == [8, 2]
    assert found.vms.tolist() == pytest.approx([3, 5, 0.6, 1.4])


def test_the_limit_of_figure_2_is_divided_by_shares_because_all_demands_fit() -> None:
    _, divvy = figure_2()
    letter = divvy.limits(20, follow_paper=True)
    assert letter.pools.tolist() == [16, 4]
    assert letter.vms.tolist() == pytest.approx([8, 8, 1.2, 2.8])
    ours = divvy.limits(20)
    assert ours.pools.tolist() == pytest.approx([15, 5]), (
        "no VM stays below a demand that can be met"
    )
    assert ours.vms.tolist() == pytest.approx([7.5, 7.5, 2, 3])


def test_the_weights_do_not_depend_on_demand() -> None:
    tree, _ = figure_2()
    rows, shares = np.array([0, 0, 1, 1]), column(500, 500, 300, 700)
    weights = tree.weights(rows, shares, tree.cpu(rows, shares))
    assert weights.tolist() == pytest.approx([400, 400, 60, 140])


FIGURES = st.tuples(st.integers(0, 2), st.integers(0, 50), st.integers(1, 9), st.integers(0, 20))


@given(st.lists(FIGURES, min_size=1, max_size=9), st.integers(1, 200), st.booleans())
def test_a_split_uses_the_whole_amount_within_the_bounds(
    vms: list[tuple[int, int, int, int]], amount: int, follow_paper: bool
) -> None:
    tree = PoolTree((pool("a", shares=5), pool("b", "a", shares=2)))
    rows = np.array([row - 1 for row, _, _, _ in vms])
    want, shares, floor = (column(*(vm[place] for vm in vms)) for place in (1, 2, 3))
    ceiling = floor + 30
    divvy = PoolSplit(tree, rows, tree.cpu(rows, shares), ClaimBounds(shares, floor, ceiling), want)
    found = divvy.reservations(amount, follow_paper=follow_paper).vms
    assert found.sum() == pytest.approx(min(amount, ceiling.sum()))
    assert (found <= ceiling + 1e-6).all()
    if amount >= floor.sum():
        assert (found >= floor - 1e-6).all()
    asked = np.minimum(np.maximum(want, floor), ceiling)
    if amount >= asked.sum() and not follow_paper:
        assert (found >= asked - 1e-6).all(), "what can be met is met"
    limits = divvy.limits(amount, follow_paper=follow_paper).vms
    assert limits.tolist() == pytest.approx(found.tolist()), "without own figures they are the same"


def wants(name: str, host: str, mhz: int, inside: str | None, **cpu: int) -> Vm:
    return a_vm(name, host, demand=Demand(cpu_mhz=mhz), pool=inside, cpu=CpuSettings(**cpu))


def cluster(*vms: Vm, pools: tuple[Pool, ...]) -> Snapshot:
    return a_cluster(a_host("h1"), a_host("h2"), vms=vms, pools=pools)


def test_the_settings_of_a_pool_on_a_host_are_the_sum_over_its_vms_there() -> None:
    pools = (pool("gold", shares=3000, reservation_mhz=900, limit_mhz=6000),)
    state = cluster(wants("a", "h1", 2000, "gold"), wants("b", "h2", 1000, "gold"), pools=pools)
    found = split_pools_over_hosts(state)
    gold = PoolId("gold")
    on_h1, on_h2 = found[HostId("h1")][gold].cpu, found[HostId("h2")][gold].cpu
    assert (on_h1, on_h2) == (
        HostResourceSettings(450, 3000, 1500),
        HostResourceSettings(450, 3000, 1500),
    )


def test_only_changed_settings_are_reported() -> None:
    pools = (pool("gold"), pool("lead"))
    before = split_pools_over_hosts(cluster(wants("a", "h1", 5, "gold"), pools=pools))
    after = split_pools_over_hosts(
        cluster(wants("a", "h1", 5, "gold"), wants("b", "h2", 5, "lead"), pools=pools)
    )
    (told,) = host_pool_changes(before, after)
    assert (told.host, told.pool, told.before) == ("h2", "lead", None)
    assert host_pool_changes(after, after) == ()


def test_an_outer_pool_includes_its_inner_pools_on_a_host() -> None:
    pools = (pool("outer", shares=1000), pool("inner", "outer", shares=500))
    found = split_pools_over_hosts(cluster(wants("a", "h1", 5, "inner"), pools=pools))[HostId("h1")]
    assert set(found) == {"outer", "inner"}
    assert found[PoolId("inner")].cpu.shares == found[PoolId("outer")].cpu.shares == 1000


def books(*vms: Vm, pools: tuple[Pool, ...]) -> PoolReservations:
    state = cluster(*vms, pools=pools)
    return PoolReservations(state.hosts.values(), state.vms.values(), pools, CPU_RESERVATIONS)


def asks(inside: str | None, mhz: int) -> Vm:
    return a_vm("new", None, pool=inside, cpu=CpuSettings(reservation_mhz=mhz))


def test_a_pool_admits_vms_up_to_its_reservation() -> None:
    pools = (pool("strict", expandable=False, reservation_mhz=1000),)
    kept = books(wants("a", "h1", 0, "strict", reservation_mhz=700), pools=pools)
    assert kept.shortage(asks("strict", 300)) is None
    short = kept.shortage(asks("strict", 301))
    assert short is not None
    assert (short.pool, short.needed, short.free) == ("strict", 301, 300)
    assert "strict" in short.sentence


def test_an_expandable_pool_takes_from_its_ancestors() -> None:
    pools = (
        pool("outer", expandable=False, reservation_mhz=1000),
        pool("inner", "outer", reservation_mhz=200),
    )
    kept = books(pools=pools)
    assert kept.shortage(asks("inner", 1000)) is None
    short = kept.shortage(asks("inner", 1001))
    assert short is not None
    assert short.pool == "outer"
    grown = books(wants("a", "h1", 0, "inner", reservation_mhz=900), pools=pools)
    assert grown.held(PoolId("inner")) == 900, "more than the 200 of its own"
    assert grown.shortage(asks("outer", 100)) is None
    assert grown.shortage(asks("outer", 101)) is not None


def test_the_cluster_limits_all_reservations() -> None:
    kept = books(pools=(pool("free", reservation_mhz=3000),))
    assert kept.free(None) == 5000, "two hosts of 4,000 MHz"
    assert kept.shortage(asks(None, 5000)) is None
    assert kept.shortage(asks("free", 8000)) is None
    short = kept.shortage(asks("free", 8001))
    assert short is not None
    assert (short.pool, short.needed, short.free) == (None, 5001, 5000)
    assert "5000" in short.sentence
