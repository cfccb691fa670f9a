"""Arguments of ``equipoise upgrade``: orders to a campaign, and what can be had besides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

Commands = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Option(
        "--command",
        help="undo:SET, cancel:SET, pause, resume, approve:SET, priority:SET=N; repeatable.",
    ),
]
Requests = Annotated[
    Optional[list[Path]],  # noqa: UP045
    typer.Option("--request", help="A file with a new request to the campaign; repeatable."),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for commands where it would end paused.")]
Pace = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option("--pace", min=0.001, help="Virtual seconds per real one, to watch it."),
]
Graph = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--graph", help="Draw the resource graph here: FILE.svg, FILE.dot or FILE.json."),
]
Iteration = Annotated[
    int, typer.Option("--iteration", min=1, help="The iteration whose graph is drawn.")
]
Groups = Annotated[
    bool, typer.Option("--groups", help="Draw the control graph: groups without their resources.")
]
Page = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--report", help="Write a page about the campaign here."),
]
Compare = Annotated[
    bool,
    typer.Option("--compare", help="Compare with rolling upgrades, 1 to 4 of a kind at a time."),
]
