"""Whose turn it is in a unit."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.work import UnitId, UpgradeUnit
from equipoise.upgrade.state import State


def turn_of(state: State, unit: UpgradeUnit) -> int | None:
    """Which partition of a unit is next; nothing if none is left."""
    for place, partition in enumerate(unit.partitions):
        if any(is_next(state, one, unit.id) for one in partition):
            return place
    return None


def is_next(state: State, resource: ResourceId, unit: UnitId) -> bool:
    """Whether something of a unit is left to do with a resource, and can be done."""
    part = state.parts.get(resource)
    return (
        part is not None
        and part.can_be_changed
        and any(level.unit == unit for level in part.levels)
    )
