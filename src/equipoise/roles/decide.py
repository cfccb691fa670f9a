"""The decision about one group: a pure function of a snapshot."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from equipoise.model.plan import Filling
from equipoise.model.quantity import ProcessorId, SlotId, TeamId
from equipoise.model.roles.duty import LayoutTable
from equipoise.model.snapshot import Snapshot
from equipoise.roles.choose import Target, target_for
from equipoise.roles.fill import fillings, remembered
from equipoise.roles.standing import Around, Standing, standing_of
from equipoise.roles.step import Pair, Steps, steps_to


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done with a group, and when to look again."""

    at: Standing
    target: Target
    filling: Filling | None
    """Who fills which slot from now on, if that changes."""
    steps: Steps
    due_ms: int | None
    """When something changes by itself."""


def decide(
    snapshot: Snapshot,
    table: LayoutTable,
    group: TeamId,
    under_way: Mapping[Pair, bool],
    slots: Mapping[TeamId, Mapping[SlotId, ProcessorId]],
    busy: Collection[ProcessorId] = (),
) -> Decision:
    """Decide about a group; ``slots`` is who fills which slot, of all groups."""
    taken = taken_elsewhere(table, group, slots)
    starting = {pair for pair, is_start in under_way.items() if is_start}
    members = slots.get(group, {})
    at = standing_of(snapshot, table, group, Around(members, taken, starting, busy))
    target = best_target(at)
    after = remembered(at, target.slots)
    filling = None
    if after != dict(at.members):
        filling = Filling(group=group, slots=after, reason=_why_filled(at, after))
    steps = steps_to(at, target, under_way, table.single_roles[group])
    return Decision(at, target, filling, steps, min(at.dues_ms, default=None))


def best_target(at: Standing) -> Target:
    """The best of all fillings, with the best choice for every role."""
    best: Target | None = None
    for filled in fillings(at):
        found = target_for(at, filled)
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None, "there is always a filling"
    return best


def taken_elsewhere(
    table: LayoutTable, group: TeamId, slots: Mapping[TeamId, Mapping[SlotId, ProcessorId]]
) -> Collection[ProcessorId]:
    """The processors of a group that fill a slot of another one."""
    return {
        processor
        for processor in table.processors[group]
        for other in table.teams_of[processor]
        if other != group and processor in slots.get(other, {}).values()
    }


def _why_filled(at: Standing, after: Mapping[SlotId, ProcessorId]) -> str:
    said = []
    for slot, processor in after.items():
        before = at.members.get(slot)
        if before == processor:
            continue
        from_slot = next((s for s, p in at.members.items() if p == processor), None)
        words = f"{processor} fills {slot}" if from_slot is None else f"{processor} moves to {slot}"
        if before is not None:
            words += f" in place of {before}"
            words += f" ({at.missed[before]})" if before in at.missed else ""
        said.append(words)
    gone = [slot for slot in at.members if slot not in after]
    said += [f"{slot} is empty" for slot in gone]
    return "; ".join(said)
