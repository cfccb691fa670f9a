"""Inconsistent scenarios (fleets, capacity, managed power): problems with code, line and key."""

from __future__ import annotations

import json

import pytest

from builders import a_host
from equipoise.errors import InvalidInput
from equipoise.files import find_problems, parse_case, parse_inventory, parse_scenario
from equipoise.model.diagnostics import Diagnostics
from equipoise.model.host import PowerProfile
from equipoise.model.inventory import Inventory
from unit.files.sample_files import (
    HOSTS,
    SCENARIO,
    brief,
    check_problem,
    check_valid_scenario,
    only_problem,
    only_scenario_problem,
    problems,
    scenario_problems,
    some_hosts,
    some_vms,
    with_fleets,
)


def test_valid_fleets_are_accepted() -> None:
    start = ", start: {hosts: [h1, esx, blade-1], first: 31, assigned: randomly}"
    hosts = some_hosts() + ", " + some_hosts(", state: standby", "blade", 2)
    vms = f"{some_vms(', tenant: acme', start.replace(', blade-1', ''))}, {some_vms(name='db')}"
    check_valid_scenario(with_fleets(hosts, vms))
    check_valid_scenario(
        with_fleets(hosts, some_vms(", agent: true", ", start: {hosts: [esx-07]}"))
    )
    check_valid_scenario(with_fleets(hosts, some_vms("", start)))


@pytest.mark.parametrize("taken", ["esx", "esx-01", "esx-30"])
def test_the_id_of_a_fleet_member_is_taken(taken: str) -> None:
    content = SCENARIO.replace("id: h2", f"id: {taken}") + with_fleets(some_hosts())
    expected = f'line 6: cluster.hosts[1].id: duplicate-name "{taken}" fleet.hosts[0].like.id 11'
    check_problem(content, expected, kind="scenario")
    content = SCENARIO.replace("id: v1", f"id: {taken}") + with_fleets(
        vms=some_vms("", "", "esx", 30)
    )
    assert only_problem(content, kind="scenario").key == "cluster.vms[0].id"


@pytest.mark.parametrize("free", ["esx-1", "esx-00", "esx-31", "esx-001", "esx-", "es-01"])
def test_an_id_that_no_member_has_is_free(free: str) -> None:
    content = SCENARIO.replace("id: h2", f"id: {free}") + with_fleets(some_hosts())
    parse_scenario(content.encode(), "f.yaml")


def test_a_fleet_that_grows_takes_more_ids() -> None:
    content = SCENARIO.replace("id: h2", "id: esx-31") + with_fleets(some_hosts())
    parse_scenario(content.encode(), "f.yaml")
    growing = content + "faults: {hosts: [{fleet: esx, per_day: 1}]}\n"
    assert only_problem(growing, kind="scenario").key == "cluster.hosts[1].id"


def test_two_fleets_do_not_have_the_same_id() -> None:
    problem = only_scenario_problem(with_fleets(f"{some_hosts()}, {some_hosts(count=0)}"))
    assert problem == (
        'line 11: fleet.hosts[1].like.id: duplicate-name "esx" fleet.hosts[0].like.id 11'
    )
    check_valid_scenario(with_fleets(some_hosts(), some_vms(name="esx")))


def test_the_ids_of_members_have_at_most_128_characters() -> None:
    problem = only_scenario_problem(with_fleets(some_hosts(name="x" * 126)))
    assert problem == "line 11: fleet.hosts[0].like.id: invalid-name 129 128"
    check_valid_scenario(with_fleets(some_hosts(name="x" * 125)))


LIKE_CASES = [
    (
        ", host: h1",
        "host: contradiction",
    ),
    (
        ", ft_pair: v1",
        "ft_pair: contradiction",
    ),
    (
        ", agent: true",
        "agent: contradiction",
    ),
    (
        ", state: sleeping",
        "state: contradiction",
    ),
    (", pool: gold", 'pool: unknown-name "gold"'),
    (", tenant: acm", 'tenant: unknown-name "acm" "acme"'),
    (
        ", demand: {memory_mib: 1025}",
        "demand.memory_mib: out-of-range 1025 1024 1024",
    ),
]


@pytest.mark.parametrize(("like", "expected"), LIKE_CASES)
def test_an_invalid_template_of_a_vm_fleet_is_reported(like: str, expected: str) -> None:
    fleets = with_fleets(some_hosts(), some_vms(like))
    assert only_scenario_problem(fleets) == f"line 12: fleet.vms[0].like.{expected}"


