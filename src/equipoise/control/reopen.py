"""Reopening a journal: the state it leads to, and the plan that was under way when it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

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
from equipoise.model.quantity import StepId
from equipoise.model.snapshot import Snapshot


@dataclass(slots=True, kw_only=True)
class Past:
    """What a journal says: a state, the plan that was accepted in it, and what came after."""

    snapshot: Snapshot
    plan: Plan | None = None
    events: list[Event] = field(default_factory=list)
    used: set[StepId] = field(default_factory=set)
    """The ids of all steps of earlier plans."""
    unsure: bool = False
    """Whether an action was lost in one of them."""


def reopen(journal: Journal) -> Past:
    """Read a journal up to its end, or up to the plan that had not ended there."""
    draft = Draft(Snapshot())
    past = Past(snapshot=Snapshot())
    for event in journal.events():
        match event:
            case PlanAccepted():
                past.snapshot, past.plan, past.events = draft.freeze(), event.plan, []
            case PlanEnded() if past.plan is not None:
                past.used.update(step.id for step in past.plan.steps)
                past.plan = None
            case ActionLost():
                past.unsure = True
            case DemandObserved():  # the last of the events that an observation leads to
                past.unsure = False
        if past.plan is not None:
            past.events.append(event)
        transition.change(draft, event)
    if past.plan is None:
        past.snapshot, past.events = draft.freeze(), []
    return past


def written_off(past: Past, now: Draft) -> Iterator[Event]:
    """End a plan that nobody carries on: what is in flight is lost, what waits is skipped."""
    assert past.plan is not None
    finished = {one.step for one in past.events if isinstance(one, ActionFinished)}
    skipped = {one.step for one in past.events if isinstance(one, ActionSkipped)}
    started = {one.step.id for one in past.events if isinstance(one, ActionStarted)}
    for running in tuple(now.in_flight.values()):
        yield ActionLost(at_ms=now.at_ms, step=running.step.id, attempt=running.attempt)
    for step in past.plan.steps:
        if step.id not in started | skipped:
            skipped.add(step.id)
            reason = "the plan would not be accepted any more"
            yield ActionSkipped(at_ms=now.at_ms, step=step.id, reason=reason)
    yield PlanEnded(
        at_ms=now.at_ms,
        plan=past.plan.id,
        outcome=Outcome.PARTIAL,
        finished=len(finished),
        failed=len(past.plan.steps) - len(finished) - len(skipped),
        skipped=len(skipped),
    )
