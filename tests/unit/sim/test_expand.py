"""Fleets become hosts and VMs: their names, first hosts and loads."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from builders import a_host, a_vm, an_inventory
from equipoise.model.quantity import HostId, VmId
from equipoise.model.scenario.load import ConstantLoad, Load
from equipoise.model.scenario.scenario import (
    FleetPlacement,
    FleetPlacementOrder,
    Fleets,
    HostFleet,
    Scenario,
    VmFleet,
    fleet_member_id,
)
from equipoise.model.vm import VmState
from equipoise.sim.expand import expand

LOADS = {
    "light": Load(cpu_mhz=(ConstantLoad(level=1),)),
    "heavy": Load(cpu_mhz=(ConstantLoad(level=9),)),
}


def a_scenario(*hosts: HostFleet, vms: tuple[VmFleet, ...] = (), **fields: Any) -> Scenario:
    given: dict[str, Any] = {"cluster": an_inventory(a_host("h1"), a_host("h2")), "loads": LOADS}
    return Scenario(
        name="fleets", duration_s=10, fleet=Fleets(hosts=hosts, vms=vms), **given | fields
    )


def esx(count: int) -> HostFleet:
    return HostFleet(count=count, like=a_host("esx"))


def web(count: int, *hosts: str, load: str | None = None, **start: Any) -> VmFleet:
    beginning = FleetPlacement(hosts=hosts, **start) if hosts else None
    return VmFleet(count=count, like=a_vm("web"), load=load, start=beginning)


def places(scenario: Scenario) -> list[str | None]:
    return [vm.host for vm in expand(scenario).inventory.vms]


@pytest.mark.parametrize(
    ("count", "first", "last"),
    [
        (1, "esx-1", "esx-1"),
        (9, "esx-1", "esx-9"),
        (10, "esx-01", "esx-10"),
        (120, "esx-001", "esx-120"),
    ],
)
def test_members_are_numbered_from_1_with_as_many_digits_as_the_count(
    count: int, first: str, last: str
) -> None:
    names = [host.id for host in expand(a_scenario(esx(count))).inventory.hosts][2:]
    assert len(names) == len(set(names)) == count
    assert (names[0], names[-1]) == (first, last)
    assert names == sorted(names)


def test_a_member_is_like_its_fleet() -> None:
    fleet = HostFleet(count=2, like=a_host("big", cores=64, labels={"rack": "7"}))
    guests = VmFleet(count=1, like=a_vm("db", vcpus=8, memory_mib=77), load=None)
    expanded = expand(a_scenario(fleet, vms=(guests,)))
    assert expanded.inventory.hosts[2:] == (
        fleet.like.but(id=HostId("big-1")),
        fleet.like.but(id=HostId("big-2")),
    )
    assert expanded.inventory.vms == (guests.like.but(id=VmId("db-1"), state=VmState.READY),)


def test_named_hosts_and_vms_come_before_fleets() -> None:
    cluster = an_inventory(a_host("h1"), vms=[a_vm("v1", "h1")])
    expanded = expand(a_scenario(esx(1), vms=(web(2),), cluster=cluster))
    assert [host.id for host in expanded.inventory.hosts] == ["h1", "esx-1"]
    assert [vm.id for vm in expanded.inventory.vms] == ["v1", "web-1", "web-2"]
    assert expanded.inventory.name == cluster.name


def test_an_empty_fleet_is_a_template_for_arrivals() -> None:
    expanded = expand(a_scenario(esx(0), vms=(web(0, load="light"),)))
    assert len(expanded.inventory.hosts) == 2
    assert not expanded.inventory.vms
    assert not expanded.loads
    assert set(expanded.host_fleets) == {"esx"}
    assert set(expanded.vm_fleets) == {"web"}


def test_vms_without_a_start_are_ready_and_unplaced() -> None:
    expanded = expand(a_scenario(vms=(web(3),)))
    assert {(vm.state, vm.host) for vm in expanded.inventory.vms} == {(VmState.READY, None)}


def test_even_placement_is_round_robin() -> None:
    scenario = a_scenario(esx(3), vms=(web(5, "esx", "h1"),))
    assert places(scenario) == ["esx-1", "esx-2", "esx-3", "h1", "esx-1"]
    assert {vm.state for vm in expand(scenario).inventory.vms} == {VmState.RUNNING}


@pytest.mark.parametrize(
    ("first", "expected"),
    [(1, ["esx-1"] * 4), (2, ["esx-1", "esx-2"] * 2), (99, ["esx-1", "esx-2", "esx-3", "h2"])],
)
def test_a_fleet_can_start_on_the_first_hosts_only(first: int, expected: list[str]) -> None:
    assert places(a_scenario(esx(3), vms=(web(4, "esx", "h2", first=first),))) == expected


def test_a_fleet_can_start_on_a_single_host() -> None:
    assert places(a_scenario(esx(12), vms=(web(2, "esx-03", "esx-12"),))) == ["esx-03", "esx-12"]


def test_random_placement_depends_on_the_seed_alone() -> None:
    fleet = web(300, "esx", assigned=FleetPlacementOrder.RANDOMLY)
    first, again, other = (
        places(a_scenario(esx(10), vms=(fleet,), seed=seed)) for seed in (7, 7, 8)
    )
    assert first == again
    assert first != other
    counts = Counter(first)
    assert len(counts) == 10
    assert all(9 < many < 56 for many in counts.values()), "30 each, within five sigma"


def test_two_fleets_have_their_own_streams() -> None:
    web_fleet = web(50, "esx", assigned=FleetPlacementOrder.RANDOMLY)
    twin = web_fleet.but(like=a_vm("db"))
    drawn = places(a_scenario(esx(10), vms=(web_fleet, twin)))
    assert drawn[:50] != drawn[50:]


def test_loads_go_to_fleet_members_and_named_vms() -> None:
    cluster = an_inventory(a_host("h1"), vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    vm_loads = {VmId("v2"): "heavy", VmId("to-come"): "heavy"}
    expanded = expand(a_scenario(vms=(web(2, load="light"),), cluster=cluster, vm_loads=vm_loads))
    assert dict(expanded.loads) == {
        "v2": LOADS["heavy"],
        "web-1": LOADS["light"],
        "web-2": LOADS["light"],
    }, "a VM that arrives later has no load yet"


def test_names_are_those_that_files_are_checked_against() -> None:
    names = [vm.id for vm in expand(a_scenario(vms=(web(25),))).inventory.vms]
    assert names == [fleet_member_id("web", number, 25) for number in range(1, 26)]
