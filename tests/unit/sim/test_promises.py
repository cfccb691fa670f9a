"""Broken promises: for how long, by how many VMs, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.control.ports import Start
from equipoise.model.action import Boot, Kill, Suspend
from equipoise.model.event import HostFailed, VmArrived, VmCrashed, VmLeft
from equipoise.model.quantity import HostId, TenantId, VmId
from equipoise.model.story.load import Constant, Load
from equipoise.model.story.scenario import Measuring, Scenario
from equipoise.model.story.unrest import Happening
from equipoise.model.tenant import Sla, Tenant
from equipoise.model.vm import Vm, VmState
from equipoise.sim.measure.promises import Breach
from equipoise.sim.world import SimulatedWorld

H1, H2 = HostId("h1"), HostId("h2")
IDLE = Load(cpu_mhz=(Constant(level=0),))


def own(name: str, host: str | None = "h1", tenant: str = "shop", **fields: Any) -> Vm:
    return a_vm(name, host, tenant=TenantId(tenant), **fields)


def a_world(
    *vms: Vm, least: int = 0, happenings: tuple[Happening, ...] = (), bank: int = 0
) -> SimulatedWorld:
    tenants = (
        Tenant(id=TenantId("shop"), sla=Sla(vms_min=least, vms_max=9)),
        Tenant(id=TenantId("bank"), sla=Sla(vms_min=bank, vms_max=9)),
    )
    names = [vm.id for vm in vms] + [one.vm.id for one in happenings if isinstance(one, VmArrived)]
    return SimulatedWorld(
        Scenario(
            name="promised",
            duration_s=1000,
            cluster=an_inventory(a_host("h1"), a_host("h2"), vms=vms, tenants=tenants),
            loads={"idle": IDLE},
            vm_loads=dict.fromkeys(names, "idle"),
            measuring=Measuring(sample_s=10**9),
            happenings=happenings,
        )
    )


def boot(world: SimulatedWorld, vm: str, at_s: int, until_s: int) -> None:
    """Start a VM on h2, so that it runs from a given second on."""
    go(world, at_s)
    action = Boot(vm=VmId(vm), target=H2)
    world.perform(Start(a_step(f"boot-{vm}-{at_s}", action, 0, 1000 * (until_s - at_s)), 1))


def go(world: SimulatedWorld, to_s: float) -> None:
    while world.next_event(round(1000 * to_s)) is not None:
        pass


def breach(world: SimulatedWorld, at_s: float, tenant: str = "shop") -> Breach:
    go(world, at_s)
    return world.measures().breaches[TenantId(tenant)]


def crash(vm: str, at_s: float) -> VmCrashed:
    return VmCrashed(at_ms=round(1000 * at_s), vm=VmId(vm))


def test_who_has_what_was_promised_misses_nothing() -> None:
    world = a_world(own("a"), own("b"), least=2)
    assert breach(world, 100) == Breach()


def test_a_breach_lasts_from_the_crash_until_the_vm_runs_again() -> None:
    world = a_world(own("a"), own("b"), happenings=(crash("a", 10.5),))
    boot(world, "a", 15, 25)
    assert breach(world, 20) == Breach(times=1, seconds=9.5, vm_seconds=9.5, vms_most=1)
    assert breach(world, 100) == Breach(times=1, seconds=14.5, vm_seconds=14.5, vms_most=1)


def test_two_that_overlap_are_one_breach_of_the_time_and_two_of_the_vms() -> None:
    faults = (crash("a", 10), crash("b", 20))
    world = a_world(own("a"), own("b"), own("c"), happenings=faults)
    boot(world, "a", 21, 30)
    boot(world, "b", 31, 40)
    assert breach(world, 100) == Breach(times=1, seconds=30, vm_seconds=40, vms_most=2)


def test_two_one_after_the_other_are_two_breaches() -> None:
    world = a_world(own("a"), own("b"), happenings=(crash("a", 10), crash("b", 40)))
    boot(world, "a", 11, 20)
    boot(world, "b", 41, 50)
    assert breach(world, 100) == Breach(times=2, seconds=20, vm_seconds=20, vms_most=1)


def test_one_that_ends_at_the_instant_the_next_begins_is_the_same_breach_or_a_new_one() -> None:
    """The end comes first, so for no time at all everything was well."""
    world = a_world(own("a"), own("b"), happenings=(crash("a", 10), crash("b", 20)))
    boot(world, "a", 11, 20)
    found = breach(world, 30)
    assert (found.seconds, found.vm_seconds, found.vms_most) == (20, 20, 1)


def test_a_host_takes_all_its_vms_at_once() -> None:
    vms = [own("a"), own("b"), own("c", "h2"), own("d", tenant="bank")]
    world = a_world(*vms, least=1, happenings=(HostFailed(at_ms=10_000, host=H1),))
    assert breach(world, 30) == Breach(times=1, seconds=20, vm_seconds=40, vms_most=2)
    assert breach(world, 30, "bank") == Breach(times=1, seconds=20, vm_seconds=20, vms_most=1)


def test_fewer_than_promised_from_the_start_is_a_breach_from_the_start() -> None:
    world = a_world(own("a"), own("b", None), least=3)
    assert breach(world, 0) == Breach(times=1, vms_most=2)
    assert breach(world, 10) == Breach(times=1, seconds=10, vm_seconds=20, vms_most=2)


def test_more_than_promised_counts_once_it_was_asked_for() -> None:
    arrives = VmArrived(at_ms=10_000, vm=own("b", None))
    world = a_world(own("a"), happenings=(arrives,))
    boot(world, "b", 12, 18)
    assert breach(world, 100) == Breach(times=1, seconds=8, vm_seconds=8, vms_most=1)


def test_who_leaves_is_missed_only_below_the_least() -> None:
    gone = tuple(VmLeft(at_ms=1000 * at, vm=VmId(vm)) for at, vm in ((10, "a"), (20, "b")))
    world = a_world(own("a"), own("b"), own("c"), least=2, happenings=gone)
    assert breach(world, 20) == Breach(times=1, vms_most=1)
    assert breach(world, 50) == Breach(times=1, seconds=30, vm_seconds=30, vms_most=1)


def test_a_crashed_vm_that_leaves_is_not_missed_any_more() -> None:
    gone = (crash("a", 10), VmLeft(at_ms=25_000, vm=VmId("a")))
    world = a_world(own("a"), own("b"), happenings=gone)
    assert breach(world, 100) == Breach(times=1, seconds=15, vm_seconds=15, vms_most=1)


@pytest.mark.parametrize("action", [Kill(vm=VmId("a")), Suspend(vm=VmId("a"), source=H1)])
def test_who_was_ended_or_put_to_sleep_on_purpose_is_missed_only_below_the_least(
    action: Kill | Suspend,
) -> None:
    for least, missed in ((1, Breach()), (2, Breach(times=1, seconds=9, vm_seconds=9, vms_most=1))):
        world = a_world(own("a"), own("b"), least=least)
        world.perform(Start(a_step("s", action), 1))
        assert breach(world, 10) == missed


def test_vms_of_nobody_and_of_others_do_not_count() -> None:
    world = a_world(a_vm("x", "h1"), own("a", tenant="bank"), happenings=(crash("x", 10),), least=1)
    assert breach(world, 20).seconds == 20, "the shop has none"
    assert breach(world, 20, "bank") == Breach()


def test_asking_in_between_changes_nothing() -> None:
    often = a_world(own("a"), happenings=(crash("a", 10),))
    for at in range(0, 100, 7):
        breach(often, at)
    assert breach(often, 100) == Breach(times=1, seconds=90, vm_seconds=90, vms_most=1)


def test_a_vm_that_is_still_to_be_made_is_nobody_yet() -> None:
    world = a_world(own("a", None, state=VmState.INIT, template="debian"))
    assert breach(world, 50) == Breach()
