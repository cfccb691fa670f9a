"""Which processors may be removed now without a role being lost: a computed budget.

Callers remove processors on purpose: upgrade, power (standby), maintenance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from equipoise.model.quantity import ProcessorId, RoleGroupId, SlotId
from equipoise.model.roles.state import GroupRole, LayoutIndex, layout_index
from equipoise.model.state.snapshot import Snapshot
from equipoise.roles.assess import GroupContext, assess_group
from equipoise.roles.propose import best_role_target, used_by_other_groups
from equipoise.roles.slot_filling import with_previous_owners


class RemovalCheck(NamedTuple):
    """The processors that may be removed together, and why the others may not."""

    allowed: tuple[ProcessorId, ...]
    blocked: dict[ProcessorId, str]


def check_removal(
    snapshot: Snapshot, wanted: Iterable[str], gone: Iterable[str] = ()
) -> RemovalCheck:
    """Check the wanted processors in order; each is allowed if no role is lost with it.

    ``gone`` are processors that leave already. A role is lost if it has no holder any more, or
    fewer holders than wanted and before. Optional roles are ignored. A processor without roles is
    always allowed.
    """
    layout = snapshot.settings.layout
    names = [ProcessorId(processor) for processor in wanted]
    if layout is None:
        return RemovalCheck(tuple(names), {})
    table = layout_index(layout)
    leaving = {ProcessorId(processor) for processor in gone}
    allowed: list[ProcessorId] = []
    blocked: dict[ProcessorId, str] = {}
    for processor in names:
        lost = _lost_roles(snapshot, table, leaving, processor)
        lost_texts = [
            f"{group_role.role} of {group_role.group} would be lost" for group_role in lost
        ]
        if lost_texts:
            blocked[processor] = "; ".join(lost_texts)
        else:
            allowed.append(processor)
            # Later processors are judged with this one gone: two can be dispensable, and not both.
            leaving.add(processor)
    return RemovalCheck(tuple(allowed), blocked)


def _lost_roles(
    snapshot: Snapshot, table: LayoutIndex, leaving: set[ProcessorId], processor: ProcessorId
) -> list[GroupRole]:
    groups = _competing_groups(table, table.groups_of.get(processor, ()))
    # Both states are hypothetical: running steps must not look like lost roles.
    before = _holder_counts(snapshot, table, groups, leaving)
    after = _holder_counts(snapshot, table, groups, leaving | {processor})
    wanted = {
        GroupRole(group, preference.role): preference.count
        for group in groups
        for preference in table.groups[group].preferences
    }
    return [
        group_role
        for group_role, count in before.items()
        if not table.roles[group_role.role].optional
        # Holders beyond the wanted number may go; a role that has too few already does not block.
        if after.get(group_role, 0) < min(count, wanted.get(group_role, 1))
    ]


def _competing_groups(table: LayoutIndex, groups: Iterable[RoleGroupId]) -> list[RoleGroupId]:
    """Return the groups and all groups that compete with them for a processor."""
    groups_found = dict.fromkeys(groups)
    queue = list(groups_found)
    while queue:
        for processor in table.groups[queue.pop()].processors:
            added = [other for other in table.groups_of[processor] if other not in groups_found]
            groups_found |= dict.fromkeys(added)
            queue += added
    return sorted(
        groups_found, key=lambda group: (table.groups[group].priority, table.place[group])
    )


def _holder_counts(
    snapshot: Snapshot, table: LayoutIndex, groups: Sequence[RoleGroupId], leaving: set[ProcessorId]
) -> dict[GroupRole, int]:
    """Return how many processors would hold each role after all steps."""
    slots: dict[RoleGroupId, Mapping[SlotId, ProcessorId]] = dict(snapshot.role_state.slots)
    counts: dict[GroupRole, int] = {}
    for _ in range(1 + len(groups)):  # a later group can free a processor for an earlier one
        before = dict(slots)
        for group in groups:
            taken = used_by_other_groups(table, group, slots)
            context = GroupContext(slots.get(group, {}), taken, leaving=leaving)
            group_status = assess_group(snapshot, table, group, context)
            target = best_role_target(group_status)
            slots[group] = with_previous_owners(group_status, target.slots)
            counts |= {
                GroupRole(group, role): len(processors)
                for role, processors in target.holders.items()
            }
        if before == slots:
            break
    return counts
