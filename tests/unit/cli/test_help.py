"""The help of every command: what a person reads before anything else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from equipoise.cli.commands import app


def helps(command: Any, name: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    """The help of a command and of all below it."""
    context = typer.Context(command, info_name=name, parent=parent)
    if not isinstance(command, TyperGroup) or command.name != "fuzz":
        yield context.command_path, command.get_help(context)
    if isinstance(command, TyperGroup):
        for inner, one in command.commands.items():
            yield from helps(one, inner, context)


EVERY = dict(helps(typer.main.get_command(app), "equipoise"))


@pytest.mark.parametrize("path", EVERY)
def test_what_must_be_given_stands_in_capitals_and_no_value_is_a_type(path: str) -> None:
    lines = EVERY[path].splitlines()
    usage = lines[0].removeprefix(f"Usage: {path} ")
    assert usage == usage.replace("{", "").upper()
    options = [line.split()[1] for line in lines if line.startswith("  --") and len(line) > 4]
    assert not [one for one in options if one.startswith("<")]


def test_the_target_of_a_campaign_is_named_once() -> None:
    assert EVERY["equipoise fuzz TARGET"].startswith("Usage: equipoise fuzz TARGET [OPTIONS]\n")
    assert EVERY["equipoise fuzz experiment"].splitlines()[0].endswith("[OPTIONS] [NAME]")
    assert EVERY["equipoise show"].splitlines()[0] == "Usage: equipoise show [OPTIONS] INVENTORY"
