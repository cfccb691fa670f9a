"""From fleets to hosts and VMs: their names, their places and their loads."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from builders import a_host, a_vm, an_inventory
from equipoise.model.quantity import HostId, VmId
from equipoise.model.story.fleet import Dealing, Fleet, HostFleet, Start, VmFleet, member_id
from equipoise.model.story.load import Constant, Load
from equipoise.model.story.scenario import Scenario
from equipoise.model.vm import VmState
from equipoise.sim.unfold import unfold

LOADS = {
    "light": Load(cpu_mhz=(Constant(level=1),)),
    "heavy": Load(cpu_mhz=(Constant(level=9),)),
}


def a_story(*hosts: HostFleet, vms: tuple[VmFleet, ...] = (), **fields: Any) -> Scenario:
    given: dict[str, Any] = {"cluster": an_inventory(a_host("h1"), a_host("h2")), "loads": LOADS}
    return Scenario(
        name="fleets", duration_s=10, fleet=Fleet(hosts=hosts, vms=vms), **given | fields
    )


def esx(count: int) -> HostFleet:
    return HostFleet(count=count, like=a_host("esx"))


def web(count: int, *hosts: str, load: str | None = None, **start: Any) -> VmFleet:
    beginning = Start(hosts=hosts, **start) if hosts else None
    return VmFleet(count=count, like=a_vm("web"), load=load, start=beginning)


def places(scenario: Scenario) -> list[str | None]:
    return [vm.host for vm in unfold(scenario).inventory.vms]


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
    names = [host.id for host in unfold(a_story(esx(count))).inventory.hosts][2:]
    assert len(names) == len(set(names)) == count
    assert (names[0], names[-1]) == (first, last)
    assert names == sorted(names)


def test_a_member_is_like_its_fleet() -> None:
    fleet = HostFleet(count=2, like=a_host("big", cores=64, labels={"rack": "7"}))
    guests = VmFleet(count=1, like=a_vm("db", vcpus=8, memory_mib=77), load=None)
    cast = unfold(a_story(fleet, vms=(guests,)))
    assert cast.inventory.hosts[2:] == (
        fleet.like.but(id=HostId("big-1")),
        fleet.like.but(id=HostId("big-2")),
    )
    assert cast.inventory.vms == (guests.like.but(id=VmId("db-1"), state=VmState.READY),)


def test_those_of_the_cluster_come_first() -> None:
    cluster = an_inventory(a_host("h1"), vms=[a_vm("v1", "h1")])
    cast = unfold(a_story(esx(1), vms=(web(2),), cluster=cluster))
    assert [host.id for host in cast.inventory.hosts] == ["h1", "esx-1"]
    assert [vm.id for vm in cast.inventory.vms] == ["v1", "web-1", "web-2"]
    assert cast.inventory.name == cluster.name


def test_a_fleet_of_nobody_is_a_pattern_for_newcomers() -> None:
    cast = unfold(a_story(esx(0), vms=(web(0, load="light"),)))
    assert len(cast.inventory.hosts) == 2
    assert not cast.inventory.vms
    assert not cast.loads
    assert set(cast.host_fleets) == {"esx"}
    assert set(cast.vm_fleets) == {"web"}


def test_without_a_start_vms_are_ready_and_nowhere() -> None:
    cast = unfold(a_story(vms=(web(3),)))
    assert {(vm.state, vm.host) for vm in cast.inventory.vms} == {(VmState.READY, None)}


def test_dealt_evenly_means_round_and_round() -> None:
    story = a_story(esx(3), vms=(web(5, "esx", "h1"),))
    assert places(story) == ["esx-1", "esx-2", "esx-3", "h1", "esx-1"]
    assert {vm.state for vm in unfold(story).inventory.vms} == {VmState.RUNNING}


@pytest.mark.parametrize(
    ("first", "expected"),
    [(1, ["esx-1"] * 4), (2, ["esx-1", "esx-2"] * 2), (99, ["esx-1", "esx-2", "esx-3", "h2"])],
)
def test_only_the_first_so_many_hosts_are_used(first: int, expected: list[str]) -> None:
    assert places(a_story(esx(3), vms=(web(4, "esx", "h2", first=first),))) == expected


def test_a_single_member_may_be_named_as_a_place() -> None:
    assert places(a_story(esx(12), vms=(web(2, "esx-03", "esx-12"),))) == ["esx-03", "esx-12"]


def test_dealt_randomly_is_the_same_each_time_and_another_with_another_seed() -> None:
    fleet = web(300, "esx", dealt=Dealing.RANDOMLY)
    first, again, other = (places(a_story(esx(10), vms=(fleet,), seed=seed)) for seed in (7, 7, 8))
    assert first == again
    assert first != other
    counts = Counter(first)
    assert len(counts) == 10
    assert all(9 < many < 56 for many in counts.values()), "30 each, within five sigma"


def test_two_fleets_draw_apart() -> None:
    web_fleet = web(50, "esx", dealt=Dealing.RANDOMLY)
    twin = web_fleet.but(like=a_vm("db"))
    drawn = places(a_story(esx(10), vms=(web_fleet, twin)))
    assert drawn[:50] != drawn[50:]


def test_loads_go_to_the_members_and_to_those_who_are_named() -> None:
    cluster = an_inventory(a_host("h1"), vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    wishes = {VmId("v2"): "heavy", VmId("to-come"): "heavy"}
    cast = unfold(a_story(vms=(web(2, load="light"),), cluster=cluster, vm_loads=wishes))
    assert dict(cast.loads) == {
        "v2": LOADS["heavy"],
        "web-1": LOADS["light"],
        "web-2": LOADS["light"],
    }, "one who is still to come has none yet"


def test_names_are_those_that_files_are_checked_against() -> None:
    names = [vm.id for vm in unfold(a_story(vms=(web(25),))).inventory.vms]
    assert names == [member_id("web", number, 25) for number in range(1, 26)]
