"""A trial: what a scheduler is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from equipoise.model.plan import Plan, Step, Violation
from equipoise.model.problem.network import Network
from equipoise.model.quantity import PlanId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.network import NetworkJudge, Ways
from equipoise.plan.verify import judged
from equipoise.spec.case import Case, Fault, holds_at_rest, judge_case, keeps_case
from equipoise.spec.demand import Demand


@dataclass(frozen=True)
class Trial:
    """A cluster, a plan for it, and a constraint with its arguments."""

    demand: Demand
    initial: Snapshot
    steps: tuple[Step, ...]
    network: Network | None = None
    """What its migrations go through, if that is asked about."""

    @cached_property
    def plan(self) -> Plan:
        """Its steps, as a plan."""
        return Plan(id=PlanId("trial"), base_version=self.initial.version, steps=self.steps)

    @cached_property
    def objections(self) -> tuple[Violation, ...]:
        """What machines have against the plan, whatever the constraint."""
        judges = () if self.network is None else (NetworkJudge(Ways(self.network)),)
        return judged(self.initial, self.plan, judges)

    @cached_property
    def fault(self) -> Fault | None:
        """Where the plan breaks the constraint, by the specification; nothing if it keeps it."""
        return judge_case(self.demand, Case(self.initial, self.steps))

    @cached_property
    def is_broken_at_first(self) -> bool:
        """Whether the constraint does not hold before anything has happened."""
        return not holds_at_rest(self.demand, self.initial)

    @cached_property
    def is_right(self) -> bool:
        """Whether machines could carry the plan out, and it keeps the constraint."""
        return not self.objections and keeps_case(self.demand, Case(self.initial, self.steps))

    def foretell(self, *, keeps: bool, broken_at_first: bool, careful: bool) -> None:
        """Note what is known already, because it was judged with many others.

        ``careful`` says that the plan was made such that machines can carry it out.
        """
        known = vars(self)
        known["is_broken_at_first"] = broken_at_first
        if careful:
            known["objections"] = ()
            known["is_right"] = keeps
