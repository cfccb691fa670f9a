"""Files that can be read but contradict themselves: where, what and the cure."""

from __future__ import annotations

import pytest

from builders import a_host, a_plan, a_step, a_vm, an_inventory
from equipoise.errors import Problem
from equipoise.model.action import Kill
from equipoise.model.files import parse_inventory, problems_of
from equipoise.model.host import HostReserve, HostState
from equipoise.model.pool import Pool
from equipoise.model.quantity import HostId, PoolId, VmId
from equipoise.model.story.scenario import Scenario
from equipoise.model.vm import VmState
from unit.model.files.file_texts import HOSTS, problems, the_problem, with_hosts


def vm(fields: str, name: str = "v1") -> str:
    return f"  - {{id: {name}, vcpus: 1, memory_mib: 1024, {fields}}}\n"


def with_vms(*fields: str) -> str:
    """Two hosts, and on line 5 and below the VMs v1, v2, ..."""
    lines = [vm(given, f"v{place}") for place, given in enumerate(fields, start=1)]
    return with_hosts("vms:\n") + "".join(lines)


def check_only(content: str, key: str, what: str, cure: str, line: int) -> None:
    assert the_problem(content) == Problem(key=key, what=what, cure=cure, line=line)


HOST_CASES = [
    (
        "reserve: {cpu_mhz: 4001}",
        "reserve.cpu_mhz",
        "4001 is more than the host has",
        "at most 4000",
    ),
    (
        "reserve: {memory_mib: 16385}",
        "reserve.memory_mib",
        "16385 is more than the host has",
        "at most 16384",
    ),
    (
        "power: {idle_watts: 300, peak_watts: 200}",
        "power.idle_watts",
        "300 is more than peak_watts 200",
        "at most 200, or raise peak_watts",
    ),
]


@pytest.mark.parametrize(("fields", "key", "what", "cure"), HOST_CASES)
def test_hosts(fields: str, key: str, what: str, cure: str) -> None:
    content = HOSTS + f"  - {{id: h3, cores: 4, mhz_per_core: 1000, memory_mib: 16384, {fields}}}\n"
    check_only(content, f"hosts[2].{key}", what, cure, 4)


VM_CASES = [
    ("host: h3", "host", 'there is no host "h3"', "the hosts are: h1, h2"),
    (
        "state: running",
        "host",
        'is missing, though the VM "v1" is running',
        "name its host, or write state: ready",
    ),
    (
        "state: sleeping",
        "host",
        'is missing, though the VM "v1" is sleeping',
        "name its host, or write state: ready",
    ),
    (
        "state: ready, host: h1",
        "host",
        'a VM that is ready has no host, found "h1"',
        "leave host out, or write state: running",
    ),
    (
        "host: h1, cpu: {reservation_mhz: 9, limit_mhz: 8}",
        "cpu.reservation_mhz",
        "9 is above limit_mhz 8",
        "at most 8",
    ),
    (
        "host: h1, memory: {reservation_mib: 9, limit_mib: 8}",
        "memory.reservation_mib",
        "9 is above limit_mib 8",
        "at most 8",
    ),
    (
        "host: h1, memory: {reservation_mib: 1025}",
        "memory.reservation_mib",
        "1025 is above the configured memory_mib 1024",
        "at most 1024, or raise memory_mib",
    ),
    (
        "host: h1, demand: {memory_mib: 1025}",
        "demand.memory_mib",
        "1025 is above the configured memory_mib 1024",
        "at most 1024, or raise memory_mib",
    ),
    ("host: h1, pool: p", "pool", 'there is no pool "p"', "no pool is listed"),
    ("host: h1, tenant: t", "tenant", 'there is no tenant "t"', "no tenant is listed"),
    ("host: h1, ft_pair: v1", "ft_pair", "a VM is not its own pair", "name another VM"),
    ("host: h1, ft_pair: v9", "ft_pair", 'there is no VM "v9"', "the VMs are: v1"),
    (
        "host: h1, consumption: {gpus: 1}",
        "consumption.gpus",
        'its host "h1" does not offer "gpus"',
        "it offers nothing in capacity",
    ),
]


@pytest.mark.parametrize(("fields", "key", "what", "cure"), VM_CASES)
def test_vms(fields: str, key: str, what: str, cure: str) -> None:
    check_only(with_vms(fields), f"vms[0].{key}", what, cure, 5)


