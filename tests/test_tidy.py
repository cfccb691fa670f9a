"""The rules of the code base, checked by a program."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "equipoise"
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
FOLDER_FILES_MAX = 12
JUNK = re.compile(r"(Manager|Impl|Helper|Util)(?![a-z])")
JUNK_FILES = {"utils", "util", "common", "core", "helpers", "base", "managers", "misc"}
BANNED_WORDS = {
    "nobody": "name the thing: no host, no rule",
    "somebody": "name the thing: the operator, the decider",
    "whoever": "name the thing",
    "anybody": "name the thing",
    "everybody": "name the things: all VMs",
    "is told": "receives, reports",
    "are told": "receive, report",
    "by chance": "random, drawn from the seed",
    "at odds": "in conflict",
    "wished": "desired",
    "wishes": "goals, desired states",
    "foretold": "scheduled, forecast",
    "anew": "again",
    "heed": "on_event, follow",
    "reign": "leader epoch",
    "limbo": "unplaced",
    "turmoil": "faults",
    "tidings": "events",
}
"""Words that readers had to guess, each with its replacement."""
WORDS = re.compile(rf"\b({'|'.join(BANNED_WORDS)})\b", re.IGNORECASE)
QUOTED = re.compile(r"\"[^\"\n]*\"|`[^`\n]*`|//nobody:")
MARKS = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")


def tracked(*patterns: str) -> list[Path]:
    """The files git knows, so that generated junk is not judged."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / name for name in listed.stdout.split() if (ROOT / name).exists()]


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_is_short_and_says_what_it_is(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= FILE_LINES_MAX, "split it by idea"
    assert ast.get_docstring(ast.parse(text)), "say what it is, and what it never does"
    assert path.stem not in JUNK_FILES, "name the idea"
    assert not MARKS.search(text), "do it or file an issue"
    for function in functions(path):
        assert function.end_lineno is not None
        length = function.end_lineno - function.lineno + 1
        assert length <= FUNCTION_LINES_MAX, f"{function.name} has {length} lines"


def test_no_class_hides_behind_a_junk_name() -> None:
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                assert not JUNK.search(node.name), f"{path}: {node.name}"


def test_every_package_says_what_it_is_for() -> None:
    for path in SOURCE.glob("*/__init__.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert len(docstring.split()) >= 12, f"{path}: name its entry points and its limits"


def test_a_folder_holds_at_most_twelve_modules() -> None:
    for folder in (SOURCE, *(path for path in SOURCE.rglob("*") if path.is_dir())):
        assert len(list(folder.glob("*.py"))) <= FOLDER_FILES_MAX, folder


def test_a_class_name_has_one_meaning() -> None:
    """A name that two modules define for different classes misleads readers and imports."""
    names = Counter(
        node.name
        for path in modules()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, times in names.items() if times > 1] == []


def test_no_two_files_of_tests_have_the_same_name() -> None:
    """Else the one that is collected second is not read at all."""
    names = Counter(path.name for path in tracked("tests/*test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []


def test_decisions_are_numbered_without_gaps_and_have_three_parts() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [int(path.name[:4]) for path in decisions]
    assert numbers == list(range(1, len(numbers) + 1))
    for path in decisions:
        text = path.read_text()
        for part in ("## Context", "## Decision", "## Consequences"):
            assert part in text, f"{path.name} lacks {part}"


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()


def test_nothing_machine_specific_is_committed() -> None:
    # Spelt in pieces, so that this file does not find itself.
    secret = re.compile(
        "|".join(["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/", r"file" + "s.pythonhosted"])
    )
    for path in tracked(
        "*.py", "*.md", "*.toml", "*.yaml", "*.sh", "*.lock", "Makefile", ".ci/run"
    ):
        found = secret.search(path.read_text())
        assert not found, f"{path}: {found}"


def test_documents_point_to_files_that_exist() -> None:
    link = re.compile(r"\]\((?!https?:)([^)#]+)")
    for path in tracked("*.md"):
        for target in link.findall(path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} points to {target}"


def test_no_file_has_a_banned_word() -> None:
    """Old names stay only as quoted values: aliases of keys, and tables of old and new names."""
    found = []
    for path in tracked("src/*", "tests/*.py", "tools/*", "*.md", "examples/*"):
        if path.suffix not in {".py", ".md", ".spec", ".yaml", ".sh", ".java"}:
            continue
        if path.name in {"test_tidy.py", "0015-names-of-the-field.md"} or "old_files" in path.parts:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            word = WORDS.search(QUOTED.sub("", line))
            if word:
                cure = BANNED_WORDS[word.group(1).lower()]
                found.append(f"{path.relative_to(ROOT)}:{number}: {word.group(1)} ({cure})")
    assert found == []
