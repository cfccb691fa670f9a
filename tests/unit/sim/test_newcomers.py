"""Those who join during a run: what they are called, what they ask for, and tenants that scale."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.control.ports import Start
from equipoise.model.action import Boot, PowerOn
from equipoise.model.event import Event, HostFailed, HostJoined, HostLeft, VmArrived, VmLeft
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, TenantId, VmId
from equipoise.model.story.fleet import Fleet, HostFleet, VmFleet
from equipoise.model.story.fleet import Start as Beginning
from equipoise.model.story.load import Constant, Load, Point, Steps
from equipoise.model.story.scenario import Measuring, Scenario
from equipoise.model.story.unrest import Scaling, Unrest
from equipoise.model.tenant import Sla, Tenant
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.sim.world import SimulatedWorld

SHOP = TenantId("shop")
BUSY = Load(cpu_mhz=(Constant(level=1000),))
IDLE = Load(cpu_mhz=(Constant(level=100),))


def own(name: str, mhz: int = 1000, **fields: Any) -> Vm:
    return a_vm(name, "h1", tenant=SHOP, demand=Demand(cpu_mhz=mhz), **fields)


def a_story(
    *vms: Vm, sla: Sla | None = None, scaling: tuple[Scaling, ...] | None = None, **fields: Any
) -> Scenario:
    looks = (Scaling(tenant=SHOP, fleet="new"),) if scaling is None else scaling
    new = VmFleet(count=0, like=a_vm("new"), load="idle")
    given: dict[str, Any] = {
        "fleet": Fleet(vms=(new, VmFleet(count=0, like=a_vm("other"), load="idle"))),
        "loads": {"busy": BUSY, "idle": IDLE},
        "vm_loads": {vm.id: "busy" if vm.demand.cpu_mhz >= 1000 else "idle" for vm in vms},
        "unrest": Unrest(scaling=looks),
    }
    return Scenario(
        name="growth",
        duration_s=3600,
        cluster=an_inventory(
            a_host("h1", cores=64, memory_mib=10**6),
            vms=vms,
            tenants=(Tenant(id=SHOP, sla=sla or Sla(vms_max=100)),),
        ),
        measuring=Measuring(sample_s=10**9),
        **given | fields,
    )


def drained(world: SimulatedWorld, until_s: float = 3600) -> list[Event]:
    found = []
    while (event := world.next_event(round(1000 * until_s))) is not None:
        found.append(event)
    return found


def arrivals(scenario: Scenario) -> list[tuple[float, str]]:
    told = drained(SimulatedWorld(scenario))
    return [(one.at_ms / 1000, one.vm.id) for one in told if isinstance(one, VmArrived)]


def departures(scenario: Scenario) -> list[tuple[float, str]]:
    told = drained(SimulatedWorld(scenario))
    return [(one.at_ms / 1000, one.vm) for one in told if isinstance(one, VmLeft)]


def test_a_busy_tenant_scales_out_at_every_look_up_to_the_most() -> None:
    found = arrivals(a_story(own("v1"), sla=Sla(vms_max=4)))
    assert found == [(60, "new-1"), (120, "new-2"), (180, "new-3")]


def test_newcomers_belong_to_the_tenant_and_are_ready() -> None:
    told = drained(SimulatedWorld(a_story(own("v1"), sla=Sla(vms_max=2))))
    (arrived,) = told
    assert isinstance(arrived, VmArrived)
    assert (arrived.vm.tenant, arrived.vm.state) == (SHOP, VmState.READY)


def test_the_cooldown_is_honoured_from_one_step_to_the_next() -> None:
    found = arrivals(a_story(own("v1"), sla=Sla(vms_max=4, cooldown_s=150)))
    assert found == [(60, "new-1"), (240, "new-2"), (420, "new-3")]


def test_a_cooldown_that_ends_with_a_look_is_over() -> None:
    found = arrivals(a_story(own("v1"), sla=Sla(vms_max=3, cooldown_s=120)))
    assert found == [(60, "new-1"), (180, "new-2")]


def test_a_step_is_of_so_many_vms_but_never_beyond_the_most() -> None:
    found = arrivals(a_story(own("v1"), sla=Sla(vms_max=4, scaling_vms=2)))
    assert found == [(60, "new-1"), (60, "new-2"), (120, "new-3")]


def test_an_idle_tenant_scales_in_to_the_least_and_the_youngest_go_first() -> None:
    vms = [own(f"v{n}", mhz=100) for n in range(1, 6)]
    assert departures(a_story(*vms, sla=Sla(vms_min=2, vms_max=9))) == [
        (60, "v5"),
        (120, "v4"),
        (180, "v3"),
    ]
    assert departures(a_story(*vms, sla=Sla(vms_min=2, vms_max=9, scaling_vms=2))) == [
        (60, "v4"),
        (60, "v5"),
        (120, "v3"),
    ]


@pytest.mark.parametrize("mhz", [300, 500, 800])
def test_in_between_and_at_the_bounds_nothing_happens(mhz: int) -> None:
    story = a_story(own("v1", mhz), own("v2", mhz), vm_loads={})
    assert drained(SimulatedWorld(story)) == []


def test_how_busy_a_tenant_is_depends_on_all_its_vms_and_on_no_others() -> None:
    others = [a_vm("x", "h1", demand=Demand(cpu_mhz=9000))]
    assert arrivals(a_story(own("v1", 1000), own("v2", 550), *others, vm_loads={})) == []
    assert arrivals(a_story(own("v1", 1000), own("v2", 650), *others, vm_loads={}))


def test_a_vm_is_busy_by_what_its_cpus_could_do() -> None:
    two = own("v1", 1600, vcpus=2)
    assert arrivals(a_story(two, vm_loads={})) == [], "exactly four fifths"
    assert arrivals(a_story(two.but(demand=Demand(cpu_mhz=1601)), vm_loads={}))


def test_a_tenant_of_whom_nobody_runs_does_not_scale() -> None:
    assert arrivals(a_story(a_vm("v1", tenant=SHOP))) == []


def test_a_tenant_that_wants_less_after_having_wanted_more_sends_the_newcomers_away() -> None:
    wave = Load(cpu_mhz=(Steps(points=(Point(at_s=0, level=900), Point(at_s=150, level=100))),))
    story = a_story(own("v1"), loads={"busy": wave, "idle": IDLE}, sla=Sla(vms_min=1, vms_max=9))
    told = drained(SimulatedWorld(story))
    assert [(type(one).__name__, one.at_ms // 1000) for one in told] == [
        ("VmArrived", 60),
        ("VmArrived", 120),
        ("VmLeft", 180),
        ("VmLeft", 240),
    ]


def test_two_ways_of_scaling_do_not_lead_beyond_the_most_together() -> None:
    both = (Scaling(tenant=SHOP, fleet="new"), Scaling(tenant=SHOP, fleet="other"))
    assert len(arrivals(a_story(own("v1"), sla=Sla(vms_max=2), scaling=both))) == 1


def test_newcomers_take_the_numbers_after_the_last() -> None:
    fleet = VmFleet(count=9, like=a_vm("new"), load="idle", start=Beginning(hosts=("h1",)))
    story = a_story(own("v1"), sla=Sla(vms_max=4), fleet=Fleet(vms=(fleet,)))
    assert [name for _, name in arrivals(story)] == ["new-10", "new-11", "new-12"]


def test_a_newcomer_is_missed_until_it_runs_and_then_gets_what_it_wants() -> None:
    comes = VmArrived(at_ms=100_000, vm=a_vm("late"))
    story = a_story(scaling=(), happenings=(comes,), vm_loads={"late": "busy"})
    world = SimulatedWorld(story)
    drained(world, 150)
    assert world.measures().downtime_s == pytest.approx(50)
    assert world.measures().satisfied_cpu_pct == 0
    start = a_step("boot", Boot(vm=VmId("late"), target=HostId("h1")), 0, 50_000)
    world.perform(Start(start, 1))
    drained(world, 300)
    assert world.measures().downtime_s == pytest.approx(100)
    assert world.measures().satisfied_cpu_pct == pytest.approx(50)


def test_a_foretold_newcomer_has_its_load_from_its_first_moment_on() -> None:
    wave = Load(cpu_mhz=(Steps(points=(Point(at_s=0, level=100), Point(at_s=200, level=900))),))
    comes = VmArrived(at_ms=100_000, vm=a_vm("late", "h1", demand=Demand(cpu_mhz=7)))
    for loads, used in (({}, [7, 7]), ({"late": "wave"}, [100, 900])):
        world = SimulatedWorld(
            a_story(scaling=(), happenings=(comes,), loads={"wave": wave}, vm_loads=loads)
        )
        found = []
        for at_s in (100, 200):
            drained(world, at_s)
            found.append(world.record().cluster["cpu_used_mhz"][-1])
        assert found == used


def test_a_newcomer_changes_nothing_of_what_others_ask_for() -> None:
    waves = Load(cpu_mhz=(Steps(points=tuple(Point(at_s=n, level=n) for n in range(500))),))
    comes = VmArrived(at_ms=100_500, vm=a_vm("late", "h1"))
    loads: dict[str, Any] = {"loads": {"waves": waves}, "scaling": ()}
    wants = {VmId("v1"): "waves", VmId("late"): "waves"}
    alone = SimulatedWorld(a_story(own("v1"), vm_loads={"v1": "waves"}, **loads))
    both = SimulatedWorld(a_story(own("v1"), vm_loads=wants, happenings=(comes,), **loads))
    for at_s in (50, 100, 101, 150, 400):
        drained(alone, at_s)
        drained(both, at_s)
        one, two = (world.record().cluster["cpu_used_mhz"][-1] for world in (alone, both))
        assert (one, two) == (at_s, at_s if at_s <= 100 else 2 * at_s)


def test_hosts_join_in_whatever_state_they_have_and_may_leave_with_their_vms() -> None:
    told = (
        HostJoined(at_ms=10_000, host=a_host("h2", state=HostState.STANDBY)),
        HostJoined(at_ms=10_000, host=a_host("h3", state=HostState.FAILED)),
        HostJoined(at_ms=10_000, host=a_host("h4")),
        VmArrived(at_ms=20_000, vm=a_vm("late", "h4")),
        HostLeft(at_ms=30_000, host=HostId("h4")),
    )
    world = SimulatedWorld(a_story(scaling=(), happenings=told))
    assert drained(world, 25) == list(told[:4])
    assert world.record().cluster["hosts_on"][-1] == 2
    assert world.record().cluster["vms_running"][-1] == 1
    assert drained(world) == list(told[4:])
    assert world.observe().vms[VmId("late")].state is VmState.READY
    assert HostId("h4") not in world.observe().hosts
    assert world.record().cluster["hosts_on"][-1] == 1


def test_nobody_runs_on_a_host_that_is_not_on() -> None:
    """A VM was foretold to start on a host; whether that is on is decided by the run."""
    fault = HostFailed(at_ms=10_000, host=HostId("h1"))
    comes = VmArrived(at_ms=20_000, vm=a_vm("late", "h1", demand=Demand(cpu_mhz=100)))
    world = SimulatedWorld(a_story(scaling=(), happenings=(fault, comes)))
    drained(world, 100)
    seen = world.observe()
    running = [vm for vm in seen.vms.values() if vm.state is VmState.RUNNING]
    assert all(vm.host and seen.hosts[vm.host].state is HostState.ON for vm in running)
    assert world.measures().downtime_s == pytest.approx(80)


def test_an_agent_that_comes_to_a_host_that_sleeps_sleeps_with_it_and_wakes_with_it() -> None:
    told = (
        HostJoined(at_ms=10_000, host=a_host("h2", state=HostState.STANDBY)),
        VmArrived(at_ms=20_000, vm=a_vm("agent", "h2", agent=True)),
    )
    world = SimulatedWorld(a_story(scaling=(), happenings=told))
    drained(world, 30)
    agent = world.observe().vms[VmId("agent")]
    assert (agent.state, agent.host) == (VmState.SLEEPING, "h2")
    wake = a_step("wake", PowerOn(host=HostId("h2")), 0, 10_000)
    world.perform(Start(wake, 1))
    drained(world, 60)
    agent = world.observe().vms[VmId("agent")]
    assert (agent.state, agent.host) == (VmState.RUNNING, "h2")


def test_vms_without_a_load_may_leave_as_well() -> None:
    leaves = VmLeft(at_ms=10_000, vm=VmId("v1"))
    world = SimulatedWorld(a_story(own("v1"), scaling=(), happenings=(leaves,), vm_loads={}))
    assert drained(world) == [leaves]
    assert not world.observe().vms


def test_a_tenant_without_loads_scales_in_as_well() -> None:
    vms = [own(f"v{n}", mhz=100) for n in range(1, 4)]
    story = a_story(*vms, sla=Sla(vms_min=1, vms_max=9), vm_loads={})
    assert [name for _, name in departures(story)] == ["v3", "v2"]


def test_host_fleets_number_their_newcomers_as_well() -> None:
    fleet = Fleet(hosts=(HostFleet(count=3, like=a_host("esx")),))
    world = SimulatedWorld(a_story(scaling=(), fleet=fleet))
    assert list(world.observe().hosts) == ["h1", "esx-1", "esx-2", "esx-3"]
