"""The review of an iteration: which resources are isolated, which sets are undone or complete."""

from __future__ import annotations

from collections.abc import Callable

from equipoise.model.upgrade.event import (
    ResourceGivenUp,
    ResourceIsolated,
    ResourceReleased,
    SetEnded,
    SetOutcome,
    SetUndoStarted,
)
from equipoise.model.upgrade.request import CommandKind
from equipoise.upgrade.giving_up import give_up_isolated, give_up_unevacuated
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.reason import (
    NO_REASON,
    Reason,
    resource_isolated,
    set_ended,
    set_undo_started,
)
from equipoise.upgrade.requests.commands import UNDO_COMMANDED
from equipoise.upgrade.requests.set_conflicts import (
    awaits_other_sets,
    completes_with,
    conflicting_sets,
)
from equipoise.upgrade.rules.windows import deadline_ms, deadline_text
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import ChangeSetStatus, SetProgress
from equipoise.upgrade.state.resources import ResourceState

ReviewDecision = ResourceIsolated | ResourceReleased | ResourceGivenUp | SetUndoStarted | SetEnded


def review(state: UpgradeState) -> ReviewDecision | None:
    """Return the next decision about resources and sets, or None if none is due."""
    return (
        # The order matters: isolation can push a set below its threshold, an undone set can
        # conflict with others, and a set is complete only if none of this happens.
        _isolate_broken(state)
        or _end_refused(state)
        or _isolate_exhausted(state)
        or _isolate_group(state)
        or give_up_unevacuated(state)
        or _first_decision(state, _undo_or_cancel)
        or _undo_conflicting(state)
        or give_up_isolated(state)
        or _first_decision(state, _end_complete)
    )


def _first_decision(
    state: UpgradeState,
    rule: Callable[[UpgradeState, ChangeSetStatus], ReviewDecision | None],
) -> ReviewDecision | None:
    """Return the first decision of a rule about a set that has not ended."""
    for status in state.requests.set_status.values():
        if status.progress is not SetProgress.ENDED:
            decision = rule(state, status)
            if decision is not None:
                return decision
    return None


def _isolate_broken(state: UpgradeState) -> ReviewDecision | None:
    for id_, reason in state.attempts.to_isolate.items():
        return resource_isolated(state.at_ms, id_, reason, failed=True)
    return None


def _end_refused(state: UpgradeState) -> ReviewDecision | None:
    for set_, reason in state.requests.refused_sets.items():
        return set_ended(state.at_ms, set_, SetOutcome.REFUSED, reason)
    return None


def _isolate_exhausted(state: UpgradeState) -> ReviewDecision | None:
    """Isolate a resource whose failed attempts have reached the limit of a set."""
    for id_, resource_state in state.resources.states.items():
        if resource_state.failed or not resource_state.attempts:
            continue
        for set_, failed in resource_state.attempts.items():
            status = state.requests.set_status[set_]
            # Retry while the failed attempts are below the limit (design, section 7).
            if failed < status.set.attempts_max or not resource_state.has_work_for(set_):
                continue
            undoing = resource_state.levels[0].order == 0
            # It is isolated already; only a failed undo makes it failed.
            if resource_state.isolated and not undoing:
                continue
            reason = Reason("attempts-exhausted", f"{failed} attempts failed for set {set_}")
            return resource_isolated(state.at_ms, id_, reason, failed=undoing)
    return None


def _isolate_group(state: UpgradeState) -> ReviewDecision | None:
    """Isolate resources that change together with an isolated resource."""
    groups = grouping(state)
    for id_, resource_state in state.resources.states.items():
        for member in groups.members[groups.group_of[id_]] if resource_state.isolated else ():
            member_state = state.resources.states[member]
            if not member_state.isolated and member_state.levels:
                text = f"it changes together with {id_}, which is isolated"
                reason = Reason("isolated-with-group", text)
                return resource_isolated(state.at_ms, member, reason, failed=resource_state.failed)
    return None


