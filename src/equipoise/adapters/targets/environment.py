"""The environments of schedulers under test: one cached folder each, with exactly pinned packages.

The workers use private names of their targets, so every package is pinned, with its hash, in
``requirements.lock`` beside the worker. A lock is made by hand, never together with our own:

    echo python-watcher==17.0.0 | uv pip compile - --universal --python-version 3.11 \
      --generate-hashes --no-header --no-emit-index-url --no-annotate -o requirements.lock
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from equipoise.errors import MissingExtra

FOLDER_VARIABLE: Final = "EQUIPOISE_TARGETS"
STAMP: Final = "whole.stamp"
STEP_S_MAX: Final = 1800
ADAPTERS_FOLDER: Final = Path(__file__).parents[1]
_URL: Final = re.compile(r"\b[a-z+]+://\S+")


@dataclass(frozen=True, slots=True)
class PinnedTarget:
    """A scheduler under test, in one version."""

    name: str
    version: str
    about: str

    @property
    def command(self) -> str:
        """The command that makes its folder."""
        return f"python -m equipoise.adapters.targets {self.name}"

    @property
    def folder(self) -> Path:
        """The folder of its environment, whether it exists or not."""
        root = os.environ.get(FOLDER_VARIABLE)
        home = Path(root) if root else Path.home() / ".cache" / "equipoise" / "targets"
        return home.absolute() / f"{self.name}-{self.version}"

    @property
    def findings(self) -> Path:
        """The file with the cases of its known defects in this version."""
        return ADAPTERS_FOLDER / self.name / f"findings-{self.version}.jsonl"

    @property
    def stamp(self) -> Path:
        """The file that is written last. It holds the fingerprint of the folder's sources."""
        return self.folder / STAMP

    def is_stamped(self, fingerprint: str) -> bool:
        """Whether the folder is complete and was made from exactly these sources."""
        return self.stamp.exists() and self.stamp.read_text() == fingerprint


class MissingTarget(MissingExtra):
    """The environment of a scheduler under test does not exist; an extra does not provide it."""

    code = "scheduler-missing"

    def __init__(self, target: PinnedTarget, why: str, cure: str) -> None:
        super().__init__(target.name, target.about)
        self.args = (f"{target.about} is not available: {why}; {cure}",)


@contextmanager
def locked_folder(target: PinnedTarget) -> Iterator[None]:
    """Lock the folder of a target, so that two processes do not make it at the same time."""
    try:
        target.folder.parent.mkdir(parents=True, exist_ok=True)
        lock_file = target.folder.with_name(f"{target.folder.name}.lock").open("w")
    except OSError as error:
        why = f"{error.filename} cannot be written ({error.strerror})"
        cure = f"set the environment variable {FOLDER_VARIABLE} to another folder"
        raise MissingTarget(target, why, cure) from error
    with lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        yield


