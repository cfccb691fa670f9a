"""From a solution of the solver to a plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    Forge,
    Kill,
    Migrate,
    Reinstantiate,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.plan import Plan, Step
from equipoise.model.problem.durations import HOST_ACTIONS
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import PlanId, StepId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.dependencies import prerequisites
from equipoise.plan.exact.formula.values import options_of
from equipoise.plan.exact.solver.run import Solution
from equipoise.plan.exact.timeline.schedules import CandidateAction
from equipoise.plan.exact.timeline.timeline import Timeline

PLAN_ID = PlanId("solved")


def plan_of(timeline: Timeline, solution: Solution) -> Plan:
    """Return the plan of a solution, with its steps in order of time."""
    unit = timeline.unit_ms
    timed = [
        (
            solution.number(candidate.start) * unit,
            solution.number(candidate.end) * unit,
            _action(candidate, solution),
        )
        for candidate in timeline.candidates()
        if solution.holds(candidate.present)
    ]
    return plan_with_steps(timeline.snapshot, timed)


def plan_with_steps(snapshot: Snapshot, timed: Iterable[tuple[int, int, Action]]) -> Plan:
    """Return a plan of timed actions, each with its prerequisites."""
    steps = [
        Step(id=StepId(f"s{number}"), action=action, start_ms=start, end_ms=end)
        for number, (start, end, action) in enumerate(sorted(timed, key=lambda item: item[:2]), 1)
    ]
    waits = prerequisites(steps, snapshot.placement)
    return Plan(
        id=PLAN_ID,
        base_version=snapshot.version,
        steps=tuple(step.but(after=waits[step.id]) for step in steps),
    )


def chosen_value(value: Any, solution: Solution) -> Any:
    """Return the option that the solver chose."""
    options = options_of(value).items()
    return next(option for option, literal in options if solution.holds(literal))


def _action(candidate: CandidateAction, solution: Solution) -> Action:
    source, target = (
        chosen_value(candidate.source, solution),
        chosen_value(candidate.target, solution),
    )
    if candidate.switched is not None:
        return HOST_ACTIONS[candidate.kind](host=candidate.switched)
    assert candidate.vm is not None
    match candidate.kind:
        case ActionKind.MIGRATE:
            return Migrate(vm=candidate.vm, source=source, target=target)
        case ActionKind.REINSTANTIATE:
            return Reinstantiate(vm=candidate.vm, source=source, target=target)
        case ActionKind.RESUME:
            return Resume(vm=candidate.vm, source=source, target=target)
        case ActionKind.BOOT:
            return Boot(vm=candidate.vm, target=target)
        case ActionKind.SHUTDOWN:
            return Shutdown(vm=candidate.vm, source=source)
        case ActionKind.SUSPEND:
            return Suspend(vm=candidate.vm, source=source)
        case ActionKind.ALLOCATE:
            assert candidate.resource is not None
            return Allocate(vm=candidate.vm, resource=candidate.resource, amount=candidate.amount)
        case ActionKind.FORGE:
            return Forge(vm=candidate.vm)
        case _:
            return Kill(vm=candidate.vm)