@pytest.mark.parametrize("state", ["standby", "failed", "maintenance"])
def test_a_vm_does_not_run_on_a_host_that_is_not_on(state: str) -> None:
    content = HOSTS.replace("16384}", f"16384, state: {state}}}", 1) + "vms:\n" + vm("host: h1")
    what = f'the VM "v1" is running, but its host "h1" is {state}'
    check_only(content, "vms[0].host", what, "name a host that is on, or another state", 5)


def test_an_agent_sleeps_on_a_host_that_is_not_on() -> None:
    base = HOSTS.replace("16384}", "16384, state: standby}", 1) + "vms:\n"
    parse_inventory((base + vm("host: h1, agent: true, state: sleeping")).encode(), "f.yaml")
    problem = the_problem(base + vm("host: h1, agent: true"))
    assert problem.cure == "write state: sleeping"


def test_a_pair_must_be_mutual_and_apart() -> None:
    check_only(
        with_vms("host: h1, ft_pair: v2", "host: h2"),
        "vms[0].ft_pair",
        'the pair is not mutual: "v2" names none',
        "write ft_pair: v1 there, or leave it out here",
        5,
    )
    check_only(
        with_vms("host: h1, ft_pair: v2", "host: h1, ft_pair: v1"),
        "vms[0].ft_pair",
        '"v1" and "v2" are both on "h1"',
        "a pair needs two hosts",
        5,
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
def test_an_id_that_is_taken(more: str, key: str) -> None:
    ends = "vms: [{id: v, vcpus: 1, memory_mib: 1, host: h1}]\n" if key != "vms" else ""
    ends += "resources: [{id: r, kind: server}]\n" if key != "resources" else ""
    problem = the_problem(with_hosts(more) + ends)
    name = "v1" if key == "vms" else "a"
    assert problem == Problem(
        key=f"{key}[1].id",
        what=f'the id "{name}" is taken by {key}[0].id on line 5',
        cure="every id once",
        line=6,
    )


def test_two_hosts_of_one_name() -> None:
    problem = the_problem(HOSTS.replace("h2", "h1"))
    assert problem.what == 'the id "h1" is taken by hosts[0].id on line 2'
    assert problem.line == 3


def test_pools() -> None:
    check_only(
        with_hosts("pools:\n  - {id: web, parent: prood}\n  - {id: prod}\n"),
        "pools[0].parent",
        'there is no pool "prood"',
        'did you mean "prod"? the pools are: web, prod',
        5,
    )
    check_only(
        with_hosts("pools:\n  - {id: a, memory: {reservation_mib: 2, limit_mib: 1}}\n"),
        "pools[0].memory.reservation_mib",
        "2 is above limit_mib 1",
        "at most 1",
        5,
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
    told = [(problem.line, problem.what) for problem in problems(content)]
    assert told == [
        (6, "the pools lie within each other: b -> c -> a -> b"),
        (9, "the pools lie within each other: me -> me"),
    ]


def test_rules() -> None:
    content = with_vms("host: h1", "host: h1") + (
        "rules:\n"
        "  - {kind: keep_apart, id: r1, vms: [v1, v2, v1]}\n"
        "  - kind: stay_within\n"
        "    id: r2\n"
        "    vms: [v1, web-1]\n"
        "    hosts: [h1,\n"
        "            h0]\n"
    )
    twice = '"v1" is named twice, first by rules[0].vms[0] on line 8 (once is enough)'
    assert list(map(str, problems(content))) == [
        f"line 8: rules[0].vms[2]: {twice}",
        'line 11: rules[1].vms[1]: there is no VM "web-1" (the VMs are: v1, v2)',
        'line 13: rules[1].hosts[1]: there is no host "h0" (the hosts are: h1, h2)',
    ]


def test_tenants() -> None:
    content = with_vms("host: h1, tenant: a", "host: h1", "host: h1, tenant: b") + (
        "tenants:\n"
        "  - {id: a, sla: {vms_min: 3, vms_max: 2}}\n"
        "  - id: b\n"
        "    sla: {vms_max: 2}\n"
        "    anti_affinity:\n"
        "      - {id: g, vms: [v1, v2, v3, v4]}\n"
        "      - {id: g, vms: [v3]}\n"
    )
    told = [f"{problem.line} {problem.key}: {problem.what}" for problem in problems(content)]
    groups = "tenants[1].anti_affinity"
    assert told == [
        "9 tenants[0].sla.vms_min: 3 is above vms_max 2",
        '13 tenants[1].anti_affinity[0].vms[3]: there is no VM "v4"',
        '13 tenants[1].anti_affinity[0].vms[0]: "v1" belongs to the tenant "a"',
        '13 tenants[1].anti_affinity[0].vms[1]: "v2" belongs to no tenant',
        f'14 {groups}[1].id: the id "g" is taken by {groups}[0].id on line 13',
    ]


RESOURCES = """\
resources:
  - {id: a, kind: server}
  - {id: b, kind: server}
  - {id: l, kind: virtual_link}
"""

DEPENDENCY_CASES = [
    ("sponsor: z, kind: container", "sponsor", 'there is no resource "z"', "the resources are: a"),
    ("sponsor: a, kind: container", "sponsor", '"a" depends on itself', "name another resource"),
    (
        "sponsor: b, kind: composition, constituents_min: 1",
        "constituents_min",
        "a dependency of kind composition has no constituents",
        "leave it out, or write kind: aggregation",
    ),
    (
        "sponsor: b, kind: aggregation, constituents_min: 2",
        "constituents_min",
        '2 is more than the constituents of "a"',
        "at most 1",
    ),
    (
        "sponsor: b, kind: container, incompatible: true",
        "incompatible",
        "a dependency that is current only cannot be incompatible",
        "leave it out, or write presence: current_future",
    ),
    (
        "sponsor: b, kind: container, link: l",
        "link",
        "a dependency of kind container has no link",
        "leave it out, or write kind: communication",
    ),
    (
        "sponsor: b, kind: communication, link: b",
        "link",
        '"b" is of kind server',
        "name a resource of kind link, virtual_link",
    ),
    ("sponsor: b, kind: communication, link: q", "link", 'there is no resource "q"', "the res"),
]


@pytest.mark.parametrize(("fields", "key", "what", "cure"), DEPENDENCY_CASES)
def test_dependencies(fields: str, key: str, what: str, cure: str) -> None:
    content = with_hosts(RESOURCES) + f"dependencies:\n  - {{dependent: a, {fields}}}\n"
    problem = the_problem(content)
    assert (problem.key, problem.what, problem.line) == (f"dependencies[0].{key}", what, 9)
    assert problem.cure.startswith(cure)


def test_dependencies_that_are_right() -> None:
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
    ("group", "key", "what"),
    [
        ("{id: g, kind: affinity, resources: [a, z]}", "resources[1]", 'there is no resource "z"'),
        ("{id: g, kind: affinity, resources: [a, a]}", "resources[1]", '"a" is named twice'),
        ("{id: g, kind: protection, resources: [a], within: x}", "within", 'there is no group "x"'),
        (
            "{id: g, kind: protection, resources: [a], within: g}",
            "within",
            '"g" is a group of kind protection',
        ),
        (
            "{id: g, kind: affinity, resources: [a], within: p}",
            "within",
            "a group of kind affinity is not within another",
        ),
        (
            "{id: g, kind: protection, resources: [a, b], within: p}",
            "within",
            '"p" has no b',
        ),
        ("{id: g, kind: protection, resources: []}", "resources", "has 0 of at least 1"),
        (
            "{id: g, kind: protection, resources: [a, b], in_service_min: 3}",
            "in_service_min",
            '3 is more than the members of "g"',
        ),
        (
            "{id: g, kind: protection, resources: [a], within: p, in_service_min: 2}",
            "in_service_min",
            '2 is more than the members of "p"',
        ),
        (
            "{id: g, kind: potential_protection, resources: [a, b], out_max: 3}",
            "out_max",
            '3 is more than the members of "g"',
        ),
        (
            "{id: g, kind: anti_affinity, resources: [a, b], out_max: 1}",
            "out_max",
            "a group of kind anti_affinity does not say who may be out",
        ),
    ],
)
def test_groups(group: str, key: str, what: str) -> None:
    content = with_hosts(RESOURCES) + (
        f"groups:\n  - {group}\n  - {{id: p, kind: potential_protection, resources: [a]}}\n"
    )
    problem = the_problem(content)
    assert problem.key == f"groups[0].{key}"
    assert problem.what.startswith(what)
    assert problem.line == 9
    assert problem.cure


def step(name: str, fields: str) -> str:
    return f"  - {{id: {name}, action: {{do: kill, vm: v}}, {fields}}}\n"


@pytest.mark.parametrize(
    ("steps", "key", "what", "line"),
    [
        (
            step("a", "start_ms: 5, end_ms: 5"),
            "steps[0].end_ms",
            "5 is not after start_ms 5",
            3,
        ),
        (step("a", "end_ms: 5, after: [a]"), "steps[0].after[0]", '"a" waits for itself', 3),
        (step("a", "end_ms: 5, after: [b]"), "steps[0].after[0]", 'there is no step "b"', 3),
        (
            step("a", "end_ms: 5") + step("a", "end_ms: 5"),
            "steps[1].id",
            'the id "a" is taken by steps[0].id on line 3',
            4,
        ),
        (
            step("a", "end_ms: 5")
            + step("b", "end_ms: 5, after: [a, c]")
            + step("c", "end_ms: 5, after: [a, b]")
            + step("d", "end_ms: 5, after: [b]"),
            "steps[1].after",
            "the steps wait for each other: b -> c -> b",
            4,
        ),
    ],
)
def test_plans(steps: str, key: str, what: str, line: int) -> None:
    problem = the_problem(f"id: p\nsteps:\n{steps}", kind="plan")
    assert (problem.key, problem.what, problem.line) == (key, what, line)
    assert problem.cure


def test_scenarios() -> None:
    content = """\
name: story
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
happenings:
  - {event: host_failed, at_ms: 10001, host: h1}
  - {event: vm_crashed, at_ms: 1, vm: v7}
  - {event: host_left, at_ms: 1, host: h7}
"""
    told = [(problem.line, problem.key) for problem in problems(content, kind="scenario")]
    assert told == [
        (7, "cluster.vms[0].host"),
        (11, "plan.steps[0].after[0]"),
        (11, "plan.steps[0].action.vm"),
        (11, "plan.steps[0].action.target"),
        (13, "happenings[0].at_ms"),
        (14, "happenings[1].vm"),
        (15, "happenings[2].host"),
    ]
    spoilt = content.replace("at_ms: 1, vm", "at_ms: -1, vm").replace("id: p", "id: p p")
    told = [(problem.line, problem.key) for problem in problems(spoilt, kind="scenario")]
    assert told == [(9, "plan.id"), (14, "happenings[1].at_ms")], "the plan is no list element"


def test_a_value_without_a_file_is_checked_as_well() -> None:
    host = a_host("h1", reserve=HostReserve(cpu_mhz=99999), state=HostState.STANDBY)
    machine = a_vm("v1", "h1", pool=PoolId("p"))
    told = problems_of(an_inventory(host, vms=[machine], pools=(Pool(id=PoolId("q")),)))
    assert [(problem.key, problem.line) for problem in told] == [
        ("hosts[0].reserve.cpu_mhz", None),
        ("vms[0].host", None),
        ("vms[0].pool", None),
    ]
    assert problems_of(a_plan(a_step("s", Kill(vm=VmId("v")), 0, 5, "s")))[0].key == (
        "steps[0].after[0]"
    )
    story = Scenario(name="n", duration_s=1, cluster=an_inventory(a_host(), vms=[machine]))
    assert [problem.key for problem in problems_of(story)] == ["cluster.vms[0].pool"]


def test_too_many_vms_on_a_host_are_not_a_slip() -> None:
    crowd = [a_vm(f"v{n}", "h1", memory_mib=10**6) for n in range(50)]
    assert problems_of(an_inventory(a_host("h1"), vms=crowd)) == []


def test_a_vm_may_consume_nothing_of_what_is_not_offered() -> None:
    machine = a_vm("v", "h1", consumption={"gpus": 0}, state=VmState.SLEEPING)
    assert problems_of(an_inventory(a_host("h1"), vms=[machine])) == []


def test_very_many_contradictions_are_found_and_cut() -> None:
    lost = [a_vm(f"v{n}", f"nowhere-{n}") for n in range(3000)]
    hosts = [a_host(f"host-{n}") for n in range(300)]
    told = problems_of(an_inventory(*hosts, vms=lost))
    assert len(told) == 101
    assert told[-1].what == "... and at least 900 more"
    assert HostId("nowhere-0") in told[0].what
