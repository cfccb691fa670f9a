"""Reservation-, limit- and share-divvy, and what comes of them on hosts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.model.pool import Pool
from equipoise.model.quantity import HostId, PoolId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, Demand, Vm
from equipoise.place.admission import CPU, Books
from equipoise.place.divvy import Divvy
from equipoise.place.host_settings import PoolOnHost, changes, host_pools
from equipoise.place.pools import Bounds, PoolTree

NO_LIMIT = float("inf")


def pool(name: str, parent: str | None = None, *, expandable: bool = True, **cpu: int) -> Pool:
    above = None if parent is None else PoolId(parent)
    return Pool(id=PoolId(name), parent=above, cpu=CpuSettings(**cpu), cpu_expandable=expandable)


def column(*figures: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(figures, dtype=np.float64)


def figure_2() -> tuple[PoolTree, Divvy]:
    """RP1 has four fifths of the shares; its VMs ask for 3 and 7 GHz, those of RP2 for 2 and 3."""
    tree = PoolTree(
        (
            pool("RP1", shares=800, reservation_mhz=3),
            pool("RP2", shares=200, reservation_mhz=2),
        )
    )
    own = Bounds(column(500, 500, 300, 700), column(0, 0, 0, 0), column(*[NO_LIMIT] * 4))
    rows = np.array([0, 0, 1, 1])
    return tree, Divvy(tree, rows, tree.cpu(rows, own.shares), own, column(3, 7, 2, 3))


@pytest.mark.parametrize("to_the_letter", [True, False])
def test_the_reservation_of_figure_2_is_divided_as_in_the_paper(to_the_letter: bool) -> None:
    _, divvy = figure_2()
    found = divvy.reservations(10, to_the_letter=to_the_letter)
    assert found.pools.tolist() == [8, 2]
    assert found.vms.tolist() == pytest.approx([3, 5, 0.6, 1.4])


def test_the_limit_of_figure_2_is_divided_by_shares_for_there_is_enough_for_all() -> None:
    _, divvy = figure_2()
    letter = divvy.limits(20, to_the_letter=True)
    assert letter.pools.tolist() == [16, 4]
    assert letter.vms.tolist() == pytest.approx([8, 8, 1.2, 2.8])
    ours = divvy.limits(20)
    assert ours.pools.tolist() == pytest.approx([15, 5]), (
        "nobody is held below a demand that can be met"
    )
    assert ours.vms.tolist() == pytest.approx([7.5, 7.5, 2, 3])


def test_shares_are_divided_by_shares_whatever_the_demand() -> None:
    tree, _ = figure_2()
    rows, shares = np.array([0, 0, 1, 1]), column(500, 500, 300, 700)
    weights = tree.weights(rows, shares, tree.cpu(rows, shares))
    assert weights.tolist() == pytest.approx([400, 400, 60, 140])


FIGURES = st.tuples(st.integers(0, 2), st.integers(0, 50), st.integers(1, 9), st.integers(0, 20))


@given(st.lists(FIGURES, min_size=1, max_size=9), st.integers(1, 200), st.booleans())
def test_what_is_handed_down_is_all_there_is_and_within_bounds(
    vms: list[tuple[int, int, int, int]], amount: int, to_the_letter: bool
) -> None:
    tree = PoolTree((pool("a", shares=5), pool("b", "a", shares=2)))
    rows = np.array([row - 1 for row, _, _, _ in vms])
    want, shares, floor = (column(*(vm[place] for vm in vms)) for place in (1, 2, 3))
    ceiling = floor + 30
    divvy = Divvy(tree, rows, tree.cpu(rows, shares), Bounds(shares, floor, ceiling), want)
    found = divvy.reservations(amount, to_the_letter=to_the_letter).vms
    assert found.sum() == pytest.approx(min(amount, ceiling.sum()))
    assert (found <= ceiling + 1e-6).all()
    if amount >= floor.sum():
        assert (found >= floor - 1e-6).all()
    asked = np.minimum(np.maximum(want, floor), ceiling)
    if amount >= asked.sum() and not to_the_letter:
        assert (found >= asked - 1e-6).all(), "what can be met is met"
    limits = divvy.limits(amount, to_the_letter=to_the_letter).vms
    assert limits.tolist() == pytest.approx(found.tolist()), "without own figures they are the same"


def wants(name: str, host: str, mhz: int, inside: str | None, **cpu: int) -> Vm:
    return a_vm(name, host, demand=Demand(cpu_mhz=mhz), pool=inside, cpu=CpuSettings(**cpu))


def cluster(*vms: Vm, pools: tuple[Pool, ...]) -> Snapshot:
    return a_cluster(a_host("h1"), a_host("h2"), vms=vms, pools=pools)


def test_a_pool_has_on_each_host_the_parts_of_its_vms_there() -> None:
    pools = (pool("gold", shares=3000, reservation_mhz=900, limit_mhz=6000),)
    state = cluster(wants("a", "h1", 2000, "gold"), wants("b", "h2", 1000, "gold"), pools=pools)
    found = host_pools(state)
    gold = PoolId("gold")
    on_h1, on_h2 = found[HostId("h1")][gold].cpu, found[HostId("h2")][gold].cpu
    assert (on_h1, on_h2) == (PoolOnHost(450, 3000, 1500), PoolOnHost(450, 3000, 1500))


def test_only_what_is_new_is_told() -> None:
    pools = (pool("gold"), pool("lead"))
    before = host_pools(cluster(wants("a", "h1", 5, "gold"), pools=pools))
    after = host_pools(
        cluster(wants("a", "h1", 5, "gold"), wants("b", "h2", 5, "lead"), pools=pools)
    )
    (told,) = changes(before, after)
    assert (told.host, told.pool, told.before) == ("h2", "lead", None)
    assert changes(after, after) == ()


def test_inner_pools_count_for_the_outer_ones_on_the_host_as_well() -> None:
    pools = (pool("outer", shares=1000), pool("inner", "outer", shares=500))
    found = host_pools(cluster(wants("a", "h1", 5, "inner"), pools=pools))[HostId("h1")]
    assert set(found) == {"outer", "inner"}
    assert found[PoolId("inner")].cpu.shares == found[PoolId("outer")].cpu.shares == 1000


def books(*vms: Vm, pools: tuple[Pool, ...]) -> Books:
    state = cluster(*vms, pools=pools)
    return Books(state.hosts.values(), state.vms.values(), pools, CPU)


def asks(inside: str | None, mhz: int) -> Vm:
    return a_vm("new", None, pool=inside, cpu=CpuSettings(reservation_mhz=mhz))


def test_a_pool_admits_what_it_has_reserved_and_no_more() -> None:
    pools = (pool("strict", expandable=False, reservation_mhz=1000),)
    kept = books(wants("a", "h1", 0, "strict", reservation_mhz=700), pools=pools)
    assert kept.shortage(asks("strict", 300)) is None
    short = kept.shortage(asks("strict", 301))
    assert short is not None
    assert (short.pool, short.needed, short.free) == ("strict", 301, 300)
    assert "pool strict, which is not expandable" in short.sentence


def test_an_expandable_pool_takes_from_its_parent_and_so_on() -> None:
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


def test_the_cluster_is_the_last_to_give() -> None:
    kept = books(pools=(pool("free", reservation_mhz=3000),))
    assert kept.free(None) == 5000, "two hosts of 4,000 MHz"
    assert kept.shortage(asks(None, 5000)) is None
    assert kept.shortage(asks("free", 8000)) is None
    short = kept.shortage(asks("free", 8001))
    assert short is not None
    assert (short.pool, short.needed, short.free) == (None, 5001, 5000)
    assert short.sentence.endswith("5000 free in the cluster")
