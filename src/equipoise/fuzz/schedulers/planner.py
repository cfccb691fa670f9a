"""Our own exact planner, asked as any other scheduler."""

from __future__ import annotations

from dataclasses import replace

from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.problem import Problem
from equipoise.model.quantity import RuleId
from equipoise.model.rule import Satisfy
from equipoise.plan.exact.formula.values import Unsupported as NeverMade
from equipoise.plan.exact.impose import accepts
from equipoise.plan.exact.task import RuleClaim, Task

_RULE = Satisfy(id=RuleId("trial"), constraint="")


class Planner:
    """The planner, with the plan imposed on it."""

    def accepts(self, trial: Trial) -> bool:
        """Whether it could have made the plan."""
        claim = RuleClaim(_RULE, replace(trial.demand, title="trial"))
        problem = Problem(cluster=trial.initial.inventory(), network=trial.network)
        task = Task(problem, trial.initial, (claim,))
        try:
            return accepts(task, trial.plan)
        except NeverMade as error:
            raise Unsupported(str(error)) from error
