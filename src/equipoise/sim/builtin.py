"""The built-in scenarios and upgrade campaigns, read by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from typing import Final

from equipoise.errors import InvalidInput
from equipoise.files import parse_campaign, parse_scenario
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.upgrade.campaign import UpgradeCampaign


@dataclass(frozen=True, slots=True)
class _BuiltinFolder:
    """A folder of YAML files that is installed with the package."""

    package: str
    name: str
    kind: str
    """What one file is called in messages."""

    def names(self) -> tuple[str, ...]:
        """Return the names of the files without their suffix, sorted."""
        entries = (entry.name for entry in self._path().iterdir())
        return tuple(
            sorted(name.removesuffix(".yaml") for name in entries if name.endswith(".yaml"))
        )

    def entry(self, name: str) -> Traversable:
        """Return the file of a name; raise ``InvalidInput`` if there is none."""
        known = self.names()
        if name not in known:
            what = f"there is no file and no built-in {self.kind} with this name"
            cure = suggest_name(name, known, "or a file")
            raise InvalidInput.of(name, what, cure=cure, code="unknown-name")
        return self._path() / f"{name}.yaml"

    def _path(self) -> Traversable:
        return resources(self.package) / self.name


_SCENARIOS: Final = _BuiltinFolder("equipoise.sim", "scenarios", "scenario")
_CAMPAIGNS: Final = _BuiltinFolder("equipoise.sim.upgrade", "campaigns", "campaign")


def suggest_name(name: str, known: tuple[str, ...], otherwise: str = "") -> str:
    """Return the closest known name as a question, or the list of all known names."""
    close = get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return ", ".join(filter(None, (f"one of {', '.join(known)}", otherwise)))


def scenario_names() -> tuple[str, ...]:
    """Return the names of the built-in scenarios, sorted."""
    return _SCENARIOS.names()


def builtin_scenario(name: str) -> Scenario:
    """Read a built-in scenario."""
    entry = _SCENARIOS.entry(name)
    return parse_scenario(entry.read_bytes(), entry.name)


def builtin_scenarios() -> Iterator[Scenario]:
    """Read all built-in scenarios."""
    return map(builtin_scenario, scenario_names())


def campaign_names() -> tuple[str, ...]:
    """Return the names of the built-in upgrade campaigns, sorted."""
    return _CAMPAIGNS.names()


def builtin_campaign(name: str) -> UpgradeCampaign:
    """Read a built-in upgrade campaign."""
    entry = _CAMPAIGNS.entry(name)
    return parse_campaign(entry.read_bytes(), entry.name)


def builtin_campaigns() -> Iterator[UpgradeCampaign]:
    """Read all built-in upgrade campaigns."""
    return map(builtin_campaign, campaign_names())
