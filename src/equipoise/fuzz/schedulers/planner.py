"""Our exact planner as a scheduler under test, and mutants of it.

A mutant plans for a slightly altered constraint. ``spec_mutation`` makes one mutant of each
constraint by each rule. A thorough campaign finds a defect of every mutant that is not equivalent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Final

from equipoise.adapters.targets.scheduler import UnsupportedTrial
from equipoise.adapters.targets.trial import Trial
from equipoise.fuzz.schedulers.spec_mutation import Mutant, well_typed_mutants
from equipoise.model.problem import PlanningProblem
from equipoise.model.quantity import RuleId
from equipoise.model.rule import Satisfy
from equipoise.plan.exact.accept import accepts_plan
from equipoise.plan.exact.task import PlanningTask, RuleCondition
from equipoise.plan.exact.values import UnsupportedFormula
from equipoise.spec.library import library_file, origin_of

_TRIAL_RULE = Satisfy(id=RuleId("trial"), constraint="")


class Planner:
    """The exact planner with an imposed plan."""

    def accepts(self, trial: Trial) -> bool:
        """Whether the planner could have made the plan."""
        if _exceeds_limits(trial):
            raise UnsupportedTrial(
                "the plan exceeds the concurrency limits of the cluster", "unsupported-plan"
            )
        condition = RuleCondition(_TRIAL_RULE, replace(trial.demand, title="trial"))
        problem = PlanningProblem(cluster=trial.initial.inventory(), network=trial.network)
        task = PlanningTask(problem, trial.initial, (condition,))
        try:
            return accepts_plan(task, trial.plan)
        except UnsupportedFormula as error:
            raise UnsupportedTrial(str(error), "unsupported-constraint") from error


def _exceeds_limits(trial: Trial) -> bool:
    """Whether a plan exceeds the concurrency limits, which bind planners but not hosts."""
    limits = trial.initial.settings.limits
    # Fast path: so few steps exceed no limit even if all run at once.
    if len(trial.steps) <= min(limits.actions_per_host, limits.actions_total):
        return False
    # The number of running actions grows only at starts.
    for step in trial.steps:
        running = [other for other in trial.steps if other.start_ms <= step.start_ms < other.end_ms]
        by_host = Counter(host for other in running for host in set(other.footprint.hosts))
        per_host = max(by_host.values(), default=0)
        if len(running) > limits.actions_total or per_host > limits.actions_per_host:
            return True
    return False


@dataclass(frozen=True, slots=True)
class MutantPlanner:
    """The planner with one altered constraint of the library."""

    constraint: str
    mutant: Mutant

    def accepts(self, trial: Trial) -> bool:
        """Whether the planner could have made the plan with the altered constraint."""
        demand = trial.demand
        if demand.library_name == self.constraint:
            demand = replace(demand, specification=self.mutant.specification)
        return Planner().accepts(replace(trial, demand=demand))


@cache
def mutants() -> Mapping[str, MutantPlanner]:
    """All mutants by name, such as ``mutant-Spread-moment``."""
    named = (
        (_mutant_name(mutant), mutant)
        for origin in MUTATED
        for constraint in _mutated_constraints(origin)
        for mutant in _mutants_of(origin, constraint)
    )
    return MappingProxyType(
        {name: mutant for name, mutant in named if name not in EQUIVALENT_MUTANTS}
    )


def find_mutant(name: str) -> MutantPlanner | None:
    """The mutant with a name. Only mutants of its constraint are made: all of them take seconds."""
    return _mutants_by_name(name.removeprefix("mutant-").rpartition("-")[0]).get(name)


def mutants_like(name: str) -> tuple[str, ...]:
    """The names of the mutants of the constraint in a name."""
    requested = name.removeprefix("mutant-")
    return tuple(_mutants_by_name(requested) or _mutants_by_name(requested.rpartition("-")[0]))


def _mutants_by_name(constraint: str) -> Mapping[str, MutantPlanner]:
    origin = origin_of(constraint)
    if origin is None or constraint not in _mutated_constraints(origin):
        return {}
    named = ((_mutant_name(mutant), mutant) for mutant in _mutants_of(origin, constraint))
    return {name: mutant for name, mutant in named if name not in EQUIVALENT_MUTANTS}


def _mutated_constraints(origin: str) -> Collection[str]:
    return (MUTATED[origin] or library_file(origin).constraints) if origin in MUTATED else ()


def _mutant_name(planner: MutantPlanner) -> str:
    return f"mutant-{planner.constraint}-{planner.mutant.rule}"


def _mutants_of(origin: str, constraint: str) -> Iterator[MutantPlanner]:
    """One mutant for each rule: the last one, because deeper changes are harder to find."""
    last = {mutant.rule: mutant for mutant in well_typed_mutants(library_file(origin), constraint)}
    return (MutantPlanner(constraint, mutant) for mutant in last.values())


MUTATED: Final[Mapping[str, tuple[str, ...]]] = {
    "btrplace": (),
    "more": ("MaxPerHost", "Isolated", "MinRunning", "MaxConcurrent", "MaxDisturbed"),
}
"""The altered constraints by file of the library; an empty tuple means all of a file."""
EQUIVALENT_MUTANTS: Final = frozenset(
    f"mutant-{constraint}-kept"
    for constraint in ("MaxOnline", "MostlySpread", "MaxConcurrent", "MaxDisturbed")
)
"""Mutants without a defect: the values they count are distinct, so a list equals the set.

For every other mutant, a trial is known that it judges wrongly.
"""
