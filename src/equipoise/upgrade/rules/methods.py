"""Rule 5: units go in the order of their method, and are finished before a newer request begins."""

from __future__ import annotations

from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.rules.older import after_older_requests
from equipoise.upgrade.scene import Scene
from equipoise.upgrade.turns import is_next, turn_of


def in_order_of_method(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Remove whoever is not in the partition whose turn it is, or belongs to a newer request."""
    state = scene.state
    found = _not_understood(scene, left) | _beyond_the_divide(scene, left)
    found |= after_older_requests(scene, left)
    for unit in state.units.values():
        turn = turn_of(state, unit)
        if turn is None:
            continue
        for place, partition in enumerate(unit.partitions):
            for vertex in {scene.control.group_of[one] for one in partition}:
                if vertex not in left:
                    continue
                waiting = any(is_next(state, one, unit.id) for one in partition)
                if waiting and place != turn:
                    found[vertex] = f"partition {turn + 1} of its unit comes first"
                elif not waiting and place != turn and scene.control.groups[vertex].changes:
                    found[vertex] = f"its unit {unit.id} is not finished"
    return found


def _beyond_the_divide(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Hosts that took in VMs of the new side are changed by others once there is one side again."""
    if not scene.sides.divided:
        return {}
    why = "its host is on the new side while the hosts are divided"
    return {
        vertex: why
        for vertex in left
        if any(host in scene.sides.new for host in scene.control.groups[vertex].hosts)
    }


def _not_understood(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Whoever was kept off stays so while it would meet another version: its set was cancelled."""
    groups = scene.control.groups
    off = [one for one in left if not groups[one].active and not groups[one].changes]
    able = scene.understood(off)
    why = "it would meet another version"
    found = {one: why for one in off if one not in able}
    for vertex in found:
        met = [other for one in groups[vertex].members for other in scene.in_the_way.get(one, ())]
        if met:
            found[vertex] = f"it would meet {met[0]}, which has another version"
    return found
