from __future__ import annotations

from typing import Any

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    EnterMaintenance,
    Forge,
    Kill,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.event import ActionStarted
from equipoise.model.host import Host, HostReserve, HostState
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.vm import CpuSettings, MemorySettings, Vm, VmState
from equipoise.plan.ledger import Ledger
from equipoise.plan.objections import objections

H1, H2, V1 = HostId("h1"), HostId("h2"), VmId("v1")
TO_H2 = Migrate(vm=V1, source=H1, target=H2)
LICENCES = ResourceName("licences")


def against(
    action: Action,
    *vms: Vm,
    running: tuple[Action, ...] = (),
    h1: dict[str, Any] | None = None,
    h2: dict[str, Any] | None = None,
) -> list[tuple[str, str]]:
    """What speaks against an action in a cluster of two hosts with some actions under way."""
    hosts: tuple[Host, ...] = (a_host("h1", **h1 or {}), a_host("h2", **h2 or {}))
    ledger = Ledger(a_cluster(*hosts, vms=vms))
    for number, action_before in enumerate(running):
        step = a_step(f"s{number}", action_before)
        ledger.apply(ActionStarted(at_ms=0, step=step, attempt=1))
    return [(one.constraint, one.detail) for one in objections(ledger, action)]


@pytest.mark.parametrize(
    ("action", "vm", "text"),
    [
        (TO_H2, a_vm("v1"), "v1 is ready, not running"),
        (TO_H2, a_vm("v1", "h2"), "v1 is on h2, not on h1"),
        (Migrate(vm=V1, source=H1, target=H1), a_vm("v1", "h1"), "v1 is already on h1"),
        (TO_H2, a_vm("v1", "h1", agent=True), "v1 is an agent of h1 and stays with it"),
        (Boot(vm=V1, target=H1), a_vm("v1", "h1"), "v1 is running, not ready"),
        (Shutdown(vm=V1, source=H1), a_vm("v1"), "v1 is ready, not running"),
        (Suspend(vm=V1, source=H2), a_vm("v1", "h1"), "v1 is on h1, not on h2"),
        (Resume(vm=V1, source=H1, target=H2), a_vm("v1", "h1"), "v1 is running, not sleeping"),
        (Allocate(vm=V1, resource=LICENCES, amount=0), a_vm("v1"), "v1 is ready, not running"),
        (Forge(vm=V1), a_vm("v1", state=VmState.INIT), "v1 has no template to be forged from"),
        (Forge(vm=V1), a_vm("v1", template="t"), "v1 is ready, not init"),
        (
            Kill(vm=V1),
            a_vm("v1", state=VmState.TERMINATED),
            "v1 is already terminated",
        ),
        (Kill(vm=VmId("v9")), a_vm("v1"), "there is no VM v9"),
    ],
)
def test_a_vm_must_be_where_and_how_the_action_needs_it(action: Action, vm: Vm, text: str) -> None:
    assert [detail for _, detail in against(action, vm)] == [text]


@pytest.mark.parametrize(
    ("action", "state", "text"),
    [
        (PowerOn(host=H2), HostState.ON, "h2 is on, not standby"),
        (PowerOff(host=H2), HostState.STANDBY, "h2 is standby, not on"),
        (EnterMaintenance(host=H2), HostState.FAILED, "h2 is failed, not on"),
        (LeaveMaintenance(host=H2), HostState.ON, "h2 is on, not maintenance"),
        (PowerOn(host=HostId("h9")), HostState.ON, "there is no host h9"),
    ],
)
def test_a_host_must_be_in_the_right_state(action: Action, state: HostState, text: str) -> None:
    assert [detail for _, detail in against(action, h2={"state": state})] == [text]


def test_a_host_is_switched_off_only_when_nothing_but_agents_is_left() -> None:
    off = PowerOff(host=H1)
    assert against(off, a_vm("v1", "h1")) == [("host_empty", "h1 still has v1")]
    sleeping = a_vm("v1", "h1", state=VmState.SLEEPING)
    assert against(off, sleeping) == [("host_empty", "h1 still has v1")]
    assert against(off, a_vm("v1", "h1", agent=True)) == []
    many = [a_vm(f"v{n}", "h1") for n in range(5)]
    assert against(off, *many) == [("host_empty", "h1 still has v0, v1, v2 and 2 more")]


def test_a_host_in_use_is_not_switched_and_one_being_switched_is_not_used() -> None:
    vm = a_vm("v1", "h1")
    assert against(PowerOff(host=H2), vm, running=(TO_H2,)) == [
        ("host_life", "h2 is still part of step s0")
    ]
    assert against(TO_H2, vm, running=(PowerOff(host=H2),)) == [
        ("host_on", "target h2 is being switched by s0")
    ]
    boot = Boot(vm=VmId("v2"), target=H2)
    waking = {"state": HostState.STANDBY}
    assert against(boot, a_vm("v2"), running=(PowerOn(host=H2),), h2=waking) == [
        ("host_on", "target h2 is standby, not on"),
        ("host_on", "target h2 is being switched by s0"),
    ]


