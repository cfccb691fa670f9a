"""The review of an iteration: who is isolated, which sets are undone or complete."""

from __future__ import annotations

from equipoise.model.upgrade.event import (
    ResourceIsolated,
    ResourceReleased,
    SetEnded,
    SetOutcome,
    SetUndoBegan,
)
from equipoise.model.upgrade.request import Order
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.requests.bound import bound_to, torn
from equipoise.upgrade.requests.heirs import awaits_others
from equipoise.upgrade.state import Part, Progress, Standing, State

Finding = ResourceIsolated | ResourceReleased | SetUndoBegan | SetEnded


def review(state: State) -> Finding | None:
    """Say the next thing to decide about resources and sets; nothing if all is said."""
    return (
        _broken(state)
        or _refused(state)
        or _exhausted(state)
        or _with_it(state)
        or next((one for s in _open(state) if (one := _judged(state, s))), None)
        or _torn(state)
        or next((one for s in _open(state) if (one := _ended(state, s))), None)
    )


def _open(state: State) -> list[Standing]:
    return [one for one in state.standings.values() if one.progress is not Progress.ENDED]


def _broken(state: State) -> Finding | None:
    for id_, why in state.broken.items():
        return ResourceIsolated(at_ms=state.at_ms, resource=id_, failed=True, reason=why)
    return None


def _refused(state: State) -> Finding | None:
    for set_, why in state.refused.items():
        return SetEnded(at_ms=state.at_ms, set=set_, outcome=SetOutcome.REFUSED, reason=why)
    return None


def _exhausted(state: State) -> Finding | None:
    """Retry while the failed attempts are fewer than the most there may be."""
    for id_, part in state.parts.items():
        if part.failed or not part.attempts:
            continue
        for set_, failed in part.attempts.items():
            standing = state.standings[set_]
            if failed < standing.set.attempts_max or not part.awaits(set_):
                continue
            undoing = part.levels[0].order == 0
            if part.isolated and not undoing:
                continue
            why = f"{failed} attempts failed for set {set_}"
            return ResourceIsolated(at_ms=state.at_ms, resource=id_, failed=undoing, reason=why)
    return None


def _with_it(state: State) -> Finding | None:
    """What goes together with an isolated resource is isolated with it."""
    made = grouping(state)
    for id_, part in state.parts.items():
        if part.isolated and len(made.members[made.group_of[id_]]) > 1:
            for mate in made.members[made.group_of[id_]]:
                if not state.parts[mate].isolated and state.parts[mate].levels:
                    why = f"it goes together with {id_}"
                    return ResourceIsolated(
                        at_ms=state.at_ms, resource=mate, failed=part.failed, reason=why
                    )
    return None


def _torn(state: State) -> Finding | None:
    """Sets that would leave versions in service that do not understand each other."""
    if all(one.progress is Progress.SCHEDULED for one in state.standings.values()):
        return None
    for set_, why in torn(state).items():
        if state.standings[set_].progress is Progress.SCHEDULED:
            return SetUndoBegan(at_ms=state.at_ms, set=set_, reason=why)
    return None


def _judged(state: State, standing: Standing) -> Finding | None:
    """Whether a set is to be taken back or given up. None is complete before all are judged: sets
    that hang together end together.
    """
    if standing.progress is Progress.UNDOING:
        return _released(state, standing)
    order = state.orders.get(standing.id)
    if order is Order.CANCEL:
        return SetEnded(
            at_ms=state.at_ms, set=standing.id, outcome=SetOutcome.CANCELLED, reason=standing.reason
        )
    why = "an administrator wants it undone" if order is Order.UNDO else ""
    why = why or _below_threshold(state, standing) or _too_late(state, standing)
    return SetUndoBegan(at_ms=state.at_ms, set=standing.id, reason=why) if why else None


def _below_threshold(state: State, standing: Standing) -> str:
    """Whether too few of the resources of a change are operational."""
    for change, ids in zip(standing.set.changes, standing.targets, strict=True):
        least = len(ids) if change.undo_threshold is None else change.undo_threshold
        able = sum(state.parts[one].operational for one in ids if one in state.parts)
        if able < least:
            lost = [one for one in ids if one in state.parts and not state.parts[one].operational]
            return f"{able} of {len(ids)} are operational and {least} must be: {', '.join(lost)}"
    return ""


def _too_late(state: State, standing: Standing) -> str:
    due_ms = deadline_ms(standing)
    if due_ms is None or state.at_ms < due_ms or not _is_left(state, standing):
        return ""
    return f"it was not complete {standing.set.completion_s_max} s after it was asked for"


def deadline_ms(standing: Standing) -> int | None:
    """When a set must be complete."""
    most_s = standing.set.completion_s_max
    return None if most_s is None else standing.requested_ms + most_s * 1000


def _is_left(state: State, standing: Standing) -> bool:
    """Whether a set, or one that is complete only together with it, has something left to do."""
    sets = {standing.id}
    if standing.progress is Progress.SCHEDULED:
        if awaits_others(state, standing):
            return True
        sets = bound_to(state, standing)
    return any(next(iter(state.pending(one)), None) is not None for one in sets)


def _released(state: State, standing: Standing) -> Finding | None:
    """Isolated resources that are where the undoing leads are free again, with all beside them."""
    made = grouping(state)
    for id_ in standing.resources:
        part = state.parts.get(id_)
        if part is None or not part.isolated or part.failed:
            continue
        beside = [state.parts[one] for one in made.members[made.group_of[id_]]]
        if all(not one.isolated or _is_back(state, one, standing) for one in beside):
            return ResourceReleased(at_ms=state.at_ms, resource=id_)
    return None


def _is_back(state: State, part: Part, standing: Standing) -> bool:
    """Whether nothing of a set is on a resource, and no other set has given it up."""
    gave_up = any(
        failed >= state.standings[one].set.attempts_max
        for one, failed in part.attempts.items()
        if one != standing.id
    )
    return (
        not part.failed
        and not gave_up
        and not part.awaits(standing.id)
        and not any(work.set == standing.id for work in part.applied)
    )


def _ended(state: State, standing: Standing) -> Finding | None:
    if _is_left(state, standing):
        return None
    undone = standing.progress is Progress.UNDOING
    return SetEnded(
        at_ms=state.at_ms,
        set=standing.id,
        outcome=SetOutcome.UNDONE if undone else SetOutcome.APPLIED,
        reason=standing.reason if undone else "",
    )
