"""How events change the state of roles. Makes no decisions."""

from __future__ import annotations

from equipoise.model.action import RoleAction, StartRole
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    LayoutChanged,
    LeaderEpochStarted,
    ProcessorLocked,
    ProcessorSuspected,
    ProcessorTrusted,
    ProcessorUnlocked,
    RoleMoveRequested,
    RolesFound,
    SlotsFilled,
)
from equipoise.model.quantity import ProcessorId
from equipoise.model.roles.state import GroupRole, ProcessorStatus, layout_index
from equipoise.model.state.draft import Draft


def action_ended(
    draft: Draft, action: RoleAction, event: ActionFinished | ActionFailed | ActionLost
) -> None:
    """Apply the end of a start or stop of a role."""
    role_state, instance = draft.role_state, action.role_instance
    if not isinstance(event, ActionFinished):
        role_state.add_failure(instance, event.at_ms)
        return
    role_state.clear_failure(instance)
    if isinstance(action, StartRole):
        # A late answer of a processor that went down meanwhile must not bring the role back.
        if draft.is_up(instance.processor):
            role_state.add_held(instance.processor, instance.group_role)
    else:
        role_state.remove_held(instance.processor, instance.group_role)


def processor_suspected(draft: Draft, event: ProcessorSuspected) -> None:
    """Record the start of a suspicion. A repeated suspicion keeps the first time."""
    status = draft.role_state.status(event.processor)
    if status.suspected_ms is None and draft.is_up(event.processor):
        _put_status(draft, event.processor, status._replace(suspected_ms=event.at_ms))


def processor_trusted(draft: Draft, event: ProcessorTrusted) -> None:
    """End a suspicion."""
    status = draft.role_state.status(event.processor)
    if status.suspected_ms is not None:
        _put_status(draft, event.processor, status._replace(suspected_ms=None))


def processor_locked(draft: Draft, event: ProcessorLocked) -> None:
    """Lock a processor, with the reason."""
    status = draft.role_state.status(event.processor)
    _put_status(draft, event.processor, status._replace(locked=event.reason))


def processor_unlocked(draft: Draft, event: ProcessorUnlocked) -> None:
    """Unlock a processor, and clear its failures."""
    status = draft.role_state.status(event.processor)
    _put_status(draft, event.processor, status._replace(locked=None))
    draft.role_state.clear_failures(event.processor)


def role_move_requested(draft: Draft, event: RoleMoveRequested) -> None:
    """Pin a role to a slot, or remove its pin."""
    draft.role_state.pin(GroupRole(event.group, event.role), event.slot)
    for processor in draft.role_state.slots.get(event.group, {}).values():
        draft.touch(processor)


def layout_changed(draft: Draft, event: LayoutChanged) -> None:
    """Replace the layout of roles and groups."""
    draft.settings = draft.settings.but(layout=event.layout)
    drop_obsolete_groups(draft)


def drop_obsolete_groups(draft: Draft) -> None:
    """Remove the groups and processors that the layout does not have. Running roles stay."""
    layout, role_state = draft.settings.layout, draft.role_state
    index = None if layout is None else layout_index(layout)
    for group in tuple(role_state.slots):
        if index is None or group not in index.groups:
            role_state.drop_group(group)
    for processor in tuple(role_state.statuses):
        if index is None or processor not in index.groups_of:
            role_state.drop_processor(processor)


def roles_found(draft: Draft, event: RolesFound) -> None:
    """Set the running roles of a processor to the observed ones."""
    observed = tuple(GroupRole(group, role) for group, role in event.held)
    draft.role_state.put_held(event.processor, observed)
    draft.touch(event.processor)


def leader_epoch_started(draft: Draft, event: LeaderEpochStarted) -> None:
    """Set the epoch of the leader."""
    draft.role_state.raise_epoch(event.epoch)


def slots_filled(draft: Draft, event: SlotsFilled) -> None:
    """Set the processors of the slots of a group."""
    before = tuple(draft.role_state.slots.get(event.group, {}).values())
    draft.role_state.assign_slots(event.group, event.slots)
    for processor in (*before, *event.slots.values()):
        draft.touch(processor)


def _put_status(draft: Draft, processor: ProcessorId, status: ProcessorStatus) -> None:
    draft.role_state.put_status(processor, status)
    draft.touch(processor)
