"""The folder of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import InvalidInput, WorldError
from equipoise.model.event import encode_event
from equipoise.report import read_run
from unit.report.synthetic import a_run, write


def test_a_written_run_can_be_read_back(tmp_path: Path) -> None:
    given = a_run(hosts=4, samples=10)
    written = write(tmp_path / "new" / "run", given)
    assert sorted(written.files) == sorted(path.name for path in written.folder.iterdir())
    assert written.page.read_text().startswith("<!doctype html>")
    run = read_run(written.folder)
    assert run.document == given.document
    assert run.extra == {}
    assert run.name == "run"
    assert np.allclose(run.cluster["watts"], given.record.cluster["watts"], atol=0.001)
    assert run.pools["pool"].tolist() == given.record.pools["pool"].tolist()


def test_the_journal_is_one_event_per_line(tmp_path: Path) -> None:
    given = a_run(hosts=4, samples=10)
    write(tmp_path, given)
    lines = (tmp_path / "journal.jsonl").read_bytes().splitlines()
    assert lines == [encode_event(event) for event in given.journal.events()]


def test_equal_runs_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, a_run(hosts=12, samples=40))
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_write_run_never_overwrites_another_run(tmp_path: Path) -> None:
    given = a_run(hosts=3, samples=3)
    write(tmp_path, given)
    before = (tmp_path / "report.html").read_bytes()
    with pytest.raises(InvalidInput) as caught:
        write(tmp_path, a_run(hosts=4, samples=3))
    assert caught.value.code == "already-exists"
    assert (tmp_path / "report.html").read_bytes() == before


def test_an_incomplete_folder_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "cluster.csv").write_text("half a li")
    assert write(tmp_path, a_run(hosts=3, samples=3)).page.exists()


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(InvalidInput) as caught:
        write(path, a_run(hosts=3, samples=3))
    assert caught.value.code == "not-a-folder"


def test_a_folder_that_cannot_be_created_is_a_world_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(WorldError, match="cannot write the run"):
        write(path / "below", a_run(hosts=3, samples=3))


def test_without_pyarrow_only_csv_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    written = write(tmp_path, a_run(hosts=3, samples=3))
    assert not written.parquet
    assert not any(name.endswith(".parquet") for name in written.files)
    assert (tmp_path / "hosts.csv").exists()


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({}, "not-a-run"),
        ({"summary.json": "{"}, "syntax-error"),
        ({"summary.json": "[]"}, "not-a-run"),
        ({"summary.json": "{}"}, "file-not-readable"),
        ({"summary.json": "{}", "cluster.csv": "x\n"}, "table-invalid"),
    ],
)
def test_a_folder_that_is_no_run_is_rejected_with_a_cure(
    tmp_path: Path, files: dict[str, str], code: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInput) as caught:
        read_run(tmp_path)
    assert caught.value.code == code
    assert "equipoise simulate --out" in str(caught.value)
