"""The guide of ARCHITECTURE.md for a new command, followed in a copy of the tree."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tidy_checks

ROOT = Path(__file__).parent.parent
COPIED = (
    "src",
    "pyproject.toml",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "CHANGELOG.md",
)

ARGUMENTS = '''

def greet(
    name: Annotated[str, typer.Argument(help="The name to greet.", metavar="NAME")],
    json: Json = False,
) -> None:
    """Print a greeting."""
    from equipoise.cli.{group} import greet as command

    raise typer.Exit(command.run(name, as_json=json))
'''
NEW_GROUP = '''"""Arguments of the commands that greet."""

from __future__ import annotations

from typing import Annotated

import typer

from equipoise.cli.typer_app import EquipoiseTyper, Json


def add_to(app: EquipoiseTyper) -> None:
    """Add the commands of this group."""
'''
WORK = '''"""Prints a greeting, as text or as one JSON document."""

from __future__ import annotations

from equipoise.cli.output import EXIT_OK, console, print_document
from equipoise.documents.cluster import GreetingDocument


def run(name: str, *, as_json: bool) -> int:
    """Print the greeting."""
    document = GreetingDocument(greeting=f"Welcome, {name}")
    if as_json:
        print_document(document)
    else:
        console().print(document.greeting)
    return EXIT_OK
'''
DOCUMENT = '''

class GreetingDocument(Document):
    """The greeting of a name."""

    greeting: str
'''
ADD = "    app.command()(greet)\n"
BODY_OF_ADD = '    """Add the commands of this group."""\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the package and of the documents at the root; the other folders are links."""
    for path in sorted({path.relative_to(ROOT).parts[0] for path in tidy_checks.tracked(ROOT)}):
        if path not in COPIED:
            (tmp_path / path).symlink_to(ROOT / path)
        elif (ROOT / path).is_dir():
            shutil.copytree(
                ROOT / path, tmp_path / path, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / path, tmp_path / path)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, path
    path.write_text(text.replace(old, new, 1))


def add_command(package: Path, group: str, *, new_group: bool) -> None:
    """Add the parts of a command where the guide says."""
    folder = package / "cli" / group
    if new_group:
        folder.mkdir()
        (folder / "__init__.py").write_text('"""The commands that greet."""\n')
        (folder / "commands.py").write_text(NEW_GROUP)
        listing = package / "cli" / "commands.py"
        edit(listing, "from equipoise.cli.jobs", f"from equipoise.cli.{group} import commands as "
             f"{group}\nfrom equipoise.cli.jobs")  # fmt: skip
        edit(listing, "jobs.add_to(app)\n", f"jobs.add_to(app)\n{group}.add_to(app)\n")
    edit(folder / "commands.py", BODY_OF_ADD, BODY_OF_ADD + ADD)
    with (folder / "commands.py").open("a") as file:
        file.write(ARGUMENTS.format(group=group))
    (folder / "greet.py").write_text(WORK)
    with (package / "documents" / "cluster.py").open("a") as file:
        file.write(DOCUMENT)


@pytest.mark.parametrize(("group", "new_group"), [("jobs", False), ("greeting", True)])
def test_a_command_added_by_the_guide_is_tidy_and_works(
    group: str, new_group: bool, tree: Path
) -> None:
    add_command(tree / "src" / "equipoise", group, new_group=new_group)
    assert tidy_checks.all_problems(tree) == []
    done = subprocess.run(
        [sys.executable, "-c", "from equipoise.cli.main import main; main()", "greet", "Ada",
         "--json"],
        env={"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == {"greeting": "Welcome, Ada"}


def test_the_guide_names_every_file_that_the_command_needs() -> None:
    row = re.search(r"^\| a \*\*command\*\* \|.*$", (ROOT / "ARCHITECTURE.md").read_text(), re.M)
    assert row
    named = set(re.findall(r"`([^`]+)`", row.group()))
    assert {"cli/GROUP/commands.py", "cli/commands.py", "documents/", "__init__.py"} <= named


def test_every_group_of_commands_has_space_for_one_more_file() -> None:
    for commands in (ROOT / "src" / "equipoise" / "cli").glob("*/commands.py"):
        count = len(list(commands.parent.glob("*.py")))
        assert count < tidy_checks.FOLDER_FILES_MAX, commands.parent
