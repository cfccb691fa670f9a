"""Campaigns in test files of a user, as the guide shows them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from command import answer

HANDBOOK = Path(__file__).parents[3] / "docs" / "README.md"
BEFORE = """
from equipoise.fuzz.testing import campaign

class Mine:
    def accepts(self, trial):
        return {said}

"""


def run(folder: Path, said: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the three lines of the handbook in a test file of their own."""
    (lines,) = re.findall(r"```python\n(.*?)```", HANDBOOK.read_text(), re.S)
    assert len(lines.splitlines()) == 3
    (folder / "test_mine.py").write_text(BEFORE.format(said=said) + lines)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=folder, env=clean, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_three_lines_of_the_handbook_are_a_test(tmp_path: Path) -> None:
    right = "not trial.objections and trial.violation is None"
    done = run(tmp_path, right, "--campaign-tests", "200")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_they_fail_with_the_smallest_case_which_can_be_judged_again(tmp_path: Path) -> None:
    saved = tmp_path / "found.jsonl"
    words = ("--campaign-tests", "150", "--campaign-seed", "3", "--campaign-save", str(saved))
    done = run(tmp_path, "True", *words)
    assert done.returncode == 1
    assert "seed 3" in done.stdout
    assert "introduced: Lonely" in done.stdout
    again = answer("fuzz", "planner", "--replay", str(saved))
    assert again["agreed"] == again["tests"] > 0


def test_an_unknown_constraint_is_reported(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "from equipoise.fuzz.testing import campaign\n"
        "@campaign('lonly')\ndef test_mine(): return None\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "InvalidInput: campaign: lonly: " in done.stdout
