"""When a dependency holds: in the present, in the future or in both, as its owner is changed."""

from __future__ import annotations

from equipoise.model.resource import Presence
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.request import SetId
from equipoise.upgrade.state import Bond, Part, Progress, Standing, State

PRESENT = (Presence.CURRENT, Presence.CURRENT_FUTURE)


def presence(state: State, bond: Bond) -> Presence | None:
    """Say when a dependency holds, or ``None`` if it does not any more."""
    dependency = bond.dependency
    ends = state.parts.get(dependency.dependent), state.parts.get(dependency.sponsor)
    if any(end is None or not (end.present or end.levels) for end in ends):
        return None
    if bond.set is None:
        return Presence.CURRENT_FUTURE
    if bond.owner is None:
        return _with_the_set(state.standings[bond.set], comes=bond.comes)
    forward, back = _left_to_do(state.parts[bond.owner], bond.set)
    if back:
        return Presence.CURRENT if bond.comes else Presence.FUTURE
    if _is_applied(state.parts[bond.owner], bond.set) and not forward:
        return Presence.CURRENT_FUTURE if bond.comes else None
    if not forward and state.standings[bond.set].progress is not Progress.SCHEDULED:
        return None if bond.comes else Presence.CURRENT_FUTURE
    return Presence.FUTURE if bond.comes else Presence.CURRENT


def _with_the_set(standing: Standing, *, comes: bool) -> Presence | None:
    """When a dependency holds that comes or goes by itself: as its set ends."""
    if standing.progress is Progress.SCHEDULED:
        return Presence.FUTURE if comes else Presence.CURRENT
    stays = comes == (standing.outcome is SetOutcome.APPLIED)
    return Presence.CURRENT_FUTURE if stays else None


def _left_to_do(part: Part, set_: SetId) -> tuple[bool, bool]:
    """Whether a set is still to be applied to a resource, and whether it is to be taken back."""
    forward = back = False
    for level in part.levels:
        for work in level.works:
            if work.set == set_:
                forward |= not work.undoing
                back |= work.undoing
    return forward, back


def _is_applied(part: Part, set_: SetId) -> bool:
    return any(work.set == set_ for work in part.applied)
