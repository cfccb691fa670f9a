"""Short files for the tests of ``model.files``, and a way to ask what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from equipoise.errors import InvalidInput, Problem
from equipoise.model.files import parse_inventory, parse_plan, parse_scenario

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
