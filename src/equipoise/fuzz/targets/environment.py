"""The environments of the schedulers under test: one folder each, with exactly pinned packages.

The recipes that ask them use private names, so every package is pinned, with its hash, in
``NAME.lock``. A lock is made by hand and on purpose, never with the house's own:

    echo python-watcher==17.0.0 | uv pip compile - --universal --python-version 3.11 \
      --generate-hashes --no-header --no-emit-index-url --no-annotate -o watcher.lock
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

VARIABLE: Final = "EQUIPOISE_TARGETS"
STAMP: Final = "whole.stamp"
STEP_S_MAX: Final = 1800
_HERE: Final = Path(__file__).parent
_ADDRESS: Final = re.compile(r"\b[a-z+]+://\S+")


@dataclass(frozen=True, slots=True)
class Target:
    """A scheduler under test, in one version."""

    name: str
    version: str
    about: str

    @property
    def lock(self) -> Path:
        """The file that pins every package of its environment."""
        return _HERE / f"{self.name}.lock"

    @property
    def script(self) -> Path:
        """The worker, which the interpreter of that environment runs."""
        return _HERE / f"{self.name}_worker.py"

    @property
    def command(self) -> str:
        """What makes its environment."""
        return f"python -m equipoise.fuzz.targets {self.name}"

    @property
    def folder(self) -> Path:
        """Where its environment is, or would be."""
        root = os.environ.get(VARIABLE)
        home = Path(root) if root else Path.home() / ".cache" / "equipoise" / "targets"
        return home.absolute() / f"{self.name}-{self.version}"


TARGETS: Final[Mapping[str, Target]] = {
    target.name: target
    for target in (
        Target("watcher", "17.0.0", "OpenStack Watcher, strategy workload_stabilization"),
        Target("proxlb", "2.3.0", "ProxLB, the greedy engine"),
    )
}


class MissingTarget(MissingExtra):
    """The environment of a scheduler under test is not there; no extra of ours would help."""

    def __init__(self, target: Target, why: str, cure: str) -> None:
        super().__init__(target.name, target.about)
        self.args = (f"{target.about} cannot be asked: {why}; {cure}",)


def find(name: str) -> Path | None:
    """Return the interpreter of a target's environment, or nothing if it is not there whole."""
    target = TARGETS[name]
    stamp = target.folder / STAMP
    whole = stamp.exists() and stamp.read_text() == _fingerprint(target)
    python = _interpreter(target)
    # It points to the Python that made it, which may be gone by now.
    return python if whole and python.exists() else None


def make(name: str, *, python: str = sys.executable) -> Path:
    """Return the interpreter of a target's environment, which is made if it is not there.

    Making it takes minutes and a package index; without one it raises ``MissingTarget``. The stamp
    is written last, so one that was left half made, or has other pins, is made anew.
    """
    target = TARGETS[name]
    with _alone(target):
        found = find(name)
        if found is not None:
            return found
        shutil.rmtree(target.folder, ignore_errors=True)
        _run(target, python, "-m", "venv", str(target.folder))
        _run(
            target,
            *(str(_interpreter(target)), "-m", "pip", "--disable-pip-version-check"),
            *("install", "--quiet", "--no-input", "--no-deps", "--require-hashes"),
            *("-r", str(target.lock)),
        )
        (target.folder / STAMP).write_text(_fingerprint(target))
    return _interpreter(target)


def _interpreter(target: Target) -> Path:
    return target.folder / "bin" / "python"


def _fingerprint(target: Target) -> str:
    return hashlib.sha256(target.lock.read_bytes()).hexdigest()


@contextmanager
def _alone(target: Target) -> Iterator[None]:
    """Hold the door while making, so that two who make the same do not tear down each other's."""
    try:
        target.folder.parent.mkdir(parents=True, exist_ok=True)
        door = target.folder.with_name(f"{target.folder.name}.door").open("w")
    except OSError as error:
        why = f"{error.filename} cannot be written ({error.strerror})"
        cure = f"name another folder in the environment variable {VARIABLE}"
        raise MissingTarget(target, why, cure) from error
    with door:
        fcntl.flock(door, fcntl.LOCK_EX)
        yield


def _run(target: Target, *line: str) -> None:
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, check=False, timeout=STEP_S_MAX,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        why = f"making its environment took longer than {STEP_S_MAX} s"
        raise MissingTarget(target, why, f"run '{target.command}' again") from error
    except OSError as error:
        why = f"{line[0]} cannot be run ({error.strerror})"
        raise MissingTarget(target, why, "name a Python that has pip and venv") from error
    if done.returncode != 0:
        why = f"its environment could not be made ({_last_words(done.stderr or done.stdout)})"
        cure = f"with a package index in reach and Python's venv, run '{target.command}'"
        raise MissingTarget(target, why, cure)


def _last_words(output: str) -> str:
    """The line that says what went wrong, without the address of any package index."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    said = (errors or lines or ["it said nothing"])[-1]
    return _ADDRESS.sub("an address", said)
