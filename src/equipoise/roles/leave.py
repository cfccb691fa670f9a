"""Who may leave now without a role being lost: a budget that is computed, not configured.

For whoever takes processors away on purpose: to upgrade, to let them sleep, to mend them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from equipoise.model.quantity import ProcessorId, SlotId, TeamId
from equipoise.model.roles.duty import Duty, LayoutTable, table_of
from equipoise.model.snapshot import Snapshot
from equipoise.roles.decide import best_target, taken_elsewhere
from equipoise.roles.fill import remembered
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
        lost = _lost(snapshot, table, leaving, one)
        missed = [f"{duty.role} of {duty.group} would be lost" for duty in lost]
        if missed:
            stay[one] = "; ".join(missed)
        else:
            may.append(one)
            leaving.add(one)
    return Leave(tuple(may), stay)


def _lost(
    snapshot: Snapshot, table: LayoutTable, leaving: set[ProcessorId], one: ProcessorId
) -> list[Duty]:
    groups = _connected(table, table.teams_of.get(one, ()))
    before = _holders(snapshot, table, groups, leaving)
    after = _holders(snapshot, table, groups, leaving | {one})
    wanted = {
        Duty(group, one.role): one.count
        for group in groups
        for one in table.teams[group].preferences
    }
    return [
        duty
        for duty, many in before.items()
        if not table.roles[duty.role].optional
        if after.get(duty, 0) < min(many, wanted.get(duty, 1))
    ]


def _connected(table: LayoutTable, groups: Iterable[TeamId]) -> list[TeamId]:
    """The groups, and all that compete with them for a processor, directly or not."""
    found = dict.fromkeys(groups)
    ahead = list(found)
    while ahead:
        for processor in table.teams[ahead.pop()].processors:
            new = [one for one in table.teams_of[processor] if one not in found]
            found |= dict.fromkeys(new)
            ahead += new
    return sorted(found, key=lambda one: (table.teams[one].priority, table.place[one]))


def _holders(
    snapshot: Snapshot, table: LayoutTable, groups: Sequence[TeamId], leaving: set[ProcessorId]
) -> dict[Duty, int]:
    """How many would hold each role once everything has settled."""
    slots: dict[TeamId, Mapping[SlotId, ProcessorId]] = dict(snapshot.duties.slots)
    found: dict[Duty, int] = {}
    for _ in range(1 + len(groups)):  # who gives a processor up may give it to one before
        before = dict(slots)
        for group in groups:
            taken = taken_elsewhere(table, group, slots)
            around = Around(slots.get(group, {}), taken, leaving=leaving)
            at = standing_of(snapshot, table, group, around)
            target = best_target(at)
            slots[group] = remembered(at, target.slots)
            found |= {Duty(group, role): len(some) for role, some in target.holders.items()}
        if before == slots:
            break
    return found
