"""The environments of the schedulers under test: one folder each, with exactly pinned packages.

The recipes that ask them use private names, so every package is pinned, with its hash, in
``NAME.lock``. A lock is made by hand and on purpose, never with the house's own:

    echo python-watcher==17.0.0 | uv pip compile - --universal --python-version 3.11 \
      --generate-hashes --no-header --no-emit-index-url --no-annotate -o watcher.lock
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from equipoise.fuzz.targets.folder import (
    HERE,
    MissingTarget,
    Target,
    alone,
    take_step,
    without_addresses,
)


@dataclass(frozen=True, slots=True)
class PythonTarget(Target):
    """A scheduler that is written in Python, and is asked by a worker."""

    @property
    def lock(self) -> Path:
        """The file that pins every package of its environment."""
        return HERE / f"{self.name}.lock"

    @property
    def script(self) -> Path:
        """The worker, which the interpreter of that environment runs."""
        return HERE / f"{self.name}_worker.py"


TARGETS: Final[Mapping[str, PythonTarget]] = {
    target.name: target
    for target in (
        PythonTarget("watcher", "17.0.0", "OpenStack Watcher, its strategies"),
        PythonTarget("proxlb", "2.3.0", "ProxLB, the greedy engine and the solver"),
        PythonTarget("nova", "34.0.0", "OpenStack Nova, the filters of its scheduler"),
    )
}


def find(name: str) -> Path | None:
    """Return the interpreter of a target's environment, or nothing if it is not there whole."""
    target = TARGETS[name]
    whole = target.is_stamped(_fingerprint(target))
    python = _interpreter(target)
    # It points to the Python that made it, which may be gone by now.
    return python if whole and python.exists() else None


def make(name: str, *, python: str = sys.executable) -> Path:
    """Return the interpreter of a target's environment, which is made if it is not there.

    Making it takes minutes and a package index; without one it raises ``MissingTarget``. The stamp
    is written last, so one that was left half made, or has other pins, is made anew.
    """
    target = TARGETS[name]
    with alone(target):
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
        target.stamp.write_text(_fingerprint(target))
    return _interpreter(target)


def _interpreter(target: PythonTarget) -> Path:
    return target.folder / "bin" / "python"


def _fingerprint(target: PythonTarget) -> str:
    return hashlib.sha256(target.lock.read_bytes()).hexdigest()


def _run(target: Target, *line: str) -> None:
    done = take_step(target, *line, tools="a Python that has pip and venv")
    if done.returncode != 0:
        why = f"its environment could not be made ({_last_words(done.stderr or done.stdout)})"
        cure = f"with a package index in reach and Python's venv, run '{target.command}'"
        raise MissingTarget(target, why, cure)


def _last_words(output: str) -> str:
    """The line that says what went wrong, without the address of any package index."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return without_addresses((errors or lines or ["it said nothing"])[-1])
