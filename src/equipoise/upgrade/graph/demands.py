"""What aggregates take: how many constituents their configuration and their data need."""

from __future__ import annotations

from equipoise.upgrade.state import Part, State


def least_constituents(state: State, part: Part) -> int:
    """How many constituents an aggregate needs: as its vendor says, or as its dependencies do."""
    version = part.components.get(part.main) or _coming(part)
    said = state.catalog.get((part.main, version)) if version else None
    if said is not None and (said.constituents_min or said.storing_min):
        return max(said.constituents_min or 0, said.storing_min or 0)
    return state.declared_min.get(part.resource.id, 0)


def _coming(part: Part) -> str | None:
    for level in part.levels:
        for work in level.works:
            if work.component == part.main and work.after is not None:
                return work.after
    return None
