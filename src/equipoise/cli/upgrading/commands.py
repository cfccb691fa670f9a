"""The arguments of ``equipoise upgrade``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from equipoise.cli.spec_commands import Json
from equipoise.cli.upgrading.options import (
    Commands,
    Compare,
    Graph,
    Groups,
    Iteration,
    Pace,
    Page,
    Requests,
    Wait,
)


def upgrade(  # noqa: PLR0913, PLR0917  (typer has no other way to say what a command takes)
    scenario: Annotated[str, typer.Argument(help="A file, or the name of a built-in campaign.")],
    paper: Annotated[
        bool, typer.Option("--paper", help="Follow the thesis to the letter where it is unclear.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what is to be expected.")
    ] = False,
    engine: Annotated[
        str, typer.Option("--engine", help="Who carries it out: sim, ansible, or one of your own.")
    ] = "sim",
    access: Annotated[
        Optional[Path],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Option("--access", help="For ansible: the file that says how hosts are reached."),
    ] = None,
    journal: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--journal", help="Keep the journal here; one that is there is continued."),
    ] = None,
    command: Commands = None,
    request: Requests = None,
    wait: Wait = False,
    pace: Pace = None,
    seed: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--seed", min=0, max=2**63 - 1, help="Other chance than the campaign's."),
    ] = None,
    graph: Graph = None,
    iteration: Iteration = 1,
    groups: Groups = False,
    report: Page = None,
    compare: Compare = False,
    json: Json = False,
) -> None:
    """Upgrade resources of any kind while the SLAs hold.

    With the journal of a campaign that another process runs, commands and requests are given to
    that run. Exit code 1 if a promise was broken, a set or an order was refused, or it could not
    go on.
    """
    from equipoise.cli.upgrading import run as work
    from equipoise.cli.upgrading.extras import Extras

    extras = Extras(
        graph=graph, iteration=iteration, groups_only=groups, report=report, compare=compare
    )
    wishes = work.Wishes(
        paper=paper,
        dry_run=dry_run,
        engine=engine,
        access=access,
        journal_url=journal,
        commands=tuple(command or ()),
        requests=tuple(request or ()),
        wait=wait,
        pace=pace,
        seed=seed,
    )
    raise typer.Exit(work.run(scenario, wishes, extras, as_json=json))
