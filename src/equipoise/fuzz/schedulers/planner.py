"""Our own exact planner, asked as any other scheduler."""

from __future__ import annotations

from collections import Counter
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
        if _is_crowded(trial):
            raise Unsupported("more is under way at once than the limits of the cluster allow it")
        claim = RuleClaim(_RULE, replace(trial.demand, title="trial"))
        problem = Problem(cluster=trial.initial.inventory(), network=trial.network)
        task = Task(problem, trial.initial, (claim,))
        try:
            return accepts(task, trial.plan)
        except NeverMade as error:
            raise Unsupported(str(error)) from error


def _is_crowded(trial: Trial) -> bool:
    """Whether more is under way than whoever makes plans may have; machines could do it."""
    limits = trial.initial.settings.limits
    if len(trial.steps) <= min(limits.actions_per_host, limits.actions_total):
        return False
    for step in trial.steps:
        going = [one for one in trial.steps if one.start_ms <= step.start_ms < one.end_ms]
        by_host = Counter(host for one in going for host in set(one.footprint.hosts))
        most = max(by_host.values(), default=0)
        if len(going) > limits.actions_total or most > limits.actions_per_host:
            return True
    return False
