"""How well each role was held in a run: starts, stops, failures, and times without a holder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from equipoise.model.action import RoleAction, StartRole
from equipoise.model.change import transition
from equipoise.model.change.draft import Draft
from equipoise.model.event import ActionFailed, ActionFinished, Event
from equipoise.model.roles.duty import Duty, table_of
from equipoise.model.snapshot import Snapshot


@dataclass(slots=True)
class Coverage:
    """One role of one group over a run."""

    duty: Duty
    starts: int = 0
    stops: int = 0
    failures: int = 0
    most: int = 0
    """How many held it at once, at the most."""
    outages: list[tuple[int, int]] = field(default_factory=list)
    """From when to when nobody held it, after somebody first did, in milliseconds."""
    down_ms: int | None = None

    @property
    def without_s(self) -> float:
        """How long nobody held it, after somebody first did."""
        return sum(end - start for start, end in self.outages) / 1000


def coverage_of(events: Iterable[Event], end_ms: int) -> list[Coverage]:
    """Follow every role through a journal."""
    found: dict[Duty, Coverage] = {}
    draft = Draft(Snapshot())
    for event in events:
        if isinstance(event, ActionFinished | ActionFailed):
            running = draft.in_flight.get(event.step)
            if running is not None and isinstance(running.step.action, RoleAction):
                _count(found, running.step.action, event)
        before = draft.duties.freeze().held
        transition.change(draft, event)
        if draft.duties.freeze().held is not before:
            _hold(found, draft, event.at_ms)
    for one in found.values():
        if one.down_ms is not None:
            one.outages.append((one.down_ms, end_ms))
    return _in_order(found, draft)


def _count(
    found: dict[Duty, Coverage], action: RoleAction, event: ActionFinished | ActionFailed
) -> None:
    one = found.setdefault(action.duty, Coverage(action.duty))
    if isinstance(event, ActionFailed):
        one.failures += 1
    elif isinstance(action, StartRole):
        one.starts += 1
    else:
        one.stops += 1


def _hold(found: dict[Duty, Coverage], draft: Draft, at_ms: int) -> None:
    holders: dict[Duty, int] = {}
    for held in draft.duties.held.values():
        for duty in held:
            holders[duty] = holders.get(duty, 0) + 1
    for duty in holders:
        found.setdefault(duty, Coverage(duty))
    for duty, one in found.items():
        many = holders.get(duty, 0)
        if many and one.down_ms is not None:
            one.outages.append((one.down_ms, at_ms))
            one.down_ms = None
        elif not many and one.most and one.down_ms is None:
            one.down_ms = at_ms
        one.most = max(one.most, many)


def _in_order(found: dict[Duty, Coverage], draft: Draft) -> list[Coverage]:
    layout = draft.settings.layout
    if layout is None:
        return list(found.values())
    place = table_of(layout).place
    return sorted(found.values(), key=lambda one: (place.get(one.duty.group, -1), one.duty.role))
