"""Reopening a journal: the state it leads to, and the plan that was under way when it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from equipoise.control.ports import Journal
from equipoise.model import transition
from equipoise.model.draft import Draft
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    Event,
    Outcome,
    PlanAccepted,
    PlanEnded,
)
from equipoise.model.plan import Plan
from equipoise.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Past:
    """What a journal says: a state, the plan that was accepted in it, and what came after."""

    snapshot: Snapshot
    plan: Plan | None = None
    events: list[Event] = field(default_factory=list)


def reopen(journal: Journal) -> Past:
    """Read a journal up to its end, or up to the plan that had not ended there."""
    draft = Draft(Snapshot())
    past: Past | None = None
    for event in journal.events():
        if isinstance(event, PlanAccepted):
            past = Past(draft.freeze(), event.plan)
        if past is not None:
            past.events.append(event)
        transition.change(draft, event)
        if isinstance(event, PlanEnded):
            past = None
    return past or Past(draft.freeze())


def written_off(past: Past, now: Draft) -> Iterator[Event]:
    """End a plan that nobody carries on: what is in flight is lost, what waits is skipped."""
    assert past.plan is not None
    finished = sum(isinstance(event, ActionFinished) for event in past.events)
    failed = sum(isinstance(event, ActionFailed) for event in past.events)
    for running in tuple(now.in_flight.values()):
        failed += 1
        yield ActionLost(at_ms=now.at_ms, step=running.step.id, attempt=running.attempt)
    yield PlanEnded(
        at_ms=now.at_ms,
        plan=past.plan.id,
        outcome=Outcome.PARTIAL,
        finished=finished,
        failed=failed,
        skipped=max(0, len(past.plan.steps) - finished - failed),
    )
