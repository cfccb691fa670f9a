"""The habits of the house, checked by a program."""

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
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
ROOM_FILES_MAX = 20
JUNK = re.compile(r"(Manager|Base|Default|Impl|Helper|Util|Info|Data|Handler)(?![a-z])")
JUNK_FILES = {"utils", "util", "common", "core", "helpers", "base", "managers", "misc"}
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


def test_every_room_has_a_door_sign_that_says_what_it_never_does() -> None:
    for door in SOURCE.glob("*/__init__.py"):
        sign = ast.get_docstring(ast.parse(door.read_text())) or ""
        assert sign.startswith(f"{door.parent.name.capitalize()}:"), door
        assert "Enter by" in sign, door
        assert "Never" in sign, door


def test_no_room_is_two_rooms() -> None:
    for room in SOURCE.glob("*/"):
        assert len(list(room.glob("*.py"))) <= ROOM_FILES_MAX, room


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
