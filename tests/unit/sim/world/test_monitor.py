"""Monitoring: exact means of the demand over a window, and no readings in a gap."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.control.ports import StartAction
from equipoise.model.action import Boot
from equipoise.model.event import HostFailed, VmArrived, VmCrashed, VmLeft
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.scenario.faults import Faults, MonitoringGaps, MonitoringLost
from equipoise.model.scenario.load import Load, LoadPoint, StepLoad
from equipoise.model.scenario.scenario import FleetPlacement as Beginning
from equipoise.model.scenario.scenario import Fleets, MeasurementSettings, Scenario, VmFleet
from equipoise.model.vm import CpuSettings, Demand, Vm, VmState
from equipoise.sim.world.simulated_world import SimulatedWorld

V1, V2 = VmId("v1"), VmId("v2")


def steps(*levels: tuple[int, float]) -> StepLoad:
    return StepLoad(points=tuple(LoadPoint(at_s=at_s, level=level) for at_s, level in levels))


LOAD = Load(
    cpu_mhz=(steps((0, 100), (100, 400), (1000, 1000)),),
    memory_mib=(steps((0, 64), (200, 128)),),
)


def a_scenario(*vms: Vm, window_s: int = 60, **fields: Any) -> Scenario:
    given: dict[str, Any] = {"loads": {"steps": LOAD}, "vm_loads": {"v1": "steps"}}
    return Scenario(
        name="monitored",
        duration_s=100_000,
        cluster=an_inventory(a_host("h1"), a_host("h2"), vms=vms or [a_vm("v1", "h1")]),
        measuring=MeasurementSettings(window_s=window_s, sample_s=10**9),
        **given | fields,
    )


def go(world: SimulatedWorld, to_s: float) -> None:
    while world.next_event(round(1000 * to_s)) is not None:
        pass


def measured(world: SimulatedWorld, at_s: float, vm: VmId = V1) -> tuple[int, int]:
    go(world, at_s)
    demand = world.observe().vms[vm].demand
    return demand.cpu_mhz, demand.memory_mib


def test_the_first_reading_is_the_current_demand() -> None:
    assert measured(SimulatedWorld(a_scenario()), 0) == (100, 64)
    assert measured(SimulatedWorld(a_scenario()), 150) == (400, 64)


def test_a_reading_is_the_mean_over_the_window() -> None:
    world = SimulatedWorld(a_scenario())
    measured(world, 0)
    assert measured(world, 300) == (300, 85), "100 s of 100 and 200 s of 400; 200 of 64, 100 of 128"
    assert measured(world, 360) == (400, 128)
    assert measured(world, 1020) == (400 + round(20 / 660 * 600), 128)


def test_a_reading_within_the_window_uses_the_one_before() -> None:
    world = SimulatedWorld(a_scenario())
    measured(world, 0)
    measured(world, 90)
    assert measured(world, 120) == (150, 64), "of two minutes: half a minute is too short"
    assert measured(world, 150) == (350, 64), "of the last minute"


def test_readings_at_one_instant_are_equal() -> None:
    world = SimulatedWorld(a_scenario())
    measured(world, 0)
    first = measured(world, 300)
    assert first == measured(world, 300)
    assert first == measured(world, 300)
    assert measured(world, 340) == (round((10_000 + 240 * 400) / 340), 90), "two are as one"


def test_two_first_readings_at_one_instant_return_the_current_demand() -> None:
    world = SimulatedWorld(a_scenario())
    assert measured(world, 150) == measured(world, 150) == (400, 64)


def test_a_vm_that_arrived_in_between_has_the_mean_since_then() -> None:
    late = VmArrived(at_ms=50_000, vm=a_vm("v2", "h2"))
    loads = {"v1": "steps", "v2": "steps"}
    world = SimulatedWorld(a_scenario(events=(late,), vm_loads=loads))
    measured(world, 0)
    assert measured(world, 300, V2) == (340, 90), "50 s of 100 and 200 s of 400; 150 s of 64"
    assert measured(world, 300, V1) == (300, 85)


def test_a_vm_that_arrives_at_a_reading_has_its_current_demand() -> None:
    late = VmArrived(at_ms=300_000, vm=a_vm("v2", "h2"))
    world = SimulatedWorld(a_scenario(events=(late,), vm_loads={"v2": "steps"}))
    measured(world, 0)
    assert measured(world, 300, V2) == (400, 128)


def test_a_vm_without_a_load_keeps_its_demand_and_all_its_named_ones() -> None:
    licences = {ResourceName("licences"): 3}
    fixed = a_vm("v1", "h1", demand=Demand(cpu_mhz=700, memory_mib=500, named=licences))
    world = SimulatedWorld(a_scenario(fixed, vm_loads={}))
    measured(world, 0)
    assert measured(world, 1000) == (700, 500)
    assert world.observe().vms[V1].demand.named == licences


def test_an_unplaced_vm_has_its_demand_in_readings() -> None:
    world = SimulatedWorld(a_scenario(events=(VmCrashed(at_ms=50_000, vm=V1),)))
    measured(world, 0)
    assert measured(world, 300) == (300, 85)
    assert world.observe().vms[V1].state is VmState.READY


def test_the_mean_of_a_vm_begins_with_its_first_start() -> None:
    world = SimulatedWorld(a_scenario(a_vm("v1")))
    assert measured(world, 0) == (100, 64)
    go(world, 190)
    world.perform(StartAction(a_step("s", Boot(vm=V1, target=HostId("h1")), 0, 10_000), 1))
    assert measured(world, 300) == (400, 128)


def test_a_monitoring_gap_keeps_demands_but_shows_hosts() -> None:
    gap = MonitoringLost(at_ms=50_000, for_ms=550_000)
    fault = HostFailed(at_ms=200_000, host=HostId("h2"))
    world = SimulatedWorld(a_scenario(a_vm("v1", "h1"), a_vm("v2", "h2"), events=(gap, fault)))
    measured(world, 0)
    assert measured(world, 300) == (100, 64)
    seen = world.observe()
    assert seen.hosts[HostId("h2")].state is HostState.FAILED
    assert seen.vms[V2].state is VmState.READY
    assert measured(world, 599.999) == (100, 64)
    cpu, _ = measured(world, 600)
    assert 100 < cpu <= 400, "the gap is over"
    assert measured(world, 660) == (400, 128)


def test_a_short_gap_within_a_long_one_does_not_end_it() -> None:
    gaps = (
        MonitoringLost(at_ms=50_000, for_ms=500_000),
        MonitoringLost(at_ms=60_000, for_ms=10_000),
    )
    world = SimulatedWorld(a_scenario(events=gaps))
    measured(world, 0)
    assert measured(world, 549) == (100, 64)
    assert measured(world, 550)[0] > 100


def test_random_gaps_come_at_their_rate() -> None:
    """At 24 a day of an hour each, a moment is in none of them with a chance of 1 / e."""
    rising = Load(cpu_mhz=(steps(*((60 * n, n % 1000 + 1) for n in range(1, 40_000))),))
    faults = Faults(monitoring_gaps=MonitoringGaps(per_day=24, for_s=3600))
    world = SimulatedWorld(a_scenario(loads={"steps": rising}, faults=faults, window_s=1))
    seen = [measured(world, 600 * look)[0] for look in range(1, 3000)]
    sighted = sum(now != before for before, now in pairwise(seen)) / len(seen)
    assert sighted == pytest.approx(0.368, abs=0.1)


def test_under_contention_the_demand_is_that_of_equation_1() -> None:
    """Used plus run / (run + sleep) times ready, of a VM that has one CPU of 4,000 MHz."""
    host = a_host("h1", cores=1, mhz_per_core=4000)
    wants = (1000, 2000, 4000)
    vms = [
        a_vm(f"v{n}", "h1", demand=Demand(cpu_mhz=mhz), cpu=CpuSettings(shares=1000 * n))
        for n, mhz in enumerate(wants, start=1)
    ]
    scenario = a_scenario(vm_loads={}).but(cluster=an_inventory(host, vms=vms))
    world = SimulatedWorld(scenario)
    measured(world, 0)
    go(world, 300)
    seen = world.observe()
    classes = {
        share_class.shares: share_class
        for share_class in world.measures().share_classes
        if share_class.vms == 1
    }
    for number, want in enumerate(wants, start=1):
        used = classes[1000 * number].payload_pct / 100 * 4000
        run = used / 4000
        ready = 1 - used / want
        sleep = 1 - run - ready
        estimate = used + run / (run + sleep) * ready * 4000
        assert seen.vms[VmId(f"v{number}")].demand.cpu_mhz == round(estimate) == want
    assert world.measures().satisfied_cpu_pct == pytest.approx(100 * 4 / 7)


def test_a_vm_with_a_reused_name_has_its_own_readings() -> None:
    """A member of a fleet leaves, and a VM with its name but without its load comes."""
    fleet = VmFleet(count=1, like=a_vm("web"), load="steps", start=Beginning(hosts=("h1",)))
    successor = a_vm("web-1", "h1", demand=Demand(cpu_mhz=50))
    leaves = VmLeft(at_ms=10_000, vm=successor.id)
    comes = VmArrived(at_ms=20_000, vm=successor)
    scenario = a_scenario(vm_loads={}, fleet=Fleets(vms=(fleet,)), events=(leaves, comes))
    world = SimulatedWorld(scenario)
    measured(world, 0, successor.id)
    assert measured(world, 50, successor.id) == (50, 0)
    assert measured(world, 1500, successor.id) == (50, 0)
