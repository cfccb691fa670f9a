"""The overlay accepts only the files that its edits were written for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.adapters.kubernetes.clock.overlay import (
    ADDED_FILES,
    EDITS,
    KNOWN_GO,
    overlay_hash,
    write_overlay,
)
from equipoise.errors import InvalidInput


@pytest.fixture
def goroot(tmp_path: Path) -> Path:
    """A folder whose files consist of nothing but the anchors."""
    root = tmp_path / "go"
    texts: dict[str, str] = {}
    for edit in EDITS:
        texts[edit.path] = texts.get(edit.path, "") + f"{edit.anchor}\n" * edit.times
    for name, text in texts.items():
        path = root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "VERSION").write_text(f"go{KNOWN_GO[-1]}.8\ntime 2026-08-28T16:20:06Z\n")
    return root


def refusal(goroot: Path) -> str:
    with pytest.raises(InvalidInput) as raised:
        overlay_hash(goroot)
    (problem,) = raised.value.problems
    assert raised.value.code == "go-unknown"
    assert all(version in problem.cure for version in KNOWN_GO)
    return problem.what


def test_each_edited_and_added_file_is_in_the_overlay(goroot: Path, tmp_path: Path) -> None:
    path = write_overlay(goroot, tmp_path)
    replaced: dict[str, str] = json.loads(path.read_text())["Replace"]
    names = {edit.path for edit in EDITS} | set(ADDED_FILES)
    assert set(replaced) == {str(goroot / "src" / name) for name in names}
    for original, copy in replaced.items():
        if Path(original).exists():
            assert Path(copy).read_text() != Path(original).read_text()


def test_an_edit_stays_on_the_lines_of_its_anchor() -> None:
    """Else the numbers of all lines after it change, and Go's cache serves less."""
    for edit in EDITS:
        edited = edit.apply(edit.anchor * edit.times)
        assert edited is not None
        assert edited.count("\n") == edit.anchor.count("\n") * edit.times


def test_the_original_files_are_not_changed(goroot: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in goroot.rglob("*") if path.is_file()}
    write_overlay(goroot, tmp_path)
    assert before == {path: path.read_bytes() for path in goroot.rglob("*") if path.is_file()}


@pytest.mark.parametrize("number", range(len(EDITS)))
def test_a_file_without_an_anchor_is_refused(goroot: Path, number: int) -> None:
    edit = EDITS[number]
    path = goroot / "src" / edit.path
    path.write_text(path.read_text().replace(edit.anchor, "something else", 1))
    assert edit.path in refusal(goroot)


@pytest.mark.parametrize("number", range(len(EDITS)))
def test_a_file_with_one_more_anchor_is_refused(goroot: Path, number: int) -> None:
    edit = EDITS[number]
    path = goroot / "src" / edit.path
    path.write_text(f"{path.read_text()}{edit.anchor}\n")
    assert edit.path in refusal(goroot)


@pytest.mark.parametrize("version", ["go1.25.9", "go1.2", "go1.260.1", "go1.27rc1", "devel", ""])
def test_an_unknown_version_is_refused(goroot: Path, version: str) -> None:
    (goroot / "VERSION").write_text(version)
    assert version.removeprefix("go") in refusal(goroot)


def test_a_folder_without_go_is_refused(tmp_path: Path) -> None:
    refusal(tmp_path)


def test_a_missing_file_is_refused(goroot: Path) -> None:
    (goroot / "src" / "runtime" / "proc.go").unlink()
    assert "runtime/proc.go" in refusal(goroot)


def test_the_hash_depends_on_what_the_files_contain(goroot: Path) -> None:
    before = overlay_hash(goroot)
    path = goroot / "src" / "runtime" / "proc.go"
    path.write_text(f"{path.read_text()}// more\n")
    assert overlay_hash(goroot) != before
