"""Rule 5: units go in the order of their method, and are finished before a newer request begins."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.work import UnitId, UpgradeUnit, VertexId
from equipoise.upgrade.scene import Scene
from equipoise.upgrade.state import State


def in_order_of_method(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Remove whoever is not in the partition whose turn it is, or belongs to a newer request."""
    state = scene.state
    if not state.units:
        return {}
    found: dict[VertexId, str] = {}
    for unit in state.units.values():
        turn = turn_of(state, unit)
        if turn is None:
            continue
        for place, partition in enumerate(unit.partitions):
            for vertex in {scene.control.group_of[one] for one in partition}:
                if vertex not in left:
                    continue
                waiting = any(_is_next(state, one, unit.id) for one in partition)
                if waiting and place != turn:
                    found[vertex] = f"partition {turn + 1} of its unit comes first"
                elif not waiting and place != turn and scene.control.groups[vertex].changes:
                    found[vertex] = f"its unit {unit.id} is not finished"
    return found


@dataclass(frozen=True, slots=True)
class Returning:
    """Groups of a unit that are changed and kept out of service until others leave it."""

    groups: tuple[VertexId, ...]
    behind: tuple[VertexId, ...]
    """With these in the batch they return, as soon as these are out of service; none: now."""
    due: bool
    """Whether it is the turn of the last partition, or no partition is left."""


def returning(scene: Scene) -> tuple[Returning, ...]:
    """Who waits to return into service, unit by unit."""
    state, control = scene.state, scene.control
    found = []
    for unit in state.units.values():
        if len(unit.partitions) == 1:
            continue
        vertices = dict.fromkeys(
            control.group_of[one]
            for partition in unit.partitions
            for one in partition
            if one in scene.graph.vertices
        )
        groups = tuple(one for one in vertices if _is_kept_off(scene, one))
        turn = turn_of(state, unit)
        if groups:
            last = () if turn is None else unit.partitions[turn]
            behind = dict.fromkeys(
                control.group_of[one] for one in last if _is_next(state, one, unit.id)
            )
            due = turn is None or turn == len(unit.partitions) - 1
            due = due and not is_half_done(state, unit)
            found.append(Returning(groups, tuple(behind), due))
    return tuple(found)


def is_half_done(state: State, unit: UpgradeUnit) -> bool:
    """Whether a unit was cancelled half way: what it keeps off would meet another version."""
    for standing in state.standings.values():
        if standing.outcome is SetOutcome.CANCELLED:
            targets = set(standing.resources).intersection(map(ResourceId, unit.resources))
            parts = [state.parts[one] for one in targets if one in state.parts]
            done = sum(any(work.set == standing.id for work in part.applied) for part in parts)
            if 0 < done < len(parts):
                return True
    return False


def _is_kept_off(scene: Scene, vertex: VertexId) -> bool:
    group = scene.control.groups[vertex]
    lost = group.isolated or group.failed
    return not (group.active or group.changes or lost) and scene.present(group)


def turn_of(state: State, unit: UpgradeUnit) -> int | None:
    """Which partition of a unit is next; nothing if none is left."""
    for place, partition in enumerate(unit.partitions):
        if any(_is_next(state, one, unit.id) for one in partition):
            return place
    return None


def _is_next(state: State, resource: ResourceId, unit: UnitId) -> bool:
    part = state.parts.get(resource)
    return (
        part is not None
        and part.can_be_changed
        and any(level.unit == unit for level in part.levels)
    )
