"""What the documents show is what happens."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command import call_here
from equipoise.api.loading import read_inventory_with_warnings, read_plan
from equipoise.cli.commands import app
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import VerifiedPlan, verify
from equipoise.sim.builtin import builtin_scenarios
from equipoise.spec.specification import Specification

ROOT = Path(__file__).parent.parent


def console_blocks(document: str) -> list[list[str]]:
    """The lines after a prompt, for each console block of a document."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / document).read_text(), re.S)
    return [[line[2:] for line in block.splitlines() if line.startswith("$ ")] for block in blocks]


DOCUMENTS = {
    "README.md": 2,
    "docs/tour.md": 31,
    "docs/jobs.md": 9,
    "docs/roles.md": 3,
    "docs/simulation.md": 1,
    "docs/upgrade-methods.md": 4,
}
"""The documents whose commands run as they are, and how many commands each has at least."""
BLOCKS = {
    f"{document}-{number}": commands
    for document in DOCUMENTS
    for number, block in enumerate(console_blocks(document))
    if (commands := [command for command in block if not command.startswith("make")])
}


@pytest.mark.parametrize(("document", "count"), DOCUMENTS.items())
def test_no_command_of_a_document_is_missed(document: str, count: int) -> None:
    found = [len(commands) for name, commands in BLOCKS.items() if name.startswith(document)]
    assert sum(found) >= count


UNDOING_CAMPAIGN = "nabi-failure"
"""A campaign that undoes a set, and so ends with exit code 1."""
SHELL_CHARACTERS = re.compile(r"[|&;<>$`*?(){}\"'\\#~]")


def run_shown(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a document shows it; one of the product without a new process."""
    program, *arguments = command.split()
    assert shutil.which(program), command
    if Path(program).name == "equipoise" and not SHELL_CHARACTERS.search(command):
        return call_here(*arguments)
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("shown", BLOCKS.values(), ids=BLOCKS.keys())
def test_the_commands_of_a_block_work_one_after_the_other(
    shown: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block needs nothing of the blocks before it, so workers share the blocks."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    programs = Path(sys.executable).parent
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(programs)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    for command in shown:
        done = run_shown(command)
        expected = 1 if UNDOING_CAMPAIGN in command else 0
        assert done.returncode == expected, f"{command}: {done.stderr}"
        assert done.stdout.strip(), command


def test_make_demo_works_without_setting_up_again() -> None:
    environment = ROOT / ".venv"
    # `make` would install this checkout into the environment of another one.
    if not (environment / "run.stamp").exists() or environment.is_symlink():
        pytest.skip("this environment was not made by make")
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "demo"], cwd=ROOT, capture_output=True, text=True, check=False, env=env
    )
    assert done.returncode == 0, done.stderr
    assert "installing" not in done.stdout
    assert "A cluster" in done.stdout


def test_every_example_of_the_language_is_sound() -> None:
    text = (ROOT / "docs" / "spec-language.md").read_text()
    blocks = re.findall(r"```spec\n(.*?)```", text, re.S)
    assert len(blocks) >= 11
    for block in blocks:
        assert Specification.read(block).constraints


def test_every_make_chore_that_the_documents_name_exists() -> None:
    chores = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for document in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"`make ([a-z]+)", (ROOT / document).read_text()))
        assert named <= chores


def test_every_command_that_the_documents_name_exists() -> None:
    known = {group.name for group in app.registered_groups} | {
        command.name or command.callback.__name__
        for command in app.registered_commands
        if command.callback
    }
    for document in (
        "README.md",
        "CHANGELOG.md",
        "docs/tour.md",
        "docs/files.md",
        "docs/jobs.md",
        "docs/kubernetes.md",
        "docs/kubernetes-client.md",
        "docs/kubernetes-study.md",
        "docs/planning.md",
        "docs/roles.md",
        "docs/simulation.md",
        "docs/spec-language.md",
    ):
        named = set(re.findall(r"(?<!import )equipoise ([a-z]+)\b", (ROOT / document).read_text()))
        assert named <= known, document


def test_the_examples_are_right_and_the_plan_fits_the_cluster() -> None:
    inventory, _ = read_inventory_with_warnings(ROOT / "examples" / "small.yaml")
    plan = read_plan(ROOT / "examples" / "drain.yaml")
    assert isinstance(verify(Snapshot.of(inventory), plan), VerifiedPlan)


def test_the_packages_in_the_architecture_are_those_of_the_product() -> None:
    packages = {path.parent.name for path in (ROOT / "src" / "equipoise").glob("*/__init__.py")}
    named = set(re.findall(r"^\| `([a-z]+)/`", (ROOT / "ARCHITECTURE.md").read_text(), re.M))
    assert named == packages


def test_every_built_in_scenario_is_readable_and_says_what_it_is() -> None:
    for scenario in builtin_scenarios():
        assert scenario.about.endswith(".")


def test_the_example_scripts_run(tmp_path: Path) -> None:
    scripts = ROOT / "examples" / "scripts"
    advice = subprocess.run(
        [sys.executable, str(scripts / "operator_advice.py")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "VerifiedPlan" in advice
    plot = tmp_path / "sweep.svg"
    subprocess.run(
        [sys.executable, str(scripts / "researcher_sweep.py"), str(plot)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert plot.read_text().count("<rect") == 3
    folder = tmp_path / "policies"
    printed = subprocess.run(
        [sys.executable, str(scripts / "researcher_policies.py"), str(folder)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert len(printed.splitlines()) == 6
    assert (folder / "waits.svg").read_text().count("<rect") == 4
    assert (folder / "easy" / "report.html").exists()
