"""Rule 5 between requests: what builds on an older request waits until that has come so far, and
goes back before it does.

A newer request is worked out as if the older ones were done (the new request graph). Until they
are, its versions may not understand what is still in service.
"""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.graph.bonds import PRESENT, presence
from equipoise.upgrade.requests.talk import talk
from equipoise.upgrade.scene import Scene
from equipoise.upgrade.state import Part


def builds_on(scene: Scene) -> dict[VertexId, dict[VertexId, ResourceId]]:
    """Of each group: those that an older request has to change before it, or that have to go back
    before it does, and the resource."""
    state = scene.state
    found: dict[VertexId, dict[VertexId, ResourceId]] = {}
    if state.taken_up < 2:  # noqa: PLR2004  (one request is older than no other)
        return found
    for bond in state.bonds:
        ends = bond.dependency.dependent, bond.dependency.sponsor
        if not all(one in state.parts and state.parts[one].levels for one in ends):
            continue
        if presence(state, bond) not in PRESENT:
            continue
        for newer, older in (ends, ends[::-1]):
            one, other = state.parts[newer], state.parts[older]
            first = 0 < _order(other) < _order(one) or _order(one) == _order(other) == 0
            first = first and one.levels[0].unit != other.levels[0].unit  # else by its method
            if first and not talk(state, bond.dependency, _after(one), dict(other.components)):
                of = scene.control.group_of
                found.setdefault(of[newer], {})[of[older]] = older
    return found


def after_older_requests(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Remove whoever would not understand somebody who is changed or taken back first."""
    return {
        vertex: f"it would not understand {one}, which is changed first"
        for vertex, those in builds_on(scene).items()
        if vertex in left
        for one in list(those.values())[:1]
    }


def _order(part: Part) -> int:
    """Which request the next level belongs to; 0: it takes something back."""
    return part.levels[0].order


def _after(part: Part) -> dict[ComponentId, str]:
    """What is on a resource after its next level."""
    components = dict(part.components)
    for work in part.levels[0].works:
        if work.after is None:
            components.pop(work.component, None)
        else:
            components[work.component] = work.after
    return components
