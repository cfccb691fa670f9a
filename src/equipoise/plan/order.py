"""Ordering: gives wanted actions their times, as early as prerequisites, room and limits allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from equipoise.model.plan import Intent, Plan, Step, Violation
from equipoise.model.quantity import PlanId, RuleId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.ledger import Ledger
from equipoise.plan.rehearse import rehearse
from equipoise.plan.verify import Refusal


def order(
    snapshot: Snapshot,
    intents: Sequence[Intent],
    plan: PlanId,
    mends: Sequence[RuleId] = (),
    base: Ledger | None = None,
) -> Plan | Refusal:
    """Time the intents by rehearsing them; refuse if some can never start.

    ``base`` is a ledger of the snapshot, if there is one already.
    """
    doubled = [name for name, times in Counter(one.id for one in intents).items() if times > 1]
    if doubled:
        detail = "another intent has the same id"
        found = (Violation(constraint="form", at_ms=0, step=one, detail=detail) for one in doubled)
        return Refusal(Plan(id=plan, base_version=snapshot.version, steps=()), tuple(found))
    rehearsal = rehearse(
        snapshot, map(_untimed, intents), {intent.id: intent.after for intent in intents}, base
    )
    ordered = Plan(
        id=plan, base_version=snapshot.version, steps=rehearsal.timed, mends=tuple(mends)
    )
    return Refusal(ordered, rehearsal.stuck) if rehearsal.stuck else ordered


def _untimed(intent: Intent) -> Step:
    return Step(
        id=intent.id,
        action=intent.action,
        end_ms=intent.duration_ms,
        after=intent.after,
        reason=intent.reason,
    )