def test_a_vm_takes_part_in_one_action_at_a_time() -> None:
    shutdown = Shutdown(vm=V1, source=H1)
    assert against(shutdown, a_vm("v1", "h1"), running=(TO_H2,)) == [
        ("one_action", "v1 is still part of step s0")
    ]


@pytest.mark.parametrize("state", [HostState.STANDBY, HostState.MAINTENANCE, HostState.FAILED])
def test_a_target_must_be_on(state: HostState) -> None:
    assert against(TO_H2, a_vm("v1", "h1"), h2={"state": state}) == [
        ("host_on", f"target h2 is {state}, not on")
    ]


def test_a_sleeping_vm_cannot_leave_a_dead_host() -> None:
    resume = Resume(vm=V1, source=H1, target=H2)
    sleeping = a_vm("v1", "h1", state=VmState.SLEEPING)
    assert against(resume, sleeping, h1={"state": HostState.FAILED}) == [
        ("host_on", "source h1 is failed, not on")
    ]


def test_a_vm_does_not_fit_where_there_are_too_few_cores() -> None:
    assert against(TO_H2, a_vm("v1", "h1", vcpus=5), h2={"cores": 4}) == [
        ("fits", "v1 has 5 vCPUs, h2 only 4 cores")
    ]


def reserving(name: str, host: str | None, mhz: int = 0, mib: int = 0) -> Vm:
    return a_vm(
        name,
        host,
        cpu=CpuSettings(reservation_mhz=mhz),
        memory=MemorySettings(reservation_mib=mib),
    )


def test_reservations_must_fit_beside_each_other() -> None:
    full = reserving("v2", "h2", mhz=3500)
    assert against(TO_H2, reserving("v1", "h1", mhz=500), full) == []
    assert against(TO_H2, reserving("v1", "h1", mhz=501), full) == [
        ("capacity", "v1 needs 501 MHz of CPU on h2, which has 500 of 4000 left")
    ]


def test_what_a_host_keeps_for_itself_is_not_for_vms() -> None:
    reserve = {"memory_mib": 1000, "reserve": HostReserve(memory_mib=200)}
    assert against(TO_H2, reserving("v1", "h1", mib=801), h2=reserve) == [
        ("capacity", "v1 needs 801 MiB of memory on h2, which has 800 of 800 left")
    ]


def test_a_vm_on_its_way_holds_room_on_both_ends() -> None:
    mover, other = reserving("v1", "h1", mhz=3000), reserving("v2", "h2", mhz=500)
    assert (
        against(Migrate(vm=VmId("v2"), source=H2, target=H1), mover, other, running=(TO_H2,)) == []
    )
    bigger = reserving("v2", "h2", mhz=1001)
    assert against(
        Migrate(vm=VmId("v2"), source=H2, target=H1), mover, bigger, running=(TO_H2,)
    ) == [("capacity", "v2 needs 1001 MHz of CPU on h1, which has 1000 of 4000 left")]
    third = reserving("v3", None, mhz=501)
    assert against(Boot(vm=VmId("v3"), target=H2), mover, other, third, running=(TO_H2,)) == [
        ("capacity", "v3 needs 501 MHz of CPU on h2, which has 500 of 4000 left")
    ]


def test_an_overfull_host_still_accepts_what_adds_nothing() -> None:
    overfull = reserving("v2", "h2", mhz=9000)
    assert against(TO_H2, reserving("v1", "h1"), overfull) == []


def test_named_resources_count_like_the_others() -> None:
    hungry = a_vm("v1", "h1", consumption={LICENCES: 2})
    assert against(TO_H2, hungry, h2={"capacity": {LICENCES: 2}}) == []
    assert against(TO_H2, hungry) == [
        ("capacity", "v1 needs 2 licences on h2, which has 0 of 0 left")
    ]


def test_growing_needs_room_and_shrinking_does_not() -> None:
    vm = a_vm("v1", "h1", consumption={LICENCES: 2})
    offer = {"capacity": {LICENCES: 3}}
    assert against(Allocate(vm=V1, resource=LICENCES, amount=3), vm, h1=offer) == []
    assert against(Allocate(vm=V1, resource=LICENCES, amount=0), vm, h1=offer) == []
    assert against(Allocate(vm=V1, resource=LICENCES, amount=5), vm, h1=offer) == [
        ("capacity", "v1 needs 3 more licences on h1, which has 1 of 3 left")
    ]


def test_the_halves_of_a_fault_tolerant_pair_never_meet() -> None:
    first, second = a_vm("v1", "h1", ft_pair=VmId("v2")), a_vm("v2", "h2", ft_pair=V1)
    assert against(TO_H2, first, second) == [("ft_pair", "v2, the other half of v1, is on h2")]
    away = Boot(vm=VmId("v2"), target=H2)
    waiting = a_vm("v2", ft_pair=V1)
    assert against(away, first, waiting, running=(TO_H2,)) == [
        ("ft_pair", "v1, the other half of v2, is on h2")
    ]
