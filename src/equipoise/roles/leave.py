"""Who may leave now without a role being lost: a budget that is computed, not configured.

For whoever takes processors away on purpose: to upgrade, to let them sleep, to mend them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from equipoise.model.quantity import ProcessorId, RoleId, TeamId
from equipoise.model.roles.duty import LayoutTable, table_of
from equipoise.model.snapshot import Snapshot
from equipoise.roles.decide import best_target, taken_elsewhere
from equipoise.roles.standing import Around, standing_of


class Leave(NamedTuple):
    """Who may leave, all of them together, and why others may not."""

    may: tuple[ProcessorId, ...]
    stay: dict[ProcessorId, str]


def may_leave(snapshot: Snapshot, wanted: Iterable[str], gone: Iterable[str] = ()) -> Leave:
    """Go through those who want to leave, in order, and let each go whom nobody misses then.

    ``gone`` are on their way already. A role is lost if nobody holds it any more, or if fewer hold
    it than should and did; an optional one is not missed. Who carries no roles may always go.
    """
    layout = snapshot.settings.layout
    names = [ProcessorId(one) for one in wanted]
    if layout is None:
        return Leave(tuple(names), {})
    table = table_of(layout)
    leaving = {ProcessorId(one) for one in gone}
    may: list[ProcessorId] = []
    stay: dict[ProcessorId, str] = {}
    for one in names:
        missed = [
            f"{role} of {group} would be lost"
            for group in table.teams_of.get(one, ())
            for role in _lost(snapshot, table, group, leaving, one)
        ]
        if missed:
            stay[one] = "; ".join(missed)
        else:
            may.append(one)
            leaving.add(one)
    return Leave(tuple(may), stay)


def _lost(
    snapshot: Snapshot,
    table: LayoutTable,
    group: TeamId,
    leaving: set[ProcessorId],
    one: ProcessorId,
) -> Sequence[RoleId]:
    before = _holders(snapshot, table, group, leaving)
    after = _holders(snapshot, table, group, leaving | {one})
    wanted = {one.role: one.count for one in table.teams[group].preferences}
    return [
        role
        for role, many in before.items()
        if not table.roles[role].optional and after.get(role, 0) < min(many, wanted.get(role, 1))
    ]


def _holders(
    snapshot: Snapshot, table: LayoutTable, group: TeamId, leaving: set[ProcessorId]
) -> dict[RoleId, int]:
    """How many would hold each role once everything has settled."""
    taken = taken_elsewhere(table, group, snapshot.duties.slots)
    at = standing_of(snapshot, table, group, Around(taken=taken, leaving=leaving))
    return {role: len(some) for role, some in best_target(at).holders.items()}
