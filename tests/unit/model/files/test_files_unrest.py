"""What befalls a cluster but cannot, foretold or at random: where, what and the cure."""

from __future__ import annotations

import pytest

from equipoise.model.files import parse_scenario
from unit.model.files.file_texts import (
    STORY,
    check_story,
    problems,
    story_problems,
    the_problem,
    the_story_problem,
)

FLEETS = """\
fleet:
  hosts: [{count: 3, like: {id: esx, cores: 4, mhz_per_core: 1000, memory_mib: 16384}}]
  vms:
    - {count: 9, like: {id: web, vcpus: 1, memory_mib: 1024, tenant: acme}}
    - {count: 9, like: {id: db, vcpus: 1, memory_mib: 1024}}
"""
"""Five lines; what a test adds starts on line 15."""


def with_unrest(unrest: str) -> str:
    return FLEETS + f"unrest: {{{unrest}}}\n"


def test_unrest_that_is_right() -> None:
    check_story(
        FLEETS
        + """\
unrest:
  host_crashes: {per_host_day: 0.1, back_after_s: {low: 60, high: 600}}
  vm_crashes: {per_vm_day: 0.01}
  slow_migrations: {pct: 5, factor: 10}
  hanging_power_ons: {pct: 1}
  monitoring_gaps: {per_day: 2, for_s: {mean: 600, sd: 60}}
  hosts: [{fleet: esx, per_day: 1}]
  vms: [{fleet: web, per_hour: 4, stay_s: {one_of: [60, 600]}}]
  scaling: [{tenant: acme, fleet: web}, {tenant: other, fleet: db, in_below_pct: 0}]
"""
    )


FLEET_CASES = [
    (
        "hosts: [{fleet: exs, per_day: 1}]",
        (
            'hosts[0].fleet: there is no host fleet "exs" (did you mean "esx"? '
            "the host fleets are: esx)"
        ),
    ),
    (
        "hosts: [{fleet: web, per_day: 1}]",
        'hosts[0].fleet: there is no host fleet "web" (the host fleets are: esx)',
    ),
    (
        "vms: [{fleet: esx, per_hour: 1}]",
        'vms[0].fleet: there is no VM fleet "esx" (the VM fleets are: web, db)',
    ),
    (
        "scaling: [{tenant: acme, fleet: we}]",
        (
            'scaling[0].fleet: there is no VM fleet "we" (did you mean "web"? '
            "the VM fleets are: web, db)"
        ),
    ),
    (
        "scaling: [{tenant: acm, fleet: web}]",
        (
            'scaling[0].tenant: there is no tenant "acm" (did you mean "acme"? '
            "the tenants are: acme, other)"
        ),
    ),
    (
        "scaling: [{tenant: other, fleet: web}]",
        'scaling[0].fleet: the VMs of "web" belong to the tenant "acme" (name a fleet of other)',
    ),
    (
        "scaling: [{tenant: acme, fleet: web, in_below_pct: 80}]",
        "scaling[0].in_below_pct: 80 is not below out_above_pct 80 (less than 80)",
    ),
    (
        "hosts: [{fleet: esx, per_day: 1, stay_s: -1}]",
        "hosts[0].stay_s: a time is never below zero (zero or more)",
    ),
    (
        "vms: [{fleet: web, per_hour: 1, stay_s: {low: 9, high: 8}}]",
        "vms[0].stay_s.low: 9 is above high 8 (at most 8)",
    ),
    (
        "host_crashes: {per_host_day: 1, back_after_s: {one_of: [-1, -2]}}",
        "host_crashes.back_after_s: a time is never below zero (zero or more)",
    ),
    (
        "monitoring_gaps: {per_day: 1, for_s: {mean: 5}}",
        "monitoring_gaps.for_s.sd: is missing beside mean (a number)",
    ),
]


@pytest.mark.parametrize(("unrest", "told"), FLEET_CASES)
def test_unrest_that_makes_no_sense(unrest: str, told: str) -> None:
    assert the_story_problem(with_unrest(unrest)) == f"line 15: unrest.{told}"


@pytest.mark.parametrize(
    ("unrest", "key", "most", "count"),
    [
        ("host_crashes: {{per_host_day: {}}}", "host_crashes.per_host_day", 200000, 10000050),
        ("vm_crashes: {{per_vm_day: {}}}", "vm_crashes.per_vm_day", 52631, 10000080),
        ("monitoring_gaps: {{per_day: {}}}", "monitoring_gaps.per_day", 1000000, 10000010),
        ("hosts: [{{fleet: esx, per_day: {}}}]", "hosts[0].per_day", 1000000, 10000010),
        ("vms: [{{fleet: web, per_hour: {}}}]", "vms[0].per_hour", 41666, 10000080),
    ],
)
def test_more_than_a_run_can_live_through(unrest: str, key: str, most: int, count: int) -> None:
    check_story(with_unrest(unrest.format(most)))
    what = f"makes about {count} happenings over the whole run"
    assert the_story_problem(with_unrest(unrest.format(most + 1))) == (
        f"line 15: unrest.{key}: {what} (a lower rate: at most 10000000 of them)"
    )


