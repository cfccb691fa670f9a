"""The commands about roles, with their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from equipoise.cli.house import House
from equipoise.cli.spec_commands import Json

roles_app = House(help="Roles: who carries what, and what follows.", no_args_is_help=True)

File = Annotated[
    Path, typer.Argument(help="A scenario or a cluster with a layout, in YAML or JSON.")
]
Names = Optional[list[str]]  # noqa: UP045  (typer reads the annotation at run time)


@roles_app.command("check")
def roles_check(file: File, json: Json = False) -> None:
    """Say what is wrong with a layout, each with line and cure.

    Exit code 1 if something is.
    """
    from equipoise.cli.roles import check as command

    raise typer.Exit(command.run(file, as_json=json))


@roles_app.command("plan")
def roles_plan(
    file: File,
    fail: Annotated[
        Names, typer.Option("--fail", help="Once all runs, let this host or VM die; repeatable.")
    ] = None,
    lock: Annotated[
        Names, typer.Option("--lock", help="Once all runs, lock this host or VM; repeatable.")
    ] = None,
    leave: Annotated[
        Names, typer.Option("--leave", help="Ask whether this host or VM may leave; repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """Say what would be started and stopped now, and why. Nothing is done.

    Exit code 1 if a role would have nobody, or who is asked about may not leave.
    """
    from equipoise.cli.roles import plan as command

    wishes = command.Wishes(
        fail=tuple(fail or ()), lock=tuple(lock or ()), leave=tuple(leave or ())
    )
    raise typer.Exit(command.run(file, wishes, as_json=json))


@roles_app.command("run")
def roles_run(
    file: File,
    seed: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--seed", min=0, max=2**63 - 1, help="Other chance than the scenario's."),
    ] = None,
    journal: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--journal", help="Keep the journal in this file or database."),
    ] = None,
    json: Json = False,
) -> None:
    """Run the story of a layout, and tell it with reasons."""
    from equipoise.cli.roles import run as command

    raise typer.Exit(command.run(file, seed=seed, journal_url=journal, as_json=json))
