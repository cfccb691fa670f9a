"""What an observer gets to know of demand: exact means of a while, and nothing in a gap."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.control.ports import Start
from equipoise.model.action import Boot
from equipoise.model.event import HostFailed, VmArrived, VmCrashed, VmLeft
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.story.fleet import Fleet, VmFleet
from equipoise.model.story.fleet import Start as Beginning
from equipoise.model.story.load import Load, Point, Steps
from equipoise.model.story.scenario import Measuring, Scenario
from equipoise.model.story.unrest import Gaps, MonitoringLost, Unrest
from equipoise.model.vm import CpuSettings, Demand, Vm, VmState
from equipoise.sim.world import SimulatedWorld

V1, V2 = VmId("v1"), VmId("v2")


def steps(*levels: tuple[int, float]) -> Steps:
    return Steps(points=tuple(Point(at_s=at_s, level=level) for at_s, level in levels))


LOAD = Load(
    cpu_mhz=(steps((0, 100), (100, 400), (1000, 1000)),),
    memory_mib=(steps((0, 64), (200, 128)),),
)


def a_story(*vms: Vm, window_s: int = 60, **fields: Any) -> Scenario:
    given: dict[str, Any] = {"loads": {"steps": LOAD}, "vm_loads": {"v1": "steps"}}
    return Scenario(
        name="monitored",
        duration_s=100_000,
        cluster=an_inventory(a_host("h1"), a_host("h2"), vms=vms or [a_vm("v1", "h1")]),
        measuring=Measuring(window_s=window_s, sample_s=10**9),
        **given | fields,
    )


def go(world: SimulatedWorld, to_s: float) -> None:
    while world.next_event(round(1000 * to_s)) is not None:
        pass


def told(world: SimulatedWorld, at_s: float, vm: VmId = V1) -> tuple[int, int]:
    go(world, at_s)
    demand = world.observe().vms[vm].demand
    return demand.cpu_mhz, demand.memory_mib


def test_the_first_look_tells_what_is_asked_for_now() -> None:
    assert told(SimulatedWorld(a_story()), 0) == (100, 64)
    assert told(SimulatedWorld(a_story()), 150) == (400, 64)


def test_a_look_tells_the_mean_since_the_last_one_that_is_long_enough_ago() -> None:
    world = SimulatedWorld(a_story())
    told(world, 0)
    assert told(world, 300) == (300, 85), "100 s of 100 and 200 s of 400; 200 of 64, 100 of 128"
    assert told(world, 360) == (400, 128)
    assert told(world, 1020) == (400 + round(20 / 660 * 600), 128)


def test_a_look_too_soon_goes_back_to_the_one_before() -> None:
    world = SimulatedWorld(a_story())
    told(world, 0)
    told(world, 90)
    assert told(world, 120) == (150, 64), "of two minutes: half a minute is too short"
    assert told(world, 150) == (350, 64), "of the last minute"


def test_looks_at_one_instant_tell_the_same() -> None:
    world = SimulatedWorld(a_story())
    told(world, 0)
    first = told(world, 300)
    assert first == told(world, 300)
    assert first == told(world, 300)
    assert told(world, 340) == (round((10_000 + 240 * 400) / 340), 90), "two are as one"


def test_a_world_seen_at_once_for_the_first_time_twice_tells_the_present() -> None:
    world = SimulatedWorld(a_story())
    assert told(world, 150) == told(world, 150) == (400, 64)


def test_of_a_vm_that_came_in_between_the_mean_since_then_is_told() -> None:
    late = VmArrived(at_ms=50_000, vm=a_vm("v2", "h2"))
    loads = {"v1": "steps", "v2": "steps"}
    world = SimulatedWorld(a_story(happenings=(late,), vm_loads=loads))
    told(world, 0)
    assert told(world, 300, V2) == (340, 90), "50 s of 100 and 200 s of 400; 150 s of 64"
    assert told(world, 300, V1) == (300, 85)


def test_a_vm_that_comes_at_the_instant_of_a_look_is_told_as_it_is() -> None:
    late = VmArrived(at_ms=300_000, vm=a_vm("v2", "h2"))
    world = SimulatedWorld(a_story(happenings=(late,), vm_loads={"v2": "steps"}))
    told(world, 0)
    assert told(world, 300, V2) == (400, 128)


def test_a_vm_without_a_load_keeps_its_demand_and_all_its_named_ones() -> None:
    licences = {ResourceName("licences"): 3}
    fixed = a_vm("v1", "h1", demand=Demand(cpu_mhz=700, memory_mib=500, named=licences))
    world = SimulatedWorld(a_story(fixed, vm_loads={}))
    told(world, 0)
    assert told(world, 1000) == (700, 500)
    assert world.observe().vms[V1].demand.named == licences


def test_what_a_vm_wants_is_told_also_while_it_lies_nowhere() -> None:
    world = SimulatedWorld(a_story(happenings=(VmCrashed(at_ms=50_000, vm=V1),)))
    told(world, 0)
    assert told(world, 300) == (300, 85)
    assert world.observe().vms[V1].state is VmState.READY


def test_of_a_vm_that_never_ran_the_mean_begins_with_its_start() -> None:
    world = SimulatedWorld(a_story(a_vm("v1")))
    assert told(world, 0) == (100, 64)
    go(world, 190)
    world.perform(Start(a_step("s", Boot(vm=V1, target=HostId("h1")), 0, 10_000), 1))
    assert told(world, 300) == (400, 128)


def test_in_a_gap_the_last_figures_stay_but_the_hosts_are_seen() -> None:
    gap = MonitoringLost(at_ms=50_000, for_ms=550_000)
    fault = HostFailed(at_ms=200_000, host=HostId("h2"))
    world = SimulatedWorld(a_story(a_vm("v1", "h1"), a_vm("v2", "h2"), happenings=(gap, fault)))
    told(world, 0)
    assert told(world, 300) == (100, 64)
    seen = world.observe()
    assert seen.hosts[HostId("h2")].state is HostState.FAILED
    assert seen.vms[V2].state is VmState.READY
    assert told(world, 599.999) == (100, 64)
    cpu, _ = told(world, 600)
    assert 100 < cpu <= 400, "the gap is over"
    assert told(world, 660) == (400, 128)


def test_a_short_gap_within_a_long_one_does_not_end_it() -> None:
    gaps = (
        MonitoringLost(at_ms=50_000, for_ms=500_000),
        MonitoringLost(at_ms=60_000, for_ms=10_000),
    )
    world = SimulatedWorld(a_story(happenings=gaps))
    told(world, 0)
    assert told(world, 549) == (100, 64)
    assert told(world, 550)[0] > 100


def test_gaps_come_by_chance_about_as_often_as_they_should() -> None:
    """At 24 a day of an hour each, a moment is in none of them with a chance of 1 / e."""
    rising = Load(cpu_mhz=(steps(*((60 * n, n % 1000 + 1) for n in range(1, 40_000))),))
    unrest = Unrest(monitoring_gaps=Gaps(per_day=24, for_s=3600))
    world = SimulatedWorld(a_story(loads={"steps": rising}, unrest=unrest, window_s=1))
    seen = [told(world, 600 * look)[0] for look in range(1, 3000)]
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
    story = a_story(vm_loads={}).but(cluster=an_inventory(host, vms=vms))
    world = SimulatedWorld(story)
    told(world, 0)
    go(world, 300)
    seen = world.observe()
    classes = {one.shares: one for one in world.measures().share_classes if one.vms == 1}
    for number, want in enumerate(wants, start=1):
        used = classes[1000 * number].payload_pct / 100 * 4000
        run = used / 4000
        ready = 1 - used / want
        sleep = 1 - run - ready
        estimate = used + run / (run + sleep) * ready * 4000
        assert seen.vms[VmId(f"v{number}")].demand.cpu_mhz == round(estimate) == want
    assert world.measures().satisfied_cpu_pct == pytest.approx(100 * 4 / 7)


def test_one_who_comes_back_under_the_name_of_another_is_not_told_of_as_the_other() -> None:
    """A member of a fleet leaves, and a VM with its name but without its load comes."""
    fleet = VmFleet(count=1, like=a_vm("web"), load="steps", start=Beginning(hosts=("h1",)))
    heir = a_vm("web-1", "h1", demand=Demand(cpu_mhz=50))
    leaves = VmLeft(at_ms=10_000, vm=heir.id)
    comes = VmArrived(at_ms=20_000, vm=heir)
    story = a_story(vm_loads={}, fleet=Fleet(vms=(fleet,)), happenings=(leaves, comes))
    world = SimulatedWorld(story)
    told(world, 0, heir.id)
    assert told(world, 50, heir.id) == (50, 0)
    assert told(world, 1500, heir.id) == (50, 0)
