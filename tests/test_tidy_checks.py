"""The tidy checks on small trees: a good tree passes, and each kind of problem is found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import tidy_checks
from banned_words import BANNED

WORDS = " ".join(f"word{number}" for number in range(tidy_checks.PACKAGE_WORDS_MIN))
PACKAGE = "src/equipoise/plan"
GOOD = {
    "pyproject.toml": '[project]\nname = "x"\n[project.entry-points."equipoise.deciders"]\n',
    "README.md": "See [the plan](docs/plan.md) and `plan/order.py`.\n",
    "docs/plan.md": "Back to [the start](../README.md). A group is `plan/GROUP/commands.py`.\n",
    "docs/adr/0015-names-of-the-field.md": "| `old.py` | `plan/order.py` |\n",
    f"{PACKAGE}/__init__.py": f'"""{WORDS}"""\n',
    f"{PACKAGE}/order.py": '"""Orders."""\n\n\nclass Order:\n    """An order."""\n',
    f"{PACKAGE}/exact/commands.py": '"""Commands."""\n',
}
LONG_FUNCTION = "def long() -> None:\n" + "    pass\n" * tidy_checks.FUNCTION_LINES_MAX


def grown(folder: Path, files: dict[str, str]) -> Path:
    """Write files into a folder that git manages."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder


def test_a_good_tree_has_no_problem(tmp_path: Path) -> None:
    assert tidy_checks.all_problems(grown(tmp_path, GOOD)) == []


def module(text: str) -> dict[str, str]:
    return {f"{PACKAGE}/order.py": text}


PROBLEMS = {
    "long file": (module('"""Long."""\n' + "#\n" * tidy_checks.FILE_LINES_MAX), "lines"),
    "long function": (module(f'"""Long."""\n{LONG_FUNCTION}'), "long has over"),
    "no docstring": (module("x = 1\n"), "no docstring"),
    "empty name": ({f"{PACKAGE}/utils.py": '"""Tools."""\n'}, "an empty name"),
    "unfinished": (module('"""Orders."""\n# TO' + "DO: more\n"), "unfinished"),
    "moved module": (
        {"docs/adr/0015-names-of-the-field.md": "| `old.py` | `plan/gone.py` |\n"},
        "plan/gone.py: does not exist",
    ),
    "class without a meaning": (module('"""O."""\nclass OrderManager: ...\n'), "OrderManager"),
    "class with two meanings": (
        {f"{PACKAGE}/other.py": '"""Others."""\n\n\nclass Order: ...\n'},
        "Order: defined 2 times",
    ),
    "full folder": (
        {
            f"{PACKAGE}/part{number}.py": '"""Part."""\n'
            for number in range(tidy_checks.FOLDER_FILES_MAX - 1)
        },
        f"{tidy_checks.FOLDER_FILES_MAX + 1} modules",
    ),
    "full nested folder": (
        {
            f"{PACKAGE}/exact/part{number}.py": '"""Part."""\n'
            for number in range(tidy_checks.FOLDER_FILES_MAX)
        },
        f"{tidy_checks.FOLDER_FILES_MAX + 1} modules",
    ),
    "package without a description": ({f"{PACKAGE}/__init__.py": '"""Plans."""\n'}, "entry points"),
    "broken link": ({"README.md": "See [it](docs/gone.md).\n"}, "links to docs/gone.md"),
    "file that is gone": ({"README.md": "`plan/gone.py` orders.\n"}, "plan/gone.py does not exist"),
    "module that is gone": ({"docs/plan.md": "`gone.py`\n"}, "gone.py does not exist"),
    "name that is gone": (
        {"README.md": "Call `equipoise.plan.gone`.\n"},
        "equipoise.plan.gone does not exist",
    ),
    "folder that is gone": ({"README.md": "`plan/gone/`\n"}, "plan/gone/ does not exist"),
    "group that is gone": ({"README.md": "`gone/GROUP/commands.py`\n"}, "does not exist"),
    "loop variable": (module('"""O."""\nTEXT = [one for one in ""]\n'), "one names no thing"),
    "machine path": ({"docs/plan.md": "/ho" + "me/ada\n"}, "/ho" + "me/"),
}


@pytest.mark.parametrize(("files", "problem"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_each_problem_is_found_and_no_other(
    files: dict[str, str], problem: str, tmp_path: Path
) -> None:
    (found,) = tidy_checks.all_problems(grown(tmp_path, GOOD | files))
    assert problem in found


@pytest.mark.parametrize("words", BANNED)
def test_every_banned_word_is_refused_with_its_cure(words: str, tmp_path: Path) -> None:
    """In prose and in the name of a file; of alternatives, the first one."""
    start, _, end = words.partition(")") if words.startswith("(") else (words, "", "")
    word = start.strip("(").partition("|")[0].replace("?", "") + end
    name = word.replace(" ", "_")
    tree = grown(tmp_path, GOOD | {"README.md": f"{word}\n", f"docs/{name}.md": "Good.\n"})
    cures = [
        problem for problem in tidy_checks.all_problems(tree) if f"({BANNED[words]})" in problem
    ]
    assert [cure.split(":")[0] for cure in cures] == ["README.md", f"docs/{name}.md"]
