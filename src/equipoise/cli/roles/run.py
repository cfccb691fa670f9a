"""``equipoise roles run``: runs a layout in virtual time and prints its history with reasons."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Final

from equipoise.cli.file_io import open_new_journal
from equipoise.cli.output import console, format_time_ms, make_table, print_document, printable
from equipoise.cli.roles.check import find_defects, read_layout_file
from equipoise.documents.role_run import (
    RoleHistoryEntry,
    role_availability,
    role_history,
    roles_run_document,
)
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.diagnostics import LineLookup
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import format_count
from equipoise.model.scenario.scenario import Scenario
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import Journal

DEFAULT_DURATION_S: Final = 600
"""Length of the run of a cluster without a scenario."""
LINES_MAX: Final = 400
"""Longest history that is printed."""


def run(file: Path, *, seed: int | None, journal_url: str | None, as_json: bool) -> int:
    """Run the scenario and print the history."""
    scenario = load_valid_scenario(file)
    if seed is not None:
        scenario = scenario.but(seed=seed)
    with open_new_journal(journal_url) as journal:
        began = perf_counter()
        runner = ScenarioRunner(scenario, journal, folder=file.parent)
        runner.run(1000 * scenario.duration_s)
        wall_s = perf_counter() - began
        if as_json:
            document = roles_run_document(
                scenario, runner.snapshot(), journal, ended_ms=runner.now_ms, wall_s=wall_s
            )
            print_document(document)
        else:
            _show(scenario, journal, runner.now_ms)
    return 0


def load_valid_scenario(file: Path) -> Scenario:
    """Read a scenario without defects; a cluster becomes a scenario without events."""
    source, line_of = read_layout_file(file)
    reject_defects(file, source, line_of)
    if isinstance(source, Inventory):
        source = Scenario(name=source.name, duration_s=DEFAULT_DURATION_S, cluster=source)
    deciders = tuple(dict.fromkeys((*source.deciders, "roles")))
    return source.but(deciders=deciders)


def reject_defects(file: Path, source: Scenario | Inventory, line_of: LineLookup) -> None:
    """Reject a layout with defects that are more than warnings."""
    defects = [
        located for located in find_defects(source, line_of) if not located.defect.kind.is_warning
    ]
    if defects:
        raise InvalidInput(
            str(file),
            [
                InputProblem(
                    key=located.key,
                    what=located.what,
                    cure=located.defect.cure,
                    line=located.line,
                    code=located.defect.kind.value,
                )
                for located in defects
            ],
        )


def _show(scenario: Scenario, journal: Journal, ended_ms: int) -> None:
    out = console()
    out.print(f"[bold]{printable(scenario.name)}[/bold]: {printable(scenario.about)}")
    print_history(list(role_history(journal.events())))
    rows = make_table(
        "group", "role", "starts", "stops", "failures", "without a holder", "most at once",
        right=("starts", "stops", "failures", "without a holder", "most at once"),
    )  # fmt: skip
    for role in role_availability(journal.events(), ended_ms):
        rows.add_row(
            printable(role.group_role.group),
            printable(role.group_role.role),
            str(role.starts),
            str(role.stops),
            str(role.failures),
            f"{role.without_holder_s:,.1f} s",
            str(role.most),
        )
    out.print(rows)
    events = f"{format_count(len(journal), 'event')}, sha256 {journal.sha256()[:16]}"
    out.print(f"{format_time_ms(1000 * scenario.duration_s)} simulated, {events}")


def print_history(history: list[RoleHistoryEntry], since_ms: int = 0) -> None:
    """Print a history, each reason below its action."""
    out = console()
    for entry in history[:LINES_MAX]:
        time = format_time_ms(entry.at_ms - since_ms)
        out.print(f"{time:>14}  {printable(entry.what)}", soft_wrap=True)
        if entry.reason:
            out.print(f"{'':>16}[dim]because {printable(entry.reason)}[/dim]", soft_wrap=True)
    if len(history) > LINES_MAX:
        out.print(f"{'':>16}... and {len(history) - LINES_MAX:,} more; --json lists all")
