"""``equipoise execute``: executes a plan on a simulated world."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from equipoise.api.loading import load_world, read_plan
from equipoise.cli.file_io import open_new_journal
from equipoise.cli.output import (
    console,
    format_time_ms,
    print_document,
    printable,
    show_existing_faults,
    text_table,
)
from equipoise.cli.plan.check import show_violations
from equipoise.documents.execution import ExecuteDocument, execute_document
from equipoise.model.action import describe
from equipoise.plan.existing_faults import existing_faults
from equipoise.sim.execution import PlanExecution, execute_plan


def run(plan_path: Path, world: str, *, journal_url: str | None, as_json: bool) -> int:
    """Print what became of the plan; 1 if the gate refuses it, 3 if a step fails."""
    scenario, folder = load_world(world)
    plan = read_plan(plan_path)
    with open_new_journal(journal_url) as journal:
        began = perf_counter()
        execution = execute_plan(plan, scenario, journal, folder=folder)
        document = execute_document(execution, wall_s=perf_counter() - began)
    if as_json:
        print_document(document)
    else:
        _show(execution, document)
    if execution.violations:
        return 1
    return 0 if execution.done else 3


def _show(execution: PlanExecution, document: ExecuteDocument) -> None:
    if execution.violations:
        show_violations(execution.violations)
    else:
        _show_steps(execution, document)
    show_existing_faults(existing_faults(execution.before))


def _show_steps(execution: PlanExecution, document: ExecuteDocument) -> None:
    out, imbalance = console(), document.imbalance
    rows = [
        (
            row.step.id,
            describe(row.step.action),
            "" if row.started_ms is None else format_time_ms(row.started_ms),
            "" if row.ended_ms is None else format_time_ms(row.ended_ms),
            row.outcome,
            row.reason,
        )
        for row in execution.steps
    ]
    finished = sum(row.outcome == "finished" for row in execution.steps)
    out.print(
        f"[bold]{printable(execution.before.name)}[/bold]: plan {printable(execution.plan.id)} "
        f"{document.outcome}; {finished} of {len(rows)} steps finished; the imbalance was "
        f"{imbalance.before:.3f} and is {imbalance.after:.3f}"
    )
    columns = ("step", "action", "start", "end", "outcome", "reason")
    if rows:
        out.print(text_table(columns, rows, right=("start", "end")))
