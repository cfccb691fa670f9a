"""The commands about the specification language, with their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from equipoise.cli.house import House

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]

spec_app = House(help="The specification language.", no_args_is_help=True)


@spec_app.command("check")
def spec_check(
    file: Annotated[Path, typer.Argument(help="A file of constraints, ending in .spec.")],
    json: Json = False,
) -> None:
    """Check a specification file: its form and its types."""
    from equipoise.cli import spec as command

    raise typer.Exit(command.run_check(file, as_json=json))


@spec_app.command("list")
def spec_list(json: Json = False) -> None:
    """List the constraints of the library."""
    from equipoise.cli import spec as command

    raise typer.Exit(command.run_list(as_json=json))


@spec_app.command("show")
def spec_show(
    name: Annotated[str, typer.Argument(help="A constraint of the library.")], json: Json = False
) -> None:
    """Show a constraint of the library as it is written."""
    from equipoise.cli import spec as command

    raise typer.Exit(command.run_show(name, as_json=json))


@spec_app.command("judge")
def spec_judge(
    name: Annotated[str, typer.Argument(help="A constraint.")],
    case: Annotated[Path, typer.Option(help="The case: a cluster, a plan and arguments.")],
    spec: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="A file that declares the constraint, if the library does not."),
    ] = None,
    json: Json = False,
) -> None:
    """Judge a case by a constraint, and say where and why it is broken."""
    from equipoise.cli import spec as command

    raise typer.Exit(command.run_judge(name, case, spec, as_json=json))


@spec_app.command("functions")
def spec_functions(json: Json = False) -> None:
    """List the functions that a formula may call."""
    from equipoise.cli import spec as command

    raise typer.Exit(command.run_functions(as_json=json))
