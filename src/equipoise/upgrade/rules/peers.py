"""Rule 6: of those that stand in for each other, one at a time, and never the last; of a protection
group, as many as it can spare.
"""

from __future__ import annotations

from equipoise.model.resource import DependencyKind
from equipoise.model.upgrade.graph import Group, Modification
from equipoise.model.upgrade.work import Method, VertexId
from equipoise.upgrade.graph.build import is_present
from equipoise.upgrade.rules.protection import is_taken_out, service_of_groups
from equipoise.upgrade.rules.sponsors import still_needed, supports_vms
from equipoise.upgrade.scene import Scene


def service_of_peers(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Remove peers of whoever stays, and constituents that their aggregate cannot spare."""
    found = _peers(scene, left)
    if scene.state.settings.readings.peer_paths:
        found |= _paths(scene, left, found)
    staying = {one: None for one in left if one not in found}
    found |= _links(scene, staying) | _constituents(scene, staying)
    return found | service_of_groups(scene, {one: None for one in left if one not in found})


def _peers(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    found: dict[VertexId, str] = {}
    for vertex in left:
        if not is_taken_out(scene.control.groups[vertex]):
            continue
        unit = scene.unit(vertex)
        for peer in scene.control.peers.get(vertex, ()):
            other = scene.control.groups[peer]
            if unit is not None and set(other.members) & set(unit.resources):
                continue  # the method of their unit keeps them apart
            if peer in left and peer not in found and is_taken_out(other):
                if _comes_later(scene, vertex, peer):
                    found[vertex] = f"its peer {peer} is in the batch"
                    break
            elif _is_missing(scene, other) and not scene.is_undoing(vertex):
                found[vertex] = f"its peer {peer} is out of service"
                break
    return found


def _is_missing(scene: Scene, group: Group) -> bool:
    """Whether a group should be in service and is not. Whoever is taken back does not wait for it:
    else a machine that is lost would keep its peer from ever being well again.
    """
    return scene.present(group) and not scene.operational(group)


def _comes_later(scene: Scene, vertex: VertexId, peer: VertexId) -> bool:
    """Of two peers the one of the more urgent set stays, then the first of the cluster."""
    return _rank(scene, peer) < _rank(scene, vertex)


def _rank(scene: Scene, vertex: VertexId) -> tuple[int, int]:
    urgent = max((scene.state.standings[one].priority for one in scene.sets(vertex)), default=0)
    return -urgent, scene.place[vertex]


def _paths(
    scene: Scene, left: dict[VertexId, None], found: dict[VertexId, str]
) -> dict[VertexId, str]:
    """Whoever depends on a peer in the batch, over any number of steps."""
    more: dict[VertexId, str] = {}
    for vertex in left:
        group = scene.control.groups[vertex]
        if vertex in found or vertex not in scene.control.peers or not is_taken_out(group):
            continue
        queue, seen = [vertex], {vertex}
        for one in queue:
            for edge in scene.control.dependants.get(one, ()):
                if edge.dependent not in seen and edge.kind is not DependencyKind.AGGREGATION:
                    seen.add(edge.dependent)
                    queue.append(edge.dependent)
                    if edge.dependent in left:
                        more.setdefault(edge.dependent, f"it is on the path of the peer {vertex}")
    return more


def _links(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Links of one resource stand in for each other."""
    found: dict[VertexId, str] = {}
    staying: dict[VertexId, VertexId] = {}
    for edge in scene.control.edges:
        if edge.link is None or not is_present(edge):
            continue
        link = scene.control.group_of[edge.link]
        if link not in left or link in found:
            continue
        first = staying.setdefault(edge.dependent, link)
        if first != link:
            found[link] = f"{edge.dependent} needs it while {first} is out"
    return found


def _constituents(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    found: dict[VertexId, str] = {}
    # One group may be bound to its aggregate by several of its members.
    aggregates: dict[VertexId, dict[VertexId, None]] = {}
    for edge in scene.control.edges:
        if edge.kind is DependencyKind.AGGREGATION and is_present(edge):
            aggregates.setdefault(edge.dependent, {})[edge.sponsor] = None
    for aggregate, constituents in aggregates.items():
        group = scene.control.groups[aggregate]
        if not scene.operational(group) or _is_given_up(scene, aggregate, left):
            continue
        least = max(scene.graph.vertices[one].constituents_min for one in group.members)
        able = sum(scene.operational(scene.control.groups[one]) for one in constituents)
        chosen: VertexId | None = None
        for one in constituents:
            if one not in left or one in found or not is_taken_out(scene.control.groups[one]):
                continue
            if _by_method(scene, one):
                continue  # its method takes them one at a time, and keeps those that are done off
            if able - 1 < least:
                found[one] = f"{aggregate} needs {least} constituents, and {able} are in service"
            elif chosen is not None:
                found[one] = f"{chosen}, another constituent of {aggregate}, is in the batch"
            else:
                chosen = one
    return found


def _by_method(scene: Scene, vertex: VertexId) -> bool:
    unit = scene.unit(vertex)
    return unit is not None and unit.method is Method.MODIFIED_SPLIT_CONSTITUENTS


def _is_given_up(scene: Scene, aggregate: VertexId, left: dict[VertexId, None]) -> bool:
    """Whether an aggregate that supports VMs is removed in this batch: nobody needs it any more."""
    group = scene.control.groups[aggregate]
    return (
        group.modification is Modification.REMOVE
        and aggregate in left
        and supports_vms(scene, aggregate)
        and not still_needed(scene, group)
    )
