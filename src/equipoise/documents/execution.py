"""The JSON document of ``execute``: what became of each step of a plan, and every event."""

from __future__ import annotations

from msgspec import field

from equipoise.balance.run_pass import measure_imbalance
from equipoise.documents.advice.rows import BeforeAfter, FaultRow
from equipoise.documents.cluster import EventRow, event_rows
from equipoise.documents.json_document import Document
from equipoise.documents.plan import ViolationRow, violation_rows
from equipoise.model.action import Boot, Migrate, Resume, kind_of
from equipoise.model.action_durations import Estimates
from equipoise.plan.existing_faults import existing_faults
from equipoise.sim.execution import ExecutedStep, PlanExecution


class ExecutedRow(Document):
    """One action of a plan, and what became of it."""

    step: str
    action: str
    vm: str | None
    source: str | None = field(name="from")
    target: str | None = field(name="to")
    reason: str
    outcome: str
    """``finished``, ``failed``, ``skipped`` or ``waiting``: the gate refused the plan."""
    started_s: float | None
    ended_s: float | None
    attempts: int
    code: str
    detail: str
    """Why the step did not finish."""


class ExecuteDocument(Document):
    """The JSON document of ``equipoise execute``."""

    plan: str
    accepted: bool
    outcome: str
    """``refused``, or how the plan ended: ``done``, ``partial`` or ``cancelled``."""
    recommendations: tuple[ExecutedRow, ...]
    faults: tuple[FaultRow, ...]
    """Why the gate refuses the plan, or the steps that did not finish."""
    existing_faults: tuple[ViolationRow, ...]
    """What was wrong before the plan."""
    imbalance: BeforeAfter
    events: tuple[EventRow, ...]
    wall_s: float


def execute_document(execution: PlanExecution, *, wall_s: float) -> ExecuteDocument:
    """Return what became of a plan."""
    estimates = Estimates()
    before, after = (
        measure_imbalance(state, estimates) for state in (execution.before, execution.after)
    )
    return ExecuteDocument(
        plan=execution.plan.id,
        accepted=not execution.violations,
        outcome="refused" if execution.ended is None else execution.ended.outcome,
        recommendations=tuple(map(_executed_row, execution.steps)),
        faults=tuple(_faults(execution)),
        existing_faults=violation_rows(existing_faults(execution.before)),
        imbalance=BeforeAfter(
            before=round(before, 6), after=round(after, 6), gain=round(before - after, 6)
        ),
        events=event_rows(execution.journal),
        wall_s=round(wall_s, 4),
    )


def _faults(execution: PlanExecution) -> list[FaultRow]:
    faults = [
        FaultRow(
            code=violation.code,
            subject=violation.step or violation.constraint,
            detail=f"{violation.constraint}: {violation.detail}",
        )
        for violation in execution.violations
    ]
    if not execution.violations:
        faults += [
            FaultRow(code=row.code, subject=row.step.id, detail=row.reason)
            for row in execution.steps
            if row.outcome != "finished"
        ]
    return faults


def _executed_row(row: ExecutedStep) -> ExecutedRow:
    touched, action = row.step.footprint, row.step.action
    source, target = touched.switched, None
    if isinstance(action, Migrate | Resume):
        source, target = action.source, action.target
    elif isinstance(action, Boot):
        target = action.target
    return ExecutedRow(
        step=row.step.id,
        action=kind_of(action),
        vm=touched.vm,
        source=source,
        target=target,
        reason=row.step.reason,
        outcome=row.outcome,
        started_s=None if row.started_ms is None else row.started_ms / 1000,
        ended_s=None if row.ended_ms is None else row.ended_ms / 1000,
        attempts=row.attempts,
        code=row.code,
        detail=row.reason,
    )
