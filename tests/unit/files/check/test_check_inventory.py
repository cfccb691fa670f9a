"""Inventories and plans that are readable but inconsistent: problems with code, line and key."""

from __future__ import annotations

import pytest

from builders import a_host, a_plan, a_step, a_vm, an_inventory
from equipoise.errors import InvalidInput
from equipoise.files import find_problems, parse_inventory
from equipoise.model.action import Kill
from equipoise.model.host import HostReserve, HostState
from equipoise.model.inventory import Pool
from equipoise.model.quantity import HostId, PoolId, VmId
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.vm import VmState
from unit.files.sample_files import (
    HOSTS,
    brief,
    check_problem,
    only_problem,
    problems,
    with_hosts,
)


def vm(fields: str, name: str = "v1") -> str:
    return f"  - {{id: {name}, vcpus: 1, memory_mib: 1024, {fields}}}\n"


def with_vms(*fields: str) -> str:
    """Two hosts, and on line 5 and below the VMs v1, v2, ..."""
    lines = [vm(vm_fields, f"v{number}") for number, vm_fields in enumerate(fields, start=1)]
    return with_hosts("vms:\n") + "".join(lines)


HOST_CASES = [
    (
        "reserve: {cpu_mhz: 4001}",
        "reserve.cpu_mhz: out-of-range 4001 4000",
    ),
    (
        "reserve: {memory_mib: 16385}",
        "reserve.memory_mib: out-of-range 16385 16384",
    ),
    (
        "power: {idle_watts: 300, peak_watts: 200}",
        "power.idle_watts: out-of-range 300 200 200",
    ),
]


@pytest.mark.parametrize(("fields", "expected"), HOST_CASES)
def test_an_inconsistent_host_is_reported(fields: str, expected: str) -> None:
    content = HOSTS + f"  - {{id: h3, cores: 4, mhz_per_core: 1000, memory_mib: 16384, {fields}}}\n"
    check_problem(content, f"line 4: hosts[2].{expected}")


VM_CASES = [
    ("host: h3", 'host: unknown-name "h3"'),
    (
        "state: running",
        'host: missing-key "v1"',
    ),
    (
        "state: sleeping",
        'host: missing-key "v1"',
    ),
    (
        "state: ready, host: h1",
        'host: contradiction "h1"',
    ),
    (
        "host: h1, cpu: {reservation_mhz: 9, limit_mhz: 8}",
        "cpu.reservation_mhz: out-of-range 9 8 8",
    ),
    (
        "host: h1, memory: {reservation_mib: 9, limit_mib: 8}",
        "memory.reservation_mib: out-of-range 9 8 8",
    ),
    (
        "host: h1, memory: {reservation_mib: 1025}",
        "memory.reservation_mib: out-of-range 1025 1024 1024",
    ),
    (
        "host: h1, demand: {memory_mib: 1025}",
        "demand.memory_mib: out-of-range 1025 1024 1024",
    ),
    ("host: h1, pool: p", 'pool: unknown-name "p"'),
    ("host: h1, tenant: t", 'tenant: unknown-name "t"'),
    ("host: h1, ft_pair: v1", "ft_pair: contradiction"),
    ("host: h1, ft_pair: v9", 'ft_pair: unknown-name "v9"'),
    (
        "host: h1, consumption: {gpus: 1}",
        'consumption.gpus: contradiction "h1" "gpus"',
    ),
]


@pytest.mark.parametrize(("fields", "expected"), VM_CASES)
def test_an_inconsistent_vm_is_reported(fields: str, expected: str) -> None:
    check_problem(with_vms(fields), f"line 5: vms[0].{expected}")


@pytest.mark.parametrize("state", ["standby", "failed", "maintenance"])
def test_a_vm_does_not_run_on_a_host_that_is_not_on(state: str) -> None:
    content = HOSTS.replace("16384}", f"16384, state: {state}}}", 1) + "vms:\n" + vm("host: h1")
    check_problem(content, 'line 5: vms[0].host: contradiction "v1" "h1"')
    assert state in only_problem(content).what