def _undo_conflicting(state: UpgradeState) -> ReviewDecision | None:
    """Undo a set that would leave incompatible versions in service."""
    # Only an undone or ended set can leave incompatible versions, and the check is slow.
    if all(
        status.progress is SetProgress.SCHEDULED for status in state.requests.set_status.values()
    ):
        return None
    for set_, reason in conflicting_sets(state).items():
        if state.requests.is_scheduled(set_):
            return set_undo_started(state.at_ms, set_, reason)
    return None


def _undo_or_cancel(state: UpgradeState, status: ChangeSetStatus) -> ReviewDecision | None:
    """Return the undo or the cancellation of a set, or None.

    All sets are checked for this before one is complete, because coupled sets end together.
    """
    if status.progress is SetProgress.UNDOING:
        return _release_restored(state, status)
    order = state.requests.pending_orders.get(status.id)
    if order is CommandKind.CANCEL:
        return set_ended(state.at_ms, status.id, SetOutcome.CANCELLED, status.reason)
    reason = UNDO_COMMANDED if order is CommandKind.UNDO else None
    reason = reason or threshold_violation(state, status) or _deadline_violation(state, status)
    return None if reason is None else set_undo_started(state.at_ms, status.id, reason)


def threshold_violation(state: UpgradeState, status: ChangeSetStatus) -> Reason | None:
    """Return a violation if too few resources of a change are operational, or None."""
    for change, ids in zip(status.set.changes, status.targets, strict=True):
        # The threshold is the minimum number of operational targets; by default all of them.
        needed = len(ids) if change.undo_threshold is None else change.undo_threshold
        known = [id_ for id_ in ids if id_ in state.resources.states]
        lost = [id_ for id_ in known if not state.resources.states[id_].serves(status.id)]
        operational = len(known) - len(lost)
        if operational < needed:
            figures = f"{operational} of {len(ids)} are operational, {needed} must be"
            return Reason("too-few-operational", f"{figures}: {', '.join(lost)}")
    return None


def _deadline_violation(state: UpgradeState, status: ChangeSetStatus) -> Reason | None:
    due_ms = deadline_ms(state, status)
    if due_ms is None or state.at_ms < due_ms or not _has_work_left(state, status):
        return None
    return Reason("deadline-missed", deadline_text(status))


def _has_work_left(state: UpgradeState, status: ChangeSetStatus) -> bool:
    """Return whether a set, or a set that completes only together with it, has work left."""
    sets = {status.id}
    if status.progress is SetProgress.SCHEDULED:
        # Another set does the same work: this set is complete only after it.
        if awaits_other_sets(state, status):
            return True
        sets = completes_with(state, status)
    return any(next(iter(state.resources.pending_for(set_)), None) is not None for set_ in sets)


def _release_restored(state: UpgradeState, status: ChangeSetStatus) -> ReviewDecision | None:
    """Release an isolated resource when the undo of its whole group is done."""
    groups = grouping(state)
    for id_ in status.resources:
        resource_state = state.resources.states.get(id_)
        if resource_state is None or not resource_state.isolated or resource_state.failed:
            continue
        members = [
            state.resources.states[member] for member in groups.members[groups.group_of[id_]]
        ]
        if all(not member.isolated or _is_restored(state, member, status) for member in members):
            return ResourceReleased(at_ms=state.at_ms, resource=id_)
    return None


def _is_restored(
    state: UpgradeState, resource_state: ResourceState, status: ChangeSetStatus
) -> bool:
    """Return whether nothing of a set remains on a resource and no other set has given it up."""
    gave_up = any(
        failed >= state.requests.set_status[set_].set.attempts_max
        for set_, failed in resource_state.attempts.items()
        if set_ != status.id
    )
    return (
        not resource_state.failed
        and not gave_up
        and not resource_state.has_work_for(status.id)
        and not any(work.set == status.id for work in resource_state.applied)
    )


def _end_complete(state: UpgradeState, status: ChangeSetStatus) -> ReviewDecision | None:
    if _has_work_left(state, status):
        return None
    if status.progress is SetProgress.UNDOING:
        return set_ended(state.at_ms, status.id, SetOutcome.UNDONE, status.reason)
    return set_ended(state.at_ms, status.id, SetOutcome.APPLIED, NO_REASON)
