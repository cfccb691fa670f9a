"""Ordering: the earliest times of intents, and the largest set of intents that passes the gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from equipoise.capacity.ledger import CapacityLedger
from equipoise.model.plan import Intent, Plan, Step, Violation
from equipoise.model.quantity import PlanId, RuleId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.step_queue import dry_run
from equipoise.plan.verify import Refusal, verify


def order(
    snapshot: Snapshot,
    intents: Sequence[Intent],
    plan: PlanId,
    repairs: Sequence[RuleId] = (),
    base: CapacityLedger | None = None,
) -> Plan | Refusal:
    """Return the plan of a dry run of the intents; refuse if one of them can never start.

    ``base`` is a ledger of the snapshot, if the caller has one.
    """
    counts = Counter(intent.id for intent in intents)
    # The queue finds steps by their ids; a duplicate would silently replace the other.
    duplicates = [step for step, times in counts.items() if times > 1]
    if duplicates:
        detail = "another intent has the same id"
        violations = (
            Violation(constraint="form", at_ms=0, step=step, detail=detail, code="duplicate-step")
            for step in duplicates
        )
        return Refusal(Plan(id=plan, base_version=snapshot.version, steps=()), tuple(violations))
    waits = {intent.id: intent.after for intent in intents}
    result = dry_run(snapshot, map(_untimed, intents), waits, base, repairs)
    ordered = Plan(
        id=plan, base_version=snapshot.version, steps=result.timed, repairs=tuple(repairs)
    )
    return Refusal(ordered, result.blocked) if result.blocked else ordered


def _untimed(intent: Intent) -> Step:
    return Step(
        id=intent.id,
        action=intent.action,
        end_ms=intent.duration_ms,
        after=intent.after,
        reason=intent.reason,
    )


class GateFilter:
    """Finds out which intents pass the gate.

    ``repairs`` are continuous rules that are violated now and hold once all intents are done.
    """

    def __init__(self, snapshot: Snapshot, repairs: tuple[RuleId, ...] = ()) -> None:
        self._snapshot, self._repairs = snapshot, repairs
        self._base = CapacityLedger(snapshot)

    def objections(self, intents: Sequence[Intent]) -> tuple[Violation, ...]:
        """Return why the gate refuses all intents together; empty if it accepts them."""
        base = self._base
        plan = order(self._snapshot, intents, PlanId("candidate"), self._repairs, base)
        verdict = plan if isinstance(plan, Refusal) else verify(self._snapshot, plan, (), base)
        return verdict.violations if isinstance(verdict, Refusal) else ()

    def of(self, intents: Sequence[Intent], taken: Sequence[Intent] = ()) -> tuple[Intent, ...]:
        """Return the intents that pass together; where they conflict, earlier ones win.

        The search halves the list, so a few bad intents cost few verifications. Intents that are
        ``taken`` already are kept and are not part of the result.
        """
        return self._extend(tuple(taken), tuple(intents))[len(taken) :]

    def _extend(self, taken: tuple[Intent, ...], more: tuple[Intent, ...]) -> tuple[Intent, ...]:
        if not more or not self.objections((*taken, *more)):
            return (*taken, *more)
        if len(more) == 1:
            return taken
        # If all together are refused, each half is tried on top of what was accepted.
        half = len(more) // 2
        return self._extend(self._extend(taken, more[:half]), more[half:])
