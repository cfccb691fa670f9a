"""SLA breaches: their duration, the missing VMs and their number."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.control.ports import StartAction
from equipoise.model.action import Boot, Kill, Suspend
from equipoise.model.event import HostFailed, VmArrived, VmCrashed, VmLeft
from equipoise.model.inventory import Sla, Tenant
from equipoise.model.quantity import HostId, TenantId, VmId
from equipoise.model.scenario.faults import ScheduledEvent
from equipoise.model.scenario.load import ConstantLoad, Load
from equipoise.model.scenario.scenario import MeasurementSettings, Scenario
from equipoise.model.vm import Vm, VmState
from equipoise.sim.measure.sla import SlaBreach
from equipoise.sim.world.simulated_world import SimulatedWorld

H1, H2 = HostId("h1"), HostId("h2")
IDLE = Load(cpu_mhz=(ConstantLoad(level=0),))


def own(name: str, host: str | None = "h1", tenant: str = "shop", **fields: Any) -> Vm:
    return a_vm(name, host, tenant=TenantId(tenant), **fields)


def a_world(
    *vms: Vm, least: int = 0, events: tuple[ScheduledEvent, ...] = (), bank: int = 0
) -> SimulatedWorld:
    tenants = (
        Tenant(id=TenantId("shop"), sla=Sla(vms_min=least, vms_max=9)),
        Tenant(id=TenantId("bank"), sla=Sla(vms_min=bank, vms_max=9)),
    )
    names = [vm.id for vm in vms] + [
        event.vm.id for event in events if isinstance(event, VmArrived)
    ]
    return SimulatedWorld(
        Scenario(
            name="promised",
            duration_s=1000,
            cluster=an_inventory(a_host("h1"), a_host("h2"), vms=vms, tenants=tenants),
            loads={"idle": IDLE},
            vm_loads=dict.fromkeys(names, "idle"),
            measuring=MeasurementSettings(sample_s=10**9),
            events=events,
        )
    )


def boot(world: SimulatedWorld, vm: str, at_s: int, until_s: int) -> None:
    """Start a VM on h2, so that it runs from a given second on."""
    go(world, at_s)
    action = Boot(vm=VmId(vm), target=H2)
    world.perform(StartAction(a_step(f"boot-{vm}-{at_s}", action, 0, 1000 * (until_s - at_s)), 1))


def go(world: SimulatedWorld, to_s: float) -> None:
    while world.next_event(round(1000 * to_s)) is not None:
        pass


def breach(world: SimulatedWorld, at_s: float, tenant: str = "shop") -> SlaBreach:
    go(world, at_s)
    return world.measures().breaches[TenantId(tenant)]


def crash(vm: str, at_s: float) -> VmCrashed:
    return VmCrashed(at_ms=round(1000 * at_s), vm=VmId(vm))


def test_a_tenant_within_its_sla_has_no_breach() -> None:
    world = a_world(own("a"), own("b"), least=2)
    assert breach(world, 100) == SlaBreach()


def test_a_breach_lasts_from_the_crash_until_the_vm_runs_again() -> None:
    world = a_world(own("a"), own("b"), events=(crash("a", 10.5),))
    boot(world, "a", 15, 25)
    assert breach(world, 20) == SlaBreach(times=1, seconds=9.5, vm_seconds=9.5, vms_missing_max=1)
    assert breach(world, 100) == SlaBreach(
        times=1, seconds=14.5, vm_seconds=14.5, vms_missing_max=1
    )


def test_overlapping_breaches_count_once_in_time_and_twice_in_vms() -> None:
    faults = (crash("a", 10), crash("b", 20))
    world = a_world(own("a"), own("b"), own("c"), events=faults)
    boot(world, "a", 21, 30)
    boot(world, "b", 31, 40)
    assert breach(world, 100) == SlaBreach(times=1, seconds=30, vm_seconds=40, vms_missing_max=2)


def test_two_separate_breaches_count_twice() -> None:
    world = a_world(own("a"), own("b"), events=(crash("a", 10), crash("b", 40)))
    boot(world, "a", 11, 20)
    boot(world, "b", 41, 50)
    assert breach(world, 100) == SlaBreach(times=2, seconds=20, vm_seconds=20, vms_missing_max=1)


def test_breaches_that_touch_are_one_or_two() -> None:
    """The end comes first, so for no time at all everything was well."""
    world = a_world(own("a"), own("b"), events=(crash("a", 10), crash("b", 20)))
    boot(world, "a", 11, 20)
    found = breach(world, 30)
    assert (found.seconds, found.vm_seconds, found.vms_missing_max) == (20, 20, 1)


def test_a_failed_host_stops_all_its_vms_at_once() -> None:
    vms = [own("a"), own("b"), own("c", "h2"), own("d", tenant="bank")]
    world = a_world(*vms, least=1, events=(HostFailed(at_ms=10_000, host=H1),))
    assert breach(world, 30) == SlaBreach(times=1, seconds=20, vm_seconds=40, vms_missing_max=2)
    assert breach(world, 30, "bank") == SlaBreach(
        times=1, seconds=20, vm_seconds=20, vms_missing_max=1
    )


def test_too_few_vms_at_the_start_is_a_breach_from_the_start() -> None:
    world = a_world(own("a"), own("b", None), least=3)
    assert breach(world, 0) == SlaBreach(times=1, vms_missing_max=2)
    assert breach(world, 10) == SlaBreach(times=1, seconds=10, vm_seconds=20, vms_missing_max=2)


def test_requested_vms_beyond_the_minimum_count() -> None:
    arrives = VmArrived(at_ms=10_000, vm=own("b", None))
    world = a_world(own("a"), events=(arrives,))
    boot(world, "b", 12, 18)
    assert breach(world, 100) == SlaBreach(times=1, seconds=8, vm_seconds=8, vms_missing_max=1)


def test_a_vm_that_leaves_is_missing_only_below_the_minimum() -> None:
    gone = tuple(VmLeft(at_ms=1000 * at, vm=VmId(vm)) for at, vm in ((10, "a"), (20, "b")))
    world = a_world(own("a"), own("b"), own("c"), least=2, events=gone)
    assert breach(world, 20) == SlaBreach(times=1, vms_missing_max=1)
    assert breach(world, 50) == SlaBreach(times=1, seconds=30, vm_seconds=30, vms_missing_max=1)


def test_a_crashed_vm_that_leaves_is_no_longer_missing() -> None:
    gone = (crash("a", 10), VmLeft(at_ms=25_000, vm=VmId("a")))
    world = a_world(own("a"), own("b"), events=gone)
    assert breach(world, 100) == SlaBreach(times=1, seconds=15, vm_seconds=15, vms_missing_max=1)


@pytest.mark.parametrize("action", [Kill(vm=VmId("a")), Suspend(vm=VmId("a"), source=H1)])
def test_stopped_vms_are_missing_only_below_the_minimum(
    action: Kill | Suspend,
) -> None:
    for least, missed in (
        (1, SlaBreach()),
        (2, SlaBreach(times=1, seconds=9, vm_seconds=9, vms_missing_max=1)),
    ):
        world = a_world(own("a"), own("b"), least=least)
        world.perform(StartAction(a_step("s", action), 1))
        assert breach(world, 10) == missed


def test_vms_of_no_tenant_and_of_others_do_not_count() -> None:
    world = a_world(a_vm("x", "h1"), own("a", tenant="bank"), events=(crash("x", 10),), least=1)
    assert breach(world, 20).seconds == 20, "the shop has none"
    assert breach(world, 20, "bank") == SlaBreach()


def test_queries_do_not_change_later_results() -> None:
    often = a_world(own("a"), events=(crash("a", 10),))
    for at in range(0, 100, 7):
        breach(often, at)
    assert breach(often, 100) == SlaBreach(times=1, seconds=90, vm_seconds=90, vms_missing_max=1)


def test_a_vm_in_state_init_does_not_count() -> None:
    world = a_world(own("a", None, state=VmState.INIT, template="debian"))
    assert breach(world, 50) == SlaBreach()