def test_a_fleet_is_only_known_by_its_name() -> None:
    told = the_story_problem("unrest: {hosts: [{fleet: esx, per_day: 1}]}\n")
    assert told.endswith('there is no host fleet "esx" (no host fleet is listed)')


def test_a_part_of_the_unrest_that_cannot_be_read_does_not_hide_the_rest() -> None:
    told = story_problems(
        with_unrest("vm_crashes: {}, hosts: [{fleet: esx, per_day: -1}, {fleet: exs, per_day: 1}]")
        + "pass_s: 0\nphysics: {migration: {link_mbps: 0}}\ndeciders: [a, a]\n"
    )
    assert [one.split(": ")[1] for one in told] == [
        "unrest.vm_crashes.per_vm_day",
        "unrest.hosts[0].per_day",
        "unrest.hosts[1].fleet",
        "pass_s",
        "physics.migration.link_mbps",
        "deciders[1]",
    ]


def test_deciders_are_named_once_and_asked_at_times() -> None:
    assert the_story_problem("deciders: [spread, drain, spread]\n") == (
        'line 10: deciders[2]: "spread" is named twice, first by deciders[0] on line 10 '
        "(once is enough)"
    )
    assert the_story_problem("pass_s: 0\n") == (
        "line 10: pass_s: 0 is below the allowed range (1 to 1000000000)"
    )
    check_story("deciders: [whoever]\nmeasuring: {window_s: 900000}\n")


HOST = "cores: 4, mhz_per_core: 1000, memory_mib: 16384"
JOINED = f"{{event: host_joined, at_ms: 50, host: {{id: h9, {HOST}}}}}"
ARRIVED = "{event: vm_arrived, at_ms: 50, vm: {id: v9, vcpus: 1, memory_mib: 1, state: ready}}"


def with_happenings(*told: str) -> str:
    """The first on line 11, and so on."""
    return "happenings:\n" + "".join(f"  - {one}\n" for one in told)


def test_happenings_that_are_right() -> None:
    check_story(
        with_happenings(
            "{event: vm_left, at_ms: 70, vm: v9}",
            "{event: host_failed, at_ms: 50, host: h9}".replace("50", "51"),
            JOINED,
            ARRIVED,
            "{event: vm_crashed, at_ms: 50, vm: v9}",
            "{event: vm_arrived, at_ms: 60, "
            "vm: {id: v8, vcpus: 1, memory_mib: 1, host: h9, ft_pair: v7}}",
            "{event: vm_arrived, at_ms: 61, "
            "vm: {id: v7, vcpus: 1, memory_mib: 1, host: h2, ft_pair: v8}}",
            "{event: host_left, at_ms: 80, host: h9}",
            JOINED.replace("50", "90"),
            ARRIVED.replace("50", "90"),
            "{event: monitoring_lost, at_ms: 5, for_ms: 1000000000000}",
            "{event: migrations_slowed, at_ms: 5, for_ms: 5, speed_pct: 10}",
            "{event: power_on_stuck, at_ms: 90, host: h9}",
            "{event: host_recovered, at_ms: 864000000, host: h2}",
        )
    )


