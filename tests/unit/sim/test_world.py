"""The world as a whole: the same run at every speed and with every look ahead."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import a_host, a_vm, an_inventory
from equipoise.errors import InvalidInput
from equipoise.model.event import VmArrived
from equipoise.model.pool import Pool
from equipoise.model.quantity import PoolId, TenantId, VmId
from equipoise.model.story.fleet import Dealing, Fleet, HostFleet, Start, VmFleet
from equipoise.model.story.load import Constant, Load, Noise, Pattern, Spread, Trace
from equipoise.model.story.physics import MigrationPhysics, Physics
from equipoise.model.story.scenario import Scenario
from equipoise.model.story.unrest import Crashes, HostChurn, Outages, Scaling, Unrest, VmChurn
from equipoise.model.tenant import Sla, Tenant
from equipoise.model.vm import CpuSettings
from equipoise.sim import truth, world
from equipoise.sim.play import Play
from equipoise.sim.world import SimulatedWorld
from equipoise.store import MemoryJournal

SHOP = TenantId("shop")
WILD = Load(
    cpu_mhz=(
        Pattern(high=Spread(low=500, high=2500), high_s=210, low=0, low_s=270),
        Noise(level=Spread(mean=0, sd=80), period_s=131),
    ),
    memory_pct=(Noise(level=Spread(low=10, high=120), period_s=181),),
)


def a_restless_story() -> Scenario:
    """Everything at once, for an hour: more VMs come than there was room for at the start."""
    gold = PoolId("gold")
    pools = (Pool(id=gold, cpu=CpuSettings(shares=3000, reservation_mhz=500, limit_mhz=9000)),)
    web = VmFleet(
        count=20,
        like=a_vm("web", pool=gold),
        load="wild",
        start=Start(hosts=("esx",), dealt=Dealing.RANDOMLY),
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
        fleet=Fleet(hosts=(HostFleet(count=4, like=a_host("esx")),), vms=(web, shop)),
        loads={"wild": WILD},
        vm_loads={VmId("v1"): "wild"},
        physics=Physics(migration=MigrationPhysics(link_mbps=200)),
        unrest=Unrest(
            host_crashes=Outages(per_host_day=5),
            vm_crashes=Crashes(per_vm_day=5),
            hosts=(HostChurn(fleet="esx", per_day=48, stay_s=1800),),
            vms=(VmChurn(fleet="web", per_hour=40, stay_s=1200),),
            scaling=(Scaling(tenant=SHOP, fleet="shop", out_above_pct=50),),
        ),
    )


def all_of_it(story: Scenario) -> tuple[list[bytes], dict[str, bytes], Any]:
    journal = MemoryJournal()
    play = Play(story, journal)
    play.run(1000 * story.duration_s)
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
    return all_of_it(a_restless_story())


def test_a_restless_story_is_restless() -> None:
    lines, _, measures = the_usual()
    kinds = b"".join(lines)
    for word in (b"host_failed", b"host_left", b"vm_crashed", b"vm_left", b"action_finished"):
        assert word in kinds
    assert 0 < measures.satisfied_cpu_pct < 100


def test_how_far_ahead_changes_are_looked_up_is_nobody_elses_business(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = the_usual()
    monkeypatch.setattr(truth, "AHEAD", 20)
    assert all_of_it(a_restless_story()) == usual


def test_machine_code_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = the_usual()
    monkeypatch.setattr(world, "WORTH_COMPILING", -1)
    assert all_of_it(a_restless_story()) == usual


def test_there_may_be_more_hosts_and_vms_than_at_the_start() -> None:
    arrivals = tuple(VmArrived(at_ms=1000 * n, vm=a_vm(f"late-{n}", "h1")) for n in range(1, 200))
    churn = HostChurn(fleet="esx", per_day=2000)
    story = Scenario(
        name="growing",
        duration_s=7200,
        cluster=an_inventory(a_host("h1", cores=64)),
        fleet=Fleet(hosts=(HostFleet(count=0, like=a_host("esx")),)),
        loads={"calm": Load(cpu_mhz=(Constant(level=Spread(low=0, high=600)),))},
        vm_loads={arrival.vm.id: "calm" for arrival in arrivals},
        happenings=arrivals,
        unrest=Unrest(hosts=(churn,)),
    )
    grown = SimulatedWorld(story)
    while grown.next_event(7_200_000) is not None:
        pass
    assert len(grown.observe().vms) == 199
    assert len(grown.observe().hosts) > 100
    table = grown.record().hosts
    assert table["vms"][table["at_s"] == 7200].sum() == 199
    assert 0 < grown.measures().satisfied_cpu_pct <= 100


def test_a_run_that_grows_large_is_worth_compiling_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of VMs that come during the run change as often as if they had been there."""
    monkeypatch.setattr(world, "WORTH_COMPILING", 1000)
    comes = tuple(VmArrived(at_ms=1000 * n, vm=a_vm(f"late-{n}", "h1")) for n in range(1, 40))
    story = Scenario(
        name="growing",
        duration_s=7200,
        cluster=an_inventory(a_host("h1")),
        loads={"wild": WILD},
        vm_loads={one.vm.id: "wild" for one in comes},
        happenings=comes,
    )
    grown = SimulatedWorld(story)
    while grown.next_event(300_000) is not None:
        pass
    assert grown._stage.truth.fluid.fast


def test_more_changes_than_anybody_can_wait_for_are_refused() -> None:
    fast = Load(cpu_mhz=(Noise(level=Spread(low=0, high=9), period_s=1),))
    fleet = Fleet(vms=(VmFleet(count=200, like=a_vm("v"), load="fast"),))
    story = Scenario(
        name="endless",
        duration_s=10**7,
        cluster=an_inventory(),
        fleet=fleet,
        loads={"fast": fast},
    )
    with pytest.raises(InvalidInput, match="would never end") as refused:
        SimulatedWorld(story)
    assert refused.value.source == "endless"


def test_all_that_is_wrong_with_traces_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("when,what\n0,1\n")
    loads = {
        "one": Load(cpu_mhz=(Noise(level=1, period_s=9), Trace(file="nowhere.csv"))),
        "two": Load(memory_pct=(Trace(file="bad.csv"),)),
    }
    story = Scenario(name="traced", duration_s=10, cluster=an_inventory(), loads=loads)
    with pytest.raises(InvalidInput) as refused:
        SimulatedWorld(story, folder=tmp_path)
    keys = {problem.key for problem in refused.value.problems}
    assert keys == {"loads.one.cpu_mhz[1]", "loads.two.memory_pct[0]"}


def test_a_world_can_be_run_beyond_its_end() -> None:
    story = a_restless_story()
    late = SimulatedWorld(story)
    while late.next_event(4_000_000) is not None:
        pass
    assert late.observe().at_ms == 4_000_000
