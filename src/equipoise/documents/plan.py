"""The JSON document of ``solve``: the plan, its goals, or the conflict that rules a plan out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from equipoise.capacity.overload import demand_per_vm
from equipoise.documents.json_document import Document
from equipoise.model.action import Move, describe
from equipoise.model.plan import Violation
from equipoise.model.problem import ObjectiveMeasure, PlanningProblem
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.exact.objectives import HostLoad, host_loads
from equipoise.plan.exact.result import PlanningResult
from equipoise.plan.exact.task import measures_of

SOFT_RULES: Final = "soft rules"
_IN_MS: Final = frozenset({ObjectiveMeasure.MTTR, ObjectiveMeasure.MAKESPAN})


class GoalRow(Document):
    """A goal, the value of the plan, and the lowest value of any plan."""

    goal: str
    value: float
    bound: float | None

    @property
    def unit(self) -> str:
        """``s`` for a goal that is a sum of times, otherwise empty."""
        return "s" if _is_time(self.goal) else ""


class StepRow(Document):
    """One step of a plan."""

    id: str
    start_ms: int
    end_ms: int
    action: str
    after: tuple[str, ...]


class HostLoadRow(Document):
    """The demand on a host before and after the plan, as parts of its capacity."""

    host: str
    cpu_before: float
    memory_before: float
    cpu_after: float
    memory_after: float


FULLEST_SHOWN: Final = 10
"""So many of the fullest hosts are reported."""


def fullest_hosts(
    result: PlanningResult, problem: PlanningProblem, most: int = FULLEST_SHOWN
) -> tuple[HostLoadRow, ...]:
    """Return the fullest hosts before or after a plan; none if no VM demands anything."""
    if result.plan is None or result.overload is None:
        return ()
    snapshot = Snapshot.of(problem.cluster)
    demands = demand_per_vm(snapshot, list(snapshot.vms.values()))
    loads = host_loads(snapshot, result.plan, demands)
    # The sort is stable: equal hosts stay in the order of the file.
    return tuple(
        HostLoadRow(
            host=load.host,
            cpu_before=_share(load, load.before, 0),
            memory_before=_share(load, load.before, 1),
            cpu_after=_share(load, load.after, 0),
            memory_after=_share(load, load.after, 1),
        )
        for load in sorted(loads, key=lambda load: -load.fullness)[:most]
    )


def _share(load: HostLoad, amounts: Sequence[int], column: int) -> float:
    return round(amounts[column] / max(1, load.capacity[column]), 6)


class SolveDocument(Document):
    """The JSON document of ``equipoise solve``."""

    status: str
    optimal: bool
    objective: float | None
    goals: tuple[GoalRow, ...]
    actions: int
    migrations: int
    makespan_s: float
    verified: bool
    broken: tuple[str, ...]
    """Soft rules that the plan violates."""
    unrepaired: tuple[str, ...]
    """Rules that were broken before the plan and that no plan can repair."""
    explanation: tuple[str, ...]
    conflict: tuple[str, ...]
    """Conditions that cannot be satisfied together."""
    build_s: float
    solve_s: float
    steps: tuple[StepRow, ...]
    fullest: tuple[HostLoadRow, ...]
    """The fullest hosts by demand, before or after the plan; none if no VM demands anything."""
    overload: int
    """The demand above the capacity of hosts after the plan, in thousandths of a host."""
    load_s: float
    wall_s: float


def solve_document(
    result: PlanningResult, problem: PlanningProblem, *, load_s: float, wall_s: float
) -> SolveDocument:
    """Return the result of the exact planner."""
    steps = () if result.plan is None else result.plan.steps
    goals = goal_rows(result, problem)
    conflict = result.conflict
    return SolveDocument(
        status=result.status.value,
        optimal=result.optimal,
        objective=next((goal.value for goal in goals if goal.goal != SOFT_RULES), None),
        goals=goals,
        actions=len(steps),
        migrations=sum(isinstance(step.action, Move) for step in steps),
        makespan_s=max((step.end_ms for step in steps), default=0) / 1000,
        verified=result.plan is not None,
        broken=tuple(condition.rule.id for condition in result.broken),
        unrepaired=result.unrepaired,
        explanation=() if conflict is None else conflict.why,
        conflict=()
        if conflict is None
        else tuple(condition.title for condition in conflict.conditions),
        build_s=round(result.build_s, 4),
        solve_s=round(result.solve_s, 4),
        fullest=fullest_hosts(result, problem),
        overload=result.overload or 0,
        steps=tuple(StepRow.of(step, action=describe(step.action)) for step in steps),
        load_s=round(load_s, 4),
        wall_s=round(wall_s, 4),
    )


def goal_rows(result: PlanningResult, problem: PlanningProblem) -> tuple[GoalRow, ...]:
    """Return the goals in the order of their importance; times are in seconds."""
    names = [" + ".join(measures_of(goal)) for goal in problem.objective]
    if len(result.goals) > len(names):  # soft rules are the first goal, before the objective
        names.insert(0, SOFT_RULES)
    # A search that ended early has bounds for its first goals only.
    bounds = [*result.bounds, *[None] * len(names)]
    return tuple(
        GoalRow(
            goal=name,
            value=_scaled(name, value),
            bound=None if bound is None else _scaled(name, bound),
        )
        for name, value, bound in zip(names, result.goals, bounds, strict=False)
    )


def _scaled(name: str, value: int) -> float:
    """Return seconds for a goal that is a sum of times in milliseconds."""
    return value / 1000 if _is_time(name) else value


def _is_time(name: str) -> bool:
    return all(measure in _IN_MS for measure in name.split(" + "))


class ViolationRow(Document):
    """One constraint that a plan breaks."""

    constraint: str = ""
    at: int | None = None
    """Milliseconds since the start of the plan."""
    step: str | None = None
    detail: str = ""
    code: str = ""
    """A key of ``equipoise.errors.CODES``."""


class CheckDocument(Document):
    """The JSON document of ``equipoise check``."""

    accepted: bool
    violations: tuple[ViolationRow, ...]
    existing_faults: tuple[ViolationRow, ...]
    """What was wrong before the plan; it is not charged to the plan."""


def violation_rows(violations: Iterable[Violation]) -> tuple[ViolationRow, ...]:
    """Return one row per violation."""
    return tuple(ViolationRow.of(violation, at=violation.at_ms) for violation in violations)


def check_document(
    violations: tuple[Violation, ...], faults: tuple[Violation, ...] = ()
) -> CheckDocument:
    """Return the verdict of the gate about a plan, and the faults from before the plan."""
    return CheckDocument(
        accepted=not violations,
        violations=violation_rows(violations),
        existing_faults=violation_rows(faults),
    )
