"""Reopening a journal: the state it leads to, and the plans that were under way then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from equipoise.control.ports import Journal
from equipoise.model.change import transition
from equipoise.model.change.draft import Draft
from equipoise.model.event import (
    ActionFinished,
    ActionLost,
    ActionSkipped,
    ActionStarted,
    DemandObserved,
    Event,
    Outcome,
    PlanAccepted,
    PlanEnded,
)
from equipoise.model.plan import Plan
from equipoise.model.quantity import PlanId, StepId
from equipoise.model.snapshot import Snapshot


@dataclass(slots=True, kw_only=True)
class Past:
    """What a journal says: a state, the plans that have not ended since, and what came after."""

    snapshot: Snapshot
    open: set[PlanId] = field(default_factory=set)
    """The plans that were accepted and have not ended."""
    events: list[Event] = field(default_factory=list)
    """All events from the acceptance of the first of them on."""
    used: set[StepId] = field(default_factory=set)
    """The ids of all steps of earlier plans."""
    unsure: bool = False
    """Whether an action was lost in one of them."""


class _Begun(NamedTuple):
    """A plan that was accepted."""

    plan: Plan
    snapshot: Snapshot
    """The state in which it was."""
    place: int
    """How many events were there before."""


def reopen(journal: Journal) -> Past:
    """Read a journal up to its end, or up to the first plan that had not ended there."""
    draft = Draft(Snapshot())
    past = Past(snapshot=Snapshot())
    begun: dict[PlanId, _Begun] = {}
    first = 0
    for place, event in enumerate(journal.events()):
        match event:
            case PlanAccepted():
                if not begun:
                    past.events, first = [], place
                begun[event.plan.id] = _Begun(event.plan, draft.freeze(), place)
            case PlanEnded() if event.plan in begun:
                ended = begun.pop(event.plan)
                past.used.update(step.id for step in ended.plan.steps)
            case ActionLost():
                past.unsure = True
            case DemandObserved():  # the last of the events that an observation leads to
                past.unsure = False
        if begun:
            past.events.append(event)
        transition.change(draft, event)
    if not begun:
        past.snapshot, past.events = draft.freeze(), []
        return past
    earliest = next(iter(begun.values()))
    past.snapshot, past.events = earliest.snapshot, past.events[earliest.place - first :]
    past.open = set(begun)
    return past


def written_off(plan: Plan, events: Sequence[Event], now: Draft) -> Iterator[Event]:
    """End a plan that nobody carries on: what is in flight is lost, what waits is skipped."""
    mine = {step.id for step in plan.steps}
    finished = {one.step for one in events if isinstance(one, ActionFinished)} & mine
    skipped = {one.step for one in events if isinstance(one, ActionSkipped)} & mine
    started = {one.step.id for one in events if isinstance(one, ActionStarted)} & mine
    for running in tuple(now.in_flight.values()):
        if running.step.id in mine:
            yield ActionLost(at_ms=now.at_ms, step=running.step.id, attempt=running.attempt)
    for step in plan.steps:
        if step.id not in started | skipped:
            skipped.add(step.id)
            reason = "the plan would not be accepted any more"
            yield ActionSkipped(at_ms=now.at_ms, step=step.id, reason=reason)
    yield PlanEnded(
        at_ms=now.at_ms,
        plan=plan.id,
        outcome=Outcome.PARTIAL,
        finished=len(finished),
        failed=len(plan.steps) - len(finished) - len(skipped),
        skipped=len(skipped),
    )
