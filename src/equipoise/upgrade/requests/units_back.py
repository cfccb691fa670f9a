"""Units on the way back: half-done units are undone such that versions still never meet.

In service are either only old or only new versions of a unit. If old ones are, what was changed is
off and goes back while it is off. If new ones are, those that are off go back first, and the others
when these return. A unit that was complete goes back by the partitions by which it came.
"""

from __future__ import annotations

from collections.abc import Collection

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.work import Method, UnitId, UpgradeUnit
from equipoise.upgrade.state import State


def units_back(state: State, undone: Collection[ResourceId]) -> dict[ResourceId, UnitId]:
    """Replace units by those by which their members go back; gives who goes with which."""
    found: dict[ResourceId, UnitId] = {}
    for unit in list(state.units.values()):
        members = [
            ResourceId(one)
            for one in unit.resources
            if one in state.parts and not state.parts[ResourceId(one)].failed
        ]
        back = [one for one in members if one in undone]
        if not back or any(_goes_on(state, one, unit.id) for one in members):
            continue
        way = unit.but(
            id=UnitId(f"undo/{unit.id}"),
            partitions=_partitions(state, unit, members, back),
            degraded_hosts=None,
        )
        del state.units[unit.id]
        state.units[way.id] = way
        found |= dict.fromkeys(back, way.id)
    return found


def _goes_on(state: State, resource: ResourceId, unit: UnitId) -> bool:
    """Whether another set still has something to do with a member."""
    return any(level.unit == unit for level in state.parts[resource].levels)


def _partitions(
    state: State, unit: UpgradeUnit, members: list[ResourceId], back: list[ResourceId]
) -> tuple[tuple[ResourceId, ...], ...]:
    off = [one for one in members if not state.parts[one].active]
    new = [one for one in back if state.parts[one].active]
    if unit.method is Method.MODIFIED_SPLIT_LINKS:
        return _as_they_came(unit, members)
    if not off:
        return _as_they_came(unit, back)
    return (tuple(off), tuple(new)) if new else (tuple(back),)


def _as_they_came(
    unit: UpgradeUnit, members: list[ResourceId]
) -> tuple[tuple[ResourceId, ...], ...]:
    there = set(members)
    kept = (tuple(one for one in those if one in there) for those in unit.partitions)
    return tuple(those for those in kept if those)
