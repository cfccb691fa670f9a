"""Who decides in a run, by name. Yours too: a function of a scenario, found by its entry point.

In your package, say in ``mine.py``, anything with ``propose(snapshot) -> Proposal``::

    class Mine:
        def __init__(self, scenario):
            self.estimates = scenario.estimates

        def propose(self, snapshot):
            ...

and in its ``pyproject.toml``::

    [project.entry-points."equipoise.deciders"]
    mine = "mine:Mine"

Then ``equipoise simulate chaos --without shuffle --with mine`` lets it decide.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Final

from equipoise.control.ports import Decider
from equipoise.errors import InvalidInput, Problem
from equipoise.model.story.scenario import Scenario

GROUP: Final = "equipoise.deciders"


def decider_names() -> tuple[str, ...]:
    """Everybody who can decide, in the order of the alphabet."""
    return tuple(sorted(entry.name for entry in entry_points(group=GROUP)))


def decider(name: str, scenario: Scenario) -> Decider:
    """Make a decider for a scenario, by its name."""
    found = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if found:
        made: Decider = found[0].load()(scenario)
        if not hasattr(made, "propose"):
            cure = f"mend the entry point in the group {GROUP}"
            problem = Problem(key=name, what="it cannot propose anything", cure=cure)
            raise InvalidInput(found[0].value, [problem])
        return made
    known = decider_names()
    close = get_close_matches(name, known, n=1)
    cure = f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}"
    what = f"there is no decider {name!r}"
    raise InvalidInput(scenario.name, [Problem(key="deciders", what=what, cure=cure)])
