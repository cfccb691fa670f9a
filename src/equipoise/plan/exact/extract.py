"""From the decisions of the solver to a plan."""

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
from equipoise.model.problem.durations import SWITCHING
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import PlanId, StepId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.dependencies import prerequisites
from equipoise.plan.exact.formula.values import options_of
from equipoise.plan.exact.solver.decide import Decisions
from equipoise.plan.exact.timeline.course import Leg
from equipoise.plan.exact.timeline.timeline import Timeline

PLAN = PlanId("solved")


def plan_of(timeline: Timeline, decided: Decisions) -> Plan:
    """The plan that was decided on; its steps in order of time."""
    unit = timeline.unit_ms
    timed = [
        (decided.number(leg.start) * unit, decided.number(leg.end) * unit, _action(leg, decided))
        for leg in timeline.legs()
        if decided.holds(leg.there)
    ]
    return numbered(timeline.snapshot, timed)


def numbered(snapshot: Snapshot, timed: Iterable[tuple[int, int, Action]]) -> Plan:
    """A plan of timed actions, with what each has to wait for."""
    steps = [
        Step(id=StepId(f"s{place}"), action=action, start_ms=start, end_ms=end)
        for place, (start, end, action) in enumerate(sorted(timed, key=lambda one: one[:2]), 1)
    ]
    waits = prerequisites(steps, snapshot.placement)
    return Plan(
        id=PLAN,
        base_version=snapshot.version,
        steps=tuple(step.but(after=waits[step.id]) for step in steps),
    )


def chosen(value: Any, decided: Decisions) -> Any:
    """Which of several values was decided on."""
    return next(one for one, truth in options_of(value).items() if decided.holds(truth))


def _action(leg: Leg, decided: Decisions) -> Action:
    source, target = chosen(leg.source, decided), chosen(leg.target, decided)
    if leg.switched is not None:
        return SWITCHING[leg.kind](host=leg.switched)
    assert leg.vm is not None
    match leg.kind:
        case ActionKind.MIGRATE:
            return Migrate(vm=leg.vm, source=source, target=target)
        case ActionKind.REINSTANTIATE:
            return Reinstantiate(vm=leg.vm, source=source, target=target)
        case ActionKind.RESUME:
            return Resume(vm=leg.vm, source=source, target=target)
        case ActionKind.BOOT:
            return Boot(vm=leg.vm, target=target)
        case ActionKind.SHUTDOWN:
            return Shutdown(vm=leg.vm, source=source)
        case ActionKind.SUSPEND:
            return Suspend(vm=leg.vm, source=source)
        case ActionKind.ALLOCATE:
            assert leg.resource is not None
            return Allocate(vm=leg.vm, resource=leg.resource, amount=leg.amount)
        case ActionKind.FORGE:
            return Forge(vm=leg.vm)
        case _:
            return Kill(vm=leg.vm)
