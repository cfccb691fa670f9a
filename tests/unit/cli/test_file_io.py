"""Writing the files that the user names: the whole file, or a reason."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from equipoise.cli.file_io import check_writable, write_file
from equipoise.errors import InvalidInput


def test_a_file_is_overwritten_or_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content in (b"first, which is long", b"second\n"):
        check_writable(path)
        write_file(path, content)
    write_file(path, b"third\n", append=True)
    assert path.read_bytes() == b"second\nthird\n"


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere/a", "no such file or directory"),
        ("file/a", "not a directory"),
        ("folder", "is a directory"),
        ("x" * 300, "file name too long"),
    ],
)
def test_looking_says_what_writing_would_say(name: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    path = tmp_path / name
    told = []
    for act in (check_writable, lambda one: write_file(one, b"")):
        with pytest.raises(InvalidInput) as refused:
            act(path)
        told.append(str(refused.value))
    assert told[0] == told[1] == f"{path}: cannot be written: {why} (name another file)"


@pytest.mark.parametrize("there", [True, False])
def test_what_may_not_be_written_is_refused(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    if there:
        path.touch()
    asked: list[Path] = []

    def refuse(where: Path, _: int) -> bool:
        asked.append(where)
        return False

    monkeypatch.setattr("os.access", refuse)
    with pytest.raises(InvalidInput) as refused:
        check_writable(path)
    assert refused.value.code == "file-not-writable"
    assert asked == [path if there else tmp_path]
    assert isinstance(refused.value.__cause__, OSError)
    assert refused.value.__cause__.errno == errno.EACCES
