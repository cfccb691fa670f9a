"""Units on the way back: half-done units are undone such that versions still never meet.

In service are either only old or only new versions of a unit. If old ones are, what was changed is
off and goes back while it is off. If new ones are, those that are off go back first, and the others
when these return. A unit that was complete goes back by the partitions by which it came.
"""

from __future__ import annotations

from collections.abc import Collection

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import Method, UnitId, UpgradeUnit, Work
from equipoise.upgrade.requests.bound import torn
from equipoise.upgrade.state import Part, Progress, State


def units_back(
    state: State, set_: SetId, undone: Collection[ResourceId]
) -> dict[ResourceId, UnitId]:
    """Replace units by those by which their members go back; gives who goes with which.

    Members of other sets go on in what is left of the unit. If such a set is torn, it is taken
    back next, and all go together then.
    """
    found: dict[ResourceId, UnitId] = {}
    lost = torn(state)
    order = state.standings[set_].order
    for unit in list(state.units.values()):
        members = [
            ResourceId(one)
            for one in unit.resources
            if one in state.parts and not state.parts[ResourceId(one)].failed
        ]
        going = [one for one in members if _goes_on(state, one, unit, order)]
        if not any(one in undone for one in members) or _is_torn(state, going, lost):
            continue
        own = [one for one in members if one not in going]
        back = [one for one in own if _goes_back(state, one, order)]
        if not back:
            continue
        way = unit.but(
            id=UnitId(f"undo/{unit.id}"),
            partitions=_partitions(state, unit, own, back),
            degraded_hosts=None,
        )
        del state.units[unit.id]
        if going:
            state.units[unit.id] = unit.but(partitions=_as_they_came(unit, going))
        state.units[way.id] = way
        found |= dict.fromkeys(back, way.id)
    return found


def _is_torn(state: State, going: list[ResourceId], lost: dict[SetId, str]) -> bool:
    """Whether a set to which some of a unit belong will be taken back as well."""
    return any(work.set in lost for one in going for work in _forward(state.parts[one]))


def _goes_on(state: State, resource: ResourceId, unit: UpgradeUnit, order: int) -> bool:
    """Whether a member belongs to a set of the request that is not taken back, or is to be changed
    with the unit by another request."""
    part = state.parts[resource]
    standings = [state.standings[work.set] for work in _forward(part)]
    if any(one.order == order and one.progress is Progress.SCHEDULED for one in standings):
        return True
    return any(level.unit == unit.id for level in part.levels)


def _forward(part: Part) -> list[Work]:
    """What was done to a resource, or is left to do, other than taking something back."""
    left = [work for level in part.levels for work in level.works if not work.undoing]
    return [*left, *part.applied]


def _goes_back(state: State, resource: ResourceId, order: int) -> bool:
    """Whether something of a request is taken back from a resource."""
    works = [work for level in state.parts[resource].levels for work in level.works]
    return any(work.undoing and state.standings[work.set].order == order for work in works)


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
