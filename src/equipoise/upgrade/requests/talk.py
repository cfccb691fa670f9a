"""Whether what is on the two ends of a dependency works together, as vendors say."""

from __future__ import annotations

from equipoise.model.resource import Dependency
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.upgrade.state import State


def talk(
    state: State, along: Dependency, one: dict[ComponentId, str], other: dict[ComponentId, str]
) -> bool:
    """Whether what is on the two ends of a dependency works together."""
    return _suits(state, along, one, other) and _suits(state, along, other, one)


def _suits(
    state: State, along: Dependency, one: dict[ComponentId, str], other: dict[ComponentId, str]
) -> bool:
    for component, version in one.items():
        said = state.catalog.get((component, version))
        for need in said.needs if said else ():
            has = other.get(need.component)
            meant = need.along is along.kind and bool(need.versions) and not need.tolerant
            meant = meant and has is not None
            if meant and has not in need.versions:
                return False
    return True
