"""The arguments of ``recommend``, ``place`` and ``whatif``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli.typer_app import (
    EquipoiseTyper,
    Inventory,
    Json,
    Names,
    OptionalPath,
    Seed,
    Why,
)


def add_to(app: EquipoiseTyper) -> None:
    """Add the commands of this group."""
    for command in (recommend, place, whatif):
        app.command()(command)


def recommend(
    inventory: Inventory,
    why: Why = None,
    with_: Annotated[
        Names, typer.Option("--with", help="Also run this decider: power.", metavar="DECIDER")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Recommend actions for a cluster, with reasons; execute none.

    Exit code 1 if a fault remains that no move repairs.
    """
    from equipoise.cli.advice import recommend as command

    options = command.RecommendOptions(why=tuple(why or ()), seed=seed, deciders=tuple(with_ or ()))
    raise typer.Exit(command.run(inventory, options, as_json=json))


def place(
    inventory: Inventory,
    vms: Annotated[Path, typer.Option("--vms", help="A file with the VMs to start.")],
    json: Json = False,
) -> None:
    """Choose hosts for new VMs, all in one decision.

    Exit code 1 if a VM has no host.
    """
    from equipoise.cli.advice import place as command

    raise typer.Exit(command.run(inventory, vms, as_json=json))


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

    options = command.WhatIfOptions(
        remove=tuple(remove or ()), add=add, fail=tuple(fail or ()), why=tuple(why or ())
    )
    raise typer.Exit(command.run(inventory, options, as_json=json))
