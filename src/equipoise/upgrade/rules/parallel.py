"""Rule 7: what supports VMs is replaced only while there is room for the old and the new of it."""

from __future__ import annotations

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.resource import DependencyKind
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.graph.demands import least_constituents
from equipoise.upgrade.scene import Scene
from equipoise.upgrade.state import Progress, State


def room_for_both(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Remove whatever belongs to a replacement for which equation 7 does not hold."""
    short = {
        set_: why
        for set_, pairs in replacements(scene.state).items()
        for old, new in pairs
        if (why := _shortage(scene.state, old, new))
    }
    found: dict[VertexId, str] = {}
    for vertex in left:
        lacks = next((short[one] for one in scene.sets(vertex) if one in short), None)
        if lacks is not None and not scene.is_undoing(vertex):
            found[vertex] = lacks
    return found


def replacements(state: State) -> dict[SetId, list[tuple[ResourceId, ResourceId]]]:
    """Of each set under way: what it replaces by what, until the old one is gone."""
    found: dict[SetId, list[tuple[ResourceId, ResourceId]]] = {}
    for standing in state.standings.values():
        if standing.progress is not Progress.SCHEDULED:
            continue
        for change in standing.set.changes:
            for new in change.new:
                old = change.replaces
                if old is not None and old in state.parts and state.parts[old].present:
                    found.setdefault(standing.id, []).append((old, new.id))
    return found


def storing_hosts(
    state: State, old: ResourceId, new: ResourceId
) -> dict[ResourceId, HostId | None]:
    """The resources that take part in the old or the new one, and can."""
    found: dict[ResourceId, HostId | None] = {}
    for bond in state.bonds:
        one = bond.dependency
        if one.kind is DependencyKind.AGGREGATION and one.dependent in (old, new):
            part = state.parts[one.sponsor]
            host = part.resource.host
            if part.operational and (host is None or state.places[host].up):
                found[one.sponsor] = host
    return found


def _shortage(state: State, old: ResourceId, new: ResourceId) -> str:
    """Equation 7: storage hosts that run no VMs, against what both configurations take."""
    hosts = storing_hosts(state, old, new)
    if not hosts:
        return ""
    idle = sum(host is None or not state.residents.get(host) for host in hosts.values())
    needed = [least_constituents(state, state.parts[one]) for one in (old, new)]
    if idle >= sum(needed):
        return ""
    return (
        f"{old} needs {needed[0]} hosts and {new} {needed[1]} beside it, "
        f"and {idle} of theirs run no VMs"
    )
