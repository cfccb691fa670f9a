"""What events do to the facts about roles. Never decides anything: who fills a slot is told."""

from __future__ import annotations

from equipoise.model.action import RoleAction, StartRole
from equipoise.model.change.draft import Draft
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    LayoutChanged,
    ProcessorLocked,
    ProcessorSuspected,
    ProcessorTrusted,
    ProcessorUnlocked,
    ReignBegan,
    RoleMoveAsked,
    RolesFound,
    SlotsFilled,
)
from equipoise.model.quantity import ProcessorId
from equipoise.model.roles.duty import Duty, Mark, table_of


def action_ended(
    draft: Draft, action: RoleAction, event: ActionFinished | ActionFailed | ActionLost
) -> None:
    """A role was started or stopped, or was not."""
    duties, post = draft.duties, action.post
    if not isinstance(event, ActionFinished):
        duties.fail(post, event.at_ms)
        return
    duties.succeed(post)
    if isinstance(action, StartRole):
        if draft.is_up(post.processor):
            duties.hold(post.processor, post.duty)
    else:
        duties.release(post.processor, post.duty)


def processor_suspected(draft: Draft, event: ProcessorSuspected) -> None:
    """Remember since when; who is suspected twice is so since the first time."""
    mark = draft.duties.mark(event.processor)
    if mark.suspected_ms is None and draft.is_up(event.processor):
        _mark(draft, event.processor, mark._replace(suspected_ms=event.at_ms))


def processor_trusted(draft: Draft, event: ProcessorTrusted) -> None:
    """Forget a suspicion."""
    mark = draft.duties.mark(event.processor)
    if mark.suspected_ms is not None:
        _mark(draft, event.processor, mark._replace(suspected_ms=None))


def processor_locked(draft: Draft, event: ProcessorLocked) -> None:
    """Remember that somebody wants it to carry no roles, and why."""
    mark = draft.duties.mark(event.processor)
    _mark(draft, event.processor, mark._replace(locked=event.reason))


def processor_unlocked(draft: Draft, event: ProcessorUnlocked) -> None:
    """A new beginning: what failed on it is forgotten as well."""
    mark = draft.duties.mark(event.processor)
    _mark(draft, event.processor, mark._replace(locked=None))
    draft.duties.forgive(event.processor)


def role_move_asked(draft: Draft, event: RoleMoveAsked) -> None:
    """Remember where somebody wants a role to be."""
    draft.duties.pin(Duty(event.group, event.role), event.slot)
    for processor in draft.duties.slots.get(event.group, {}).values():
        draft.touch(processor)


def layout_changed(draft: Draft, event: LayoutChanged) -> None:
    """Roles and groups are others from now on."""
    draft.settings = draft.settings.but(layout=event.layout)
    relayout(draft)


def relayout(draft: Draft) -> None:
    """Forget the slots of groups that are no more, and who is in none; what runs goes on."""
    layout, duties = draft.settings.layout, draft.duties
    table = None if layout is None else table_of(layout)
    for group in tuple(duties.slots):
        if table is None or group not in table.teams:
            duties.drop_group(group)
    for processor in tuple(duties.marks):
        if table is None or processor not in table.teams_of:
            duties.forget(processor)


def roles_found(draft: Draft, event: RolesFound) -> None:
    """Believe what was seen."""
    seen = tuple(Duty(group, role) for group, role in event.held)
    draft.duties.put_held(event.processor, seen)
    draft.touch(event.processor)


def reign_began(draft: Draft, event: ReignBegan) -> None:
    """Somebody reigns."""
    draft.duties.reign(event.epoch)


def slots_filled(draft: Draft, event: SlotsFilled) -> None:
    """Somebody decided who fills which slot."""
    before = tuple(draft.duties.slots.get(event.group, {}).values())
    draft.duties.fill(event.group, event.slots)
    for processor in (*before, *event.slots.values()):
        draft.touch(processor)


def _mark(draft: Draft, processor: ProcessorId, mark: Mark) -> None:
    draft.duties.put_mark(processor, mark)
    draft.touch(processor)