def test_a_fleet_without_a_start_may_be_ready() -> None:
    check_valid_scenario(with_fleets(vms=some_vms(", state: ready")))
    problem = only_scenario_problem(
        with_fleets(vms=some_vms(", state: ready", ", start: {hosts: [h1]}"))
    )
    assert problem == "line 12: fleet.vms[0].like.state: contradiction"


def test_an_invalid_template_of_a_host_fleet_is_reported() -> None:
    problem = only_scenario_problem(with_fleets(some_hosts(", reserve: {cpu_mhz: 4001}")))
    assert problem == "line 11: fleet.hosts[0].like.reserve.cpu_mhz: out-of-range 4001 4000"


START_CASES = [
    (
        "hosts: [esy]",
        'hosts[0]: unknown-name "esy" "esx"',
    ),
    (
        "hosts: [esx-31]",
        'hosts[0]: unknown-name "esx-31" "esx-30"',
    ),
    (
        "hosts: [none]",
        "hosts: empty-value",
    ),
    ("hosts: [h1, esx], first: 32", "first: out-of-range 32 31"),
    (
        "hosts: [h1, h2]",
        'hosts[1]: contradiction "h2"',
    ),
    (
        "hosts: [h1, h1]",
        'hosts[1]: duplicate-name "h1" fleet.vms[0].start.hosts[0] 12',
    ),
    (
        "hosts: [esx-01, esx]",
        'hosts[1]: duplicate-name "esx" fleet.vms[0].start.hosts[0] 12',
    ),
    (
        "hosts: [esx, h1, esx-02]",
        'hosts[2]: duplicate-name "esx-02" fleet.vms[0].start.hosts[0] 12',
    ),
]


@pytest.mark.parametrize(("start", "expected"), START_CASES)
def test_invalid_start_hosts_are_reported(start: str, expected: str) -> None:
    hosts = f"{some_hosts()}, {some_hosts(name='none', count=0)}"
    vms = some_vms("", f", start: {{{start}}}")
    problem = only_scenario_problem(with_fleets(hosts, vms))
    assert problem == f"line 12: fleet.vms[0].start.{expected}"


def test_start_hosts_beyond_the_first_ones_are_not_checked() -> None:
    check_valid_scenario(with_fleets(vms=some_vms("", ", start: {hosts: [h1, h2], first: 1}")))
    check_valid_scenario(
        with_fleets(some_hosts(), some_vms("", ", start: {hosts: [esx-01, esx-02]}"))
    )


def test_vms_consume_only_what_their_start_hosts_offer() -> None:
    fleets = with_fleets(
        some_hosts(), some_vms(", consumption: {gpus: 1}", ", start: {hosts: [h1]}")
    )
    assert only_scenario_problem(fleets) == (
        'line 12: fleet.vms[0].like.consumption.gpus: contradiction "h1" "gpus"'
    )


def test_a_scenario_has_a_host_in_its_cluster_or_in_a_fleet() -> None:
    bare = "name: sample\nduration_s: 5\ncluster: {hosts: []}\n"
    check_problem(bare, "line 3: cluster.hosts: empty-value", kind="scenario")
    none = bare + with_fleets(some_hosts(count=0))
    assert only_problem(none, kind="scenario").code == "empty-value"
    parse_scenario((bare + with_fleets(some_hosts(count=1))).encode(), "f.yaml")
    check_problem("hosts: []", "line 1: hosts: empty-value")
    with pytest.raises(InvalidInput) as caught:
        parse_case(b"cluster: {hosts: []}", "f.yaml")
    assert [brief(problem) for problem in caught.value.problems] == [
        "line 1: cluster.hosts: empty-value"
    ]