def run_setup_step(
    target: PinnedTarget, *line: str, tools: str
) -> subprocess.CompletedProcess[str]:
    """Run one setup command and return its result; ``tools`` names what it needs."""
    try:
        return subprocess.run(
            line, capture_output=True, text=True, check=False, timeout=STEP_S_MAX,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        why = f"the setup of its environment took longer than {STEP_S_MAX} s"
        raise MissingTarget(target, why, f"run '{target.command}' again") from error
    except OSError as error:
        why = f"{line[0]} cannot be run ({error.strerror})"
        raise MissingTarget(target, why, f"use {tools}") from error


def without_urls(text: str) -> str:
    """The output of a tool without the addresses of package indexes."""
    return _URL.sub("an address", text)


@dataclass(frozen=True, slots=True)
class PythonTarget(PinnedTarget):
    """A scheduler that is written in Python and runs in a worker."""

    lock_path: str = ""
    """Below the folder of adapters; default: ``NAME/requirements.lock``."""
    python: str = ""
    """The interpreter that it needs, such as ``python3.12``; default: the present one."""

    @property
    def lock(self) -> Path:
        """The file that pins every package of its environment."""
        return ADAPTERS_FOLDER / (self.lock_path or f"{self.name}/requirements.lock")

    @property
    def script(self) -> Path:
        """The worker script, which the interpreter of that environment runs."""
        return ADAPTERS_FOLDER / self.name / "worker.py"


PYTHON_TARGETS: Final[Mapping[str, PythonTarget]] = {
    target.name: target
    for target in (
        PythonTarget("watcher", "17.0.0", "OpenStack Watcher, its strategies"),
        PythonTarget("proxlb", "2.3.0", "ProxLB, the greedy engine and the solver"),
        PythonTarget("nova", "34.0.0", "OpenStack Nova, the filters of its scheduler"),
        # Programs around Batsim: they run as they are, without a worker of ours. The pins of
        # pybatsim 3.2.1 name a ZeroMQ binding without a wheel, so its lock has a newer one.
        PythonTarget(
            "pybatsim", "3.2.1", "pybatsim for Batsim 3 and 4", "batsim/peers/pybatsim.lock"
        ),
        PythonTarget(
            "pybatsim-5",
            "4.0.0b0",
            "pybatsim for Batsim 5",
            "batsim/peers/pybatsim-5.lock",
            "python3.12",
        ),
        PythonTarget("evalys", "4.0.7", "evalys, charts of job runs", "batsim/peers/evalys.lock"),
        PythonTarget("accasim", "1.1.3", "AccaSim, a job simulator", "batsim/peers/accasim.lock"),
    )
}


def find_environment(name: str) -> Path | None:
    """Return the interpreter of a target's environment; ``None`` if that is not complete."""
    target = PYTHON_TARGETS[name]
    is_complete = target.is_stamped(_fingerprint(target))
    python = _interpreter(target)
    # The interpreter is a link to the Python that made it, which may be removed by now.
    return python if is_complete and python.exists() else None


def make_environment(name: str, *, python: str = "") -> Path:
    """Return the interpreter of a target's environment; make the environment if necessary.

    That takes minutes and a package index; without an index it raises ``MissingTarget``. The stamp
    is written last, so an incomplete environment, or one with other pins, is made again.
    """
    target = PYTHON_TARGETS[name]
    with locked_folder(target):
        existing = find_environment(name)
        if existing is not None:
            return existing
        shutil.rmtree(target.folder, ignore_errors=True)
        interpreter = python or _find_python(target)
        _run(target, interpreter, "-m", "venv", str(target.folder))
        _run(
            target,
            *(str(_interpreter(target)), "-m", "pip", "--disable-pip-version-check"),
            *("install", "--quiet", "--no-input", "--no-deps", "--require-hashes"),
            *("-r", str(target.lock)),
        )
        target.stamp.write_text(_fingerprint(target))
    return _interpreter(target)


def _find_python(target: PythonTarget) -> str:
    """Return an interpreter that the target can use; ``MissingTarget`` if there is none."""
    if not target.python:
        return sys.executable
    folders = [Path(folder) for folder in os.get_exec_path()]
    # A shim of pyenv is on the path even if it does not work, so its versions are tried as well.
    folders += sorted((Path.home() / ".pyenv" / "versions").glob("*/bin"))
    for candidate in (folder / target.python for folder in folders):
        if candidate.exists():
            line = (str(candidate), "-c", "")
            if run_setup_step(target, *line, tools=target.python).returncode == 0:
                return str(candidate)
    raise MissingTarget(target, f"it needs {target.python}", f"install {target.python}")


def _interpreter(target: PythonTarget) -> Path:
    return target.folder / "bin" / "python"


def _fingerprint(target: PythonTarget) -> str:
    return hashlib.sha256(target.lock.read_bytes()).hexdigest()


def _run(target: PinnedTarget, *line: str) -> None:
    done = run_setup_step(target, *line, tools="a Python with pip and venv")
    if done.returncode != 0:
        why = f"its environment could not be made ({_last_error(done.stderr or done.stdout)})"
        cure = f"run '{target.command}' with access to a package index and Python's venv"
        raise MissingTarget(target, why, cure)


def _last_error(output: str) -> str:
    """The last error line of a tool, without the address of any package index."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return without_urls((errors or lines or ["no output"])[-1])