def test_an_agent_sleeps_on_a_host_that_is_not_on() -> None:
    base = HOSTS.replace("16384}", "16384, state: standby}", 1) + "vms:\n"
    parse_inventory((base + vm("host: h1, agent: true, state: sleeping")).encode(), "f.yaml")
    problem = only_problem(base + vm("host: h1, agent: true"))
    assert (problem.code, problem.cure) == ("contradiction", "write state: sleeping")


def test_a_fault_tolerant_pair_is_mutual_and_on_two_hosts() -> None:
    check_problem(
        with_vms("host: h1, ft_pair: v2", "host: h2"),
        'line 5: vms[0].ft_pair: contradiction "v2"',
    )
    check_problem(
        with_vms("host: h1, ft_pair: v2", "host: h1, ft_pair: v1"),
        'line 5: vms[0].ft_pair: contradiction "v1" "v2" "h1"',
    )
    parse_inventory(with_vms("host: h1, ft_pair: v2", "host: h2, ft_pair: v1").encode(), "f.yaml")


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("vms:\n" + vm("host: h1") * 2, "vms"),
        ("pools:\n" + "  - {id: a}\n" * 2, "pools"),
        ("rules:\n" + "  - {kind: stay_off, id: a, vms: [v], hosts: [h1]}\n" * 2, "rules"),
        ("tenants:\n" + "  - {id: a, sla: {vms_max: 1}}\n" * 2, "tenants"),
        ("resources:\n" + "  - {id: a, kind: server}\n" * 2, "resources"),
        ("groups:\n" + "  - {id: a, kind: affinity, resources: [r]}\n" * 2, "groups"),
    ],
)
def test_an_id_that_is_used_twice_is_reported(more: str, key: str) -> None:
    rest = "vms: [{id: v, vcpus: 1, memory_mib: 1, host: h1}]\n" if key != "vms" else ""
    rest += "resources: [{id: r, kind: server}]\n" if key != "resources" else ""
    name = "v1" if key == "vms" else "a"
    check_problem(
        with_hosts(more) + rest, f'line 6: {key}[1].id: duplicate-name "{name}" {key}[0].id 5'
    )


def test_two_hosts_do_not_have_the_same_id() -> None:
    check_problem(
        HOSTS.replace("h2", "h1"), 'line 3: hosts[1].id: duplicate-name "h1" hosts[0].id 2'
    )


def test_an_inconsistent_pool_is_reported() -> None:
    check_problem(
        with_hosts("pools:\n  - {id: web, parent: prood}\n  - {id: prod}\n"),
        'line 5: pools[0].parent: unknown-name "prood" "prod"',
    )
    check_problem(
        with_hosts("pools:\n  - {id: a, memory: {reservation_mib: 2, limit_mib: 1}}\n"),
        "line 5: pools[0].memory.reservation_mib: out-of-range 2 1 1",
    )


def test_a_cycle_of_pools_is_named_in_order() -> None:
    content = with_hosts("""\
        pools:
          - {id: x, parent: a}
          - {id: b, parent: c}
          - {id: a, parent: b}
          - {id: c, parent: a}
          - {id: me, parent: me}
    """)
    assert list(map(brief, problems(content))) == [
        "line 6: pools[1].parent: cycle b -> c -> a -> b",
        "line 9: pools[4].parent: cycle me -> me",
    ]


def test_members_of_rules_exist_and_are_listed_once() -> None:
    content = with_vms("host: h1", "host: h1") + (
        "rules:\n"
        "  - {kind: keep_apart, id: r1, vms: [v1, v2, v1]}\n"
        "  - kind: stay_within\n"
        "    id: r2\n"
        "    vms: [v1, web-1]\n"
        "    hosts: [h1,\n"
        "            h0]\n"
    )
    assert list(map(brief, problems(content))) == [
        'line 8: rules[0].vms[2]: duplicate-name "v1" rules[0].vms[0] 8',
        'line 11: rules[1].vms[1]: unknown-name "web-1"',
        'line 13: rules[1].hosts[1]: unknown-name "h0"',
    ]


