"""Hosts and VMs that join during a run: their names and demands; tenants that scale."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.control.ports import StartAction
from equipoise.model.action import Boot, PowerOn
from equipoise.model.event import Event, HostFailed, HostJoined, HostLeft, VmArrived, VmLeft
from equipoise.model.host import HostState
from equipoise.model.inventory import Sla, Tenant
from equipoise.model.quantity import HostId, TenantId, VmId
from equipoise.model.scenario.faults import Faults, TenantAutoscaling
from equipoise.model.scenario.load import ConstantLoad, Load, LoadPoint, StepLoad
from equipoise.model.scenario.scenario import FleetPlacement as Beginning
from equipoise.model.scenario.scenario import (
    Fleets,
    HostFleet,
    MeasurementSettings,
    Scenario,
    VmFleet,
)
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.sim.world.simulated_world import SimulatedWorld

SHOP = TenantId("shop")
BUSY = Load(cpu_mhz=(ConstantLoad(level=1000),))
IDLE = Load(cpu_mhz=(ConstantLoad(level=100),))


def own(name: str, mhz: int = 1000, **fields: Any) -> Vm:
    return a_vm(name, "h1", tenant=SHOP, demand=Demand(cpu_mhz=mhz), **fields)


def a_scenario(
    *vms: Vm,
    sla: Sla | None = None,
    scaling: tuple[TenantAutoscaling, ...] | None = None,
    **fields: Any,
) -> Scenario:
    looks = (TenantAutoscaling(tenant=SHOP, fleet="new"),) if scaling is None else scaling
    new = VmFleet(count=0, like=a_vm("new"), load="idle")
    given: dict[str, Any] = {
        "fleet": Fleets(vms=(new, VmFleet(count=0, like=a_vm("other"), load="idle"))),
        "loads": {"busy": BUSY, "idle": IDLE},
        "vm_loads": {vm.id: "busy" if vm.demand.cpu_mhz >= 1000 else "idle" for vm in vms},
        "faults": Faults(scaling=looks),
    }
    return Scenario(
        name="growth",
        duration_s=3600,
        cluster=an_inventory(
            a_host("h1", cores=64, memory_mib=10**6),
            vms=vms,
            tenants=(Tenant(id=SHOP, sla=sla or Sla(vms_max=100)),),
        ),
        measuring=MeasurementSettings(sample_s=10**9),
        **given | fields,
    )


def drained(world: SimulatedWorld, until_s: float = 3600) -> list[Event]:
    found = []
    while (event := world.next_event(round(1000 * until_s))) is not None:
        found.append(event)
    return found


def arrivals(scenario: Scenario) -> list[tuple[float, str]]:
    occurred = drained(SimulatedWorld(scenario))
    return [(event.at_ms / 1000, event.vm.id) for event in occurred if isinstance(event, VmArrived)]


def departures(scenario: Scenario) -> list[tuple[float, str]]:
    occurred = drained(SimulatedWorld(scenario))
    return [(event.at_ms / 1000, event.vm) for event in occurred if isinstance(event, VmLeft)]


def test_a_busy_tenant_scales_out_at_every_check_up_to_the_maximum() -> None:
    found = arrivals(a_scenario(own("v1"), sla=Sla(vms_max=4)))
    assert found == [(60, "new-1"), (120, "new-2"), (180, "new-3")]


def test_scaled_out_vms_belong_to_the_tenant_and_are_ready() -> None:
    occurred = drained(SimulatedWorld(a_scenario(own("v1"), sla=Sla(vms_max=2))))
    (arrived,) = occurred
    assert isinstance(arrived, VmArrived)
    assert (arrived.vm.tenant, arrived.vm.state) == (SHOP, VmState.READY)


def test_a_cooldown_separates_scaling_steps() -> None:
    found = arrivals(a_scenario(own("v1"), sla=Sla(vms_max=4, cooldown_s=150)))
    assert found == [(60, "new-1"), (240, "new-2"), (420, "new-3")]


def test_a_cooldown_that_ends_at_a_check_is_over() -> None:
    found = arrivals(a_scenario(own("v1"), sla=Sla(vms_max=3, cooldown_s=120)))
    assert found == [(60, "new-1"), (180, "new-2")]


def test_a_scaling_step_never_exceeds_the_maximum() -> None:
    found = arrivals(a_scenario(own("v1"), sla=Sla(vms_max=4, scaling_vms=2)))
    assert found == [(60, "new-1"), (60, "new-2"), (120, "new-3")]


def test_an_idle_tenant_scales_in_to_the_minimum_latest_vms_first() -> None:
    vms = [own(f"v{n}", mhz=100) for n in range(1, 6)]
    assert departures(a_scenario(*vms, sla=Sla(vms_min=2, vms_max=9))) == [
        (60, "v5"),
        (120, "v4"),
        (180, "v3"),
    ]
    assert departures(a_scenario(*vms, sla=Sla(vms_min=2, vms_max=9, scaling_vms=2))) == [
        (60, "v4"),
        (60, "v5"),
        (120, "v3"),
    ]


@pytest.mark.parametrize("mhz", [300, 500, 800])
def test_no_scaling_between_the_thresholds(mhz: int) -> None:
    scenario = a_scenario(own("v1", mhz), own("v2", mhz), vm_loads={})
    assert drained(SimulatedWorld(scenario)) == []


def test_the_load_of_a_tenant_is_that_of_its_own_vms() -> None:
    others = [a_vm("x", "h1", demand=Demand(cpu_mhz=9000))]
    assert arrivals(a_scenario(own("v1", 1000), own("v2", 550), *others, vm_loads={})) == []
    assert arrivals(a_scenario(own("v1", 1000), own("v2", 650), *others, vm_loads={}))


def test_utilisation_is_relative_to_the_speed_of_the_vcpus() -> None:
    two = own("v1", 1600, vcpus=2)
    assert arrivals(a_scenario(two, vm_loads={})) == [], "exactly four fifths"
    assert arrivals(a_scenario(two.but(demand=Demand(cpu_mhz=1601)), vm_loads={}))


def test_a_tenant_without_running_vms_does_not_scale() -> None:
    assert arrivals(a_scenario(a_vm("v1", tenant=SHOP))) == []


def test_scaling_in_removes_the_latest_vms() -> None:
    wave = Load(
        cpu_mhz=(StepLoad(points=(LoadPoint(at_s=0, level=900), LoadPoint(at_s=150, level=100))),)
    )
    scenario = a_scenario(
        own("v1"), loads={"busy": wave, "idle": IDLE}, sla=Sla(vms_min=1, vms_max=9)
    )
    occurred = drained(SimulatedWorld(scenario))
    assert [(type(event).__name__, event.at_ms // 1000) for event in occurred] == [
        ("VmArrived", 60),
        ("VmArrived", 120),
        ("VmLeft", 180),
        ("VmLeft", 240),
    ]


def test_two_autoscalings_respect_the_maximum_together() -> None:
    both = (
        TenantAutoscaling(tenant=SHOP, fleet="new"),
        TenantAutoscaling(tenant=SHOP, fleet="other"),
    )
    assert len(arrivals(a_scenario(own("v1"), sla=Sla(vms_max=2), scaling=both))) == 1


def test_arrivals_are_numbered_after_the_last_member() -> None:
    fleet = VmFleet(count=9, like=a_vm("new"), load="idle", start=Beginning(hosts=("h1",)))
    scenario = a_scenario(own("v1"), sla=Sla(vms_max=4), fleet=Fleets(vms=(fleet,)))
    assert [name for _, name in arrivals(scenario)] == ["new-10", "new-11", "new-12"]


def test_an_arrival_is_down_until_it_runs() -> None:
    comes = VmArrived(at_ms=100_000, vm=a_vm("late"))
    scenario = a_scenario(scaling=(), events=(comes,), vm_loads={"late": "busy"})
    world = SimulatedWorld(scenario)
    drained(world, 150)
    assert world.measures().downtime_s == pytest.approx(50)
    assert world.measures().satisfied_cpu_pct == 0
    start = a_step("boot", Boot(vm=VmId("late"), target=HostId("h1")), 0, 50_000)
    world.perform(StartAction(start, 1))
    drained(world, 300)
    assert world.measures().downtime_s == pytest.approx(100)
    assert world.measures().satisfied_cpu_pct == pytest.approx(50)


def test_a_scheduled_arrival_has_its_load_at_once() -> None:
    wave = Load(
        cpu_mhz=(StepLoad(points=(LoadPoint(at_s=0, level=100), LoadPoint(at_s=200, level=900))),)
    )
    comes = VmArrived(at_ms=100_000, vm=a_vm("late", "h1", demand=Demand(cpu_mhz=7)))
    for loads, used in (({}, [7, 7]), ({"late": "wave"}, [100, 900])):
        world = SimulatedWorld(
            a_scenario(scaling=(), events=(comes,), loads={"wave": wave}, vm_loads=loads)
        )
        found = []
        for at_s in (100, 200):
            drained(world, at_s)
            found.append(world.record().cluster["cpu_used_mhz"][-1])
        assert found == used


def test_an_arrival_does_not_change_the_demand_of_others() -> None:
    waves = Load(cpu_mhz=(StepLoad(points=tuple(LoadPoint(at_s=n, level=n) for n in range(500))),))
    comes = VmArrived(at_ms=100_500, vm=a_vm("late", "h1"))
    loads: dict[str, Any] = {"loads": {"waves": waves}, "scaling": ()}
    wants = {VmId("v1"): "waves", VmId("late"): "waves"}
    alone = SimulatedWorld(a_scenario(own("v1"), vm_loads={"v1": "waves"}, **loads))
    both = SimulatedWorld(a_scenario(own("v1"), vm_loads=wants, events=(comes,), **loads))
    for at_s in (50, 100, 101, 150, 400):
        drained(alone, at_s)
        drained(both, at_s)
        one, two = (world.record().cluster["cpu_used_mhz"][-1] for world in (alone, both))
        assert (one, two) == (at_s, at_s if at_s <= 100 else 2 * at_s)


def test_hosts_join_in_any_state_and_can_leave_with_vms() -> None:
    occurred = (
        HostJoined(at_ms=10_000, host=a_host("h2", state=HostState.STANDBY)),
        HostJoined(at_ms=10_000, host=a_host("h3", state=HostState.FAILED)),
        HostJoined(at_ms=10_000, host=a_host("h4")),
        VmArrived(at_ms=20_000, vm=a_vm("late", "h4")),
        HostLeft(at_ms=30_000, host=HostId("h4")),
    )
    world = SimulatedWorld(a_scenario(scaling=(), events=occurred))
    assert drained(world, 25) == list(occurred[:4])
    assert world.record().cluster["hosts_on"][-1] == 2
    assert world.record().cluster["vms_running"][-1] == 1
    assert drained(world) == list(occurred[4:])
    assert world.observe().vms[VmId("late")].state is VmState.READY
    assert HostId("h4") not in world.observe().hosts
    assert world.record().cluster["hosts_on"][-1] == 1


def test_no_vm_runs_on_a_host_that_is_not_on() -> None:
    """A scheduled VM names its host; the run decides whether that host is on."""
    fault = HostFailed(at_ms=10_000, host=HostId("h1"))
    comes = VmArrived(at_ms=20_000, vm=a_vm("late", "h1", demand=Demand(cpu_mhz=100)))
    world = SimulatedWorld(a_scenario(scaling=(), events=(fault, comes)))
    drained(world, 100)
    seen = world.observe()
    running = [vm for vm in seen.vms.values() if vm.state is VmState.RUNNING]
    assert all(vm.host and seen.hosts[vm.host].state is HostState.ON for vm in running)
    assert world.measures().downtime_s == pytest.approx(80)


def test_an_agent_on_a_standby_host_sleeps_and_wakes_with_the_host() -> None:
    occurred = (
        HostJoined(at_ms=10_000, host=a_host("h2", state=HostState.STANDBY)),
        VmArrived(at_ms=20_000, vm=a_vm("agent", "h2", agent=True)),
    )
    world = SimulatedWorld(a_scenario(scaling=(), events=occurred))
    drained(world, 30)
    agent = world.observe().vms[VmId("agent")]
    assert (agent.state, agent.host) == (VmState.SLEEPING, "h2")
    wake = a_step("wake", PowerOn(host=HostId("h2")), 0, 10_000)
    world.perform(StartAction(wake, 1))
    drained(world, 60)
    agent = world.observe().vms[VmId("agent")]
    assert (agent.state, agent.host) == (VmState.RUNNING, "h2")


def test_vms_without_a_load_can_leave() -> None:
    leaves = VmLeft(at_ms=10_000, vm=VmId("v1"))
    world = SimulatedWorld(a_scenario(own("v1"), scaling=(), events=(leaves,), vm_loads={}))
    assert drained(world) == [leaves]
    assert not world.observe().vms


def test_a_tenant_without_loads_scales_in_as_well() -> None:
    vms = [own(f"v{n}", mhz=100) for n in range(1, 4)]
    scenario = a_scenario(*vms, sla=Sla(vms_min=1, vms_max=9), vm_loads={})
    assert [name for _, name in departures(scenario)] == ["v3", "v2"]


def test_joining_hosts_are_numbered_after_the_fleet() -> None:
    fleet = Fleets(hosts=(HostFleet(count=3, like=a_host("esx")),))
    world = SimulatedWorld(a_scenario(scaling=(), fleet=fleet))
    assert list(world.observe().hosts) == ["h1", "esx-1", "esx-2", "esx-3"]
