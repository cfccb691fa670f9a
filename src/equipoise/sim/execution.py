"""Execution of one plan on a simulated world: the gate, then the executor; all is in a journal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from equipoise.control import ControlLoop
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ActionSkipped,
    ActionStarted,
    PlanEnded,
    PlanOutcome,
)
from equipoise.model.plan import Plan, Step, Violation
from equipoise.model.quantity import StepId
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import Refusal
from equipoise.sim.world.simulated_world import SimulatedWorld
from equipoise.store import Journal


@dataclass(slots=True)
class ExecutedStep:
    """What became of a step of a plan."""

    step: Step
    outcome: str = "waiting"
    """``finished``, ``failed``, ``skipped`` or ``waiting``."""
    started_ms: int | None = None
    ended_ms: int | None = None
    attempts: int = 0
    code: str = ""
    """Why the step failed or was skipped, a key of ``errors.CODES``."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanExecution:
    """A plan that was executed, or that the gate refused."""

    plan: Plan
    before: Snapshot
    after: Snapshot
    violations: tuple[Violation, ...]
    """Why the gate refused the plan; then nothing was executed."""
    ended: PlanEnded | None
    steps: tuple[ExecutedStep, ...]
    journal: Journal

    @property
    def done(self) -> bool:
        """Whether every step has finished."""
        return self.ended is not None and self.ended.outcome is PlanOutcome.DONE


def execute_plan(
    plan: Plan, world: Scenario, journal: Journal, *, folder: Path | None = None
) -> PlanExecution:
    """Execute a plan on a simulated world, to the end of the plan.

    The deciders of the scenario do not run: what is executed is this plan and nothing else.
    """
    loop = ControlLoop(SimulatedWorld(world.but(plan=None), folder=folder), journal)
    before = loop.snapshot()
    # A plan in a file belongs to the cluster that is named with it, not to a version of a snapshot.
    plan = plan.but(base_version=before.version)
    verdict = loop.execute(plan)
    return PlanExecution(
        plan=plan,
        before=before,
        after=loop.snapshot(),
        violations=verdict.violations if isinstance(verdict, Refusal) else (),
        ended=next((event for event in journal.events() if isinstance(event, PlanEnded)), None),
        steps=_executed_steps(plan, journal),
        journal=journal,
    )


def _executed_steps(plan: Plan, journal: Journal) -> tuple[ExecutedStep, ...]:
    """Return what the journal says of each step, in the order of the plan."""
    steps: dict[StepId, ExecutedStep] = {step.id: ExecutedStep(step) for step in plan.steps}
    for event in journal.events():
        match event:
            case ActionStarted() if event.step.id in steps:
                row = steps[event.step.id]
                row.attempts = event.attempt
                row.started_ms = event.at_ms if row.started_ms is None else row.started_ms
            case ActionFinished() if event.step in steps:
                _end(steps[event.step], "finished", event.at_ms)
            case ActionFailed() | ActionSkipped() if event.step in steps:
                outcome = "failed" if isinstance(event, ActionFailed) else "skipped"
                _end(steps[event.step], outcome, event.at_ms, event.code, event.reason)
            case ActionLost() if event.step in steps:
                reason = "the world gave no answer to its cancellation"
                _end(steps[event.step], "failed", event.at_ms, "action-lost", reason)
            case _:
                pass
    return tuple(steps.values())


def _end(row: ExecutedStep, outcome: str, at_ms: int, code: str = "", reason: str = "") -> None:
    """Record the end of an attempt; the last one counts."""
    row.outcome, row.ended_ms, row.code, row.reason = outcome, at_ms, code, reason
