"""The arguments of ``jobs``; those of ``batsim`` are in ``batsim_arguments``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli.jobs.batsim_arguments import batsim
from equipoise.cli.typer_app import (
    EquipoiseTyper,
    Json,
    NewJournal,
    OptionalFloat,
    OptionalInt,
    OptionalPath,
    OptionalText,
)

OutputLayout = Annotated[
    int, typer.Option("--output-layout", min=4, max=5, help="Result files as in Batsim 4 or 5.")
]
Model = Annotated[str, typer.Option("--model", help="Who computes durations: fluid or simgrid.")]
OutFolder = Annotated[
    OptionalPath,
    typer.Option("--out", help="Write result files, journal and a report to this folder."),
]
Parquet = Annotated[
    bool, typer.Option("--parquet", help="Write jobs and machine states as Parquet, too.")
]
ShutdownAfter = Annotated[
    OptionalFloat,
    typer.Option("--shutdown-after", metavar="S", help="Hosts idle for S seconds sleep."),
]
KeepAwake = Annotated[
    int, typer.Option("--keep-awake", min=0, help="So many idle hosts do not sleep.")
]
HostEvents = Annotated[
    OptionalPath,
    typer.Option("--events", help="External events of Batsim: hosts that leave and return."),
]
SwfRequested = Annotated[
    bool, typer.Option("--swf-requested", help="SWF: the processors requested, not those given.")
]
SwfSkip = Annotated[
    OptionalText,
    typer.Option("--swf-skip", metavar="STATUS,...", help="SWF: leave out failed, cancelled."),
]


def add_to(app: EquipoiseTyper) -> None:
    """Add the commands of this group."""
    app.command()(jobs)
    app.command()(batsim)
    app.command("batsim-schedule")(batsim_schedule)


def jobs(  # noqa: PLR0913, PLR0917  (a parameter is an option of the command)
    workload: Annotated[
        Path, typer.Option("-w", "--workload", help="Jobs: a Batsim workload, SWF, or openb CSV.")
    ],
    platform: Annotated[
        OptionalPath,
        typer.Option("-p", "--platform", help="A SimGrid platform; default: equal hosts."),
    ] = None,
    policy: Annotated[
        str,
        typer.Option("--policy", help="fcfs, sjf, easy or conservative; or several, as easy,fcfs."),
    ] = "easy",
    hosts: Annotated[
        OptionalInt,
        typer.Option("--hosts", min=1, help="Use so many hosts; default: as the workload states."),
    ] = None,
    export: Annotated[
        OptionalText,
        typer.Option("-e", "--export", metavar="PREFIX", help="Write PREFIX_jobs.csv and others."),
    ] = None,
    output_layout: OutputLayout = 4,
    model: Model = "fluid",
    out: OutFolder = None,
    journal: NewJournal = None,
    parquet: Parquet = False,
    shutdown_after: ShutdownAfter = None,
    keep_awake: KeepAwake = 0,
    events: HostEvents = None,
    swf_requested: SwfRequested = False,
    swf_skip: SwfSkip = None,
    json: Json = False,
) -> None:
    """Run batch jobs in virtual time under a policy.

    Several policies are compared on the same jobs.
    """
    from equipoise.cli.jobs import run as command

    options = command.JobsOptions(
        workload=workload,
        platform=platform,
        policies=tuple(name.strip() for name in policy.split(",")),
        hosts=hosts,
        export=export,
        output_layout=output_layout,
        model=model,
        out=out,
        journal_url=journal,
        parquet=parquet,
        shutdown_after_s=shutdown_after,
        keep_awake=keep_awake,
        events=events,
        swf_requested=swf_requested,
        swf_skip=swf_skip,
    )
    raise typer.Exit(command.run(options, as_json=json))


def batsim_schedule(
    policy: Annotated[
        str, typer.Option("--policy", help="fcfs, sjf, easy or conservative.")
    ] = "easy",
    endpoint: Annotated[
        str,
        typer.Option("-s", "--socket-endpoint", metavar="ENDPOINT", help="Where Batsim connects."),
    ] = "tcp://*:28000",
    json: Json = False,
) -> None:
    """Decide for a Batsim with a built-in policy.

    The command binds an address, answers one simulation and ends. It recognises the versions 3, 4
    and 5 of the protocol; version 5 in JSON.
    """
    from equipoise.cli.jobs import schedule as command

    raise typer.Exit(command.run(policy, endpoint, as_json=json))
