"""The world as a whole: a run does not depend on compilation, lookahead and steps."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import a_host, a_vm, an_inventory
from equipoise.errors import InvalidInput
from equipoise.model.event import VmArrived
from equipoise.model.inventory import Pool, Sla, Tenant
from equipoise.model.quantity import PoolId, TenantId, VmId
from equipoise.model.scenario.faults import (
    Faults,
    HostChurn,
    HostCrashes,
    TenantAutoscaling,
    VmChurn,
    VmCrashes,
)
from equipoise.model.scenario.load import (
    ConstantLoad,
    CyclicLoad,
    Distribution,
    Load,
    NoiseLoad,
    TraceLoad,
)
from equipoise.model.scenario.physics import MigrationPhysics, Physics
from equipoise.model.scenario.scenario import (
    FleetPlacement,
    FleetPlacementOrder,
    Fleets,
    HostFleet,
    Scenario,
    VmFleet,
)
from equipoise.model.vm import CpuSettings
from equipoise.sim.runner import ScenarioRunner
from equipoise.sim.world import ground_truth, simulated_world
from equipoise.sim.world.simulated_world import SimulatedWorld
from equipoise.store import MemoryJournal

SHOP = TenantId("shop")
WILD = Load(
    cpu_mhz=(
        CyclicLoad(high=Distribution(low=500, high=2500), high_s=210, low=0, low_s=270),
        NoiseLoad(level=Distribution(mean=0, sd=80), period_s=131),
    ),
    memory_pct=(NoiseLoad(level=Distribution(low=10, high=120), period_s=181),),
)


def a_busy_scenario() -> Scenario:
    """Everything at once, for an hour: more VMs come than there was room for at the start."""
    gold = PoolId("gold")
    pools = (Pool(id=gold, cpu=CpuSettings(shares=3000, reservation_mhz=500, limit_mhz=9000)),)
    web = VmFleet(
        count=20,
        like=a_vm("web", pool=gold),
        load="wild",
        start=FleetPlacement(hosts=("esx",), assigned=FleetPlacementOrder.RANDOMLY),
    )
    shop = VmFleet(count=0, like=a_vm("shop", tenant=SHOP), load="wild")
    return Scenario(
        name="restless",
        seed=5,
        duration_s=3600,
        deciders=("restart", "shuffle"),
        cluster=an_inventory(
            a_host("h1"),
            vms=[a_vm("v1", "h1", tenant=SHOP)],
            tenants=(Tenant(id=SHOP, sla=Sla(vms_max=5)),),
            pools=pools,
        ),
        fleet=Fleets(hosts=(HostFleet(count=4, like=a_host("esx")),), vms=(web, shop)),
        loads={"wild": WILD},
        vm_loads={VmId("v1"): "wild"},
        physics=Physics(migration=MigrationPhysics(link_mbps=200)),
        faults=Faults(
            host_crashes=HostCrashes(per_host_day=5),
            vm_crashes=VmCrashes(per_vm_day=5),
            hosts=(HostChurn(fleet="esx", per_day=48, stay_s=1800),),
            vms=(VmChurn(fleet="web", per_hour=40, stay_s=1200),),
            scaling=(TenantAutoscaling(tenant=SHOP, fleet="shop", out_above_pct=50),),
        ),
    )


def all_of_it(scenario: Scenario) -> tuple[list[bytes], dict[str, bytes], Any]:
    journal = MemoryJournal()
    play = ScenarioRunner(scenario, journal)
    play.run(1000 * scenario.duration_s)
    result = play.result()
    tables = (result.record.cluster, result.record.hosts, result.record.pools)
    columns = {
        f"{number}.{name}": np.asarray(column.tolist(), dtype=str).tobytes()
        for number, table in enumerate(tables)
        for name, column in table.columns.items()
    }
    return list(journal.lines()), columns, result.measures


@cache
def the_usual() -> tuple[list[bytes], dict[str, bytes], Any]:
    return all_of_it(a_busy_scenario())


def test_a_scenario_with_faults_has_faults() -> None:
    lines, _, measures = the_usual()
    kinds = b"".join(lines)
    for word in (b"host_failed", b"host_left", b"vm_crashed", b"vm_left", b"action_finished"):
        assert word in kinds
    assert 0 < measures.satisfied_cpu_pct < 100


def test_the_lookahead_does_not_change_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = the_usual()
    monkeypatch.setattr(ground_truth, "LOOKAHEAD_CHANGES", 20)
    assert all_of_it(a_busy_scenario()) == usual


def test_compiled_kernels_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = the_usual()
    monkeypatch.setattr(simulated_world, "COMPILE_FROM_CHANGES", -1)
    assert all_of_it(a_busy_scenario()) == usual


def test_the_arrays_grow_with_hosts_and_vms() -> None:
    arrivals = tuple(VmArrived(at_ms=1000 * n, vm=a_vm(f"late-{n}", "h1")) for n in range(1, 200))
    churn = HostChurn(fleet="esx", per_day=2000)
    scenario = Scenario(
        name="growing",
        duration_s=7200,
        cluster=an_inventory(a_host("h1", cores=64)),
        fleet=Fleets(hosts=(HostFleet(count=0, like=a_host("esx")),)),
        loads={"calm": Load(cpu_mhz=(ConstantLoad(level=Distribution(low=0, high=600)),))},
        vm_loads={arrival.vm.id: "calm" for arrival in arrivals},
        events=arrivals,
        faults=Faults(hosts=(churn,)),
    )
    grown = SimulatedWorld(scenario)
    while grown.next_event(7_200_000) is not None:
        pass
    assert len(grown.observe().vms) == 199
    assert len(grown.observe().hosts) > 100
    table = grown.record().hosts
    assert table["vms"][table["at_s"] == 7200].sum() == 199
    assert 0 < grown.measures().satisfied_cpu_pct <= 100


def test_a_run_that_grows_large_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of VMs that arrive during the run change as often as present ones."""
    monkeypatch.setattr(simulated_world, "COMPILE_FROM_CHANGES", 1000)
    comes = tuple(VmArrived(at_ms=1000 * n, vm=a_vm(f"late-{n}", "h1")) for n in range(1, 40))
    scenario = Scenario(
        name="growing",
        duration_s=7200,
        cluster=an_inventory(a_host("h1")),
        loads={"wild": WILD},
        vm_loads={arrival.vm.id: "wild" for arrival in comes},
        events=comes,
    )
    grown = SimulatedWorld(scenario)
    while grown.next_event(300_000) is not None:
        pass
    assert grown._context.truth.allocator.fast


