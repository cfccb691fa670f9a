"""The list of all commands.

A command group is a folder with a ``commands.py``: arguments, and ``add_to`` that adds them here.
A command imports its work when it is called, so that ``equipoise --help`` starts fast.
To add a command: declare it in the ``commands.py`` of its group and name it in ``add_to``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise import __version__
from equipoise.cli.advice import commands as advice
from equipoise.cli.fuzz import commands as fuzz
from equipoise.cli.jobs import commands as jobs
from equipoise.cli.kube import commands as kube
from equipoise.cli.plan import commands as plan
from equipoise.cli.roles import commands as roles
from equipoise.cli.simulation import commands as simulation
from equipoise.cli.spec import commands as spec
from equipoise.cli.typer_app import (
    EquipoiseTyper,
    Inventory,
    JournalUrl,
    Json,
    Names,
    OptionalInt,
    OptionalText,
)
from equipoise.cli.upgrade import commands as upgrade

app = EquipoiseTyper(
    help="Keeps a virtualised cluster in balance, and verifies every decision.",
    no_args_is_help=True,
    rich_markup_mode=None,  # Rich help takes longer to import than to read
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"equipoise {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    assert not version, "the callback of --version raises Exit"


def show(
    inventory: Inventory,
    vms: Annotated[bool, typer.Option("--vms", help="List the VMs, too.")] = False,
    json: Json = False,
) -> None:
    """Show a cluster: its hosts and their utilisation."""
    from equipoise.cli import show as command

    raise typer.Exit(command.run(inventory, with_vms=vms, as_json=json))


def schema(
    kind: Annotated[
        str,
        typer.Argument(
            help="inventory, scenario, plan, case, amendment, problem, campaign or request.",
            metavar="KIND",
        ),
    ] = "inventory",
    json: Json = False,
) -> None:
    """Print the JSON Schema of a kind of file, for editors."""
    from equipoise.cli import show as command

    raise typer.Exit(command.run_schema(kind, as_json=json))


def journal(
    url: JournalUrl,
    kind: Annotated[
        Names, typer.Option("--kind", help="Only events of this kind; repeatable.")
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Print the raw JSON lines.")] = False,
    json: Json = False,
) -> None:
    """Print the events of a journal."""
    from equipoise.cli import journal as command

    raise typer.Exit(command.run(url, kinds=kind or [], as_lines=lines, as_json=json))


def replay(
    url: JournalUrl,
    until: Annotated[
        OptionalInt, typer.Option("--until", min=1, help="Replay only the first N events.")
    ] = None,
    json: Json = False,
) -> None:
    """Replay a journal; print the cluster or the campaign."""
    from equipoise.cli import journal as command

    raise typer.Exit(command.run_replay(url, until=until, as_json=json))


def wake(
    access: Annotated[
        Path, typer.Argument(help="Addresses and credentials of the hosts, in YAML or JSON.")
    ],
    hosts: Annotated[
        Names, typer.Argument(help="Hosts of the file; default: all.", metavar="HOST")
    ] = None,
    state: Annotated[bool, typer.Option("--state", help="Only read the power state.")] = False,
    sleep: Annotated[bool, typer.Option("--sleep", help="Shut the hosts down instead.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Longest wait per host, in seconds.")
    ] = 600,
    json: Json = False,
) -> None:
    """Wake real hosts, and wait until they are on.

    Exit code 3 if a host does not reach the requested state.
    """
    from equipoise.cli import wake as command

    task = command.power_task(state=state, sleep=sleep)
    options = command.WakeOptions(hosts=tuple(hosts or ()), task=task, timeout_s=timeout)
    raise typer.Exit(command.run(access, options, as_json=json))


def bench(
    name: Annotated[
        OptionalText,
        typer.Argument(
            help="model, gate, spec, fuzz, journal, files, sim, jobs, kube, balance, power, plan, "
            "roles or upgrade; default: all."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run the benchmarks; results are ratios within one run."""
    from equipoise.cli import bench as command

    raise typer.Exit(command.run(name, as_json=json))


# The order of these lines is the order of ``equipoise --help``.
simulation.add_to(app)
jobs.add_to(app)
kube.add_to(app)
app.command()(show)
app.command()(schema)
advice.add_to(app)
plan.add_to(app)
app.command()(journal)
app.command()(replay)
app.command()(wake)
upgrade.add_to(app)
app.command()(bench)
spec.add_to(app)
roles.add_to(app)
fuzz.add_to(app)
