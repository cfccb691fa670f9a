"""Rules 2 to 4: who needs whom says what comes first."""

from __future__ import annotations

from typing import Final

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import DependencyKind, Presence
from equipoise.model.upgrade.graph import Group, GroupEdge, Modification
from equipoise.model.upgrade.work import UnitId, VertexId
from equipoise.upgrade.graph.build import is_present
from equipoise.upgrade.rules.older import builds_on
from equipoise.upgrade.scene import Scene
from equipoise.upgrade.state import Part

ADD, REMOVE, UPGRADE = Modification.ADD, Modification.REMOVE, Modification.UPGRADE
SPONSOR, DEPENDENT = "sponsor", "dependent"


def before_removing(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Rule 2: what is removed, nobody needs any more."""
    found: dict[VertexId, str] = {}
    for vertex in left:
        group = scene.control.groups[vertex]
        if group.modification is REMOVE:
            why = still_needed(scene, group)
            if why:
                found[vertex] = why
    return found


def still_needed(scene: Scene, group: Group) -> str:
    """Say who needs a group that is to be removed; nothing if nobody does."""
    for edge in scene.control.dependants.get(group.id, ()):
        other = scene.control.groups[edge.dependent]
        if edge.kind.is_vm_supporting or not is_present(edge) or not scene.present(other):
            continue
        return f"{edge.dependent} still needs it"
    if supports_vms(scene, group.id) and _stores_vms(scene, group.id):
        return "VMs still use it"
    for part in _parts(scene, group):
        if part.related is not None and not _is_done(scene, part.related):
            return f"{part.related}, which replaces it, is not ready"
    return ""


def supports_vms(scene: Scene, vertex: VertexId) -> bool:
    """Whether VMs on other hosts depend on a group: a storage or a controller behind them."""
    return any(edge.kind.is_vm_supporting for edge in scene.control.dependants.get(vertex, ()))


def _stores_vms(scene: Scene, vertex: VertexId) -> bool:
    return any(
        scene.state.residents.get(host)
        for edge in scene.control.dependants.get(vertex, ())
        if edge.kind.is_vm_supporting and is_present(edge)
        for host in scene.control.groups[edge.dependent].hosts
    )


def _is_done(scene: Scene, resource: ResourceId) -> bool:
    part = scene.state.parts[resource]
    return part.present and not part.levels


def _parts(scene: Scene, group: Group) -> list[Part]:
    return [scene.state.parts[one] for one in group.members]


def before_adding(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Rule 3: what is added finds what it needs."""
    found: dict[VertexId, str] = {}
    for vertex in left:
        group = scene.control.groups[vertex]
        if group.modification is ADD:
            why = _not_ready(scene, group)
            if why:
                found[vertex] = why
    return found


def _not_ready(scene: Scene, group: Group) -> str:
    ready: dict[DependencyKind, int] = {}
    for edge in scene.control.sponsorships.get(group.id, ()):
        sponsor = scene.control.groups[edge.sponsor]
        done = not sponsor.changes and scene.operational(sponsor)
        ready[edge.kind] = ready.get(edge.kind, 0) + done
    least = max(scene.graph.vertices[one].constituents_min for one in group.members)
    for kind, number in ready.items():
        wanted = least if kind is DependencyKind.AGGREGATION else 1
        if number < wanted:
            what = "constituents" if kind is DependencyKind.AGGREGATION else f"sponsors ({kind})"
            return f"{number} of its {what} are ready, and it takes {wanted}"
    return ""


def sponsors_first(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Rule 4: along each dependency, who comes first; cases as in the appendix."""
    found: dict[VertexId, str] = {}
    homes = _homes(scene)
    older = builds_on(scene)
    for edge in scene.control.edges:
        if edge.kind.is_symmetrical or edge.incompatible:
            continue
        if edge.dependent not in left and edge.sponsor not in left:
            continue
        if homes and not homes.get(edge.dependent, set()).isdisjoint(homes.get(edge.sponsor, ())):
            continue  # rule 5 says who comes first
        if edge.dependent in older.get(edge.sponsor, ()):
            continue  # the sponsor waits for what an older request does with the dependent
        verdict = _second(scene, edge)
        if verdict is not None:
            vertex, reason = verdict
            if vertex in left:
                found.setdefault(vertex, reason)
    return found


def _homes(scene: Scene) -> dict[VertexId, set[UnitId]]:
    """The units that each group goes through."""
    found: dict[VertexId, set[UnitId]] = {}
    for unit in scene.state.units.values():
        for partition in unit.partitions:
            for one in partition:
                if one in scene.control.group_of:
                    found.setdefault(scene.control.group_of[one], set()).add(unit.id)
    return found


ORDER: Final = {
    (Presence.CURRENT_FUTURE, UPGRADE, UPGRADE): ("1a", SPONSOR),
    (Presence.CURRENT, UPGRADE, UPGRADE): ("2a", DEPENDENT),
    (Presence.CURRENT, UPGRADE, REMOVE): ("2b", DEPENDENT),
    (Presence.CURRENT, REMOVE, UPGRADE): ("2c", DEPENDENT),
    (Presence.CURRENT, REMOVE, REMOVE): ("2d", DEPENDENT),
    (Presence.FUTURE, UPGRADE, UPGRADE): ("3a", SPONSOR),
    (Presence.FUTURE, UPGRADE, ADD): ("3b", SPONSOR),
    (Presence.FUTURE, ADD, UPGRADE): ("3c", SPONSOR),
    (Presence.FUTURE, ADD, ADD): ("3d", SPONSOR),
}
"""When a dependency holds and what becomes of dependent and sponsor: the case, and who is first."""


def _second(scene: Scene, edge: GroupEdge) -> tuple[VertexId, str] | None:
    """Which end of a dependency has to wait for the other, and in which case that is."""
    dependent, sponsor = scene.control.groups[edge.dependent], scene.control.groups[edge.sponsor]
    order = ORDER.get((edge.presence, dependent.modification, sponsor.modification))
    if edge.presence is Presence.CURRENT_FUTURE and not dependent.changes and not dependent.active:
        if sponsor.modification is UPGRADE:
            order = "1b", SPONSOR
        elif not sponsor.changes and not sponsor.active:
            order = "1d", SPONSOR
    if order is None or _is_exempt(edge, order[0]):
        return None
    case, first = order
    if first == SPONSOR:
        return edge.dependent, f"{edge.sponsor} comes first (case {case})"
    return edge.sponsor, f"{edge.dependent} comes first (case {case})"


def _is_exempt(edge: GroupEdge, case: str) -> bool:
    """Aggregates may come and go with their constituents half done; what supports VMs may go while
    hosts without VMs are still bound to it (rule 2 looks after that).
    """
    if edge.kind is DependencyKind.AGGREGATION:
        return case in ("2c", "3c")
    return case == "2b" and edge.kind.is_vm_supporting