def test_too_many_changes_are_refused() -> None:
    fast = Load(cpu_mhz=(NoiseLoad(level=Distribution(low=0, high=9), period_s=1),))
    fleet = Fleets(vms=(VmFleet(count=200, like=a_vm("v"), load="fast"),))
    scenario = Scenario(
        name="endless",
        duration_s=10**7,
        cluster=an_inventory(),
        fleet=fleet,
        loads={"fast": fast},
    )
    with pytest.raises(InvalidInput) as refused:
        SimulatedWorld(scenario)
    assert "2,000,000,000" in str(refused.value)
    assert [problem.code for problem in refused.value.problems] == ["too-many-changes"]
    assert refused.value.source == "endless"


def test_all_problems_of_traces_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("when,what\n0,1\n")
    loads = {
        "one": Load(cpu_mhz=(NoiseLoad(level=1, period_s=9), TraceLoad(file="nowhere.csv"))),
        "two": Load(memory_pct=(TraceLoad(file="bad.csv"),)),
    }
    scenario = Scenario(name="traced", duration_s=10, cluster=an_inventory(), loads=loads)
    with pytest.raises(InvalidInput) as refused:
        SimulatedWorld(scenario, folder=tmp_path)
    keys = {problem.key for problem in refused.value.problems}
    assert keys == {"loads.one.cpu_mhz[1]", "loads.two.memory_pct[0]"}


def test_a_world_can_be_run_beyond_its_end() -> None:
    scenario = a_busy_scenario()
    late = SimulatedWorld(scenario)
    while late.next_event(4_000_000) is not None:
        pass
    assert late.observe().at_ms == 4_000_000
