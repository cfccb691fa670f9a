"""The arguments of ``equipoise spec``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli.typer_app import EquipoiseTyper, Json, OptionalPath

spec_app = EquipoiseTyper(
    help="Work with constraints of the specification language.",
    no_args_is_help=True,
)


def add_to(app: EquipoiseTyper) -> None:
    """Add the commands of this group."""
    app.add_typer(spec_app, name="spec")


@spec_app.command("check")
def spec_check(
    file: Annotated[Path, typer.Argument(help="A file of constraints, ending in .spec.")],
    json: Json = False,
) -> None:
    """Check the syntax and the types of a specification file."""
    from equipoise.cli.spec import constraints as command

    raise typer.Exit(command.run_check(file, as_json=json))


@spec_app.command("list")
def spec_list(json: Json = False) -> None:
    """List the constraints of the library."""
    from equipoise.cli.spec import constraints as command

    raise typer.Exit(command.run_list(as_json=json))


@spec_app.command("show")
def spec_show(
    name: Annotated[str, typer.Argument(help="A constraint of the library.")], json: Json = False
) -> None:
    """Show the source text of a library constraint."""
    from equipoise.cli.spec import constraints as command

    raise typer.Exit(command.run_show(name, as_json=json))


@spec_app.command("judge")
def spec_judge(
    name: Annotated[str, typer.Argument(help="A constraint.")],
    case: Annotated[Path, typer.Option(help="The case: a cluster, a plan and arguments.")],
    spec: Annotated[
        OptionalPath,
        typer.Option(help="A file that declares the constraint, if the library does not."),
    ] = None,
    json: Json = False,
) -> None:
    """Judge a case by a constraint; print the time and the cause of a violation.

    Exit code 1 if the case violates the constraint.
    """
    from equipoise.cli.spec import constraints as command

    raise typer.Exit(command.run_judge(name, case, spec, as_json=json))


@spec_app.command("functions")
def spec_functions(json: Json = False) -> None:
    """List the functions that a formula can call."""
    from equipoise.cli.spec import constraints as command

    raise typer.Exit(command.run_functions(as_json=json))
