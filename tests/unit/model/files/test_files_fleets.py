"""Fleets that cannot be: where, what and the cure."""

from __future__ import annotations

import pytest

from equipoise.errors import InvalidInput
from equipoise.model.files import parse_case, parse_scenario, problems_of
from equipoise.model.files.findings import Findings
from equipoise.model.inventory import Inventory
from unit.model.files.file_texts import (
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


def test_fleets_that_are_right() -> None:
    start = ", start: {hosts: [h1, esx, blade-1], first: 31, dealt: randomly}"
    hosts = some_hosts() + ", " + some_hosts(", state: standby", "blade", 2)
    vms = f"{some_vms(', tenant: acme', start.replace(', blade-1', ''))}, {some_vms(name='db')}"
    check_story(with_fleets(hosts, vms))
    check_story(with_fleets(hosts, some_vms(", agent: true", ", start: {hosts: [esx-07]}")))
    check_story(with_fleets(hosts, some_vms("", start)))


@pytest.mark.parametrize("taken", ["esx", "esx-01", "esx-30"])
def test_a_member_of_a_fleet_has_a_name_of_its_own(taken: str) -> None:
    content = STORY.replace("id: h2", f"id: {taken}") + with_fleets(some_hosts())
    problem = the_problem(content, kind="scenario")
    assert str(problem) == (
        f'line 6: cluster.hosts[1].id: the id "{taken}" is taken by fleet.hosts[0].like.id '
        "on line 11 (every id once)"
    )
    content = STORY.replace("id: v1", f"id: {taken}") + with_fleets(vms=some_vms("", "", "esx", 30))
    assert the_problem(content, kind="scenario").key == "cluster.vms[0].id"


@pytest.mark.parametrize("free", ["esx-1", "esx-00", "esx-31", "esx-001", "esx-", "es-01"])
def test_a_name_that_no_member_has_is_free(free: str) -> None:
    content = STORY.replace("id: h2", f"id: {free}") + with_fleets(some_hosts())
    parse_scenario(content.encode(), "f.yaml")


def test_a_fleet_that_grows_will_use_more_names() -> None:
    content = STORY.replace("id: h2", "id: esx-31") + with_fleets(some_hosts())
    parse_scenario(content.encode(), "f.yaml")
    growing = content + "unrest: {hosts: [{fleet: esx, per_day: 1}]}\n"
    assert the_problem(growing, kind="scenario").key == "cluster.hosts[1].id"


def test_two_fleets_do_not_have_the_same_name() -> None:
    told = the_story_problem(with_fleets(f"{some_hosts()}, {some_hosts(count=0)}"))
    assert told == (
        'line 11: fleet.hosts[1].like.id: the id "esx" is taken by fleet.hosts[0].like.id '
        "on line 11 (every id once)"
    )
    check_story(with_fleets(some_hosts(), some_vms(name="esx")))


def test_the_names_of_members_are_names() -> None:
    told = the_story_problem(with_fleets(some_hosts(name="x" * 126)))
    assert told == (
        "line 11: fleet.hosts[0].like.id: the ids of its members would have 129 letters "
        "(at most 128, so a shorter id)"
    )
    check_story(with_fleets(some_hosts(name="x" * 125)))


LIKE_CASES = [
    (
        ", host: h1",
        (
            "host: where the VMs of a fleet are is said by its start "
            "(leave it out, and write start: {hosts: [h1]})"
        ),
    ),
    (
        ", ft_pair: v1",
        "ft_pair: the VMs of a fleet cannot all be the pair of one (list the two in the cluster)",
    ),
    (
        ", agent: true",
        (
            "agent: an agent belongs to a host, but the fleet has no start "
            "(give the fleet a start, or leave agent out)"
        ),
    ),
    (
        ", state: sleeping",
        (
            "state: sleeping is not what the VMs of a fleet are at the start "
            "(leave it out: with a start they run, else are ready)"
        ),
    ),
    (", pool: gold", 'pool: there is no pool "gold" (no pool is listed)'),
    (", tenant: acm", 'tenant: there is no tenant "acm" (did you mean "acme"? the tenants are: '),
    (
        ", demand: {memory_mib: 1025}",
        (
            "demand.memory_mib: 1025 is above the configured memory_mib 1024 "
            "(at most 1024, or raise memory_mib)"
        ),
    ),
]


@pytest.mark.parametrize(("like", "told"), LIKE_CASES)
def test_what_a_fleet_of_vms_cannot_be_like(like: str, told: str) -> None:
    given = with_fleets(some_hosts(), some_vms(like))
    assert the_story_problem(given).startswith(f"line 12: fleet.vms[0].like.{told}")


def test_a_fleet_without_a_start_may_say_that_it_is_ready() -> None:
    check_story(with_fleets(vms=some_vms(", state: ready")))
    told = the_story_problem(with_fleets(vms=some_vms(", state: ready", ", start: {hosts: [h1]}")))
    assert "ready is not what the VMs of a fleet are at the start" in told


def test_what_a_fleet_of_hosts_cannot_be_like() -> None:
    told = the_story_problem(with_fleets(some_hosts(", reserve: {cpu_mhz: 4001}")))
    assert told == (
        "line 11: fleet.hosts[0].like.reserve.cpu_mhz: 4001 is more than the host has "
        "(at most 4000)"
    )


START_CASES = [
    (
        "hosts: [esy]",
        (
            'hosts[0]: there is no host or fleet "esy" (did you mean "esx"? '
            "there are: h1, h2, esx, none)"
        ),
    ),
    (
        "hosts: [esx-31]",
        (
            'hosts[0]: there is no host or fleet "esx-31" (did you mean "esx-30"? '
            "there are: h1, h2, esx, none)"
        ),
    ),
    (
        "hosts: [none]",
        "hosts: there is no host in it (name a host, or a fleet of at least one)",
    ),
    ("hosts: [h1, esx], first: 32", "first: 32 is more than the hosts there are (at most 31)"),
    (
        "hosts: [h1, h2]",
        (
            'hosts[1]: the VMs run from the start, but "h2" is standby '
            "(name hosts that are on, or leave start out)"
        ),
    ),
    (
        "hosts: [h1, h1]",
        (
            'hosts[1]: "h1" is named twice, first by fleet.vms[0].start.hosts[0] on line 12 '
            "(once is enough)"
        ),
    ),
    (
        "hosts: [esx-01, esx]",
        (
            'hosts[1]: "esx" is named twice, first by fleet.vms[0].start.hosts[0] on line 12 '
            "(once is enough)"
        ),
    ),
    (
        "hosts: [esx, h1, esx-02]",
        (
            'hosts[2]: "esx-02" is named twice, first by fleet.vms[0].start.hosts[0] on line 12 '
            "(once is enough)"
        ),
    ),
]


@pytest.mark.parametrize(("start", "told"), START_CASES)
def test_vms_start_where_there_are_hosts(start: str, told: str) -> None:
    hosts = f"{some_hosts()}, {some_hosts(name='none', count=0)}"
    vms = some_vms("", f", start: {{{start}}}")
    assert the_story_problem(with_fleets(hosts, vms)) == f"line 12: fleet.vms[0].start.{told}"


def test_hosts_that_are_not_among_the_first_are_not_asked() -> None:
    check_story(with_fleets(vms=some_vms("", ", start: {hosts: [h1, h2], first: 1}")))
    check_story(with_fleets(some_hosts(), some_vms("", ", start: {hosts: [esx-01, esx-02]}")))


def test_vms_take_of_what_their_first_hosts_offer() -> None:
    given = with_fleets(
        some_hosts(), some_vms(", consumption: {gpus: 1}", ", start: {hosts: [h1]}")
    )
    assert the_story_problem(given) == (
        'line 12: fleet.vms[0].like.consumption.gpus: its host "h1" does not offer "gpus" '
        "(it offers nothing in capacity)"
    )


def test_a_story_has_a_host_in_its_cluster_or_in_a_fleet() -> None:
    bare = "name: story\nduration_s: 5\ncluster: {hosts: []}\n"
    told = the_problem(bare, kind="scenario")
    cure = "list at least one, or write fleet: {hosts: ...}"
    assert str(told) == f"line 3: cluster.hosts: there is no host ({cure})"
    none = bare + with_fleets(some_hosts(count=0))
    assert the_problem(none, kind="scenario").what == "there is no host"
    parse_scenario((bare + with_fleets(some_hosts(count=1))).encode(), "f.yaml")
    assert the_problem("hosts: []").cure == "list at least one"
    with pytest.raises(InvalidInput, match=r"cluster.hosts: there is no host \(list at least one"):
        parse_case(b"cluster: {hosts: []}", "f.yaml")


def test_members_may_be_named_everywhere() -> None:
    check_story(
        with_fleets(some_hosts(), some_vms(", tenant: acme", ", start: {hosts: [esx]}", "w", 3))
        + """\
plan:
  id: p
  steps:
    - {id: s, end_ms: 5, action: {do: migrate, vm: w-1, source: esx-01, target: esx-02}}
happenings:
  - {event: host_failed, at_ms: 5, host: esx-30}
"""
    )
    content = STORY + with_fleets(some_hosts(), some_vms(", tenant: acme", "", "w", 3))
    inner = (
        "  rules:\n"
        "    - {kind: keep_apart, id: r, vms: [v1, w-1, w-9]}\n"
        "    - {kind: stay_within, id: s, vms: [w-3], hosts: [esx-01, esx-1]}\n"
    )
    content = content.replace("  tenants", inner + "  tenants")
    told = [(problem.key, problem.what) for problem in problems(content, kind="scenario")]
    assert told == [
        ("cluster.rules[0].vms[2]", 'there is no VM "w-9"'),
        ("cluster.rules[1].hosts[1]", 'there is no host "esx-1"'),
    ]


def test_whoever_judges_rules_sees_the_members_they_speak_of() -> None:
    seen: list[Inventory] = []

    def judge(inventory: Inventory, _found: Findings) -> None:
        seen.append(inventory)

    content = (STORY + with_fleets(some_hosts(), some_vms())).replace(
        "  tenants",
        "  rules: [{kind: satisfy, id: r, constraint: Spread, "
        "arguments: {vs: [web-01, web-10, web-99], ns: [[esx-02]], n: 2}}]\n  tenants",
    )
    scenario = parse_scenario(content.encode(), "f.yaml", judge)
    assert [vm.id for vm in seen[0].vms] == ["v1", "web-01", "web-10"]
    assert [host.id for host in seen[0].hosts] == ["h1", "h2", "esx-02"]
    assert problems_of(seen[0]) == []
    assert len(scenario.cluster.vms) == 1


def test_a_fleet_that_cannot_be_read_is_still_known_by_its_name() -> None:
    broken = with_fleets(some_hosts(count=-1), some_vms("", ", start: {hosts: [esx, esx-04]}"))
    assert the_story_problem(broken).startswith("line 11: fleet.hosts[0].count: -1 is below")
    both = with_fleets(some_hosts(count=-1), some_vms(", host: h1", ", start: {hosts: [ex]}"))
    assert [one.split(":")[1].strip() for one in story_problems(both)] == [
        "fleet.hosts[0].count",
        "fleet.vms[0].like.host",
        "fleet.vms[0].start.hosts[0]",
    ]