def test_rules_plans_and_events_may_name_fleet_members() -> None:
    check_valid_scenario(
        with_fleets(some_hosts(), some_vms(", tenant: acme", ", start: {hosts: [esx]}", "w", 3))
        + """\
plan:
  id: p
  steps:
    - {id: s, end_ms: 5, action: {do: migrate, vm: w-1, source: esx-01, target: esx-02}}
events:
  - {event: host_failed, at_ms: 5, host: esx-30}
"""
    )
    content = SCENARIO + with_fleets(some_hosts(), some_vms(", tenant: acme", "", "w", 3))
    inner = (
        "  rules:\n"
        "    - {kind: keep_apart, id: r, vms: [v1, w-1, w-9]}\n"
        "    - {kind: stay_within, id: s, vms: [w-3], hosts: [esx-01, esx-1]}\n"
    )
    content = content.replace("  tenants", inner + "  tenants")
    found = [(problem.key, problem.code) for problem in problems(content, kind="scenario")]
    assert found == [
        ("cluster.rules[0].vms[2]", "unknown-name"),
        ("cluster.rules[1].hosts[1]", "unknown-name"),
    ]


def test_a_cluster_check_sees_the_fleet_members_that_rules_name() -> None:
    seen: list[Inventory] = []

    def check(inventory: Inventory, _diagnostics: Diagnostics) -> None:
        seen.append(inventory)

    content = (SCENARIO + with_fleets(some_hosts(), some_vms())).replace(
        "  tenants",
        "  rules: [{kind: satisfy, id: r, constraint: Spread, "
        "arguments: {vs: [web-01, web-10, web-99], ns: [[esx-02]], n: 2}}]\n  tenants",
    )
    scenario = parse_scenario(content.encode(), "f.yaml", check)
    assert [vm.id for vm in seen[0].vms] == ["v1", "web-01", "web-10"]
    assert [host.id for host in seen[0].hosts] == ["h1", "h2", "esx-02"]
    assert find_problems(seen[0]) == []
    assert len(scenario.cluster.vms) == 1


def test_an_unreadable_fleet_is_still_known_by_its_id() -> None:
    broken = with_fleets(some_hosts(count=-1), some_vms("", ", start: {hosts: [esx, esx-04]}"))
    assert only_scenario_problem(broken).startswith(
        "line 11: fleet.hosts[0].count: out-of-range -1"
    )
    both = with_fleets(some_hosts(count=-1), some_vms(", host: h1", ", start: {hosts: [ex]}"))
    assert [problem.split(": ")[1] for problem in scenario_problems(both)] == [
        "fleet.hosts[0].count",
        "fleet.vms[0].like.host",
        "fleet.vms[0].start.hosts[0]",
    ]


CAPACITY_CASES = [
    (
        ", memory_mib: 16385",
        "memory_mib: no-capacity 16385 16384",
    ),
    (
        ", memory_mib: 1024, cpu: {reservation_mhz: 4001}",
        "cpu.reservation_mhz: no-capacity 4001 4000",
    ),
]


@pytest.mark.parametrize(("like", "expected"), CAPACITY_CASES)
def test_a_vm_that_no_host_can_hold_is_reported(like: str, expected: str) -> None:
    vm = f"{{id: big, vcpus: 1{like}"
    assert only_scenario_problem(f"fleet: {{vms: [{{count: 1, like: {vm}}}}}]}}\n") == (
        f"line 10: fleet.vms[0].like.{expected}"
    )
    arriving = f"events: [{{event: vm_arrived, at_ms: 1, vm: {vm}, state: ready}}}}]\n"
    assert only_scenario_problem(arriving) == f"line 10: events[0].vm.{expected}"
    listed = SCENARIO.replace("  tenants", f"    - {vm}, host: h1}}\n  tenants")
    check_problem(listed, f"line 9: cluster.vms[1].{expected}", kind="scenario")
    terminated = listed.replace("host: h1}\n  ten", "state: terminated}\n  ten")
    parse_scenario(terminated.encode(), "f.yaml")


@pytest.mark.parametrize(
    "larger",
    [
        (
            "fleet: {hosts: [{count: 1, like: {id: b, cores: 8, mhz_per_core: 1000, "
            "memory_mib: 20000}}]}\n"
        ),
        (
            "events: [{event: host_joined, at_ms: 5, host: {id: b, cores: 8, "
            "mhz_per_core: 1000, memory_mib: 20000}}]\n"
        ),
        (
            "fleet: {hosts: [{count: 0, like: {id: b, cores: 8, mhz_per_core: 1000, "
            "memory_mib: 20000}}]}\nfaults: {hosts: [{fleet: b, per_day: 1}]}\n"
        ),
    ],
)
def test_a_larger_host_may_join_later(larger: str) -> None:
    vm = "{id: big, vcpus: 1, memory_mib: 20000, cpu: {reservation_mhz: 8000}, state: ready}"
    content = SCENARIO.replace("  tenants", f"    - {vm}\n  tenants") + larger
    parse_scenario(content.encode(), "f.yaml")


