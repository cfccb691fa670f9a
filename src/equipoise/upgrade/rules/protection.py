"""Protection groups (rule 6): as many at a time as the group can spare, stand-ins first."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import DependencyKind
from equipoise.model.upgrade.event import SetUndoBegan
from equipoise.model.upgrade.graph import Group, Modification, Protection
from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.graph.build import is_present
from equipoise.upgrade.graph.protections import is_down, protections
from equipoise.upgrade.scene import Scene
from equipoise.upgrade.state import Progress, State


def service_of_groups(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Remove members that their protection group cannot spare beside those that stay.

    Those that hold no assignment come first: nobody has to take over from them.
    """
    groups = _guarded(scene)
    if not groups:
        return {}
    holders = {one for group in groups for one in group.holders}
    found: dict[VertexId, str] = {}
    out: dict[str, dict[ResourceId, VertexId]] = {}
    for vertex in sorted(left, key=lambda one: _rank(scene, one, holders)):
        lost = _lost_with(scene, vertex)
        touched = [group for group in groups if not lost.isdisjoint(group.in_service)]
        why = next(
            (
                reason
                for group in touched
                if (reason := _short(scene, vertex, group, lost, out.get(group.id, {})))
            ),
            "",
        )
        if why:
            found[vertex] = why
            continue
        for group in touched:
            out.setdefault(group.id, {}).update(dict.fromkeys(lost, vertex))
    return found


def held_by_failures(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Members that could go if it were not for hosts that are down (rule 0: these may return)."""
    found: dict[VertexId, str] = {}
    for group in _guarded(scene):
        parts = {one: scene.state.parts[one] for one in group.members}
        down = [one for one, part in parts.items() if is_down(scene.state, part)]
        if not down:
            continue
        for vertex in left:
            lost = _lost_with(scene, vertex).intersection(group.in_service)
            stay = len(group.in_service) - len(lost)
            short = stay < group.in_service_min <= stay + len(down)
            if lost and short and not scene.is_undoing(vertex):
                why = f"its protection group {group.id} cannot spare it while {down[0]} is down"
                found.setdefault(vertex, why)
    return found


def _guarded(scene: Scene) -> list[Protection]:
    return [one for one in scene.graph.protections if one.in_service_min]


def is_taken_out(group: Group) -> bool:
    """Whether the service of a group would be missing: one that is added has none yet."""
    return group.modification in (Modification.UPGRADE, Modification.REMOVE) and group.active


def _lost_with(scene: Scene, vertex: VertexId) -> set[ResourceId]:
    """The resources that are out of service while a group is changed: its own, and all that cannot
    work without them.
    """
    group, graph = scene.control.groups[vertex], scene.graph
    if not is_taken_out(group):
        return set()
    if group.modification is Modification.REMOVE:
        return set(group.members)  # nobody needs it any more, which rule 2 looks after
    queue = list(group.members)
    out = set(queue)
    back = _returning_with(scene, vertex)
    for one in queue:
        for edge in (*graph.dependants.get(one, ()), *graph.linked_by.get(one, ())):
            near = edge.dependent
            if near not in out and is_present(edge) and not _has_other(scene, near, out, back):
                out.add(near)
                queue.append(near)
    return out


def _returning_with(scene: Scene, vertex: VertexId) -> set[ResourceId]:
    """Whoever is put back into service in the moment in which a group leaves it."""
    groups = scene.control.groups
    return {one for other in scene.replaced_by(vertex) for one in groups[other].members}


def _has_other(
    scene: Scene, resource: ResourceId, out: set[ResourceId], back: set[ResourceId]
) -> bool:
    """Whether a resource still has a sponsor of each kind; how many constituents an aggregate
    needs is looked after elsewhere.
    """
    served: dict[DependencyKind, bool] = {}
    for edge in scene.graph.sponsorships.get(resource, ()):
        if not is_present(edge) or edge.kind is DependencyKind.AGGREGATION:
            continue
        part = scene.state.parts.get(edge.sponsor)
        works = part is not None and part.active and part.operational
        serves = works or edge.sponsor in back
        serves = serves and edge.sponsor not in out and edge.link not in out
        served[edge.kind] = served.get(edge.kind, False) or serves
    return all(served.values())


def _rank(scene: Scene, vertex: VertexId, holders: set[ResourceId]) -> tuple[bool, int, bool, int]:
    """Taking back comes first, then the more urgent set, then whoever holds no assignment."""
    urgent = max((scene.state.standings[one].priority for one in scene.sets(vertex)), default=0)
    holds = not holders.isdisjoint(scene.control.groups[vertex].members)
    return not scene.is_undoing(vertex), -urgent, holds, scene.place[vertex]


def _short(
    scene: Scene,
    vertex: VertexId,
    group: Protection,
    lost: set[ResourceId],
    out: dict[ResourceId, VertexId],
) -> str:
    """Why a protection group cannot spare whoever goes with a vertex, if others go as well."""
    if scene.is_undoing(vertex) and not out:
        return ""  # a machine that is lost must not keep others from being well again
    back = _returning_with(scene, vertex)
    serving = {
        *(one for one in group.in_service if one not in lost and one not in out),
        *(one for one in group.members if one in back),
    }
    if len(serving) >= group.in_service_min:
        return ""
    mates = [mate for one, mate in out.items() if one in group.in_service]
    if mates:
        return f"{mates[0]}, of the same protection group {group.id}, is in the batch"
    return (
        f"its protection group {group.id} needs {group.in_service_min} of {len(group.members)} "
        f"in service, and {len(group.in_service)} are"
    )


def unspared(state: State) -> SetUndoBegan | None:
    """A set that waits for a member which its group, after losses for good, can never spare."""
    for group in protections(state):
        lost = [one for one in group.members if not state.parts[one].operational]
        if not lost or not group.in_service_min or group.spare:
            continue
        for one in group.in_service:
            levels = state.parts[one].levels
            for work in levels[0].works if levels else ():
                if state.standings[work.set].progress is Progress.SCHEDULED:
                    why = (
                        f"{one} cannot be taken out: protection group {group.id} "
                        f"needs all that are left since {lost[0]} is lost"
                    )
                    return SetUndoBegan(at_ms=state.at_ms, set=work.set, reason=why)
    return None
