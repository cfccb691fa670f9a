"""Ordering: gives wanted actions their times, as early as prerequisites, room and limits allow."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from equipoise.model.event import ActionFinished, ActionStarted
from equipoise.model.plan import Intent, Plan, Step, Violation
from equipoise.model.quantity import PlanId, StepId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.ledger import Ledger
from equipoise.plan.verify import Refusal
from equipoise.plan.waiting import Waiting


def order(snapshot: Snapshot, intents: Sequence[Intent], plan: PlanId) -> Plan | Refusal:
    """Time the intents by running them in the mind; refuse if some can never start."""
    ledger = Ledger(snapshot)
    waiting = Waiting(
        (_untimed(intent) for intent in intents), {intent.id: intent.after for intent in intents}
    )
    timed: list[Step] = []
    running: list[tuple[int, int, StepId]] = []
    now_ms = 0
    while True:
        while (step := waiting.next_startable(ledger, snapshot.settings.limits)) is not None:
            waiting.take(step.id)
            step = step.but(start_ms=now_ms, end_ms=now_ms + step.duration_ms)
            timed.append(step)
            at_ms = snapshot.at_ms + now_ms
            waiting.wake(ledger.apply(ActionStarted(at_ms=at_ms, step=step, attempt=1)))
            heappush(running, (step.end_ms, len(timed), step.id))
        if not running:
            break
        now_ms = running[0][0]
        while running and running[0][0] == now_ms:  # all ends of an instant before its starts
            _, _, done = heappop(running)
            at_ms = snapshot.at_ms + now_ms
            waiting.wake(ledger.apply(ActionFinished(at_ms=at_ms, step=done, attempt=1)))
            waiting.succeeded(done)
    ordered = Plan(id=plan, base_version=snapshot.version, steps=tuple(timed))
    if waiting:
        return Refusal(ordered, _stuck(waiting, ledger, now_ms))
    return ordered


def _untimed(intent: Intent) -> Step:
    return Step(
        id=intent.id,
        action=intent.action,
        end_ms=intent.duration_ms,
        after=intent.after,
        reason=intent.reason,
    )


def _stuck(waiting: Waiting, ledger: Ledger, at_ms: int) -> tuple[Violation, ...]:
    return tuple(
        Violation(constraint=why.constraint, at_ms=at_ms, detail=why.detail, step=step.id)
        for step in waiting.steps()
        for why in waiting.why_not(ledger, step)
    )