def test_an_inconsistent_tenant_is_reported() -> None:
    content = with_vms("host: h1, tenant: a", "host: h1", "host: h1, tenant: b") + (
        "tenants:\n"
        "  - {id: a, sla: {vms_min: 3, vms_max: 2}}\n"
        "  - id: b\n"
        "    sla: {vms_max: 2}\n"
        "    anti_affinity:\n"
        "      - {id: g, vms: [v1, v2, v3, v4]}\n"
        "      - {id: g, vms: [v3]}\n"
    )
    groups = "tenants[1].anti_affinity"
    assert list(map(brief, problems(content))) == [
        "line 9: tenants[0].sla.vms_min: out-of-range 3 2 2",
        f'line 13: {groups}[0].vms[3]: unknown-name "v4"',
        f'line 13: {groups}[0].vms[0]: contradiction "v1" "a"',
        f'line 13: {groups}[0].vms[1]: contradiction "v2"',
        f'line 14: {groups}[1].id: duplicate-name "g" {groups}[0].id 13',
    ]


RESOURCES = """\
resources:
  - {id: a, kind: server}
  - {id: b, kind: server}
  - {id: l, kind: virtual_link}
"""

DEPENDENCY_CASES = [
    ("sponsor: z, kind: container", 'sponsor: unknown-name "z"'),
    ("sponsor: a, kind: container", 'sponsor: cycle "a"'),
    (
        "sponsor: b, kind: composition, constituents_min: 1",
        "constituents_min: contradiction",
    ),
    (
        "sponsor: b, kind: aggregation, constituents_min: 2",
        'constituents_min: out-of-range 2 "a" 1',
    ),
    (
        "sponsor: b, kind: container, incompatible: true",
        "incompatible: contradiction",
    ),
    (
        "sponsor: b, kind: container, link: l",
        "link: contradiction",
    ),
    (
        "sponsor: b, kind: communication, link: b",
        'link: contradiction "b"',
    ),
    ("sponsor: b, kind: communication, link: q", 'link: unknown-name "q"'),
]


@pytest.mark.parametrize(("fields", "expected"), DEPENDENCY_CASES)
def test_an_inconsistent_dependency_is_reported(fields: str, expected: str) -> None:
    content = with_hosts(RESOURCES) + f"dependencies:\n  - {{dependent: a, {fields}}}\n"
    check_problem(content, f"line 9: dependencies[0].{expected}")


def test_valid_dependencies_are_accepted() -> None:
    content = with_hosts(RESOURCES) + (
        "dependencies:\n"
        "  - {dependent: a, sponsor: b, kind: aggregation, constituents_min: 2}\n"
        "  - {dependent: a, sponsor: l, kind: aggregation, presence: current_future}\n"
        "  - {dependent: a, sponsor: b, kind: communication, link: l}\n"
        "  - {dependent: a, sponsor: b, kind: storage, presence: current_future,\n"
        "     incompatible: true}\n"
    )
    assert len(parse_inventory(content.encode(), "f.yaml").dependencies) == 4


def test_resources_name_hosts_and_vms_that_exist() -> None:
    content = with_hosts("resources:\n  - {id: a, kind: server, host: h9, vm: v9}\n")
    assert [problem.key for problem in problems(content)] == [
        "resources[0].host",
        "resources[0].vm",
    ]


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("{id: g, kind: affinity, resources: [a, z]}", 'resources[1]: unknown-name "z"'),
        (
            "{id: g, kind: affinity, resources: [a, a]}",
            'resources[1]: duplicate-name "a" groups[0].resources[0] 9',
        ),
        ("{id: g, kind: protection, resources: [a], within: x}", 'within: unknown-name "x"'),
        (
            "{id: g, kind: protection, resources: [a], within: g}",
            'within: contradiction "g"',
        ),
        (
            "{id: g, kind: affinity, resources: [a], within: p}",
            "within: contradiction",
        ),
        (
            "{id: g, kind: protection, resources: [a, b], within: p}",
            'within: contradiction "p"',
        ),
        ("{id: g, kind: protection, resources: []}", "resources: out-of-range 0 1 1"),
        (
            "{id: g, kind: protection, resources: [a, b], in_service_min: 3}",
            'in_service_min: out-of-range 3 "g" 2',
        ),
        (
            "{id: g, kind: protection, resources: [a], within: p, in_service_min: 2}",
            'in_service_min: out-of-range 2 "p" 1',
        ),
        (
            "{id: g, kind: potential_protection, resources: [a, b], out_max: 3}",
            'out_max: out-of-range 3 "g" 2',
        ),
        (
            "{id: g, kind: anti_affinity, resources: [a, b], out_max: 1}",
            "out_max: contradiction",
        ),
    ],
)
def test_an_inconsistent_group_is_reported(group: str, expected: str) -> None:
    content = with_hosts(RESOURCES) + (
        f"groups:\n  - {group}\n  - {{id: p, kind: potential_protection, resources: [a]}}\n"
    )
    check_problem(content, f"line 9: groups[0].{expected}")


