"""Help of every command, and the rule that help imports no work."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

import equipoise.cli
from equipoise.cli.commands import app


def helps(command: Any, name: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Yield path and help of a command and of its subcommands."""
    context = typer.Context(command, info_name=name, parent=parent)
    if not isinstance(command, TyperGroup) or command.name != "fuzz":
        yield context.command_path, command.get_help(context)
    if isinstance(command, TyperGroup):
        for inner, subcommand in command.commands.items():
            yield from helps(subcommand, inner, context)


EVERY = dict(helps(typer.main.get_command(app), "equipoise"))


@pytest.mark.parametrize("path", EVERY)
def test_required_arguments_are_in_capitals_and_no_value_is_a_python_type(path: str) -> None:
    lines = EVERY[path].splitlines()
    usage = lines[0].removeprefix(f"Usage: {path} ")
    assert usage == usage.replace("{", "").upper()
    words = [line.split() for line in lines if line.startswith("  --") and len(line) > 4]
    options = [more[0] for _, *more in words if more]
    assert not [option for option in options if option.startswith("<")]


def test_usage_names_the_target_of_a_campaign_once() -> None:
    assert EVERY["equipoise fuzz TARGET"].startswith("Usage: equipoise fuzz TARGET [OPTIONS]\n")
    assert EVERY["equipoise fuzz experiment"].splitlines()[0].endswith("[OPTIONS] [NAME]")
    assert EVERY["equipoise show"].splitlines()[0] == "Usage: equipoise show [OPTIONS] INVENTORY"


def test_each_help_summary_fits_on_one_line_of_the_command_list() -> None:
    lines = EVERY["equipoise"].splitlines()
    listed = lines[lines.index("Commands:") + 1 :]
    assert len(listed) == 24
    assert not [line for line in listed if line.endswith("...")]


FOLDER = Path(equipoise.cli.__file__).parent
COMMAND_FILES = sorted([*FOLDER.rglob("commands.py"), *FOLDER.rglob("*_arguments.py")])


@pytest.mark.parametrize("path", COMMAND_FILES, ids=lambda path: path.parent.name)
def test_argument_files_import_no_work_at_module_level(path: Path) -> None:
    """``equipoise --help`` loads all of them, so each must be cheap."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("equipoise."):
            names = [alias.name for alias in node.names]
            # A long list of arguments has a file of its own, with the same duty.
            cheap = {"equipoise.cli.typer_app", "equipoise.cli.jobs.batsim_arguments"}
            assert node.module in cheap or names == ["commands"]


def test_every_group_folder_has_a_list_of_its_commands() -> None:
    folders = [path for path in Path(equipoise.cli.__file__).parent.iterdir() if path.is_dir()]
    groups = [path for path in folders if (path / "__init__.py").exists()]
    assert not [path.name for path in groups if not (path / "commands.py").exists()]
