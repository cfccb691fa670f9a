"""Of many wishes, those that the gate lets pass together."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.model.plan import Intent, Violation
from equipoise.model.quantity import PlanId, RuleId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.ledger import Ledger
from equipoise.plan.order import order
from equipoise.plan.verify import Refusal, verify


class Passing:
    """Asks the gate about wishes.

    ``mends`` are continuous rules that are broken now and hold once all that is wished is done.
    """

    def __init__(self, snapshot: Snapshot, mends: tuple[RuleId, ...] = ()) -> None:
        self._snapshot, self._mends = snapshot, mends
        self._base = Ledger(snapshot)

    def objections(self, intents: Sequence[Intent]) -> tuple[Violation, ...]:
        """What the gate has against all of them together."""
        base = self._base
        plan = order(self._snapshot, intents, PlanId("wish"), self._mends, base)
        verdict = plan if isinstance(plan, Refusal) else verify(self._snapshot, plan, (), base)
        return verdict.violations if isinstance(verdict, Refusal) else ()

    def of(self, intents: Sequence[Intent], taken: Sequence[Intent] = ()) -> tuple[Intent, ...]:
        """All of them or, if need be, as many as it takes; the earlier ones go first.

        Halving finds the few that are in the way with few questions. Those ``taken`` already are
        not asked about again.
        """
        return self._more(tuple(taken), tuple(intents))[len(taken) :]

    def _more(self, taken: tuple[Intent, ...], more: tuple[Intent, ...]) -> tuple[Intent, ...]:
        if not more or not self.objections((*taken, *more)):
            return (*taken, *more)
        if len(more) == 1:
            return taken
        half = len(more) // 2
        return self._more(self._more(taken, more[:half]), more[half:])
