"""A rehearsal: steps carried out in the mind, by the same queue that the executor uses.

``order`` takes its times from it; the gate takes from it that a plan can be carried out at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from equipoise.model.event import ActionFinished, ActionStarted
from equipoise.model.plan import Step, Violation
from equipoise.model.quantity import StepId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.ledger import Ledger
from equipoise.plan.waiting import Waiting


class Rehearsal(NamedTuple):
    """What came of it: the steps with the times they took place, and why others never could."""

    timed: tuple[Step, ...]
    stuck: tuple[Violation, ...]


def rehearse(
    snapshot: Snapshot,
    steps: Iterable[Step],
    waits: Mapping[StepId, tuple[StepId, ...]],
    base: Ledger | None = None,
) -> Rehearsal:
    """Let each step start as early as prerequisites, room, rules and limits allow.

    ``base`` is a ledger of the snapshot, if there is one already.
    """
    ledger = Ledger(snapshot) if base is None else Ledger.like(base, snapshot)
    waiting = Waiting(steps, waits, ledger)
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
    return Rehearsal(tuple(timed), _stuck(waiting, ledger, now_ms))


def _stuck(waiting: Waiting, ledger: Ledger, at_ms: int) -> tuple[Violation, ...]:
    return tuple(
        Violation(constraint=why.constraint, at_ms=at_ms, detail=why.detail, step=step.id)
        for step in waiting.steps()
        for why in waiting.why_not(ledger, step)
    )
