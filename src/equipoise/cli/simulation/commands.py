"""The arguments of ``demo``, ``scenarios``, ``simulate`` and ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli.typer_app import (
    EquipoiseTyper,
    Json,
    Names,
    NewJournal,
    OptionalFloat,
    OptionalPath,
    OptionalSeed,
)


def add_to(app: EquipoiseTyper) -> None:
    """Add the commands of this group."""
    for command in (demo, scenarios, simulate, report):
        app.command()(command)


def demo(
    out: Annotated[Path, typer.Option("--out", help="The folder of the reports.")] = Path(
        "out/demo"
    ),
    json: Json = False,
) -> None:
    """Show the main features in one minute."""
    from equipoise.cli.simulation import demo as command

    raise typer.Exit(command.run(out, as_json=json))


def scenarios(json: Json = False) -> None:
    """List the built-in scenarios."""
    from equipoise.cli.simulation import simulate as command

    raise typer.Exit(command.run_scenarios(as_json=json))


def simulate(  # noqa: PLR0913, PLR0917  (a parameter is an option of the command)
    scenario: Annotated[str, typer.Argument(help="A file, or the name of a built-in scenario.")],
    journal: NewJournal = None,
    with_: Annotated[Names, typer.Option("--with", help="Add this decider; repeatable.")] = None,
    without: Annotated[
        Names, typer.Option("--without", help="Leave this decider out; repeatable.")
    ] = None,
    set_: Annotated[
        Names,
        typer.Option(
            "--set",
            help="Change a value of the scenario, such as cluster.power.threshold=4.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    seed: OptionalSeed = None,
    out: Annotated[
        OptionalPath,
        typer.Option("--out", help="Write journal, time series and a report to this folder."),
    ] = None,
    pace: Annotated[
        OptionalFloat,
        typer.Option(
            "--pace",
            min=0.001,
            metavar="N",
            help="Virtual seconds per real second, such as 60; default: no limit.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run a scenario in virtual time.

    Exit code 1 if the plan of the scenario is refused.
    """
    from equipoise.cli.simulation import simulate as command

    options = command.SimulateOptions(
        seed=seed,
        changes=tuple(set_ or ()),
        with_deciders=tuple(with_ or ()),
        without_deciders=tuple(without or ()),
        pace=pace,
        journal_url=journal,
        out=out,
    )
    raise typer.Exit(command.run(scenario, options, as_json=json))


def report(
    run_a: Annotated[
        Path, typer.Argument(help="A folder written by 'simulate', 'jobs' or 'batsim' with --out.")
    ],
    run_b: Annotated[
        OptionalPath, typer.Argument(help="The folder of a second run; jobs: optional.")
    ] = None,
    out: Annotated[
        OptionalPath,
        typer.Option("--out", help="Write the page to this file."),
    ] = None,
    json: Json = False,
) -> None:
    """Compare two runs; show one run of jobs."""
    from equipoise.cli.simulation import report as command

    raise typer.Exit(command.run(run_a, run_b, out=out, as_json=json))
