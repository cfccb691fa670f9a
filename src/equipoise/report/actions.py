"""What was done: actions from their start to their end, as the journal tells them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from equipoise.model.action import Action, Move, describe, footprint
from equipoise.model.event import ActionFailed, ActionFinished, ActionLost, ActionStarted, Event
from equipoise.report.words import moment


class Ending(StrEnum):
    """How an action ended."""

    FINISHED = "finished"
    FAILED = "failed"
    LOST = "lost"
    """Its outcome is unknown."""
    RUNNING = "running"
    """It had not ended when the run did."""


class Deed(NamedTuple):
    """One attempt at an action."""

    action: Action
    start_s: float
    end_s: float
    ending: Ending
    reason: str = ""

    @property
    def migrates(self) -> bool:
        """Whether it moves a running VM."""
        return isinstance(self.action, Move)

    @property
    def subject(self) -> str:
        """The VM it is done to, or the host."""
        seen = footprint(self.action)
        return str(seen.vm or seen.switched)

    @property
    def words(self) -> str:
        """All about it, in a line."""
        why = f": {self.reason}" if self.reason else ""
        times = f"{moment(self.start_s)} to {moment(self.end_s)}"
        return f"{times}, {describe(self.action)}, {self.ending}{why}"


def deeds_of(events: Iterable[Event], end_s: float) -> list[Deed]:
    """Pair the starts of actions with their ends, in the order of their starts."""
    open_places: dict[tuple[str, int], int] = {}
    found: list[Deed] = []
    for event in events:
        if isinstance(event, ActionStarted):
            open_places[event.step.id, event.attempt] = len(found)
            at_s = event.at_ms / 1000
            found.append(Deed(event.step.action, at_s, max(at_s, end_s), Ending.RUNNING))
        elif isinstance(event, ActionFinished | ActionFailed | ActionLost):
            place = open_places.pop((event.step, event.attempt), None)
            if place is not None:  # else it is an answer that comes late, or twice
                found[place] = _ended(found[place], event)
    return found


def _ended(deed: Deed, event: ActionFinished | ActionFailed | ActionLost) -> Deed:
    end_s = event.at_ms / 1000
    match event:
        case ActionFinished():
            return deed._replace(end_s=end_s, ending=Ending.FINISHED)
        case ActionFailed():
            return deed._replace(end_s=end_s, ending=Ending.FAILED, reason=event.reason)
        case ActionLost():
            return deed._replace(end_s=end_s, ending=Ending.LOST)
