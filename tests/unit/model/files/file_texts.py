"""Short files for the tests of ``model.files``, and a way to ask what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from equipoise.errors import InvalidInput, Problem
from equipoise.model.files import parse_inventory, parse_plan, parse_scenario, to_json

HOSTS = """\
hosts:
  - {id: h1, cores: 4, mhz_per_core: 1000, memory_mib: 16384}
  - {id: h2, cores: 4, mhz_per_core: 1000, memory_mib: 16384}
"""
"""Three lines; what a test adds starts on line 4."""

_PARSERS: dict[str, Callable[[bytes, str], object]] = {
    "inventory": parse_inventory,
    "plan": parse_plan,
    "scenario": parse_scenario,
}


def problems(
    content: str | bytes, source: str = "f.yaml", kind: str = "inventory"
) -> list[Problem]:
    """All that is wrong with a file."""
    raw = content.encode() if isinstance(content, str) else content
    with pytest.raises(InvalidInput) as caught:
        _PARSERS[kind](raw, source)
    assert caught.value.source == source
    return list(caught.value.problems)


def the_problem(content: str | bytes, source: str = "f.yaml", kind: str = "inventory") -> Problem:
    """The only thing that is wrong with a file."""
    (problem,) = problems(content, source, kind)
    return problem


def with_hosts(more: str) -> str:
    """A file with two hosts and something else from line 4 on."""
    return HOSTS + dedent(more)


STORY = """\
name: story
duration_s: 864000
cluster:
  hosts:
    - {id: h1, cores: 4, mhz_per_core: 1000, memory_mib: 16384}
    - {id: h2, cores: 4, mhz_per_core: 1000, memory_mib: 16384, state: standby}
  vms:
    - {id: v1, vcpus: 1, memory_mib: 1024, host: h1}
  tenants: [{id: acme, sla: {vms_max: 9}}, {id: other, sla: {vms_max: 9}}]
"""
"""Nine lines, ten days; what a test adds starts on line 10."""


def story_problems(more: str) -> list[str]:
    """All that is wrong with a story to which something was added, as a person reads it."""
    return list(map(str, problems(STORY + dedent(more), kind="scenario")))


def the_story_problem(more: str) -> str:
    """The only thing that is wrong with such a story."""
    (problem,) = story_problems(more)
    return problem


def check_story(more: str) -> None:
    """Nothing is wrong with such a story, in either language."""
    scenario = parse_scenario((STORY + dedent(more)).encode(), "f.yaml")
    assert parse_scenario(to_json(scenario).encode(), "f.json") == scenario


HOST = "cores: 4, mhz_per_core: 1000, memory_mib: 16384"


def with_fleets(hosts: str = "", vms: str = "") -> str:
    """Fleets for a story: hosts on line 11, VMs on line 12."""
    return f"fleet:\n  hosts: [{hosts}]\n  vms: [{vms}]\n"


def some_hosts(fields: str = "", name: str = "esx", count: int = 30) -> str:
    """A fleet of hosts."""
    return f"{{count: {count}, like: {{id: {name}, {HOST}{fields}}}}}"


def some_vms(like: str = "", fields: str = "", name: str = "web", count: int = 10) -> str:
    """A fleet of VMs."""
    return f"{{count: {count}, like: {{id: {name}, vcpus: 1, memory_mib: 1024{like}}}{fields}}}"
