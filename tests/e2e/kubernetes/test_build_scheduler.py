"""Building a scheduler, with a program in place of Go that fails on demand."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from equipoise.adapters.kubernetes.clock.build import (
    MissingGo,
    build_scheduler,
    find_scheduler,
    scheduler_target,
)
from equipoise.adapters.targets.environment import FOLDER_VARIABLE
from equipoise.errors import EquipoiseError, InvalidInput, WorldError

GO_MOD = """module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/component-base => ./staging/src/k8s.io/component-base
)
"""
FAKE_GO = """#!{python}
import json, pathlib, shutil, sys
folder = pathlib.Path({folder!r})
if sys.argv[1] == "env":
    print(folder / "goroot")
elif sys.argv[1] == "mod":
    if (folder / "no-module").exists():
        print(json.dumps({{"Error": "unknown revision"}}))
        sys.exit(1)
    print(json.dumps({{"GoMod": str(folder / "kubernetes.mod")}}))
elif (folder / "no-build").exists():
    lines = "k8s.io/api", "# k8s.io/broken", "main.go:3: undefined: thing"
    print(*lines, sep="\\n", file=sys.stderr)
    sys.exit(1)
else:
    shutil.copy("go.mod", folder / "go.mod")
    print(*["k8s.io/package"] * 250, sep="\\n", file=sys.stderr)
    program = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
    program.write_text("#!/bin/sh\\necho Kubernetes v1.36.3\\n")
    program.chmod(0o755)
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that steers the false Go. A file ``no-module`` or ``no-build`` makes it fail."""
    program = tmp_path / "bin" / "go"
    program.parent.mkdir()
    program.write_text(FAKE_GO.format(python=sys.executable, folder=str(tmp_path)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "goroot").mkdir()
    (tmp_path / "goroot" / "VERSION").write_text("go1.26.8\n")
    (tmp_path / "kubernetes.mod").write_text(GO_MOD)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "targets"))
    return tmp_path


def code_of_failure(version: str = "1.36.3") -> tuple[str, str]:
    with pytest.raises(EquipoiseError) as raised:
        build_scheduler(version, stock=True)
    return raised.value.code, str(raised.value)


def test_a_program_is_built_once_and_copied(go: Path) -> None:
    assert find_scheduler(stock=True) is None
    lines: list[str] = []
    kept = build_scheduler(stock=True, progress=lines.append)
    assert kept.is_relative_to(scheduler_target().folder)
    assert find_scheduler("v1.36.3", stock=True) == kept
    assert [line for line in lines if line.endswith("packages compiled")] == [
        "100 packages compiled",
        "200 packages compiled",
    ]
    (go / "no-build").touch()
    assert build_scheduler(stock=True) == kept
    copy = build_scheduler("1.36.3", go / "copy", stock=True)
    assert copy.read_bytes() == kept.read_bytes()
    assert os.access(copy, os.X_OK)


def test_the_module_has_the_libraries_of_the_same_version(go: Path) -> None:
    build_scheduler(stock=True)
    lines = (go / "go.mod").read_text().split("\n")
    assert "go 1.26.0" in lines
    assert "godebug default=go1.26" in lines
    assert "\tk8s.io/kubernetes v1.36.3" in lines
    assert "\tk8s.io/api => k8s.io/api v0.36.3" in lines
    assert "\tk8s.io/component-base => k8s.io/component-base v0.36.3" in lines


def test_the_messages_of_a_failed_build_are_reported(go: Path) -> None:
    (go / "no-build").touch()
    code, message = code_of_failure()
    assert code == "go-build-failed"
    assert "main.go:3: undefined: thing" in message
    assert find_scheduler(stock=True) is None


def test_a_version_that_cannot_be_downloaded_is_reported(go: Path) -> None:
    (go / "no-module").touch()
    code, message = code_of_failure("1.36.99")
    assert code == "go-build-failed"
    assert "1.36.99" in message
    assert "unknown revision" in message


def test_a_program_with_another_version_is_not_kept(go: Path) -> None:
    assert code_of_failure("1.35.0")[0] == "go-build-failed"
    assert find_scheduler("1.35.0", stock=True) is None


def test_a_program_without_the_clock_is_not_kept(go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The false Go ignores the overlay, as a Go would whose build changed in that respect."""
    (go / "overlay.json").write_text("{}")
    package = "equipoise.adapters.kubernetes.clock.build"
    monkeypatch.setattr(f"{package}.overlay_hash", lambda goroot: "hash")
    monkeypatch.setattr(f"{package}.write_overlay", lambda goroot, folder: go / "overlay.json")
    with pytest.raises(WorldError) as raised:
        build_scheduler()
    assert raised.value.code == "go-build-failed"
    assert find_scheduler() is None


def test_a_go_that_the_clock_does_not_know_is_refused(go: Path) -> None:
    (go / "goroot" / "VERSION").write_text("go1.19.2\n")
    with pytest.raises(InvalidInput) as raised:
        build_scheduler()
    assert raised.value.code == "go-unknown"


@pytest.mark.parametrize("version", ["", "latest", "1.36", "1.36.3; rm", "2.0.0", "../1.36.3"])
def test_what_is_no_version_is_refused(go: Path, version: str) -> None:
    assert go.exists()
    assert code_of_failure(version)[0] == "invalid-value"


def test_without_go_the_message_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingGo) as raised:
        build_scheduler()
    assert raised.value.code == "go-missing"
    assert "1.26" in str(raised.value)
