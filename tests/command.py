"""Runs the installed command in a process, or the same entry point in this process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from builders import suggested
from equipoise.cli.main import main

COMMAND = Path(sys.executable).parent / "equipoise"


def call(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command and wait for its end."""
    return subprocess.run(
        [COMMAND, *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, timeout=120, env=os.environ | env,
    )  # fmt: skip


def call_here(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in this process: a new one needs half a second to load the product.

    Tests of what the operating system sees (pipes, signals, the environment) use ``call``.
    """
    # Text over bytes, because some commands write bytes.
    out, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    status = 0
    with (
        chdir(cwd) if cwd else nullcontext(),
        patch.object(sys, "argv", ["equipoise", *arguments]),
        redirect_stdout(out),
        redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as exit_:
            status = int(exit_.code or 0)
    texts = (stream.detach().getvalue().decode() for stream in (out, errors))
    return subprocess.CompletedProcess(arguments, status, *texts)


def refusals(*arguments: str) -> list[tuple[str, str]]:
    """The code and the key of each problem of a command that is refused as bad input."""
    return [(row["code"], row["key"]) for row in answer(*arguments, code=2)["problems"]]


def located(*arguments: str) -> list[tuple[str, str, int | None]]:
    """The code, the key and the line of each problem of a file that a command refuses."""
    problems = answer(*arguments, code=2)["problems"]
    return [(row["code"], row["key"], row["line"]) for row in problems]


def cured(*arguments: str) -> tuple[str, str]:
    """The code and the cure of the only problem of a command that is refused."""
    (row,) = answer(*arguments, code=2)["problems"]
    return row["code"], row["cure"]


def misspelt(*arguments: str) -> tuple[str, str | None]:
    """The code of the only problem of a refused command, and the name that its cure suggests."""
    code, cure = cured(*arguments)
    return code, suggested(cure)


def answer(*arguments: str, code: int = 0) -> Any:
    """Run the command with ``--json`` in this process and return its document."""
    done = call_here(*arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)
