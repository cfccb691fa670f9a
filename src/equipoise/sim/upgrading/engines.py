"""Who carries out an upgrade, by name: found by its entry point, a function of a campaign.

In the ``pyproject.toml`` of a package::

    [project.entry-points."equipoise.engines"]
    mine = "mine:Engine"

Then ``equipoise upgrade FILE --engine mine`` gives it the schedules.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

from equipoise.control.ports import Engine
from equipoise.errors import InvalidInput, Problem
from equipoise.model.upgrade.campaign import Campaign

GROUP: Final = "equipoise.engines"


def engine(name: str, campaign: Campaign) -> Engine:
    """Make an engine for a campaign, by its name."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        what = f"there is no engine {name!r}"
        cure = f"one of {', '.join(sorted(found))}"
        raise InvalidInput("--engine", [Problem(key=name, what=what, cure=cure)])
    made: Engine = found[name].load()(campaign)
    return made