HAPPENING_CASES = [
    (
        "{event: host_failed, at_ms: 864000001, host: h1}",
        (
            "at_ms: 864000001 is after the end of the scenario "
            "(at most 864000000, or raise duration_s)"
        ),
    ),
    (
        "{event: power_on_stuck, at_ms: 5, host: h3}",
        'host: there is no host "h3" (the hosts are: h1, h2)',
    ),
    (
        "{event: host_recovered, at_ms: 49, host: h9}",
        'host: "h9" only comes by happenings[0].host.id on line 11 (a later at_ms)',
    ),
    (
        "{event: vm_crashed, at_ms: 49, vm: v9}",
        'vm: "v9" only comes by happenings[1].vm.id on line 12 (a later at_ms)',
    ),
    (
        "{event: vm_left, at_ms: 71, vm: v1}",
        'vm: "v1" has gone by happenings[2] on line 13 (an earlier at_ms, or leave it out)',
    ),
    (
        JOINED.replace("50", "60"),
        'host.id: the id "h9" is taken by happenings[0].host.id on line 11 (every id once)',
    ),
    (
        JOINED.replace("h9", "h1"),
        'host.id: the id "h1" is taken by cluster.hosts[0].id on line 5 (every id once)',
    ),
    (
        ARRIVED.replace("v9", "v1"),
        'vm.id: the id "v1" is taken by cluster.vms[0].id on line 8 (every id once)',
    ),
    (
        "{event: host_joined, at_ms: 5, host: {id: h8, " + HOST + ", reserve: {cpu_mhz: 4001}}}",
        "host.reserve.cpu_mhz: 4001 is more than the host has (at most 4000)",
    ),
    (
        "{event: vm_arrived, at_ms: 5, vm: {id: v8, vcpus: 1, memory_mib: 1}}",
        'vm.host: is missing, though the VM "v8" is running (name its host, or write state: ready)',
    ),
    (
        "{event: vm_arrived, at_ms: 5, vm: {id: v8, vcpus: 1, memory_mib: 1, host: h3}}",
        'vm.host: there is no host "h3" (the hosts are: h1, h2)',
    ),
    (
        "{event: vm_arrived, at_ms: 49, vm: {id: v8, vcpus: 1, memory_mib: 1, host: h9}}",
        'vm.host: "h9" only comes by happenings[0].host.id on line 11 (a later at_ms)',
    ),
    (
        (
            "{event: vm_arrived, at_ms: 5, vm: {id: v8, vcpus: 1, memory_mib: 1, state: ready, "
            "tenant: acm}}"
        ),
        'vm.tenant: there is no tenant "acm" (did you mean "acme"? the tenants are: acme, other)',
    ),
    (
        (
            "{event: vm_arrived, at_ms: 5, vm: {id: v8, vcpus: 1, memory_mib: 1, state: ready, "
            "ft_pair: v9}}"
        ),
        (
            'vm.ft_pair: the pair is not mutual: "v9" names none '
            "(write ft_pair: v8 there, or leave it out here)"
        ),
    ),
    (
        (
            "{event: vm_arrived, at_ms: 5, vm: {id: v8, vcpus: 1, memory_mib: 1, host: h1, "
            "consumption: {gpus: 1}}}"
        ),
        'vm.consumption.gpus: its host "h1" does not offer "gpus" (it offers nothing in capacity)',
    ),
]


@pytest.mark.parametrize(("happening", "told"), HAPPENING_CASES)
def test_what_cannot_happen(happening: str, told: str) -> None:
    given = with_happenings(JOINED, ARRIVED, "{event: vm_left, at_ms: 70, vm: v1}", happening)
    assert the_story_problem(given) == f"line 14: happenings[3].{told}"


def test_nobody_comes_under_the_name_of_a_member() -> None:
    taken = JOINED.replace("h9", "esx-3")
    assert the_story_problem(FLEETS + with_happenings(taken)) == (
        'line 16: happenings[0].host.id: the id "esx-3" is taken by fleet.hosts[0].like.id '
        "on line 11 (every id once)"
    )
    free = JOINED.replace("h9", "esx-4")
    check_story(FLEETS + with_happenings(free))
    growing = "unrest: {hosts: [{fleet: esx, per_day: 1}]}\n"
    assert "is taken by" in the_story_problem(FLEETS + with_happenings(free) + growing)
    left = "{event: host_left, at_ms: 1, host: esx-3}"
    check_story(FLEETS + with_happenings(left, taken))


def test_a_host_that_is_off_may_be_on_when_a_vm_arrives() -> None:
    vm = "{id: v9, vcpus: 1, memory_mib: 1, host: h2}"
    check_story(with_happenings(f"{{event: vm_arrived, at_ms: 900, vm: {vm}}}"))


def test_what_cannot_be_read_may_have_changed_who_is_there() -> None:
    told = story_problems(
        with_happenings(
            JOINED.replace("50", "-1"),
            "{event: host_failed, at_ms: 49, host: h9}",
            "{event: vm_left, at_ms: -1, vm: v1}",
            ARRIVED.replace("v9", "v1"),
            "{event: host_failed, at_ms: 49, host: h8}",
        )
    )
    assert [one.split(": ")[1] for one in told] == [
        "happenings[0].at_ms",
        "happenings[2].at_ms",
        "happenings[4].host",
    ]


def test_a_story_in_json_is_judged_alike() -> None:
    scenario = parse_scenario((STORY + FLEETS).encode(), "f.yaml")
    assert len(scenario.fleet.vms) == 2
    broken = '{"name": "n", "duration_s": 5, "cluster": {"hosts": []}, "deciders": ["a", "a"]}'
    assert [one.key for one in problems(broken, "f.json", "scenario")] == [
        "cluster.hosts",
        "deciders[1]",
    ]
    assert the_problem(broken.replace("[]}", '[], "vms": 5}'), "f.json", "scenario").key == (
        "cluster.vms"
    )
