"""Schedules: what the engine is asked to do for a batch, stage by stage."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.work import (
    Batch,
    BatchId,
    Errand,
    Method,
    Task,
    UpgradeUnit,
    VertexId,
)
from equipoise.upgrade.graph.build import TOGETHER
from equipoise.upgrade.requests.bound import at_odds
from equipoise.upgrade.scene import Scene
from equipoise.upgrade.state import State
from equipoise.upgrade.turns import turn_of

Stage = list[Task]


def schedule(scene: Scene, batch: tuple[VertexId, ...], id_: BatchId) -> Batch:
    """Turn a batch into stages: out of service, back into service, the work, back into service."""
    off: Stage = []
    back: Stage = []
    work: Stage = []
    on: Stage = []
    for vertex in batch:
        group = scene.control.groups[vertex]
        levels = scene.level(vertex)
        unit = scene.unit(vertex)
        of = _blocks(scene, vertex)
        if not levels and not group.active:
            back += [_task(scene.state, of[one], one, Errand.ACTIVATE) for one in group.members]
            continue
        work += [_apply(scene.state, of[one], one) for one in group.members if one in levels]
        if unit is None:
            asleep = [one for one in group.members if _is_asleep(scene.state, one)]
            on += [_task(scene.state, of[one], one, Errand.ACTIVATE) for one in asleep]
        else:
            members = [one for one in group.members if one in levels]
            if uses_links(unit):
                off += _links(scene, of, unit, members)
                continue
            live = [one for one in members if scene.state.parts[one].active]
            off += [_task(scene.state, of[one], one, Errand.DEACTIVATE) for one in live]
            if not stays_off(scene.state, unit):
                on += [_task(scene.state, of[one], one, Errand.ACTIVATE) for one in members]
    stages = tuple(tuple(stage) for stage in (off, back, work, on) if stage)
    return Batch(id=id_, stages=stages)


def _blocks(scene: Scene, vertex: VertexId) -> dict[ResourceId, VertexId]:
    """What of a group is changed one after the other: a container and what it contains.

    The rest of a partition is changed side by side, and whoever fails, fails alone.
    """
    members = scene.control.groups[vertex].members
    if scene.unit(vertex) is None:
        return dict.fromkeys(members, vertex)
    of: dict[ResourceId, VertexId] = {}
    inside = set(members)
    for start in members:
        if start in of:
            continue
        ahead = [start]
        of[start] = VertexId(start)
        for one in ahead:
            near = (*scene.graph.sponsorships.get(one, ()), *scene.graph.dependants.get(one, ()))
            for edge in near:
                other = edge.sponsor if edge.dependent == one else edge.dependent
                if edge.kind in TOGETHER and other in inside and other not in of:
                    of[other] = VertexId(start)
                    ahead.append(other)
    return of


def _is_asleep(state: State, resource: ResourceId) -> bool:
    """Whether a resource was left out of service by a unit that is past."""
    part = state.parts[resource]
    return part.present and not part.active


def stays_off(state: State, unit: UpgradeUnit) -> bool:
    """Whether the partition whose turn it is stays out of service until the last one."""
    turn = turn_of(state, unit)
    return turn is not None and turn < len(unit.partitions) - 1


def uses_links(unit: UpgradeUnit) -> bool:
    """Whether links are switched instead of resources."""
    return unit.method is Method.MODIFIED_SPLIT_LINKS


def _task(state: State, vertex: VertexId, resource: ResourceId, errand: Errand) -> Task:
    return Task(
        resource=resource, vertex=vertex, errand=errand, host=state.parts[resource].resource.host
    )


def _apply(state: State, vertex: VertexId, resource: ResourceId) -> Task:
    part = state.parts[resource]
    works = part.levels[0].works
    attempt = 1 + max((part.attempts.get(work.set, 0) for work in works), default=0)
    return _task(state, vertex, resource, Errand.APPLY).but(works=works, attempt=attempt)


def _links(
    scene: Scene, of: dict[ResourceId, VertexId], unit: UpgradeUnit, members: list[ResourceId]
) -> Stage:
    """All links of a unit along which versions may clash go off where one end is changed: nobody
    knows yet whether it succeeds. ``mending`` puts those on again whose ends understand each other.
    """
    found: Stage = []
    inside = set(unit.resources)
    for edge in scene.graph.edges:
        ends = (edge.dependent, edge.sponsor)
        one, other = ends if ends[0] in members else ends[::-1]
        if one in members and other in inside and edge.incompatible:
            found.append(_task(scene.state, of[one], one, Errand.LINK_OFF).but(link_to=other))
    return found


def reverting(state: State, group_of: dict[ResourceId, VertexId], id_: BatchId) -> Batch:
    """Take back what failed attempts have done, last work first."""
    tasks = tuple(
        _task(state, group_of[one], one, Errand.REVERT).but(works=tuple(reversed(works)))
        for one, works in state.to_revert.items()
    )
    return Batch(id=id_, stages=(tasks,))


def mending(state: State, group_of: dict[ResourceId, VertexId], id_: BatchId) -> Batch | None:
    """Put links on again whose ends understand each other: nothing is left to keep them apart."""
    odds = at_odds(state) if state.cut else {}
    tasks = tuple(
        _task(state, group_of[one], one, Errand.LINK_ON).but(link_to=other)
        for one, other in state.cut
        if all(_answers(state, each) for each in (one, other)) and other not in odds.get(one, ())
    )
    return Batch(id=id_, stages=(tasks,)) if tasks else None


def _answers(state: State, resource: ResourceId) -> bool:
    """Whether a resource can be sent to: one that has just failed is about to be isolated."""
    part = state.parts.get(resource)
    return part is not None and part.operational and resource not in state.broken


def checking(state: State, group_of: dict[ResourceId, VertexId], id_: BatchId) -> Batch:
    """See whether what was changed is well after it was watched for a while."""
    tasks = tuple(
        _task(state, group_of[one], one, Errand.CHECK).but(works=state.last_done[one].works)
        for one in state.to_check
        if one in state.last_done and state.parts[one].present and one not in state.broken
    )
    return Batch(id=id_, stages=(tasks,) if tasks else ())
