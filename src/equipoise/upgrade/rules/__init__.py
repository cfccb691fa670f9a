"""The elimination rules: which groups cannot change in this iteration, and why.

Entry point: ``eliminate``. The rules ignore capacity; equation 4 limits the batch afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.graph.iteration_view import IterationView
from equipoise.upgrade.parallel_universe import replacement_capacity
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.rules.dependency_order import (
    add_after_sponsors,
    order_by_dependency,
    remove_after_dependents,
)
from equipoise.upgrade.rules.holds import groups_in_use, held_groups
from equipoise.upgrade.rules.method_order import unit_order
from equipoise.upgrade.rules.redundancy import keep_redundancy

BatchCandidates = dict[VertexId, None]
EliminationReasons = dict[VertexId, Reason]
EliminationRule = Callable[[IterationView, BatchCandidates], EliminationReasons]

ELIMINATION_RULES: Final[tuple[tuple[int, EliminationRule], ...]] = (
    (0, held_groups),
    (1, groups_in_use),
    (2, remove_after_dependents),
    (3, add_after_sponsors),
    (4, order_by_dependency),
    (5, unit_order),
    (6, keep_redundancy),
    (7, replacement_capacity),
)


def eliminate(
    view: IterationView, passed_over: EliminationReasons
) -> tuple[BatchCandidates, list[tuple[int, EliminationReasons]]]:
    """Apply the rules in order. Return the remaining candidates and the removals of each rule.

    A group in ``passed_over`` is no candidate: an earlier try showed that its hosts cannot be
    spared.
    """
    candidates = {vertex: None for vertex in batch_candidates(view) if vertex not in passed_over}
    removed: list[tuple[int, EliminationReasons]] = []
    # The order matters: each rule sees only the candidates that the earlier rules left.
    for number, rule in ELIMINATION_RULES:
        eliminated = rule(view, candidates)
        if eliminated:
            removed.append((number, eliminated))
            candidates = {vertex: None for vertex in candidates if vertex not in eliminated}
    return candidates, removed


def batch_candidates(view: IterationView) -> BatchCandidates:
    """Return the groups that have work left, or that are out of service and must return.

    Groups that return together with the last partition of their unit are not listed.
    """
    # They return with the batch of the last partition, see ``select_batch``.
    with_others = {vertex for returning in view.returning for vertex in returning.groups}
    return {
        vertex: None
        for vertex, group in view.control.groups.items()
        if vertex not in with_others
        and not group.failed
        and (group.changes or _waits_to_return(view, vertex))
    }


def _waits_to_return(view: IterationView, vertex: VertexId) -> bool:
    """Return whether a present group is out of service and may be put back."""
    group = view.control.groups[vertex]
    return not group.active and not group.isolated and view.present(group)
