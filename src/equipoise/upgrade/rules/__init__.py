"""The elimination rules: who cannot be changed in this iteration, and why.

Enter by ``eliminate``. Never looks at how much room there is: equation 4 comes afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.rules.brakes import brakes
from equipoise.upgrade.rules.methods import in_order_of_method
from equipoise.upgrade.rules.parallel import room_for_both
from equipoise.upgrade.rules.peers import service_of_peers
from equipoise.upgrade.rules.sponsors import before_adding, before_removing, sponsors_first
from equipoise.upgrade.rules.use import not_in_use
from equipoise.upgrade.scene import Scene

Candidates = dict[VertexId, None]
Reasons = dict[VertexId, str]
Rule = Callable[[Scene, Candidates], Reasons]

RULES: Final[tuple[tuple[int, Rule], ...]] = (
    (0, brakes),
    (1, not_in_use),
    (2, before_removing),
    (3, before_adding),
    (4, sponsors_first),
    (5, in_order_of_method),
    (6, service_of_peers),
    (7, room_for_both),
)


def eliminate(scene: Scene, passed: Reasons) -> tuple[Candidates, list[tuple[int, Reasons]]]:
    """Apply the rules in order. Gives who is left, and for each rule whom it removed and why.

    Whoever is passed over is no candidate: there is no room for it, as was found out before.
    """
    left = {one: None for one in candidates(scene) if one not in passed}
    removed: list[tuple[int, Reasons]] = []
    for number, rule in RULES:
        found = rule(scene, left)
        if found:
            removed.append((number, found))
            left = {one: None for one in left if one not in found}
    return left, removed


def candidates(scene: Scene) -> Candidates:
    """All groups with something left to do, or out of service and to be put back.

    Those that return with the last partition of their unit are no candidates of their own.
    """
    with_others = {vertex for one in scene.returning for vertex in one.groups}
    return {
        vertex: None
        for vertex, group in scene.control.groups.items()
        if vertex not in with_others
        and not group.failed
        and (group.changes or _waits_to_return(scene, vertex))
    }


def _waits_to_return(scene: Scene, vertex: VertexId) -> bool:
    group = scene.control.groups[vertex]
    return not group.active and not group.isolated and scene.present(group)
