"""The arguments of ``recommend``, ``place`` and ``whatif``."""

from __future__ import annotations

from typing import Annotated

import typer

from equipoise.cli.typer_app import (
    EquipoiseTyper,
    Inventory,
    Json,
    Names,
    OptionalFloat,
    OptionalInt,
    OptionalPath,
    OptionalText,
    Seed,
    Why,
)

# Options of ``recommend``.
History = Annotated[
    OptionalPath,
    typer.Option(
        "--history", help="Past demand: CSV with the columns time, vm, cpu_mhz, memory_mib."
    ),
]
PastJournal = Annotated[
    OptionalText,
    typer.Option("--journal", help="Past events: the journal of a run that ends now."),
]
LinkSpeed = Annotated[
    OptionalFloat,
    typer.Option(
        "--link-mbps", min=0.01, metavar="N", help="Speed of the migration links, in Mbit/s."
    ),
]
ChangedEstimates = Annotated[
    Names,
    typer.Option(
        "--estimate",
        help="Change an expected duration, such as power_on_ms=240000; repeatable.",
        metavar="KEY=VALUE",
    ),
]
Top = Annotated[
    OptionalInt,
    typer.Option("--top", min=1, help="Only the most useful actions, at most so many."),
]
PlanFile = Annotated[
    OptionalPath,
    typer.Option("-o", "--output", help="Write the plan to this file: .yaml, .json, .gz."),
]
ScriptFormat = Annotated[
    OptionalText,
    typer.Option(
        "--format", help="Print a shell script instead: virsh, qm or openstack.", metavar="NAME"
    ),
]


def add_to(app: EquipoiseTyper) -> None:
    """Add the commands of this group."""
    for command in (recommend, place, whatif):
        app.command()(command)


def recommend(  # noqa: PLR0913, PLR0917  (a parameter is an option of the command)
    inventory: Inventory,
    why: Why = None,
    with_: Annotated[
        Names, typer.Option("--with", help="Also run this decider: power.", metavar="DECIDER")
    ] = None,
    history: History = None,
    journal: PastJournal = None,
    link_mbps: LinkSpeed = None,
    estimate: ChangedEstimates = None,
    top: Top = None,
    output: PlanFile = None,
    format_: ScriptFormat = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Recommend actions with reasons; execute none.

    Exit code 1 if a fault remains that no move repairs.
    """
    from equipoise.cli.advice import recommend as command

    options = command.RecommendOptions(
        why=tuple(why or ()),
        deciders=tuple(with_ or ()),
        history=history,
        journal=journal,
        link_mbps=link_mbps,
        estimates=tuple(estimate or ()),
        top=top,
        output=output,
        platform=format_,
        seed=seed,
    )
    raise typer.Exit(command.run(inventory, options, as_json=json))


def place(
    inventory: Inventory,
    vms: Annotated[
        OptionalPath, typer.Option("--vms", help="A file with the VMs to start.")
    ] = None,
    vm: Annotated[
        Names,
        typer.Option(
            "--vm",
            help="A VM of the inventory to start, to resume or to move; repeatable.",
            metavar="VM",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Choose hosts for VMs that start, resume or move in.

    Exit code 1 if a VM has no host.
    """
    from equipoise.cli.advice import whatif as command

    raise typer.Exit(command.run_place(inventory, vms, vm or (), as_json=json))


def whatif(
    inventory: Inventory,
    remove: Annotated[
        Names, typer.Option("--remove", help="Empty this host and remove it; repeatable.")
    ] = None,
    add: Annotated[
        OptionalPath,
        typer.Option("--add", help="A file with hosts, VMs and rules to add, or new demand."),
    ] = None,
    fail: Annotated[Names, typer.Option("--fail", help="Fail this host; repeatable.")] = None,
    why: Why = None,
    json: Json = False,
) -> None:
    """Recommend actions for a cluster with changes.

    Changes are hosts removed, failed or added, new VMs, other demand and rules.

    Exit code 1 if a VM has no host, or a fault remains.
    """
    from equipoise.cli.advice import whatif as command

    code = command.run(
        inventory, remove=remove or (), add=add, fail=fail or (), why=why or (), as_json=json
    )
    raise typer.Exit(code)
