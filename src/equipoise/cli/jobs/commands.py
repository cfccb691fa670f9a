"""The arguments of ``jobs``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli.typer_app import EquipoiseTyper, Json, OptionalInt, OptionalPath, OptionalText


def add_to(app: EquipoiseTyper) -> None:
    """Add the commands of this group."""
    app.command()(jobs)


def jobs(
    workload: Annotated[
        Path, typer.Option("-w", "--workload", help="Jobs: a Batsim workload, or an SWF file.")
    ],
    platform: Annotated[
        OptionalPath,
        typer.Option("-p", "--platform", help="A SimGrid platform; default: equal hosts."),
    ] = None,
    policy: Annotated[
        str, typer.Option("--policy", help="fcfs, sjf, easy or conservative.")
    ] = "easy",
    hosts: Annotated[
        OptionalInt,
        typer.Option("--hosts", min=1, help="Use so many hosts; default: as the workload states."),
    ] = None,
    export: Annotated[
        OptionalText,
        typer.Option("-e", "--export", metavar="PREFIX", help="Write PREFIX_jobs.csv and others."),
    ] = None,
    json: Json = False,
) -> None:
    """Run batch jobs in virtual time under a built-in policy."""
    from equipoise.cli.jobs import run as command

    options = command.JobsOptions(
        workload=workload, platform=platform, policy=policy, hosts=hosts, export=export
    )
    raise typer.Exit(command.run(options, as_json=json))
