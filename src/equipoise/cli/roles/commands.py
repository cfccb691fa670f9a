"""The arguments of ``equipoise roles``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli.typer_app import EquipoiseTyper, Json, Names, NewJournal, OptionalSeed

roles_app = EquipoiseTyper(
    help="Check, plan and run role layouts.",
    no_args_is_help=True,
)

File = Annotated[
    Path, typer.Argument(help="A scenario or a cluster with a layout, in YAML or JSON.")
]


def add_to(app: EquipoiseTyper) -> None:
    """Add the commands of this group."""
    app.add_typer(roles_app, name="roles")


@roles_app.command("check")
def roles_check(file: File, json: Json = False) -> None:
    """List the defects of a layout, each with its line and a cure.

    Exit code 1 if the layout has a defect.
    """
    from equipoise.cli.roles import check as command

    raise typer.Exit(command.run(file, as_json=json))


@roles_app.command("plan")
def roles_plan(
    file: File,
    fail: Annotated[
        Names, typer.Option("--fail", help="Fail this host or VM once all roles run; repeatable.")
    ] = None,
    lock: Annotated[
        Names, typer.Option("--lock", help="Lock this host or VM once all roles run; repeatable.")
    ] = None,
    leave: Annotated[
        Names, typer.Option("--leave", help="Test whether this host or VM may leave; repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """List the role starts and stops that would follow, with reasons; execute none.

    Exit code 1 if a role would have no holder, or a host or VM of --leave may not leave.
    """
    from equipoise.cli.roles import plan as command

    code = command.run(file, fail=fail or (), lock=lock or (), leave=leave or (), as_json=json)
    raise typer.Exit(code)


@roles_app.command("run")
def roles_run(
    file: File, seed: OptionalSeed = None, journal: NewJournal = None, json: Json = False
) -> None:
    """Run the scenario of a layout in virtual time; print its history with reasons."""
    from equipoise.cli.roles import run as command

    raise typer.Exit(command.run(file, seed=seed, journal_url=journal, as_json=json))
