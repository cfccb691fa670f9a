"""The result of planning: a plan, or a minimal set of conditions that conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Final, NamedTuple

from equipoise.model.plan import Plan
from equipoise.plan.exact.task import HostCondition, PlanCondition, RuleCondition, VmCondition
from equipoise.spec.evaluate.explain import format_value


class PlanningStatus(StrEnum):
    """How the search ended."""

    SOLVED = "solved"
    UNSAT = "unsat"
    TIMEOUT = "timeout"


class ConflictReason(NamedTuple):
    """One reason of a conflict: a stable code and a sentence."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class ConditionConflict:
    """Conditions that cannot be satisfied together; without any one of them, the others can."""

    conditions: tuple[PlanCondition, ...]
    why: tuple[str, ...]
    """The reasons as sentences."""
    minimal: bool = True
    """Whether it is proved that none of them can be left out."""
    codes: tuple[str, ...] = ()
    """The codes of the reasons, each once; keys of ``equipoise.errors.CODES``."""

    @classmethod
    def of(
        cls,
        conditions: Iterable[PlanCondition],
        reasons: Sequence[ConflictReason],
        *,
        minimal: bool,
    ) -> ConditionConflict:
        """Return the conflict of some conditions, with its reasons."""
        codes = dict.fromkeys(reason.code for reason in reasons)
        why = tuple(reason.text for reason in reasons)
        return cls(tuple(conditions), why, minimal, tuple(codes))


@dataclass(frozen=True, slots=True)
class PlanningResult:
    """A plan, or the conflict that excludes one."""

    status: PlanningStatus
    plan: Plan | None = None
    optimal: bool = False
    """Whether it is proved that no plan is better."""
    goals: tuple[int, ...] = ()
    """The cost of the plan by goal, the most important first."""
    bounds: tuple[int | None, ...] = ()
    """A lower bound of the cost of any plan, by goal."""
    broken: tuple[RuleCondition, ...] = ()
    """The soft rules that the plan violates."""
    conflict: ConditionConflict | None = None
    build_s: float = 0.0
    solve_s: float = 0.0


EXHAUSTIVE_MAX: Final = 5
"""Largest conflict of which every subset is tried."""
FeasibilityTest = Callable[[Sequence[PlanCondition]], bool | None]
"""Whether some conditions can be satisfied together; ``None`` if the budget ends before."""


def smallest_conflict(
    conditions: Sequence[PlanCondition], possible: FeasibilityTest
) -> tuple[list[PlanCondition], bool]:
    """Return a minimal set of conditions in conflict, and whether its minimality is proved.

    Without a rule more is possible; but without a desired state less may be possible: a VM that no
    condition stops stays. So feasibility is not monotone, and the result of the halving search is
    tried once more, subset by subset.
    """
    search = _ConflictSearch(possible)
    conflict = (
        search.by_halving([], [], list(conditions)) if len(conditions) > 1 else list(conditions)
    )
    if search.may_be_feasible(conflict):
        conflict = list(conditions)
    conflict = search.minimise(conflict)
    return conflict, not search.unsure


class _ConflictSearch:
    def __init__(self, possible: FeasibilityTest) -> None:
        self._possible = possible
        self.unsure = False

    def by_halving(
        self,
        ground: list[PlanCondition],
        added: list[PlanCondition],
        conditions: list[PlanCondition],
    ) -> list[PlanCondition]:
        """Return the conditions that are needed for a conflict on top of the ground.

        This is QuickXplain: a half that is not needed is never divided further.
        """
        # The ground is in conflict without these conditions, so none of them is needed.
        if added and not self.may_be_feasible(ground):
            return []
        if len(conditions) == 1:
            return conditions
        half = len(conditions) // 2
        first, second = conditions[:half], conditions[half:]
        of_second = self.by_halving([*ground, *first], first, second)
        of_first = self.by_halving([*ground, *of_second], of_second, first)
        return of_first + of_second

    def minimise(self, conditions: list[PlanCondition]) -> list[PlanCondition]:
        """Return the smallest subset in conflict; of many conditions, one without a spare one."""
        if len(conditions) <= EXHAUSTIVE_MAX:
            for size in range(len(conditions)):
                for subset in combinations(conditions, size):
                    if not self.may_be_feasible(list(subset)):
                        return list(subset)
            return conditions
        for index in range(len(conditions)):
            rest = [*conditions[:index], *conditions[index + 1 :]]
            if not self.may_be_feasible(rest):
                return self.minimise(rest)
        return conditions

    def may_be_feasible(self, conditions: list[PlanCondition]) -> bool:
        """Whether some conditions can be satisfied together, or it is unknown."""
        if not conditions:
            return True  # without conditions the empty plan is a solution
        feasible = self._possible(conditions)
        self.unsure = self.unsure or feasible is None
        return feasible is not False


def describe_conflict(
    conditions: Sequence[PlanCondition], facts: Sequence[ConflictReason]
) -> tuple[ConflictReason, ...]:
    """Return the reasons of a conflict: host counts, the conditions, and the given facts."""
    return (*_host_counts(conditions), *map(_describe, conditions), *facts)


def _describe(condition: PlanCondition) -> ConflictReason:
    if isinstance(condition, VmCondition | HostCondition):
        return ConflictReason("condition-conflict", condition.title)
    requirement = condition.requirement
    constraint = requirement.specification.constraints[requirement.name]
    arguments = "; ".join(
        f"{name} = {format_value(value)}" for name, value in requirement.arguments.items()
    )
    doc = " ".join(constraint.doc.split()).removesuffix(".")
    when = "at every moment" if requirement.continuous else "at the end"
    rule = f"{condition.rule.id}, {requirement.name}({arguments}), {when}"
    return ConflictReason("condition-conflict", f"{rule}: {doc}" if doc else rule)


def _host_counts(conditions: Sequence[PlanCondition]) -> Iterator[ConflictReason]:
    """Yield the rules that need more hosts than other rules leave."""
    rules = [condition for condition in conditions if isinstance(condition, RuleCondition)]
    apart = [rule for rule in rules if rule.requirement.library_name in _APART]
    within = [rule for rule in rules if rule.requirement.library_name in _WITHIN]
    for condition in apart:
        vms = condition.requirement.arguments["vs"]
        fences = [rule for rule in within if vms & rule.named_vms]
        if not fences or not all(any(vm in fence.named_vms for fence in fences) for vm in vms):
            continue
        allowed = frozenset().union(*(_hosts_left(vm, fences) for vm in vms))
        if len(allowed) < len(vms):
            needs = f"{condition.rule.id} needs {len(vms)} hosts for {format_value(vms)}"
            names = ", ".join(fence.rule.id for fence in fences)
            verb = "leave" if len(fences) > 1 else "leaves"
            text = f"{needs}, {names} {verb} {len(allowed)}: {format_value(allowed)}"
            yield ConflictReason("too-few-hosts", text)


def _hosts_left(vm: str, fences: Sequence[RuleCondition]) -> frozenset[str]:
    sets = [fence.requirement.arguments["ns"] for fence in fences if vm in fence.named_vms]
    return frozenset.intersection(*sets)


_APART = frozenset({"Spread", "KeepApart"})
_WITHIN = frozenset({"Fence", "MustRunOn"})
