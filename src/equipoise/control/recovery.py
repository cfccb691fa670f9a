"""Recovery from a journal: the state it leads to, and the plans that had not ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from equipoise.control.ports import EventLog
from equipoise.model.event import (
    ActionFinished,
    ActionLost,
    ActionSkipped,
    ActionStarted,
    DemandObserved,
    Event,
    PlanAccepted,
    PlanEnded,
    PlanOutcome,
)
from equipoise.model.plan import Plan
from equipoise.model.quantity import PlanId, StepId
from equipoise.model.state import transition
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot


@dataclass(slots=True, kw_only=True)
class RecoveredRun:
    """The result of reading a journal: a state, the open plans, and the events since."""

    snapshot: Snapshot
    """The state before ``events``."""
    open_plans: set[PlanId] = field(default_factory=set)
    """The plans that were accepted and have not ended."""
    events: list[Event] = field(default_factory=list)
    """All events from the acceptance of the first open plan on."""
    used_step_ids: set[StepId] = field(default_factory=set)
    """The step ids of all plans that have ended."""
    outcome_unknown: bool = False
    """Whether the outcome of an action is unknown since the last observation."""


class _AcceptedPlan(NamedTuple):
    """A plan that was accepted."""

    plan: Plan
    snapshot: Snapshot
    """The state when the plan was accepted."""
    place: int
    """The number of events before."""


def recover_run(journal: EventLog) -> RecoveredRun:
    """Return the state that a journal leads to, or the state before its first open plan."""
    draft = Draft(Snapshot())
    run = RecoveredRun(snapshot=Snapshot())
    accepted: dict[PlanId, _AcceptedPlan] = {}
    first = 0
    for place, event in enumerate(journal.events()):
        match event:
            case PlanAccepted():
                if not accepted:
                    run.events, first = [], place
                accepted[event.plan.id] = _AcceptedPlan(event.plan, draft.freeze(), place)
            case PlanEnded() if event.plan in accepted:
                ended = accepted.pop(event.plan)
                run.used_step_ids.update(step.id for step in ended.plan.steps)
            case ActionLost():
                run.outcome_unknown = True
            case DemandObserved():  # the last event of every observation
                run.outcome_unknown = False
        if accepted:
            run.events.append(event)
        transition.apply_to_draft(draft, event)
    if not accepted:
        run.snapshot, run.events = draft.freeze(), []
        return run
    earliest = next(iter(accepted.values()))
    run.snapshot, run.events = earliest.snapshot, run.events[earliest.place - first :]
    run.open_plans = set(accepted)
    return run


def end_abandoned_plan(plan: Plan, events: Sequence[Event], now: Draft) -> Iterator[Event]:
    """Yield the events that end a plan which the gate accepts no longer.

    Actions in flight are lost, and steps that have not started are skipped.
    """
    own = {step.id for step in plan.steps}
    finished = {event.step for event in events if isinstance(event, ActionFinished)} & own
    skipped = {event.step for event in events if isinstance(event, ActionSkipped)} & own
    started = {event.step.id for event in events if isinstance(event, ActionStarted)} & own
    # A copy, because the caller applies each event to the draft before it takes the next one.
    for running in tuple(now.in_flight.values()):
        if running.step.id in own:
            yield ActionLost(at_ms=now.at_ms, step=running.step.id, attempt=running.attempt)
    for step in plan.steps:
        if step.id not in started | skipped:
            skipped.add(step.id)
            yield ActionSkipped(
                at_ms=now.at_ms,
                step=step.id,
                reason="the gate no longer accepts the plan after a restart",
                code="plan-not-resumable",
            )
    yield PlanEnded(
        at_ms=now.at_ms,
        plan=plan.id,
        outcome=PlanOutcome.PARTIAL,
        finished=len(finished),
        failed=len(plan.steps) - len(finished) - len(skipped),
        skipped=len(skipped),
    )
