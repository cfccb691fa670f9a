"""The arguments of ``equipoise upgrade``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from equipoise.cli.typer_app import (
    EquipoiseTyper,
    Json,
    Names,
    OptionalFloat,
    OptionalPath,
    OptionalSeed,
    OptionalText,
)

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Predict the campaign on the simulator only.")
]
EngineName = Annotated[
    str,
    typer.Option("--engine", help="The engine that executes actions: sim, ansible or a plugin."),
]
Commands = Annotated[
    Names,
    typer.Option(
        "--command",
        help="undo:SET, cancel:SET, pause, resume, approve:SET, priority:SET=N, "
        "repaired:RESOURCE; repeatable.",
    ),
]
Requests = Annotated[
    Optional[list[Path]],  # noqa: UP045  (Typer evaluates the annotation)
    typer.Option("--request", help="A file with a new request to the campaign; repeatable."),
]
WaitForCommands = Annotated[
    bool, typer.Option("--wait", help="Wait for commands when the campaign is paused.")
]
Pace = Annotated[
    OptionalFloat,
    typer.Option("--pace", min=0.001, help="Virtual seconds per real second."),
]
GraphFile = Annotated[
    OptionalPath,
    typer.Option("--graph", help="Write the resource graph: FILE.svg, FILE.dot or FILE.json."),
]
Iteration = Annotated[int, typer.Option("--iteration", min=1, help="The iteration of the graph.")]
GroupsOnly = Annotated[
    bool, typer.Option("--groups", help="Write the control graph: groups without their resources.")
]
ReportFile = Annotated[
    OptionalPath,
    typer.Option("--report", help="Write a report page to this file."),
]
Observe = Annotated[
    OptionalText,
    typer.Option(
        "--observe", help="A command that prints the present inventory, every 30 s of a real run."
    ),
]
Logs = Annotated[
    OptionalPath, typer.Option("--logs", help="For ansible: write a log per host to this folder.")
]
Why = Annotated[
    bool, typer.Option("--why", help="Add rules, groups and the names of the graphs to reasons.")
]
CompareRolling = Annotated[
    bool,
    typer.Option("--compare", help="Compare with rolling upgrades, 1 to 4 of a kind at a time."),
]


def add_to(app: EquipoiseTyper) -> None:
    """Add the command."""
    app.command()(upgrade)


def upgrade(  # noqa: PLR0913, PLR0917  (a parameter is an option of the command)
    scenario: Annotated[str, typer.Argument(help="A file, or the name of a built-in campaign.")],
    paper: Annotated[
        bool, typer.Option("--paper", help="Follow the thesis literally where it is unclear.")
    ] = False,
    dry_run: DryRun = False,
    engine: EngineName = "sim",
    access: Annotated[
        OptionalPath,
        typer.Option("--access", help="For ansible: a file with addresses and credentials."),
    ] = None,
    journal: Annotated[
        OptionalText,
        typer.Option("--journal", help="Write the journal here; continue it if it exists."),
    ] = None,
    observe: Observe = None,
    logs: Logs = None,
    command: Commands = None,
    request: Requests = None,
    wait: WaitForCommands = False,
    pace: Pace = None,
    seed: OptionalSeed = None,
    graph: GraphFile = None,
    iteration: Iteration = 1,
    groups: GroupsOnly = False,
    report: ReportFile = None,
    compare: CompareRolling = False,
    why: Why = False,
    json: Json = False,
) -> None:
    """Upgrade resources of any kind while the SLAs hold.

    With the journal of a campaign that another process runs, that process receives the commands
    and requests. Exit code 1 if an SLA is violated, a set or a command is refused, or the
    campaign cannot continue.
    """
    from equipoise.cli.upgrade import run as work
    from equipoise.cli.upgrade.outputs import UpgradeOutputs

    extra_outputs = UpgradeOutputs(
        graph=graph, iteration=iteration, groups_only=groups, report=report, compare=compare
    )
    options = work.UpgradeOptions(
        paper=paper,
        dry_run=dry_run,
        engine=engine,
        access=access,
        journal_url=journal,
        commands=tuple(command or ()),
        requests=tuple(request or ()),
        wait=wait,
        pace=pace,
        seed=seed,
        why=why,
        observe=observe,
        logs=logs,
    )
    raise typer.Exit(work.run(scenario, options, extra_outputs, as_json=json))
