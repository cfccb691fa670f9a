"""Deciders and upgrade engines by name, found by their entry points.

A decider is anything with ``propose(snapshot) -> Proposal``, made from a scenario. In ``mine.py``::

    class Mine:
        def __init__(self, scenario):
            self.estimates = scenario.estimates

        def propose(self, snapshot):
            ...

An engine executes the schedules of an upgrade, and is made from a campaign. In ``pyproject.toml``::

    [project.entry-points."equipoise.deciders"]
    mine = "mine:Mine"

    [project.entry-points."equipoise.engines"]
    mine = "mine:Engine"

Then ``equipoise simulate chaos --without shuffle --with mine`` uses the decider, and ``equipoise
upgrade FILE --engine mine`` uses the engine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from inspect import Parameter, signature
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from equipoise.control.ports import Decider, UpgradeEngine
from equipoise.errors import InvalidInput
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.sim.builtin import suggest_name

DECIDER_GROUP: Final = "equipoise.deciders"
ENGINE_GROUP: Final = "equipoise.engines"


def decider_names() -> tuple[str, ...]:
    """Return the names of all installed deciders, sorted."""
    return tuple(sorted(entry.name for entry in entry_points(group=DECIDER_GROUP)))


DeciderSource = Decider | Callable[..., Decider]
"""A decider, or a class or function that makes one, from a scenario or from nothing."""


def make_decider(source: DeciderSource, scenario: Scenario, name: str = "deciders") -> Decider:
    """Return the decider itself, or the one that a class or function makes for a scenario."""
    made: Any = source
    if isinstance(source, type) or not hasattr(source, "propose"):
        assert callable(source)
        made = source(scenario) if _takes_argument(source) else source()
    if not callable(getattr(made, "propose", None)):
        what = f"{type(made).__name__} has no method propose(snapshot)"
        cure = "add the method, and return a Proposal from it"
        raise InvalidInput.of(name, what, key="propose", cure=cure, code="invalid-value")
    return made  # type: ignore[no-any-return]


def _takes_argument(source: Callable[..., Any]) -> bool:
    parameters = signature(source).parameters.values()
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return any(parameter.kind in positional for parameter in parameters)


def _load_from_file(name: str, scenario: Scenario) -> Decider:
    """Make a decider from ``FILE.py:NAME``, without any packaging."""
    file, _, attribute = name.rpartition(":")
    path = Path(file)
    try:
        code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    except (OSError, SyntaxError, ValueError) as error:
        raise InvalidInput.of(
            "deciders",
            f"cannot be read: {error}",
            key=name,
            cure="name a Python file",
            code="invalid-value",
        ) from error
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    # Dataclasses and pickle look a class up by the name of its module.
    sys.modules.setdefault(module.__name__, module)
    exec(code, module.__dict__)
    source = getattr(module, attribute, None)
    if source is None:
        cure = "write FILE.py:NAME with the name of a class or function in it"
        raise InvalidInput.of(
            "deciders", f"{file} has no {attribute!r}", key=name, cure=cure, code="invalid-value"
        )
    return make_decider(source, scenario, name)


def load_decider(name: str, scenario: Scenario) -> Decider:
    """Make a decider by the name of its entry point or by ``FILE.py:NAME``, or raise."""
    if ".py:" in name:
        return _load_from_file(name, scenario)
    entries = {entry.name: entry for entry in entry_points(group=DECIDER_GROUP)}
    if name not in entries:
        raise InvalidInput.of(
            scenario.name,
            f"there is no decider {name!r}",
            key="deciders",
            cure=suggest_name(name, decider_names()),
            code="unknown-name",
        )
    return make_decider(entries[name].load(), scenario, entries[name].value)


def load_engine(name: str, campaign: UpgradeCampaign, also: Iterable[str] = ()) -> UpgradeEngine:
    """Make the engine of this name for a campaign.

    ``also`` are engines that the caller makes itself; they are listed when the name is unknown.
    """
    entries = {entry.name: entry for entry in entry_points(group=ENGINE_GROUP)}
    if name not in entries:
        raise InvalidInput.of(
            "--engine",
            f"there is no engine {name!r}",
            key=name,
            cure=suggest_name(name, tuple(sorted({*entries, *also}))),
            code="unknown-name",
        )
    engine: UpgradeEngine = entries[name].load()(campaign)
    return engine