def step(name: str, fields: str) -> str:
    return f"  - {{id: {name}, action: {{do: kill, vm: v}}, {fields}}}\n"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (
            step("a", "start_ms: 5, end_ms: 5"),
            "line 3: steps[0].end_ms: out-of-range 5 5 5",
        ),
        (step("a", "end_ms: 5, after: [a]"), 'line 3: steps[0].after[0]: cycle "a"'),
        (step("a", "end_ms: 5, after: [b]"), 'line 3: steps[0].after[0]: unknown-name "b"'),
        (
            step("a", "end_ms: 5") + step("a", "end_ms: 5"),
            'line 4: steps[1].id: duplicate-name "a" steps[0].id 3',
        ),
        (
            step("a", "end_ms: 5")
            + step("b", "end_ms: 5, after: [a, c]")
            + step("c", "end_ms: 5, after: [a, b]")
            + step("d", "end_ms: 5, after: [b]"),
            "line 4: steps[1].after: cycle b -> c -> b",
        ),
    ],
)
def test_an_inconsistent_plan_is_reported(steps: str, expected: str) -> None:
    check_problem(f"id: p\nsteps:\n{steps}", expected, kind="plan")


def test_the_parts_of_a_scenario_are_all_checked() -> None:
    content = """\
name: sample
duration_s: 10
cluster:
  hosts:
    - {id: h1, cores: 4, mhz_per_core: 1000, memory_mib: 16384}
  vms:
    - {id: v1, vcpus: 1, memory_mib: 1024, host: h2}
plan:
  id: p
  steps:
    - {id: s, end_ms: 5, action: {do: migrate, vm: v2, source: h1, target: h3}, after: [t]}
events:
  - {event: host_failed, at_ms: 10001, host: h1}
  - {event: vm_crashed, at_ms: 1, vm: v7}
  - {event: host_left, at_ms: 1, host: h7}
"""
    found = [(problem.line, problem.key) for problem in problems(content, kind="scenario")]
    assert found == [
        (7, "cluster.vms[0].host"),
        (11, "plan.steps[0].after[0]"),
        (11, "plan.steps[0].action.vm"),
        (11, "plan.steps[0].action.target"),
        (13, "events[0].at_ms"),
        (14, "events[1].vm"),
        (15, "events[2].host"),
    ]
    broken = content.replace("at_ms: 1, vm", "at_ms: -1, vm").replace("id: p", "id: p p")
    found = [(problem.line, problem.key) for problem in problems(broken, kind="scenario")]
    assert found == [(9, "plan.id"), (14, "events[1].at_ms")], "the plan as a whole is unreadable"


def test_a_value_without_a_file_is_checked_too() -> None:
    host = a_host("h1", reserve=HostReserve(cpu_mhz=99999), state=HostState.STANDBY)
    vm_in_pool = a_vm("v1", "h1", pool=PoolId("p"))
    found = find_problems(an_inventory(host, vms=[vm_in_pool], pools=(Pool(id=PoolId("q")),)))
    assert [(problem.key, problem.line) for problem in found] == [
        ("hosts[0].reserve.cpu_mhz", None),
        ("vms[0].host", None),
        ("vms[0].pool", None),
    ]
    assert find_problems(a_plan(a_step("s", Kill(vm=VmId("v")), 0, 5, "s")))[0].key == (
        "steps[0].after[0]"
    )
    scenario = Scenario(name="n", duration_s=1, cluster=an_inventory(a_host(), vms=[vm_in_pool]))
    assert [problem.key for problem in find_problems(scenario)] == ["cluster.vms[0].pool"]