def test_the_overhead_of_a_vm_needs_memory_too() -> None:
    content = SCENARIO.replace("memory_mib: 1024", "memory_mib: 16384")
    parse_scenario(content.encode(), "f.yaml")
    check_problem(
        content + "physics: {overhead_mib: 100}\n",
        "line 8: cluster.vms[0].memory_mib: no-capacity 16384 100 16284",
        kind="scenario",
    )
    check_problem(
        content + "physics: {overhead_mib: 20000}\n",
        "line 8: cluster.vms[0].memory_mib: no-capacity 16384 20000",
        kind="scenario",
    )


def test_memory_and_cpu_must_fit_on_the_same_host() -> None:
    slow = "{id: slow, cores: 1, mhz_per_core: 1000, memory_mib: 99999}"
    vm = "{id: big, vcpus: 1, memory_mib: 20000, cpu: {reservation_mhz: 2000}}"
    problem = only_scenario_problem(
        f"fleet: {{hosts: [{{count: 1, like: {slow}}}], vms: [{{count: 1, like: {vm}}}]}}\n"
    )
    assert problem == "line 10: fleet.vms[0].like.cpu.reservation_mhz: no-capacity"


def test_reservations_above_the_capacity_of_all_hosts_are_reported() -> None:
    claims = ", cpu: {reservation_mhz: 1000}, memory: {reservation_mib: 1024}"
    start = ", start: {hosts: [h1]}"
    check_valid_scenario(with_fleets(vms=some_vms(claims, start, count=8)))
    check_valid_scenario(with_fleets(vms=some_vms(claims, count=99)))
    check_valid_scenario(with_fleets(some_hosts(), some_vms(claims, start, count=99)))
    assert scenario_problems(with_fleets(vms=some_vms(claims, start, count=40))) == [
        "line 12: fleet.vms[0].like.cpu.reservation_mhz: no-capacity 1000 40 200",
        "line 12: fleet.vms[0].like.memory.reservation_mib: no-capacity 1024 40 819",
    ]
    two = f"{some_vms(claims, start, count=5)}, {some_vms(claims, start, 'db', 4)}"
    assert only_scenario_problem(with_fleets(vms=two)) == (
        "line 12: fleet.vms[1].like.cpu.reservation_mhz: no-capacity 1000 4 750"
    )


def test_an_overloaded_host_is_not_a_problem_of_the_file() -> None:
    claims = ", host: h1, cpu: {reservation_mhz: 4000}"
    crowd = "".join(f"    - {{id: c{n}, vcpus: 1, memory_mib: 16384{claims}}}\n" for n in range(20))
    parse_scenario(SCENARIO.replace("  tenants", crowd + "  tenants").encode(), "f.yaml")


def test_capacity_is_not_checked_while_a_host_is_unreadable() -> None:
    content = SCENARIO.replace("id: h1, cores: 4", "id: h1, cores: 0").replace("1024", "99999")
    assert [problem.key for problem in problems(content, kind="scenario")] == [
        "cluster.hosts[0].cores"
    ]


POWER_CASES = [
    ("managed: true", ": out-of-range 0 2"),
    (
        "managed: true, managed_watts: [5]",
        ": out-of-range 1 2",
    ),
    ("managed_watts: [5, 9, 8]", "[2]: out-of-range 8 9 9"),
]


@pytest.mark.parametrize(("power", "expected"), POWER_CASES)
def test_invalid_figures_of_managed_power_are_reported(power: str, expected: str) -> None:
    content = HOSTS.replace("16384}", f"16384, power: {{{power}}}}}", 1)
    check_problem(content, f"line 2: hosts[0].power.managed_watts{expected}")


def test_figures_of_managed_power_may_be_equal() -> None:
    power = PowerProfile(managed=True, managed_watts=(90, 90, 200))
    assert find_problems(Inventory(hosts=(a_host(power=power),))) == []
    text = json.dumps({"hosts": [{"id": "h", "cores": 1, "mhz_per_core": 1, "memory_mib": 1}]})
    assert parse_inventory(text.encode(), "f.json").hosts[0].power == PowerProfile()
