"""VMs without room, and hosts that save power: where, what and the cure."""

from __future__ import annotations

import json

import pytest

from builders import a_host
from equipoise.model.files import parse_inventory, parse_scenario, problems_of
from equipoise.model.host import PowerFigures
from equipoise.model.inventory import Inventory
from unit.model.files.file_texts import (
    HOSTS,
    STORY,
    check_story,
    problems,
    some_hosts,
    some_vms,
    story_problems,
    the_problem,
    the_story_problem,
    with_fleets,
)

ROOM_CASES = [
    (
        ", memory_mib: 16385",
        "memory_mib: 16385 is more than any host has for VMs (at most 16384, or a larger host)",
    ),
    (
        ", memory_mib: 1024, cpu: {reservation_mhz: 4001}",
        (
            "cpu.reservation_mhz: 4001 is more than any host has for VMs "
            "(at most 4000, or a larger host)"
        ),
    ),
]


@pytest.mark.parametrize(("like", "told"), ROOM_CASES)
def test_a_vm_that_fits_nowhere(like: str, told: str) -> None:
    vm = f"{{id: big, vcpus: 1{like}"
    assert the_story_problem(f"fleet: {{vms: [{{count: 1, like: {vm}}}}}]}}\n") == (
        f"line 10: fleet.vms[0].like.{told}"
    )
    arriving = f"happenings: [{{event: vm_arrived, at_ms: 1, vm: {vm}, state: ready}}}}]\n"
    assert the_story_problem(arriving) == f"line 10: happenings[0].vm.{told}"
    listed = STORY.replace("  tenants", f"    - {vm}, host: h1}}\n  tenants")
    assert str(the_problem(listed, kind="scenario")) == f"line 9: cluster.vms[1].{told}"
    gone = listed.replace("host: h1}\n  ten", "state: terminated}\n  ten")
    parse_scenario(gone.encode(), "f.yaml")


@pytest.mark.parametrize(
    "larger",
    [
        (
            "fleet: {hosts: [{count: 1, like: {id: b, cores: 8, mhz_per_core: 1000, "
            "memory_mib: 20000}}]}\n"
        ),
        (
            "happenings: [{event: host_joined, at_ms: 5, host: {id: b, cores: 8, "
            "mhz_per_core: 1000, memory_mib: 20000}}]\n"
        ),
        (
            "fleet: {hosts: [{count: 0, like: {id: b, cores: 8, mhz_per_core: 1000, "
            "memory_mib: 20000}}]}\nunrest: {hosts: [{fleet: b, per_day: 1}]}\n"
        ),
    ],
)
def test_a_larger_host_may_come(larger: str) -> None:
    vm = "{id: big, vcpus: 1, memory_mib: 20000, cpu: {reservation_mhz: 8000}, state: ready}"
    content = STORY.replace("  tenants", f"    - {vm}\n  tenants") + larger
    parse_scenario(content.encode(), "f.yaml")


def test_the_overhead_needs_room_too() -> None:
    content = STORY.replace("memory_mib: 1024", "memory_mib: 16384")
    parse_scenario(content.encode(), "f.yaml")
    told = the_problem(content + "physics: {overhead_mib: 100}\n", kind="scenario")
    assert (told.key, told.what, told.cure) == (
        "cluster.vms[0].memory_mib",
        "16384 with overhead_mib 100 is more than any host has for VMs",
        "at most 16284, or a larger host",
    )
    told = the_problem(content + "physics: {overhead_mib: 20000}\n", kind="scenario")
    assert told.cure == "a larger host"


def test_memory_and_cpu_must_fit_on_the_same_host() -> None:
    slow = "{id: slow, cores: 1, mhz_per_core: 1000, memory_mib: 99999}"
    vm = "{id: big, vcpus: 1, memory_mib: 20000, cpu: {reservation_mhz: 2000}}"
    told = the_story_problem(
        f"fleet: {{hosts: [{{count: 1, like: {slow}}}], vms: [{{count: 1, like: {vm}}}]}}\n"
    )
    assert told == (
        "line 10: fleet.vms[0].like.cpu.reservation_mhz: the hosts that have its memory do not "
        "have its CPU reservation (reserve less, or add a larger host)"
    )


def test_what_all_hosts_together_can_guarantee() -> None:
    claims = ", cpu: {reservation_mhz: 1000}, memory: {reservation_mib: 1024}"
    start = ", start: {hosts: [h1]}"
    check_story(with_fleets(vms=some_vms(claims, start, count=8)))
    check_story(with_fleets(vms=some_vms(claims, count=99)))
    check_story(with_fleets(some_hosts(), some_vms(claims, start, count=99)))
    assert story_problems(with_fleets(vms=some_vms(claims, start, count=40))) == [
        (
            "line 12: fleet.vms[0].like.cpu.reservation_mhz: 1000 for each of 40 VMs is more than "
            "all hosts can guarantee (at most 200)"
        ),
        (
            "line 12: fleet.vms[0].like.memory.reservation_mib: 1024 for each of 40 VMs is more "
            "than all hosts can guarantee (at most 819)"
        ),
    ]
    two = f"{some_vms(claims, start, count=5)}, {some_vms(claims, start, 'db', 4)}"
    assert the_story_problem(with_fleets(vms=two)) == (
        "line 12: fleet.vms[1].like.cpu.reservation_mhz: 1000 for each of 4 VMs is more than "
        "all hosts can guarantee (at most 750)"
    )


def test_an_overfull_host_is_a_state_and_no_slip() -> None:
    claims = ", host: h1, cpu: {reservation_mhz: 4000}"
    crowd = "".join(f"    - {{id: c{n}, vcpus: 1, memory_mib: 16384{claims}}}\n" for n in range(20))
    parse_scenario(STORY.replace("  tenants", crowd + "  tenants").encode(), "f.yaml")


def test_no_room_is_not_judged_when_a_host_cannot_be_read() -> None:
    content = STORY.replace("id: h1, cores: 4", "id: h1, cores: 0").replace("1024", "99999")
    assert [problem.key for problem in problems(content, kind="scenario")] == [
        "cluster.hosts[0].cores"
    ]


POWER_CASES = [
    ("managed: true", "", "has 0 of at least 2 figures, though managed is true"),
    (
        "managed: true, managed_watts: [5]",
        "",
        "has 1 of at least 2 figures, though managed is true",
    ),
    ("managed_watts: [5, 9, 8]", "[2]", "8 is below the figure before it, 9"),
]


@pytest.mark.parametrize(("power", "key", "what"), POWER_CASES)
def test_hosts_that_save_power_by_themselves(power: str, key: str, what: str) -> None:
    problem = the_problem(HOSTS.replace("16384}", f"16384, power: {{{power}}}}}", 1))
    assert (problem.line, problem.key, problem.what) == (
        2,
        f"hosts[0].power.managed_watts{key}",
        what,
    )
    cures = ("at least 9", "give the watts from no use to full use, evenly spaced")
    assert problem.cure in cures


def test_figures_may_stay_the_same() -> None:
    power = PowerFigures(managed=True, managed_watts=(90, 90, 200))
    assert problems_of(Inventory(hosts=(a_host(power=power),))) == []
    text = json.dumps({"hosts": [{"id": "h", "cores": 1, "mhz_per_core": 1, "memory_mib": 1}]})
    assert parse_inventory(text.encode(), "f.json").hosts[0].power == PowerFigures()
