"""Scheduled events and random faults that cannot happen: each problem with code, line and key."""

from __future__ import annotations

import pytest

from equipoise.files import parse_scenario
from unit.files.sample_files import (
    SCENARIO,
    brief,
    check_valid_scenario,
    only_problem,
    only_scenario_problem,
    problems,
    scenario_problems,
)

FLEETS = """\
fleet:
  hosts: [{count: 3, like: {id: esx, cores: 4, mhz_per_core: 1000, memory_mib: 16384}}]
  vms:
    - {count: 9, like: {id: web, vcpus: 1, memory_mib: 1024, tenant: acme}}
    - {count: 9, like: {id: db, vcpus: 1, memory_mib: 1024}}
"""
"""Five lines; what a test adds starts on line 15."""


def with_faults(faults: str) -> str:
    return FLEETS + f"faults: {{{faults}}}\n"


def test_valid_faults_are_accepted() -> None:
    check_valid_scenario(
        FLEETS
        + """\
faults:
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


FAULT_CASES = [
    (
        "hosts: [{fleet: exs, per_day: 1}]",
        'hosts[0].fleet: unknown-name "exs" "esx"',
    ),
    (
        "hosts: [{fleet: web, per_day: 1}]",
        'hosts[0].fleet: unknown-name "web"',
    ),
    (
        "vms: [{fleet: esx, per_hour: 1}]",
        'vms[0].fleet: unknown-name "esx"',
    ),
    (
        "scaling: [{tenant: acme, fleet: we}]",
        'scaling[0].fleet: unknown-name "we" "web"',
    ),
    (
        "scaling: [{tenant: acm, fleet: web}]",
        'scaling[0].tenant: unknown-name "acm" "acme"',
    ),
    (
        "scaling: [{tenant: other, fleet: web}]",
        'scaling[0].fleet: contradiction "web" "acme"',
    ),
    (
        "scaling: [{tenant: acme, fleet: web, in_below_pct: 80}]",
        "scaling[0].in_below_pct: out-of-range 80 80 80",
    ),
    (
        "hosts: [{fleet: esx, per_day: 1, stay_s: -1}]",
        "hosts[0].stay_s: out-of-range",
    ),
    (
        "vms: [{fleet: web, per_hour: 1, stay_s: {low: 9, high: 8}}]",
        "vms[0].stay_s.low: out-of-range 9 8 8",
    ),
    (
        "host_crashes: {per_host_day: 1, back_after_s: {one_of: [-1, -2]}}",
        "host_crashes.back_after_s: out-of-range",
    ),
    (
        "monitoring_gaps: {per_day: 1, for_s: {mean: 5}}",
        "monitoring_gaps.for_s.sd: missing-key",
    ),
]


@pytest.mark.parametrize(("faults", "expected"), FAULT_CASES)
def test_inconsistent_faults_are_reported(faults: str, expected: str) -> None:
    assert only_scenario_problem(with_faults(faults)) == f"line 15: faults.{expected}"


@pytest.mark.parametrize(
    ("faults", "key", "most", "count"),
    [
        ("host_crashes: {{per_host_day: {}}}", "host_crashes.per_host_day", 200000, 10000050),
        ("vm_crashes: {{per_vm_day: {}}}", "vm_crashes.per_vm_day", 52631, 10000080),
        ("monitoring_gaps: {{per_day: {}}}", "monitoring_gaps.per_day", 1000000, 10000010),
        ("hosts: [{{fleet: esx, per_day: {}}}]", "hosts[0].per_day", 1000000, 10000010),
        ("vms: [{{fleet: web, per_hour: {}}}]", "vms[0].per_hour", 41666, 10000080),
    ],
)
def test_a_rate_with_too_many_faults_is_reported(
    faults: str, key: str, most: int, count: int
) -> None:
    check_valid_scenario(with_faults(faults.format(most)))
    assert only_scenario_problem(with_faults(faults.format(most + 1))) == (
        f"line 15: faults.{key}: too-large {count} 10000000"
    )


def test_faults_name_a_fleet_of_the_scenario() -> None:
    problem = only_scenario_problem("faults: {hosts: [{fleet: esx, per_day: 1}]}\n")
    assert problem == 'line 10: faults.hosts[0].fleet: unknown-name "esx"'


def test_an_unreadable_fault_does_not_hide_other_problems() -> None:
    found = scenario_problems(
        with_faults("vm_crashes: {}, hosts: [{fleet: esx, per_day: -1}, {fleet: exs, per_day: 1}]")
        + "pass_s: 0\nphysics: {migration: {link_mbps: 0}}\ndeciders: [a, a]\n"
    )
    assert [problem.split(": ")[1] for problem in found] == [
        "faults.vm_crashes.per_vm_day",
        "faults.hosts[0].per_day",
        "faults.hosts[1].fleet",
        "pass_s",
        "physics.migration.link_mbps",
        "deciders[1]",
    ]


def test_deciders_are_listed_once_and_run_periodically() -> None:
    assert only_scenario_problem("deciders: [spread, drain, spread]\n") == (
        'line 10: deciders[2]: duplicate-name "spread" deciders[0] 10'
    )
    assert only_scenario_problem("pass_s: 0\n") == "line 10: pass_s: out-of-range 0 1 1000000000"
    check_valid_scenario("deciders: [unknown]\nmeasuring: {window_s: 900000}\n")


HOST = "cores: 4, mhz_per_core: 1000, memory_mib: 16384"
JOINED = f"{{event: host_joined, at_ms: 50, host: {{id: h9, {HOST}}}}}"
ARRIVED = "{event: vm_arrived, at_ms: 50, vm: {id: v9, vcpus: 1, memory_mib: 1, state: ready}}"


def with_events(*events: str) -> str:
    """Scheduled events, from line 11 on."""
    return "events:\n" + "".join(f"  - {event}\n" for event in events)


def test_valid_events_are_accepted() -> None:
    check_valid_scenario(
        with_events(
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


EVENT_CASES = [
    (
        "{event: host_failed, at_ms: 864000001, host: h1}",
        "at_ms: out-of-range 864000001 864000000",
    ),
    (
        "{event: power_on_stuck, at_ms: 5, host: h3}",
        'host: unknown-name "h3"',
    ),
    (
        "{event: host_recovered, at_ms: 49, host: h9}",
        'host: absent-at-time "h9" events[0].host.id 11',
    ),
    (
        "{event: vm_crashed, at_ms: 49, vm: v9}",
        'vm: absent-at-time "v9" events[1].vm.id 12',
    ),
    (
        "{event: vm_left, at_ms: 71, vm: v1}",
        'vm: absent-at-time "v1" events[2] 13',
    ),
    (
        JOINED.replace("50", "60"),
        'host.id: duplicate-name "h9" events[0].host.id 11',
    ),
    (
        JOINED.replace("h9", "h1"),
        'host.id: duplicate-name "h1" cluster.hosts[0].id 5',
    ),
    (
        ARRIVED.replace("v9", "v1"),
        'vm.id: duplicate-name "v1" cluster.vms[0].id 8',
    ),
    (
        "{event: host_joined, at_ms: 5, host: {id: h8, " + HOST + ", reserve: {cpu_mhz: 4001}}}",
        "host.reserve.cpu_mhz: out-of-range 4001 4000",
    ),
    (
        "{event: vm_arrived, at_ms: 5, vm: {id: v8, vcpus: 1, memory_mib: 1}}",
        'vm.host: missing-key "v8"',
    ),
    (
        "{event: vm_arrived, at_ms: 5, vm: {id: v8, vcpus: 1, memory_mib: 1, host: h3}}",
        'vm.host: unknown-name "h3"',
    ),
    (
        "{event: vm_arrived, at_ms: 49, vm: {id: v8, vcpus: 1, memory_mib: 1, host: h9}}",
        'vm.host: absent-at-time "h9" events[0].host.id 11',
    ),
    (
        (
            "{event: vm_arrived, at_ms: 5, vm: {id: v8, vcpus: 1, memory_mib: 1, state: ready, "
            "tenant: acm}}"
        ),
        'vm.tenant: unknown-name "acm" "acme"',
    ),
    (
        (
            "{event: vm_arrived, at_ms: 5, vm: {id: v8, vcpus: 1, memory_mib: 1, state: ready, "
            "ft_pair: v9}}"
        ),
        'vm.ft_pair: contradiction "v9"',
    ),
    (
        (
            "{event: vm_arrived, at_ms: 5, vm: {id: v8, vcpus: 1, memory_mib: 1, host: h1, "
            "consumption: {gpus: 1}}}"
        ),
        'vm.consumption.gpus: contradiction "h1" "gpus"',
    ),
]


@pytest.mark.parametrize(("event", "expected"), EVENT_CASES)
def test_an_event_that_cannot_happen_is_reported(event: str, expected: str) -> None:
    events = with_events(JOINED, ARRIVED, "{event: vm_left, at_ms: 70, vm: v1}", event)
    assert only_scenario_problem(events) == f"line 14: events[3].{expected}"


def test_a_joining_host_does_not_have_the_id_of_a_fleet_member() -> None:
    taken = JOINED.replace("h9", "esx-3")
    assert only_scenario_problem(FLEETS + with_events(taken)) == (
        'line 16: events[0].host.id: duplicate-name "esx-3" fleet.hosts[0].like.id 11'
    )
    free = JOINED.replace("h9", "esx-4")
    check_valid_scenario(FLEETS + with_events(free))
    growing = "faults: {hosts: [{fleet: esx, per_day: 1}]}\n"
    problem = only_scenario_problem(FLEETS + with_events(free) + growing)
    assert "duplicate-name" in problem
    left = "{event: host_left, at_ms: 1, host: esx-3}"
    check_valid_scenario(FLEETS + with_events(left, taken))


def test_a_vm_may_arrive_on_a_host_that_is_off_at_the_start() -> None:
    vm = "{id: v9, vcpus: 1, memory_mib: 1, host: h2}"
    check_valid_scenario(with_events(f"{{event: vm_arrived, at_ms: 900, vm: {vm}}}"))


def test_the_subject_of_an_unreadable_event_may_be_present() -> None:
    found = scenario_problems(
        with_events(
            JOINED.replace("50", "-1"),
            "{event: host_failed, at_ms: 49, host: h9}",
            "{event: vm_left, at_ms: -1, vm: v1}",
            ARRIVED.replace("v9", "v1"),
            "{event: host_failed, at_ms: 49, host: h8}",
        )
    )
    assert [problem.split(": ")[1] for problem in found] == [
        "events[0].at_ms",
        "events[2].at_ms",
        "events[4].host",
    ]


def test_a_scenario_in_json_has_the_same_problems() -> None:
    scenario = parse_scenario((SCENARIO + FLEETS).encode(), "f.yaml")
    assert len(scenario.fleet.vms) == 2
    broken = '{"name": "n", "duration_s": 5, "cluster": {"hosts": []}, "deciders": ["a", "a"]}'
    assert [brief(problem) for problem in problems(broken, "f.json", "scenario")] == [
        "line 1: cluster.hosts: empty-value",
        'line 1: deciders[1]: duplicate-name "a" deciders[0] 1',
    ]
    assert only_problem(broken.replace("[]}", '[], "vms": 5}'), "f.json", "scenario").key == (
        "cluster.vms"
    )
