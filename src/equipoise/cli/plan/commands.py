"""The arguments of ``check``, ``execute`` and ``solve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli.typer_app import (
    EquipoiseTyper,
    Json,
    NewJournal,
    OptionalFloat,
    OptionalPath,
    Seed,
)


def add_to(app: EquipoiseTyper) -> None:
    """Add the commands of this group."""
    for command in (check, execute, solve):
        app.command()(command)


def check(
    plan: Annotated[Path, typer.Argument(help="The plan, in YAML or JSON.")],
    instance: Annotated[
        Path, typer.Option("--instance", help="The cluster or planning problem of the plan.")
    ],
    json: Json = False,
) -> None:
    """Verify a plan against its cluster, at every moment.

    Exit code 1 if the plan breaks a constraint at any moment.
    """
    from equipoise.cli.plan import check as command

    raise typer.Exit(command.run(plan, instance, as_json=json))


def execute(
    plan: Annotated[Path, typer.Argument(help="The plan, in YAML or JSON.")],
    world: Annotated[
        str,
        typer.Option(
            "--world",
            metavar="FILE",
            help="The simulated world: an inventory, a scenario, or a built-in scenario.",
        ),
    ],
    journal: NewJournal = None,
    json: Json = False,
) -> None:
    """Execute a plan on a simulated world, if it is accepted.

    Exit code 1 if the gate refuses the plan, 3 if a step fails.
    """
    from equipoise.cli.plan import execute as command

    raise typer.Exit(command.run(plan, world, journal_url=journal, as_json=json))


def solve(  # noqa: PLR0913, PLR0917  (a parameter is an option of the command)
    instance: Annotated[
        Path, typer.Argument(help="A planning problem, a cluster or BtrPlace JSON; .gz too.")
    ],
    repair: Annotated[
        bool, typer.Option("--repair", help="Move only misplaced VMs, if that is enough.")
    ] = False,
    optimise: Annotated[
        bool, typer.Option("--optimise", help="Search for the best plan, not only a good one.")
    ] = False,
    plan: Annotated[
        OptionalPath,
        typer.Option("--plan", help="Reach the state to which this plan leads."),
    ] = None,
    time_limit: Annotated[
        OptionalFloat,
        typer.Option("--time-limit", min=0.001, help="Longest time of the search, in seconds."),
    ] = None,
    output: Annotated[
        OptionalPath,
        typer.Option("-o", "--output", help="Write the plan to this file: .yaml, .json, .gz."),
    ] = None,
    btrplace: Annotated[
        bool, typer.Option("--btrplace", help="Write the plan as BtrPlace JSON.")
    ] = False,
    stream: Annotated[
        OptionalPath,
        typer.Option("--stream", help="Append each better plan to this file, one per line."),
    ] = None,
    report: Annotated[
        OptionalPath,
        typer.Option("--report", help="Write a page with the plan over time to this file."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Find a verified plan, or explain why none exists.

    The plan leads from the cluster to the desired state.

    Exit code 1 if no plan exists or none was found.
    """
    from equipoise.cli.plan import solve as command

    options = command.SolveOptions(
        repair=repair,
        optimise=optimise,
        plan=plan,
        time_limit_s=time_limit,
        seed=seed,
        output=output,
        as_btrplace=btrplace,
        stream=stream,
        report=report,
    )
    raise typer.Exit(command.run(instance, options, as_json=json))
