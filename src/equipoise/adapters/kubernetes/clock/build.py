"""Builds a kube-scheduler from its Go module, on the virtual clock or as it is.

No source line of Kubernetes changes: a main program of our own calls the scheduler's command, and
``go build -overlay`` replaces files of Go's runtime. A program that was built with the overlay
reads the real clock unless ``EQUIPOISE_CLOCK`` names a page, so one program serves both clocks. The
programs are kept in the folder of the targets by version of the scheduler, of Go and of the edits.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from equipoise.adapters.kubernetes.clock.overlay import (
    KNOWN_GO,
    go_version,
    overlay_hash,
    write_overlay,
)
from equipoise.adapters.kubernetes.clock.page import VirtualClockPage
from equipoise.adapters.targets.environment import PinnedTarget, locked_folder, without_urls
from equipoise.errors import InputProblem, InvalidInput, MissingExtra, WorldError

SCHEDULER_VERSION: Final = "1.36.3"
"""The version that is built unless another one is named."""
PROGRAM: Final = "kube-scheduler"
_MODULE: Final = "k8s.io/kubernetes"
_VERSION: Final = re.compile(r"v?(1)\.(\d+)\.(\d+)")
_STAGED: Final = re.compile(r"^\s*(\S+) => \./staging/", re.MULTILINE)
_KEPT_LINE: Final = re.compile(r"^(?:go|godebug) .*$", re.MULTILINE)
_PACKAGE: Final = re.compile(r"[\w.~-]+(/[\w.~-]+)*")
_REPORT_EVERY: Final = 100
_ERROR_LINES: Final = 8
_MAIN: Final = """\
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() { os.Exit(cli.Run(app.NewSchedulerCommand())) }
"""

Progress = Callable[[str], None]


class MissingGo(MissingExtra):
    """Go is not installed, which no extra provides."""

    code = "go-missing"

    def __init__(self) -> None:
        super().__init__("go", PROGRAM)
        known = " or ".join(f"{version}.x" for version in KNOWN_GO)
        self.args = (
            f"'go' is not on the path: building {PROGRAM} needs Go {known} for linux/amd64",
        )


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The local Go."""

    program: str
    goroot: Path
    version: str

    def run(
        self, folder: Path, *words: str, progress: Progress = lambda line: None
    ) -> tuple[int, str, list[str]]:
        """Run a command of Go; return its code, its output and the last lines of its messages."""
        compiled, last = 0, deque[str](maxlen=_ERROR_LINES)
        with (
            tempfile.TemporaryFile("w+") as output,
            subprocess.Popen(
                (self.program, *words), cwd=folder, env=_environment(), text=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE,
            ) as process,
        ):  # fmt: skip
            assert process.stderr is not None
            for line in map(str.rstrip, process.stderr):
                if _PACKAGE.fullmatch(line):
                    compiled += 1
                    if compiled % _REPORT_EVERY == 0:
                        progress(f"{compiled} packages compiled")
                elif line:
                    last.append(without_urls(line))
            process.wait()
            output.seek(0)
            return process.returncode, output.read(), list(last)


def find_go() -> Toolchain:
    """Return the Go on the path; ``MissingGo`` without one."""
    program = shutil.which("go")
    if program is None:
        raise MissingGo
    done = subprocess.run(
        (program, "env", "GOROOT"),
        capture_output=True, text=True, check=False, env=_environment(), stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        raise WorldError(f"'go env' failed: {done.stderr.strip()[-400:]}", code="go-build-failed")
    goroot = Path(done.stdout.strip())
    return Toolchain(program, goroot, go_version(goroot))


def scheduler_target(version: str = SCHEDULER_VERSION) -> PinnedTarget:
    """The target with the programs of a version."""
    return PinnedTarget(PROGRAM, _numbers(version), "kube-scheduler, the scheduler of Kubernetes")


def find_scheduler(version: str = SCHEDULER_VERSION, *, stock: bool = False) -> Path | None:
    """Return the program that was built with the present Go; ``None`` if there is none."""
    path = _kept(version, find_go(), stock=stock)
    return path if path.exists() else None


def build_scheduler(
    version: str = SCHEDULER_VERSION,
    target: Path | None = None,
    *,
    stock: bool = False,
    progress: Progress = lambda line: None,
) -> Path:
    """Return a kube-scheduler, which is built if it was not yet; minutes, the first time.

    It is copied to ``target`` if that is given. ``stock`` builds it without the overlay, as a
    reference; the other program serves both clocks.
    """
    go = find_go()
    kept = _kept(version, go, stock=stock)
    with locked_folder(scheduler_target(version)):
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="equipoise-go-") as folder:
                _write_module(go, version, Path(folder), progress)
                made = _compile(go, version, Path(folder), stock=stock, progress=progress)
                _check(made, version, stock=stock)
                whole = kept.with_suffix(".part")
                shutil.copy2(made, whole)
                whole.replace(kept)
    if target is None:
        return kept
    shutil.copy2(kept, target)
    return target