def test_an_overloaded_host_is_not_a_problem() -> None:
    vms = [a_vm(f"v{n}", "h1", memory_mib=10**6) for n in range(50)]
    assert find_problems(an_inventory(a_host("h1"), vms=vms)) == []


def test_a_vm_may_consume_zero_of_a_resource_that_is_not_offered() -> None:
    idle = a_vm("v", "h1", consumption={"gpus": 0}, state=VmState.SLEEPING)
    assert find_problems(an_inventory(a_host("h1"), vms=[idle])) == []


def test_a_check_stops_after_a_thousand_problems() -> None:
    lost = [a_vm(f"v{n}", f"nowhere-{n}") for n in range(3000)]
    hosts = [a_host(f"host-{n}") for n in range(300)]
    found = find_problems(an_inventory(*hosts, vms=lost))
    assert len(found) == 101
    assert brief(found[-1]) == "more-problems 900"
    assert HostId("nowhere-0") in found[0].what


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("{hosts: {h9: stays_on}}", 'hosts.h9: unknown-name "h9"'),
        ("{hosts: {h1: never}}", 'hosts.h1: invalid-value "never"'),
        ("{observe_s: 7200}", "observe_s: out-of-range 7200 0 3000"),
        ("{off_window_s: 86400}", "off_window_s: out-of-range 86400 1 3600"),
        ("{threshold: 6}", "threshold: out-of-range 6 1 5"),
        (
            "{windows: [{start: '08:00', end: '08:00', automation: off}]}",
            "windows[0].end: out-of-range 08:00 00:00 24:00",
        ),
        (
            "{windows: [{start: '24:00', end: '08:00', automation: off}]}",
            "windows[0].start: out-of-range 00:00",
        ),
        (
            "{windows: [{start: '08:00', end: '9:00', automation: off}]}",
            'windows[0].end: invalid-name "9:00" 00:00 24:00',
        ),
        (
            "{windows: [{start: '08:00', end: '09:00', automation: off, days: []}]}",
            "windows[0].days: empty-value",
        ),
        ("{tariff: {currency: doubloons}}", "tariff.currency: out-of-range 9 8"),
        ("{order: [size, beauty]}", 'order[1]: invalid-value "beauty"'),
    ],
)
def test_an_inconsistent_power_policy_is_reported(policy: str, expected: str) -> None:
    check_problem(with_hosts(f"power: {policy}\n"), f"line 4: power.{expected}")


def test_names_and_figures_are_reported_together() -> None:
    text = (
        "hosts:\n"
        "  - {id: h1, cores: 0, mhz_per_core: 1000, memory_mib: 8192}\n"
        "vms:\n"
        "  - {id: a, vcpus: 0, memory_mib: 1024, host: nowhere, pool: none, colour: red}\n"
        "  - {id: b, memory_mib: 1024, host: h1, ft_pair: absent}\n"
        "  - {id: c, vcpus: one, memory_mib: 1024, host: h1}\n"
        "rules:\n"
        "  - {kind: keep_apart, id: r, vms: [a, absent], continuous: perhaps}\n"
        "  - {kind: stay_off, id: s, vms: [a, c], hosts: [h1, h9]}\n"
    )
    with pytest.raises(InvalidInput) as caught:
        parse_inventory(text.encode(), "cluster.yaml")
    found = {(problem.key, problem.code) for problem in caught.value.problems}
    assert found == {
        ("hosts[0].cores", "out-of-range"),
        ("vms[0].vcpus", "out-of-range"),
        ("vms[0].colour", "unknown-key"),
        ("vms[0].host", "unknown-name"),
        ("vms[0].pool", "unknown-name"),
        ("vms[1].vcpus", "missing-key"),
        ("vms[1].ft_pair", "unknown-name"),
        ("vms[2].vcpus", "wrong-type"),
        ("rules[0].continuous", "wrong-type"),
        ("rules[0].vms[1]", "unknown-name"),
        ("rules[1].hosts[1]", "unknown-name"),
    }
