"""The samples of a run: their times and their figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.capacity.imbalance import imbalance
from equipoise.control.ports import StartAction
from equipoise.model.action import Migrate
from equipoise.model.event import HostFailed, VmCrashed
from equipoise.model.host import Host, HostReserve, HostState, PowerProfile
from equipoise.model.inventory import Pool
from equipoise.model.quantity import HostId, PoolId, VmId
from equipoise.model.scenario.physics import MigrationPhysics, Physics
from equipoise.model.scenario.scenario import MeasurementSettings, Scenario
from equipoise.model.vm import CpuSettings, Demand, Vm
from equipoise.sim.world.simulated_world import SimulatedWorld
from plain_entitlement import CPU, MEMORY, entitlements


def a_scenario(
    *hosts: Host, vms: list[Vm] | None = None, sample_s: int = 100, **fields: Any
) -> Scenario:
    settings = {name: fields.pop(name) for name in ("pools",) if name in fields}
    return Scenario(
        name="watched",
        duration_s=1000,
        cluster=an_inventory(*hosts, vms=vms or [], **settings),
        measuring=MeasurementSettings(sample_s=sample_s),
        **fields,
    )


def wants(name: str, host: str, mhz: int, mib: int = 0, **fields: Any) -> Vm:
    return a_vm(name, host, demand=Demand(cpu_mhz=mhz, memory_mib=mib), **fields)


def go(world: SimulatedWorld, to_s: float) -> None:
    while world.next_event(round(1000 * to_s)) is not None:
        pass


def times(world: SimulatedWorld) -> list[float]:
    found: list[float] = world.record().cluster["at_s"].tolist()
    return found


def test_samples_come_at_the_start_at_intervals_and_at_the_end() -> None:
    world = SimulatedWorld(a_scenario())
    assert times(world) == [0]
    go(world, 250)
    assert times(world) == [0, 100, 200, 250]


def test_an_end_that_is_a_sample_is_sampled_once() -> None:
    world = SimulatedWorld(a_scenario())
    go(world, 200)
    assert times(world) == times(world) == [0, 100, 200]


def test_samples_come_last_at_an_instant() -> None:
    """A sample shows the state after the events of its instant."""
    faults = (HostFailed(at_ms=100_000, host=HostId("h1")), VmCrashed(at_ms=100_000, vm=VmId("b")))
    hosts = (a_host("h1"), a_host("h2"))
    scenario = a_scenario(*hosts, vms=[a_vm("a", "h1"), a_vm("b", "h2")], events=faults)
    world = SimulatedWorld(scenario)
    go(world, 100)
    cluster = world.record().cluster
    assert cluster["vms_running"].tolist() == [2, 0]
    assert cluster["hosts_on"].tolist() == [2, 1]


def test_there_is_a_row_for_each_host_with_its_figures() -> None:
    hosts = (
        a_host("h1", reserve=HostReserve(cpu_mhz=500, memory_mib=384)),
        a_host("h2", state=HostState.STANDBY, power=PowerProfile(standby_watts=7)),
        a_host("h3", state=HostState.MAINTENANCE, power=PowerProfile(idle_watts=90)),
    )
    vms = [wants("a", "h1", 3000, 600), wants("b", "h1", 1000, 700), a_vm("c")]
    table = SimulatedWorld(a_scenario(*hosts, vms=vms)).record().hosts
    assert table["host"].tolist() == ["h1", "h2", "h3"]
    assert table["state"].tolist() == ["on", "standby", "maintenance"]
    assert table["vms"].tolist() == [2, 0, 0]
    assert table["cpu_capacity_mhz"].tolist() == [3500, 4000, 4000]
    assert table["cpu_demand_mhz"].tolist() == [4000, 0, 0]
    assert table["cpu_used_mhz"].tolist() == [3500, 0, 0]
    assert table["memory_capacity_mib"].tolist() == [16_000, 16_384, 16_384]
    assert table["memory_demand_mib"].tolist() == [1300, 0, 0]
    assert table["memory_used_mib"].tolist() == [1300, 0, 0]
    assert table["watts"].tolist() == [0, 7, 90]


def test_the_cluster_is_the_sum_of_its_hosts_of_which_only_those_count_that_are_on() -> None:
    hosts = (a_host("h1"), a_host("h2"), a_host("h3", state=HostState.STANDBY))
    vms = [wants("a", "h1", 5000, 100), wants("b", "h2", 1000, 200)]
    cluster = SimulatedWorld(a_scenario(*hosts, vms=vms)).record().cluster
    figures = {name: column[0] for name, column in cluster.columns.items()}
    assert figures.pop("imbalance") > 0
    assert figures == {
        "at_s": 0,
        "cpu_capacity_mhz": 8000,
        "cpu_demand_mhz": 6000,
        "cpu_used_mhz": 5000,
        "memory_capacity_mib": 2 * 16_384,
        "memory_demand_mib": 300,
        "memory_used_mib": 300,
        "watts": 0,
        "watts_saved": 0,
        "hosts_on": 2,
        "vms_running": 2,
        "migrations_running": 0,
    }


def test_only_active_copies_count_as_running_migrations() -> None:
    physics = Physics(migration=MigrationPhysics(link_mbps=1, per_host_max=1))
    hosts = (a_host("h1"), a_host("h2"))
    world = SimulatedWorld(
        a_scenario(*hosts, vms=[a_vm("a", "h1"), a_vm("b", "h1")], physics=physics)
    )
    for vm in ("a", "b"):
        action = Migrate(vm=VmId(vm), source=HostId("h1"), target=HostId("h2"))
        world.perform(StartAction(a_step(vm, action), 1))
    go(world, 100)
    assert world.record().cluster["migrations_running"].tolist() == [0, 1]


def test_memory_that_does_not_fit_is_ballooned_and_then_swapped() -> None:
    """4 GiB of VMs on 3 GiB, half of it idle: 1 GiB is reclaimed, with the balloon or without."""
    host = a_host("h1", memory_mib=3072)
    vms = [wants(f"v{n}", "h1", 0, 512) for n in range(4)]
    table = SimulatedWorld(a_scenario(host, vms=vms)).record().hosts
    assert (table["ballooned_mib"][0], table["swapped_mib"][0]) == (1024, 0)
    tight = a_scenario(host, vms=vms)
    slim = tight.physics.memory.but(balloon_pct_max=12.5)
    table = SimulatedWorld(tight.but(physics=Physics(memory=slim))).record().hosts
    assert (table["ballooned_mib"][0], table["swapped_mib"][0]) == (512, 512)


def test_the_hypervisor_needs_memory_of_its_own_for_each_vm() -> None:
    host = a_host("h1", memory_mib=2048)
    scenario = a_scenario(host, vms=[wants("a", "h1", 0, 1024), wants("b", "h1", 0, 1024)])
    for overhead, used in ((0, 2048), (100, 1848)):
        world = SimulatedWorld(scenario.but(physics=Physics(overhead_mib=overhead)))
        assert world.record().hosts["memory_used_mib"].tolist() == [used]


POOLS = (
    Pool(id=PoolId("gold"), cpu=CpuSettings(shares=3000)),
    Pool(id=PoolId("lead"), cpu=CpuSettings(shares=1000)),
)


def test_happiness_is_allocation_over_entitlement_or_demand() -> None:
    """Two hosts of 4 GHz. On h1 three VMs of gold demand 6 GHz; h2 has no demand."""
    vms = [wants(f"v{n}", "h1", 2000, pool=PoolId("gold")) for n in range(3)]
    scenario = a_scenario(a_host("h1"), a_host("h2"), vms=[*vms, a_vm("x", "h2")], pools=POOLS)
    pools = SimulatedWorld(scenario).record().pools
    assert pools["pool"].tolist() == ["gold", "(no pool)"], "a pool without VMs has no row"
    assert pools["vms"].tolist() == [3, 1]
    assert pools["happiness_pct"].tolist() == pytest.approx([100 * 4 / 6, 100])
    assert pools["happy_pct"].tolist() == [0, 100]
    assert pools["cpu_demand_mhz"].tolist() == [6000, 0]
    assert pools["cpu_used_mhz"].tolist() == pytest.approx([4000, 0])


def test_a_vm_with_a_small_entitlement_can_be_happy() -> None:
    vms = [wants("a", "h1", 4000, pool=PoolId("gold")), wants("b", "h1", 4000, pool=PoolId("lead"))]
    pools = SimulatedWorld(a_scenario(a_host("h1"), vms=vms, pools=POOLS)).record().pools
    assert pools["cpu_used_mhz"].tolist() == pytest.approx([3000, 1000])
    assert pools["happiness_pct"].tolist() == pytest.approx([100, 100])
    assert pools["happy_pct"].tolist() == [100, 100]


def test_a_vm_with_95_percent_is_happy() -> None:
    for mhz, happy in ((4210, 100), (4211, 0)):
        hosts = (a_host("h1"), a_host("h2"))
        pools = SimulatedWorld(a_scenario(*hosts, vms=[wants("a", "h1", mhz)])).record().pools
        assert pools["happy_pct"].tolist() == [happy], mhz


def test_the_imbalance_of_a_sample_follows_entitlements() -> None:
    hosts = [a_host("h1"), a_host("h2", cores=8), a_host("h3", state=HostState.FAILED)]
    pools = [PoolId("gold"), None, PoolId("lead")]
    vms = [
        wants(f"v{n}", "h1" if n % 3 else "h2", 700 * n, 100 * n, pool=pools[n % 3])
        for n in range(8)
    ]
    scenario = a_scenario(*hosts, vms=vms, pools=POOLS)
    loads = []
    for resource in (CPU, MEMORY):
        entitled = entitlements(hosts, vms, POOLS, resource)
        loads.append(
            np.array(
                [
                    sum(entitled[vm.id] for vm in vms if vm.host == host.id)
                    / resource.capacity(host)
                    for host in hosts[:2]
                ]
            )
        )
    found = SimulatedWorld(scenario).record().cluster["imbalance"]
    assert found[0] == pytest.approx(imbalance(np.stack(loads, axis=1)))


def test_clusters_without_hosts_on_can_be_sampled() -> None:
    dark = a_host("h1", state=HostState.FAILED)
    record = SimulatedWorld(a_scenario(dark)).record()
    assert len(record.pools) == 0
    assert record.cluster["imbalance"].tolist() == [0]
    assert record.cluster["hosts_on"].tolist() == [0]
    assert len(record.hosts) == 1
