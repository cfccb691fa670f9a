"""Short files for the tests of ``files``, and functions that return what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent

import pytest

from equipoise.errors import CODES, InputProblem, InvalidInput
from equipoise.files import parse_inventory, parse_plan, parse_scenario, to_json

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
) -> list[InputProblem]:
    """All problems of a file."""
    raw = content.encode() if isinstance(content, str) else content
    with pytest.raises(InvalidInput) as caught:
        _PARSERS[kind](raw, source)
    assert caught.value.source == source
    return list(caught.value.problems)


def only_problem(
    content: str | bytes, source: str = "f.yaml", kind: str = "inventory"
) -> InputProblem:
    """The only problem of a file."""
    (problem,) = problems(content, source, kind)
    return problem


_FACT = re.compile(
    r'"(?:[^"\\]|\\.)*"'  # a name or text
    r"|\S+(?: -> [^\s)]+)+"  # a cycle
    r"|[A-Za-z_]\w*(?:\.\w+|\[[^]]*\])+"  # a path
    r"|(?<![\w.-])-?(?:\d+(?:[.:]\d+)?|NaN|infinity)\b"  # a number or time
    r"|[*&!]+\w\S*"  # an alias, anchor or tag of YAML
)


def facts(problem: InputProblem) -> list[str]:
    """The quoted names, paths and numbers in the sentence and the cure of a problem."""
    return _FACT.findall(f"{problem.what} {problem.cure}")


def brief(problem: InputProblem) -> str:
    """A problem without its prose: line, key, code, and the facts of its sentences."""
    assert problem.code in CODES
    assert problem.what
    line = f"line {problem.line}: " if problem.line is not None else ""
    key = f"{problem.key}: " if problem.key else ""
    return line + key + " ".join([problem.code, *facts(problem)])


def check_problem(
    content: str | bytes, expected: str, source: str = "f.yaml", kind: str = "inventory"
) -> None:
    """A file has exactly this problem, with a cure."""
    problem = only_problem(content, source, kind)
    assert brief(problem) == expected
    assert problem.cure


def with_hosts(more: str) -> str:
    """A file with two hosts, and other lines from line 4 on."""
    return HOSTS + dedent(more)


SCENARIO = """\
name: sample
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


def scenario_problems(more: str) -> list[str]:
    """All problems of the scenario with lines added, in brief."""
    return list(map(brief, problems(SCENARIO + dedent(more), kind="scenario")))


def only_scenario_problem(more: str) -> str:
    """The only problem of the scenario with lines added, in brief."""
    (problem,) = scenario_problems(more)
    return problem


def check_valid_scenario(more: str) -> None:
    """The scenario with lines added has no problem, in YAML and in JSON."""
    scenario = parse_scenario((SCENARIO + dedent(more)).encode(), "f.yaml")
    assert parse_scenario(to_json(scenario).encode(), "f.json") == scenario


HOST = "cores: 4, mhz_per_core: 1000, memory_mib: 16384"


def with_fleets(hosts: str = "", vms: str = "") -> str:
    """Fleets for the scenario: hosts on line 11, VMs on line 12."""
    return f"fleet:\n  hosts: [{hosts}]\n  vms: [{vms}]\n"


def some_hosts(fields: str = "", name: str = "esx", count: int = 30) -> str:
    """A fleet of hosts."""
    return f"{{count: {count}, like: {{id: {name}, {HOST}{fields}}}}}"


def some_vms(like: str = "", fields: str = "", name: str = "web", count: int = 10) -> str:
    """A fleet of VMs."""
    return f"{{count: {count}, like: {{id: {name}, vcpus: 1, memory_mib: 1024{like}}}{fields}}}"
