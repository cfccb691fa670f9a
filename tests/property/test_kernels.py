"""The kernels that divide: against plain ways to do it, and at both of their speeds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.model.host import Host, HostState
from equipoise.model.pool import Pool
from equipoise.model.quantity import PoolId, VmId
from equipoise.model.story.scenario import Scenario
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState
from equipoise.place.deserve import KERNELS, entitled
from equipoise.place.entitlement import CPU, MEMORY, Resource, entitlements
from equipoise.place.water import CLAIMS, NOBODY, TREE, Records
from equipoise.sim import world
from equipoise.sim.play import Play, Result
from equipoise.store import MemoryJournal
from plain_division import Claim, Tree, by_level, cluster_tree, divided, guaranteed, in_chunks
from plain_stories import stories

NO_LIMIT = float("inf")
CLOSE = 1e-6


class Wish(NamedTuple):
    """A pool or a VM as settings give it: not yet held to what is asked for."""

    floor: float
    limit: float
    shares: float
    want: float
    below: tuple[Wish, ...] | None
    """Nothing for a VM."""


shares = st.integers(1, 4000).map(float) | st.sampled_from([1.0, 1e7, 1000 / 3, 1e7 / 7])
amounts = st.integers(0, 100).map(float) | st.sampled_from([0.125, 1e-3, 1e6])


@st.composite
def wishes(draw: st.DrawFn, depth: int = 3) -> Wish:
    floor = draw(st.just(0.0) | amounts)
    limit = draw(st.just(NO_LIMIT) | amounts.map(lambda more: floor + more))
    if depth and draw(st.booleans()):
        below = tuple(draw(st.lists(wishes(depth - 1), max_size=4)))
        return Wish(floor, limit, draw(shares), 0, below)
    return Wish(floor, limit, draw(shares), draw(amounts), None)


@st.composite
def roots(draw: st.DrawFn) -> Wish:
    return Wish(0, NO_LIMIT, 1, 0, tuple(draw(st.lists(wishes(), max_size=6))))


class Rows(NamedTuple):
    tree: Records
    claims: Records
    leaves: int


def as_rows(root: Wish) -> Rows:
    """Parents before children, and pools before VMs."""
    inner: list[tuple[int, Wish]] = [(NOBODY, root)]
    leaves: list[tuple[int, Wish]] = []
    for number, (_, wish) in enumerate(inner):  # which grows meanwhile
        for child in wish.below or ():
            (leaves if child.below is None else inner).append((number, child))
    rows = [*inner, *leaves]
    tree, claims = np.zeros(len(rows), dtype=TREE), np.zeros(len(rows), dtype=CLAIMS)
    tree["child"] = tree["sibling"] = tree["vm"] = NOBODY
    for row in range(len(rows) - 1, -1, -1):
        parent, wish = rows[row]
        tree["parent"][row] = parent
        if parent != NOBODY:
            tree["sibling"][row] = tree["child"][parent]
            tree["child"][parent] = row
        if wish.below is None:
            tree["vm"][row] = row - len(inner)
        claims[row] = (wish.floor, wish.limit, wish.shares, wish.want, 0, 0)
    return Rows(tree, claims, len(leaves))


def flowed(rows: Rows, amount: float, counts_reserved: bool, *, fast: bool) -> Records:
    claims, kernels = rows.claims.copy(), KERNELS.at(fast=fast)
    kernels.add_up(rows.tree, claims, 0, len(claims), counts_reserved)
    kernels.flow_down(rows.tree, claims, 0, len(claims), amount)
    return claims


def as_tree(root: Wish, counts_reserved: bool) -> Tree:
    """The same by recursion, with names in the order of ``as_rows``."""
    names: dict[int, VmId] = {}
    level = [root]
    while level:  # breadth first, as the rows are
        leaves = [child for wish in level for child in wish.below or () if child.below is None]
        names |= {id(leaf): VmId(str(len(names) + n)) for n, leaf in enumerate(leaves)}
        level = [child for wish in level for child in wish.below or () if child.below is not None]

    def held(wish: Wish) -> Tree:
        below = tuple(held(child) for child in wish.below or ())
        want = wish.want if wish.below is None else sum(one.claim.ceiling for one in below)
        want = max(want, wish.floor) if counts_reserved else want
        want = min(want, wish.limit)
        vm = names[id(wish)] if wish.below is None else None
        return Tree(Claim(guaranteed(wish.floor, below, want), want, wish.shares), vm, below)

    return held(root)


@st.composite
def flat_claims(draw: st.DrawFn) -> Claim:
    floor = draw(st.integers(0, 20))
    return Claim(floor, floor + draw(st.integers(0, 60)), draw(st.integers(1, 20)))


@given(st.lists(flat_claims(), max_size=5), st.integers(0, 200))
def test_chunks_levels_and_kernels_divide_alike(claims: list[Claim], amount: int) -> None:
    exact, chunk = by_level(amount, claims), 0.125
    slowly = in_chunks(amount, claims, chunk)
    assert slowly == pytest.approx(exact, abs=chunk * (len(claims) + 1))
    vms = tuple(Wish(one.floor, NO_LIMIT, one.shares, one.ceiling, None) for one in claims)
    rows = as_rows(Wish(0, NO_LIMIT, 1, 0, vms))
    found = flowed(rows, amount, False, fast=False)["got"][1:]
    assert found.tolist() == pytest.approx(exact, abs=CLOSE)


@given(roots(), amounts | st.floats(0, 1000), st.booleans())
def test_kernels_divide_a_tree_as_recursion_does(root: Wish, amount: float, whole: bool) -> None:
    rows, node = as_rows(root), as_tree(root, whole)
    got = divided(min(amount, node.claim.ceiling), node)
    found = flowed(rows, amount, whole, fast=False)["got"]
    expected = [got[VmId(str(n))] for n in range(rows.leaves)]
    leaves = found[len(found) - rows.leaves :].tolist()
    assert leaves == pytest.approx(expected, rel=CLOSE, abs=CLOSE)


@given(roots(), amounts | st.floats(0, 1000), st.booleans())
def test_kernels_give_the_same_bits_at_both_speeds(root: Wish, amount: float, whole: bool) -> None:
    rows = as_rows(root)
    slow, fast = (flowed(rows, amount, whole, fast=one) for one in (False, True))
    assert slow.tobytes() == fast.tobytes()


@given(roots(), amounts | st.floats(0, 1000), st.booleans())
def test_no_node_gets_more_than_it_wants_or_less_than_all_in_it_are_guaranteed(
    root: Wish, amount: float, whole: bool
) -> None:
    rows = as_rows(root)
    found = flowed(rows, amount, whole, fast=False)
    got, want, tree = found["got"], found["want"], rows.tree
    slack = CLOSE * max(1, amount)
    assert got[0] <= amount + slack
    assert (got <= want + slack).all()
    least = np.minimum(found["floor"], want)
    for row in range(len(found) - 1, -1, -1):
        below = np.flatnonzero(tree["parent"] == row)
        least[row] = min(max(least[row], least[below].sum()), want[row])
        assert got[below].sum() <= got[row] + slack
        if least[below].sum() <= got[row]:
            assert (got[below] >= least[below] - slack).all()
        if len(below):
            assert got[below].sum() >= min(got[row], want[below].sum()) - slack


@given(roots(), amounts | st.floats(0, 1000), st.booleans())
def test_dividing_leaves_the_claims_as_they_were(root: Wish, amount: float, whole: bool) -> None:
    """The simulated hosts keep them and are divided again and again."""
    rows = as_rows(root)
    found = flowed(rows, amount, whole, fast=False)
    for name in ("floor", "ceiling", "shares"):
        assert found[name].tolist() == rows.claims[name].tolist()


# What VMs deserve


class Cluster(NamedTuple):
    hosts: list[Host]
    vms: list[Vm]
    pools: list[Pool]


@st.composite
def some_settings(draw: st.DrawFn, kind: type[Any], unit: str) -> Any:
    floor = draw(st.sampled_from([0, 0, 100, 900]))
    limit = draw(st.none() | st.sampled_from([0, 50, 700]))
    most = None if limit is None else floor + limit
    bounds = {f"reservation_{unit}": floor, f"limit_{unit}": most}
    return kind(shares=draw(st.sampled_from([1, 500, 1000, 3000, 10**7])), **bounds)


@st.composite
def bounded_clusters(draw: st.DrawFn) -> Cluster:
    """Pools that reserve and limit, some of them empty, parents first."""
    claims: dict[str, Any] = {
        "cpu": some_settings(CpuSettings, "mhz"),
        "memory": some_settings(MemorySettings, "mib"),
    }
    states = st.sampled_from([HostState.ON, HostState.ON, HostState.STANDBY])
    hosts = [
        a_host(f"h{n}", cores=draw(st.integers(1, 2)), memory_mib=1024, state=draw(states))
        for n in range(draw(st.integers(1, 3)))
    ]
    pools: list[Pool] = []
    for n in range(draw(st.integers(0, 5))):
        parent = draw(st.sampled_from([None, *(pool.id for pool in pools)]))
        fields = {name: draw(some) for name, some in claims.items()}
        scalable = draw(st.booleans())
        pools.append(Pool(id=PoolId(f"p{n}"), parent=parent, scalable=scalable, **fields))
    vms = []
    for n in range(draw(st.integers(0, 8))):
        demand = Demand(cpu_mhz=draw(st.integers(0, 2000)), memory_mib=draw(st.integers(0, 512)))
        pool = draw(st.sampled_from([None, *(pool.id for pool in pools)]))
        fields = {name: draw(some) for name, some in claims.items()}
        vm = a_vm(f"v{n}", "h0", memory_mib=512, demand=demand, pool=pool, **fields)
        runs = draw(st.integers(0, 4))
        vms.append(vm if runs else vm.but(state=VmState.READY, host=None))
    return Cluster(hosts, vms, pools)


@given(bounded_clusters(), st.sampled_from([CPU, MEMORY]), st.booleans())
def test_what_vms_deserve_on_arrays_is_what_they_are_entitled_to(
    cluster: Cluster, resource: Resource, fast: bool
) -> None:
    expected = entitlements(cluster.hosts, cluster.vms, cluster.pools, resource)
    running = [vm for vm in cluster.vms if vm.state is VmState.RUNNING]
    state = a_cluster(*cluster.hosts, vms=cluster.vms, pools=tuple(cluster.pools))
    found = entitled(state, running, fast=fast)[:, 0 if resource is CPU else 1]
    assert dict(zip([vm.id for vm in running], found.tolist(), strict=True)) == pytest.approx(
        expected, rel=CLOSE, abs=CLOSE
    )


@given(bounded_clusters(), st.sampled_from([CPU, MEMORY]))
def test_what_vms_are_entitled_to_is_what_recursion_says(
    cluster: Cluster, resource: Resource
) -> None:
    found = entitlements(cluster.hosts, cluster.vms, cluster.pools, resource)
    running = [vm for vm in cluster.vms if vm.state is VmState.RUNNING]
    on = [host for host in cluster.hosts if host.state is HostState.ON]
    root = cluster_tree(running, cluster.pools, "cpu" if resource is CPU else "memory")
    expected = divided(sum(resource.capacity(host) for host in on), root)
    assert found == pytest.approx(expected, rel=CLOSE, abs=CLOSE)


# Whole runs


def played(story: Scenario, worth: int) -> tuple[Result, MemoryJournal]:
    journal = MemoryJournal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world, "WORTH_COMPILING", worth)
        play = Play(story, journal)
    play.run(1000 * story.duration_s)
    return play.result(), journal


@given(stories() | stories(moving=True))
def test_a_run_in_machine_code_is_the_same_to_the_last_bit(story: Scenario) -> None:
    slow, one = played(story, 10**9)
    fast, other = played(story, -1)
    assert list(one.lines()) == list(other.lines())
    assert slow.measures == fast.measures
    for tables in ("cluster", "hosts", "pools"):
        columns = getattr(slow.record, tables).columns
        for name, column in getattr(fast.record, tables).columns.items():
            assert column.tolist() == columns[name].tolist(), name
