"""Rule 1: hosts that run VMs stay as they are, and whatever those hosts cannot do without."""

from __future__ import annotations

from equipoise.model.upgrade.graph import Modification
from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.scene import Scene, affected_hosts

IN_USE = "VMs run on it, which have to leave first"


def not_in_use(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Remove hosts in use, and resources that hosts in use depend on without a stand-in."""
    residents = scene.state.residents
    found: dict[VertexId, str] = {}
    for vertex in left:
        group = scene.control.groups[vertex]
        if any(residents.get(host) for host in group.hosts):
            found[vertex] = IN_USE
        elif not group.hosts and group.modification is Modification.UPGRADE and group.active:
            busy = sorted(one for one in affected_hosts(scene, vertex) if residents.get(one))
            if busy:
                found[vertex] = f"VMs run on {busy[0]}, which has nothing else to fall back on"
    return found
