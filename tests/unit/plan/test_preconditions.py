from __future__ import annotations

import re
from typing import Any

import pytest

from builders import a_cluster, a_host, a_step, a_vm, facts
from equipoise.capacity.ledger import CapacityLedger
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
from equipoise.plan.preconditions import failed_preconditions

H1, H2, V1 = HostId("h1"), HostId("h2"), VmId("v1")
TO_H2 = Migrate(vm=V1, source=H1, target=H2)
LICENCES = ResourceName("licences")


def reasons(
    action: Action,
    *vms: Vm,
    running: tuple[Action, ...] = (),
    h1: dict[str, Any] | None = None,
    h2: dict[str, Any] | None = None,
) -> list[tuple[str, str, str]]:
    """Return why an action may not start in a cluster of two hosts with actions under way."""
    hosts: tuple[Host, ...] = (a_host("h1", **h1 or {}), a_host("h2", **h2 or {}))
    ledger = CapacityLedger(a_cluster(*hosts, vms=vms))
    for number, action_before in enumerate(running):
        step = a_step(f"s{number}", action_before)
        ledger.apply(ActionStarted(at_ms=0, step=step, attempt=1))
    found = failed_preconditions(ledger, action)
    return [(reason.constraint, reason.code, reason.detail) for reason in found]


def codes(*arguments: Any, **options: Any) -> list[tuple[str, str]]:
    return [(constraint, code) for constraint, code, _ in reasons(*arguments, **options)]


@pytest.mark.parametrize(
    ("action", "vm", "code"),
    [
        (TO_H2, a_vm("v1"), "wrong-state"),
        (TO_H2, a_vm("v1", "h2"), "wrong-state"),
        (Migrate(vm=V1, source=H1, target=H1), a_vm("v1", "h1"), "wrong-state"),
        (TO_H2, a_vm("v1", "h1", agent=True), "agent-pinned"),
        (Boot(vm=V1, target=H1), a_vm("v1", "h1"), "wrong-state"),
        (Shutdown(vm=V1, source=H1), a_vm("v1"), "wrong-state"),
        (Suspend(vm=V1, source=H2), a_vm("v1", "h1"), "wrong-state"),
        (Resume(vm=V1, source=H1, target=H2), a_vm("v1", "h1"), "wrong-state"),
        (Allocate(vm=V1, resource=LICENCES, amount=0), a_vm("v1"), "wrong-state"),
        (Forge(vm=V1), a_vm("v1", state=VmState.INIT), "no-template"),
        (Forge(vm=V1), a_vm("v1", template="t"), "wrong-state"),
        (Kill(vm=V1), a_vm("v1", state=VmState.TERMINATED), "wrong-state"),
        (Kill(vm=VmId("v9")), a_vm("v1"), "object-not-found"),
    ],
)
def test_a_vm_must_have_the_state_and_host_of_the_action(action: Action, vm: Vm, code: str) -> None:
    assert [found for _, found in codes(action, vm)] == [code]


def test_a_wrong_state_is_named_with_the_right_one() -> None:
    ((_, _, detail),) = reasons(TO_H2, a_vm("v1"))
    assert [state for state in VmState if state in detail] == [VmState.READY, VmState.RUNNING]
    ((_, _, detail),) = reasons(TO_H2, a_vm("v1", "h2"))
    assert facts(detail) == ["v1", "h2", "h1"]


@pytest.mark.parametrize(
    ("action", "state", "code"),
    [
        (PowerOn(host=H2), HostState.ON, "wrong-state"),
        (PowerOff(host=H2), HostState.STANDBY, "wrong-state"),
        (EnterMaintenance(host=H2), HostState.FAILED, "wrong-state"),
        (LeaveMaintenance(host=H2), HostState.ON, "wrong-state"),
        (PowerOn(host=HostId("h9")), HostState.ON, "object-not-found"),
    ],
)
def test_a_host_must_be_in_the_right_state(action: Action, state: HostState, code: str) -> None:
    assert [found for _, found in codes(action, h2={"state": state})] == [code]


def test_a_host_is_switched_off_only_when_only_agents_remain() -> None:
    off = PowerOff(host=H1)
    not_empty = [("host_empty", "host-not-empty")]
    assert codes(off, a_vm("v1", "h1")) == not_empty
    sleeping = a_vm("v1", "h1", state=VmState.SLEEPING)
    assert codes(off, sleeping) == not_empty
    assert codes(off, a_vm("v1", "h1", agent=True)) == []
    many = [a_vm(f"v{n}", "h1") for n in range(5)]
    assert codes(off, *many) == not_empty
    ((_, _, detail),) = reasons(off, *many)
    assert facts(detail) == ["h1", "v0", "v1", "v2", "2"]


def test_a_used_host_is_not_switched_and_a_switching_host_is_not_used() -> None:
    vm = a_vm("v1", "h1")
    assert codes(PowerOff(host=H2), vm, running=(TO_H2,)) == [("host_life", "action-in-progress")]
    assert codes(TO_H2, vm, running=(PowerOff(host=H2),)) == [("host_on", "host-not-on")]
    boot = Boot(vm=VmId("v2"), target=H2)
    waking = {"state": HostState.STANDBY}
    found = reasons(boot, a_vm("v2"), running=(PowerOn(host=H2),), h2=waking)
    assert [(rule, code, facts(detail)) for rule, code, detail in found] == [
        ("host_on", "host-not-on", ["h2"]),
        ("host_on", "host-not-on", ["h2", "s0"]),
    ]


