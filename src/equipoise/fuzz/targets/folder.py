"""The folder of a target: where it is, whether it is whole, and who may make it.

What a target needs is made once, in a folder of its own, and found there ever after.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from equipoise.errors import MissingExtra

VARIABLE: Final = "EQUIPOISE_TARGETS"
STAMP: Final = "whole.stamp"
STEP_S_MAX: Final = 1800
HERE: Final = Path(__file__).parent
_ADDRESS: Final = re.compile(r"\b[a-z+]+://\S+")


@dataclass(frozen=True, slots=True)
class Target:
    """A scheduler under test, in one version."""

    name: str
    version: str
    about: str

    @property
    def command(self) -> str:
        """What makes its folder."""
        return f"python -m equipoise.fuzz.targets {self.name}"

    @property
    def folder(self) -> Path:
        """Where it is, or would be."""
        root = os.environ.get(VARIABLE)
        home = Path(root) if root else Path.home() / ".cache" / "equipoise" / "targets"
        return home.absolute() / f"{self.name}-{self.version}"

    @property
    def findings(self) -> Path:
        """The cases of what is known to be wrong with it in this version."""
        return HERE / f"{self.name}-{self.version}.findings.jsonl"

    @property
    def stamp(self) -> Path:
        """The file that is written last, and says from what the folder was made."""
        return self.folder / STAMP

    def is_stamped(self, fingerprint: str) -> bool:
        """Tell whether the folder was made to its end, and from just this."""
        return self.stamp.exists() and self.stamp.read_text() == fingerprint


class MissingTarget(MissingExtra):
    """The folder of a scheduler under test is not there; no extra of ours would help."""

    def __init__(self, target: Target, why: str, cure: str) -> None:
        super().__init__(target.name, target.about)
        self.args = (f"{target.about} cannot be asked: {why}; {cure}",)


@contextmanager
def alone(target: Target) -> Iterator[None]:
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


def take_step(target: Target, *line: str, tools: str) -> subprocess.CompletedProcess[str]:
    """Run one step of the making to its end, good or bad; ``tools`` says what it takes."""
    try:
        return subprocess.run(
            line, capture_output=True, text=True, check=False, timeout=STEP_S_MAX,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        why = f"making its environment took longer than {STEP_S_MAX} s"
        raise MissingTarget(target, why, f"run '{target.command}' again") from error
    except OSError as error:
        why = f"{line[0]} cannot be run ({error.strerror})"
        raise MissingTarget(target, why, f"name {tools}") from error


def without_addresses(text: str) -> str:
    """What a tool said, without the address of any package index."""
    return _ADDRESS.sub("an address", text)
