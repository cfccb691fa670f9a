"""The scenarios that come with the product."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from importlib.resources import files as resources

from equipoise.errors import InvalidInput, Problem
from equipoise.model.files import parse_scenario
from equipoise.model.story.scenario import Scenario


def names() -> tuple[str, ...]:
    """The names of the built-in scenarios, in order."""
    folder = resources("equipoise.sim") / "scenarios"
    found = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


def builtin(name: str) -> Scenario:
    """Read a built-in scenario."""
    known = names()
    if name not in known:
        close = get_close_matches(name, known, n=1)
        cure = f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}, or a file"
        problem = Problem(key="", what="there is no such file or built-in scenario", cure=cure)
        raise InvalidInput(name, [problem])
    entry = resources("equipoise.sim") / "scenarios" / f"{name}.yaml"
    return parse_scenario(entry.read_bytes(), entry.name)


def all_builtin() -> Iterator[Scenario]:
    """Read all of them."""
    return (builtin(name) for name in names())