def test_a_vm_takes_part_in_one_action_at_a_time() -> None:
    shutdown = Shutdown(vm=V1, source=H1)
    assert codes(shutdown, a_vm("v1", "h1"), running=(TO_H2,)) == [
        ("one_action", "action-in-progress")
    ]


@pytest.mark.parametrize("state", [HostState.STANDBY, HostState.MAINTENANCE, HostState.FAILED])
def test_a_target_must_be_on(state: HostState) -> None:
    assert codes(TO_H2, a_vm("v1", "h1"), h2={"state": state}) == [("host_on", "host-not-on")]


def test_a_sleeping_vm_cannot_leave_a_failed_host() -> None:
    resume = Resume(vm=V1, source=H1, target=H2)
    sleeping = a_vm("v1", "h1", state=VmState.SLEEPING)
    ((rule, code, detail),) = reasons(resume, sleeping, h1={"state": HostState.FAILED})
    assert (rule, code, facts(detail)) == ("host_on", "host-not-on", ["h1"])


def test_a_vm_does_not_fit_on_a_host_with_too_few_cores() -> None:
    assert codes(TO_H2, a_vm("v1", "h1", vcpus=5), h2={"cores": 4}) == [
        ("fits", "vcpus-exceed-cores")
    ]


def reserving(name: str, host: str | None, mhz: int = 0, mib: int = 0) -> Vm:
    return a_vm(
        name,
        host,
        cpu=CpuSettings(reservation_mhz=mhz),
        memory=MemorySettings(reservation_mib=mib),
    )


def too_little(*arguments: Any, **options: Any) -> list[tuple[str, list[int]]]:
    """Return the code of each reason with its figures: needed, left and offered."""
    return [
        (code, [int(number) for number in re.findall(r"\b\d+\b", detail)])
        for _, code, detail in reasons(*arguments, **options)
    ]


def test_reservations_must_fit_beside_each_other() -> None:
    full = reserving("v2", "h2", mhz=3500)
    assert reasons(TO_H2, reserving("v1", "h1", mhz=500), full) == []
    assert too_little(TO_H2, reserving("v1", "h1", mhz=501), full) == [
        ("no-capacity", [501, 500, 4000])
    ]


def test_the_reserve_of_a_host_is_not_for_vms() -> None:
    reserve = {
        "memory_mib": 1000,
        "reserve": HostReserve(memory_mib=200),
        "memory_overcommit": 2,
    }
    assert too_little(TO_H2, reserving("v1", "h1", mib=801), h2=reserve) == [
        ("no-capacity", [801, 800, 800])
    ]


def test_a_migrating_vm_holds_capacity_on_source_and_target() -> None:
    mover, other = reserving("v1", "h1", mhz=3000), reserving("v2", "h2", mhz=500)
    to_h1 = Migrate(vm=VmId("v2"), source=H2, target=H1)
    assert reasons(to_h1, mover, other, running=(TO_H2,)) == []
    bigger = reserving("v2", "h2", mhz=1001)
    assert too_little(to_h1, mover, bigger, running=(TO_H2,)) == [
        ("no-capacity", [1001, 1000, 4000])
    ]
    third = reserving("v3", None, mhz=501)
    boot = Boot(vm=VmId("v3"), target=H2)
    assert too_little(boot, mover, other, third, running=(TO_H2,)) == [
        ("no-capacity", [501, 500, 4000])
    ]


def test_an_overfull_host_still_accepts_a_vm_without_reservations() -> None:
    overfull = reserving("v2", "h2", mhz=9000)
    assert reasons(TO_H2, reserving("v1", "h1"), overfull) == []


def test_named_resources_count_like_the_others() -> None:
    hungry = a_vm("v1", "h1", consumption={LICENCES: 2})
    assert reasons(TO_H2, hungry, h2={"capacity": {LICENCES: 2}}) == []
    assert too_little(TO_H2, hungry) == [("no-capacity", [2, 0, 0])]


def test_growing_needs_capacity_and_shrinking_does_not() -> None:
    vm = a_vm("v1", "h1", consumption={LICENCES: 2})
    offer = {"capacity": {LICENCES: 3}}
    assert reasons(Allocate(vm=V1, resource=LICENCES, amount=3), vm, h1=offer) == []
    assert reasons(Allocate(vm=V1, resource=LICENCES, amount=0), vm, h1=offer) == []
    assert too_little(Allocate(vm=V1, resource=LICENCES, amount=5), vm, h1=offer) == [
        ("no-capacity", [3, 1, 3])
    ]


def test_the_vms_of_a_fault_tolerant_pair_never_share_a_host() -> None:
    first, second = a_vm("v1", "h1", ft_pair=VmId("v2")), a_vm("v2", "h2", ft_pair=V1)
    assert codes(TO_H2, first, second) == [("ft_pair", "ft-pair-conflict")]
    away = Boot(vm=VmId("v2"), target=H2)
    waiting = a_vm("v2", ft_pair=V1)
    assert codes(away, first, waiting, running=(TO_H2,)) == [("ft_pair", "ft-pair-conflict")]
