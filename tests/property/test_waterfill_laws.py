"""Laws of water-filling: against plain oracles and the way of the paper, plain and compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.capacity.entitlement import KERNELS, vm_entitlements
from equipoise.capacity.waterfill import (
    CLAIM_DTYPE,
    NO_INDEX,
    TREE_DTYPE,
    Records,
    ShareClaim,
    fill_by_shares,
)
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Pool
from equipoise.model.quantity import PoolId, VmId
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState
from equipoise.sim.runner import ScenarioRunner, SimulationResult
from equipoise.sim.world import simulated_world
from equipoise.store import MemoryJournal
from plain_division import Claim, Tree, by_level, cluster_tree, divided, guaranteed, in_chunks
from plain_entitlement import CPU, MEMORY, EntitlementResource, entitlements
from plain_scenarios import scenarios

NO_LIMIT = float("inf")
CLOSE = 1e-6


class ClaimSpec(NamedTuple):
    """The settings of a pool or a VM, before demand limits them."""

    floor: float
    limit: float
    shares: float
    want: float
    below: tuple[ClaimSpec, ...] | None
    """Nothing for a VM."""


shares = st.integers(1, 4000).map(float) | st.sampled_from([1.0, 1e7, 1000 / 3, 1e7 / 7])
amounts = st.integers(0, 100).map(float) | st.sampled_from([0.125, 1e-3, 1e6])


@st.composite
def claim_specs(draw: st.DrawFn, depth: int = 3) -> ClaimSpec:
    floor = draw(st.just(0.0) | amounts)
    limit = draw(st.just(NO_LIMIT) | amounts.map(lambda more: floor + more))
    if depth and draw(st.booleans()):
        below = tuple(draw(st.lists(claim_specs(depth - 1), max_size=4)))
        return ClaimSpec(floor, limit, draw(shares), 0, below)
    return ClaimSpec(floor, limit, draw(shares), draw(amounts), None)


@st.composite
def roots(draw: st.DrawFn) -> ClaimSpec:
    return ClaimSpec(0, NO_LIMIT, 1, 0, tuple(draw(st.lists(claim_specs(), max_size=6))))


class Rows(NamedTuple):
    tree: Records
    claims: Records
    leaves: int


def as_rows(root: ClaimSpec) -> Rows:
    """Parents before children, and pools before VMs."""
    inner: list[tuple[int, ClaimSpec]] = [(NO_INDEX, root)]
    leaves: list[tuple[int, ClaimSpec]] = []
    for number, (_, spec) in enumerate(inner):  # the list grows during the loop
        for child in spec.below or ():
            (leaves if child.below is None else inner).append((number, child))
    rows = [*inner, *leaves]
    tree, claims = np.zeros(len(rows), dtype=TREE_DTYPE), np.zeros(len(rows), dtype=CLAIM_DTYPE)
    tree["child"] = tree["sibling"] = tree["vm"] = NO_INDEX
    for row in range(len(rows) - 1, -1, -1):
        parent, spec = rows[row]
        tree["parent"][row] = parent
        if parent != NO_INDEX:
            tree["sibling"][row] = tree["child"][parent]
            tree["child"][parent] = row
        if spec.below is None:
            tree["vm"][row] = row - len(inner)
        claims[row] = (spec.floor, spec.limit, spec.shares, spec.want, 0, 0)
    return Rows(tree, claims, len(leaves))


def flowed(rows: Rows, amount: float, counts_reserved: bool, *, fast: bool) -> Records:
    claims, kernels = rows.claims.copy(), KERNELS.at(fast=fast)
    kernels.sum_demands(rows.tree, claims, 0, len(claims), counts_reserved)
    kernels.divide_down(rows.tree, claims, 0, len(claims), amount)
    return claims


def as_tree(root: ClaimSpec, counts_reserved: bool) -> Tree:
    """The same by recursion, with names in the order of ``as_rows``."""
    names: dict[int, VmId] = {}
    level = [root]
    while level:  # breadth first, as the rows are
        leaves = [child for spec in level for child in spec.below or () if child.below is None]
        names |= {id(leaf): VmId(str(len(names) + n)) for n, leaf in enumerate(leaves)}
        level = [child for spec in level for child in spec.below or () if child.below is not None]

    def held(spec: ClaimSpec) -> Tree:
        below = tuple(held(child) for child in spec.below or ())
        want = spec.want if spec.below is None else sum(child.claim.ceiling for child in below)
        want = max(want, spec.floor) if counts_reserved else want
        want = min(want, spec.limit)
        vm = names[id(spec)] if spec.below is None else None
        return Tree(Claim(guaranteed(spec.floor, below, want), want, spec.shares), vm, below)

    return held(root)


@st.composite
def flat_claims(draw: st.DrawFn) -> Claim:
    floor = draw(st.integers(0, 20))
    return Claim(floor, floor + draw(st.integers(0, 60)), draw(st.integers(1, 20)))


@given(st.lists(flat_claims(), max_size=5), st.integers(0, 200))
def test_chunks_levels_and_kernels_agree(claims: list[Claim], amount: int) -> None:
    exact, chunk = by_level(amount, claims), 0.125
    slowly = in_chunks(amount, claims, chunk)
    assert slowly == pytest.approx(exact, abs=chunk * (len(claims) + 1))
    vms = tuple(
        ClaimSpec(claim.floor, NO_LIMIT, claim.shares, claim.ceiling, None) for claim in claims
    )
    rows = as_rows(ClaimSpec(0, NO_LIMIT, 1, 0, vms))
    found = flowed(rows, amount, False, fast=False)["got"][1:]
    assert found.tolist() == pytest.approx(exact, abs=CLOSE)


@given(roots(), amounts | st.floats(0, 1000), st.booleans())
def test_kernels_agree_with_recursion_on_trees(root: ClaimSpec, amount: float, whole: bool) -> None:
    rows, node = as_rows(root), as_tree(root, whole)
    got = divided(min(amount, node.claim.ceiling), node)
    found = flowed(rows, amount, whole, fast=False)["got"]
    expected = [got[VmId(str(n))] for n in range(rows.leaves)]
    leaves = found[len(found) - rows.leaves :].tolist()
    assert leaves == pytest.approx(expected, rel=CLOSE, abs=CLOSE)


@given(roots(), amounts | st.floats(0, 1000), st.booleans())
def test_kernels_give_the_same_bits_at_both_speeds(
    root: ClaimSpec, amount: float, whole: bool
) -> None:
    rows = as_rows(root)
    slow, fast = (flowed(rows, amount, whole, fast=fast) for fast in (False, True))
    assert slow.tobytes() == fast.tobytes()


@given(roots(), amounts | st.floats(0, 1000), st.booleans())
def test_no_node_gets_more_than_it_wants_or_less_than_all_in_it_are_guaranteed(
    root: ClaimSpec, amount: float, whole: bool
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
def test_dividing_leaves_the_claims_as_they_were(
    root: ClaimSpec, amount: float, whole: bool
) -> None:
    """The simulated hosts keep them and are divided again and again."""
    rows = as_rows(root)
    found = flowed(rows, amount, whole, fast=False)
    for name in ("floor", "ceiling", "shares"):
        assert found[name].tolist() == rows.claims[name].tolist()


# The entitlement of VMs


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
def test_the_array_engine_agrees_with_the_plain_engine(
    cluster: Cluster, resource: EntitlementResource, fast: bool
) -> None:
    expected = entitlements(cluster.hosts, cluster.vms, cluster.pools, resource)
    running = [vm for vm in cluster.vms if vm.state is VmState.RUNNING]
    state = a_cluster(*cluster.hosts, vms=cluster.vms, pools=tuple(cluster.pools))
    found = vm_entitlements(state, running, fast=fast)[:, 0 if resource is CPU else 1]
    assert dict(zip([vm.id for vm in running], found.tolist(), strict=True)) == pytest.approx(
        expected, rel=CLOSE, abs=CLOSE
    )


@given(bounded_clusters(), st.sampled_from([CPU, MEMORY]))
def test_the_plain_engine_agrees_with_recursion(
    cluster: Cluster, resource: EntitlementResource
) -> None:
    found = entitlements(cluster.hosts, cluster.vms, cluster.pools, resource)
    running = [vm for vm in cluster.vms if vm.state is VmState.RUNNING]
    on = [host for host in cluster.hosts if host.state is HostState.ON]
    root = cluster_tree(running, cluster.pools, "cpu" if resource is CPU else "memory")
    expected = divided(sum(resource.capacity(host) for host in on), root)
    assert found == pytest.approx(expected, rel=CLOSE, abs=CLOSE)


# Whole runs


def played(scenario: Scenario, worth: int) -> tuple[SimulationResult, MemoryJournal]:
    journal = MemoryJournal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated_world, "COMPILE_FROM_CHANGES", worth)
        play = ScenarioRunner(scenario, journal)
    play.run(1000 * scenario.duration_s)
    return play.result(), journal


@given(scenarios() | scenarios(moving=True))
def test_a_compiled_run_is_identical(scenario: Scenario) -> None:
    slow, one = played(scenario, 10**9)
    fast, other = played(scenario, -1)
    assert list(one.lines()) == list(other.lines())
    assert slow.measures == fast.measures
    for tables in ("cluster", "hosts", "pools"):
        columns = getattr(slow.record, tables).columns
        for name, column in getattr(fast.record, tables).columns.items():
            assert column.tolist() == columns[name].tolist(), name


TINY = 1e-6


@st.composite
def claims(draw: st.DrawFn) -> ShareClaim:
    floor = draw(st.integers(0, 50))
    return ShareClaim(floor, floor + draw(st.integers(0, 100)), draw(st.integers(0, 20)))


def fill_in_chunks(amount: float, some: list[ShareClaim], chunk: float) -> list[float]:
    """First the floors; then chunk by chunk to the claim with the least per share."""
    given_out = [claim.floor for claim in some]
    left = amount - sum(given_out)
    while left >= chunk:
        open_ones = [
            (given_out[place] / claim.shares, place)
            for place, claim in enumerate(some)
            if claim.shares and given_out[place] + chunk <= claim.ceiling
        ]
        if not open_ones:
            break
        given_out[min(open_ones)[1]] += chunk
        left -= chunk
    return given_out


@given(st.lists(claims(), max_size=5), st.integers(0, 400))
def test_filling_agrees_with_small_chunks(some: list[ShareClaim], amount: int) -> None:
    found = fill_by_shares(amount, some)
    if amount >= sum(claim.floor for claim in some):
        chunk = 0.25
        slowly = fill_in_chunks(amount, some, chunk)
        room = chunk * (len(some) + 1)
        assert all(abs(a - b) <= room for a, b in zip(found, slowly, strict=True))


@given(st.lists(claims(), max_size=6), st.integers(0, 500))
def test_every_claim_gets_between_floor_and_ceiling(some: list[ShareClaim], amount: int) -> None:
    found = fill_by_shares(amount, some)
    enough = amount >= sum(claim.floor for claim in some)
    for got, claim in zip(found, some, strict=True):
        assert got <= claim.ceiling + TINY
        assert got >= claim.floor - TINY or not enough
    most = sum(claim.ceiling if claim.shares else claim.floor for claim in some)
    assert abs(sum(found) - min(amount, most)) <= TINY or not some


@given(st.lists(claims(), max_size=6), st.integers(0, 300), st.integers(0, 200))
def test_a_larger_amount_lowers_no_claim(some: list[ShareClaim], amount: int, more: int) -> None:
    before, after = fill_by_shares(amount, some), fill_by_shares(amount + more, some)
    assert all(b <= a + TINY for b, a in zip(before, after, strict=True))


def test_small_shares_count_beside_large_ones() -> None:
    found = fill_by_shares(
        500, [ShareClaim(0, 10, 1e16), ShareClaim(0, 1000, 1.0), ShareClaim(0, 1000, 0.5)]
    )
    assert [round(got, 6) for got in found] == [10, 326.666667, 163.333333]
