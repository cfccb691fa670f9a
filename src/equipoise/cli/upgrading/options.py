"""Arguments of ``equipoise upgrade`` for what can be had besides: picture, page, comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

Graph = Annotated[
    Optional[Path],  # noqa: UP045  (typer reads the annotation at run time)
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
