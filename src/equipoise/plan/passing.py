"""Of many wishes, those that the gate lets pass together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.model.plan import Intent, Violation
from equipoise.model.quantity import PlanId, RuleId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.order import order
from equipoise.plan.verify import Refusal, verify


@dataclass(frozen=True, slots=True)
class Passing:
    """Asks the gate about wishes, on top of what is wished anyway."""

    snapshot: Snapshot
    mends: tuple[RuleId, ...] = ()
    """The continuous rules that are broken now and hold once all that is wished is done."""

    def objections(self, intents: Sequence[Intent]) -> tuple[Violation, ...]:
        """What the gate has against all of them together."""
        plan = order(self.snapshot, intents, PlanId("wish"), self.mends)
        verdict = plan if isinstance(plan, Refusal) else verify(self.snapshot, plan)
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
