from __future__ import annotations

from builders import a_cluster, a_host, a_vm
from equipoise.model.host import HostState
from equipoise.model.pool import Pool
from equipoise.model.quantity import PoolId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState
from equipoise.place.entitlement import CPU, MEMORY, entitlements
from equipoise.place.fill import Claim, fill
from equipoise.spec.specification import Specification, frame_of


def wants(name: str, mhz: int, pool: str | None = None, **cpu: int) -> Vm:
    return a_vm(name, "h1", demand=Demand(cpu_mhz=mhz), pool=pool, cpu=CpuSettings(**cpu))


def cluster(*vms: Vm, pools: tuple[Pool, ...] = ()) -> Snapshot:
    hosts = [a_host("h1"), a_host("h2"), a_host("h3", state=HostState.STANDBY)]
    return a_cluster(*hosts, vms=vms, pools=pools)


def cpu(state: Snapshot) -> dict[str, int]:
    pools = state.settings.pools
    found = entitlements(state.hosts.values(), state.vms.values(), pools, CPU)
    return {vm: round(amount) for vm, amount in found.items()}


def test_the_reservation_of_figure_2_is_divided_as_in_the_paper() -> None:
    """10 GHz: 8 and 2 by shares; of the 8, demands of 3 and 7 get 3 and 5 for equal shares."""
    pools = fill(10, [Claim(3, 100, 800), Claim(2, 100, 200)])
    assert pools == [8, 2]
    assert fill(pools[0], [Claim(0, 3, 500), Claim(0, 7, 500)]) == [3, 5]


def test_demands_that_can_be_met_are_met() -> None:
    assert cpu(cluster(wants("a", 3000), wants("b", 4000))) == {"a": 3000, "b": 4000}


def test_what_is_scarce_is_divided_by_shares() -> None:
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


def test_what_a_pool_reserves_without_anybody_in_it_is_for_the_others() -> None:
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


def test_memory_is_never_more_than_the_vm_has() -> None:
    greedy = a_vm("a", "h1", demand=Demand(memory_mib=5000), memory=MemorySettings())
    state = cluster(greedy, a_vm("b", None, state=VmState.READY))
    found = entitlements(state.hosts.values(), state.vms.values(), (), MEMORY)
    assert found == {"a": 1024}


def test_formulas_can_ask_for_it() -> None:
    spec = Specification.read(
        'Fair(vs <: vms) ::= !(v : vs) entitlement(v, "cpu") >= demand(v, "cpu")\n'
        'None(v : vms) ::= entitlement(v, "licences") = 0\n'
    )
    calm, hungry = cluster(wants("a", 3000)), cluster(wants("a", 9000))
    assert spec.holds("Fair", {"vs": frozenset(["a"])}, frame_of(calm))
    assert not spec.holds("Fair", {"vs": frozenset(["a"])}, frame_of(hungry))
    assert spec.holds("None", {"v": "a"}, frame_of(hungry))