def _kept(version: str, go: Toolchain, *, stock: bool) -> Path:
    clock = "stock" if stock else overlay_hash(go.goroot)
    return scheduler_target(version).folder / f"go{go.version}-{clock}" / PROGRAM


def _numbers(version: str) -> str:
    if _VERSION.fullmatch(version) is None:
        what = f"{version!r} is no version of Kubernetes"
        problem = InputProblem(
            key="version", what=what, cure=f"write it as {SCHEDULER_VERSION}", code="invalid-value"
        )
        raise InvalidInput(PROGRAM, [problem])
    return version.removeprefix("v")


def _write_module(go: Toolchain, version: str, folder: Path, progress: Progress) -> None:
    """Write a main module that has the dependencies of Kubernetes itself.

    Kubernetes replaces its own libraries by folders that its module does not contain; each is a
    module with the same version, except that it begins with 0.
    """
    number = _numbers(version)
    progress(f"downloading {_MODULE} {number}")
    words = ("mod", "download", "-json", f"{_MODULE}@v{number}")
    code, output, last = go.run(folder, *words, progress=progress)
    found: dict[str, str] = json.loads(output) if output.strip() else {}
    if code != 0 or "GoMod" not in found:
        why = without_urls(found.get("Error", "")) or " / ".join(last)
        message = f"{_MODULE} v{number} cannot be downloaded: {why}"
        raise WorldError(message, code="go-build-failed")
    text = Path(found["GoMod"]).read_text()
    library = f"v0{number.removeprefix('1')}"
    replaced = "".join(f"\t{name} => {name} {library}\n" for name in _STAGED.findall(text))
    kept = "\n".join(_KEPT_LINE.findall(text))
    (folder / "go.mod").write_text(
        f"module equipoise.local/scheduler\n\n{kept}\n\nrequire (\n\t{_MODULE} v{number}\n"
        f"\tk8s.io/component-base {library}\n)\n\nreplace (\n{replaced})\n"
    )
    (folder / "main.go").write_text(_MAIN)


def _compile(go: Toolchain, version: str, folder: Path, *, stock: bool, progress: Progress) -> Path:
    number = _numbers(version)
    _, minor, _ = number.split(".")
    values = {"gitVersion": f"v{number}", "gitMajor": "1", "gitMinor": minor}
    names = " ".join(f"-X k8s.io/component-base/version.{key}={values[key]}" for key in values)
    clock: tuple[str, ...] = ()
    if not stock:
        copies = folder / "overlay"
        copies.mkdir()
        clock = ("-overlay", str(write_overlay(go.goroot, copies)))
    progress(f"building {PROGRAM} {number} with Go {go.version}: the first time takes minutes")
    words = ("build", "-v", "-trimpath", "-ldflags", f"-s -w {names}", *clock, "-o", PROGRAM, ".")
    code, _, last = go.run(folder, *words, progress=progress)
    if code != 0:
        message = f"{PROGRAM} {number} cannot be built: {' / '.join(last)}"
        raise WorldError(message, code="go-build-failed")
    return folder / PROGRAM


def _check(program: Path, version: str, *, stock: bool) -> None:
    """Run the program once: it must know its version, and take a page if it has the clock."""
    with VirtualClockPage(program.with_suffix(".page"), wall_ns=1) as page:
        environment = _environment() | ({} if stock else page.environment)
        done = subprocess.run(
            (program, "--version"),
            capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if f"v{_numbers(version)}" not in done.stdout or (page.pid != 0) == stock:
            message = f"the {PROGRAM} that was built does not work: {done.stderr[-400:]}"
            raise WorldError(message, code="go-build-failed")


def _environment() -> dict[str, str]:
    """The local Go and no other one, without C, for the only platform of the clock."""
    return {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOARCH": "amd64",
        "GOFLAGS": "-mod=mod -buildvcs=false",
        "GOOS": "linux",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
