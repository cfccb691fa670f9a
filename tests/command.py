"""Runs the installed command in a process, or the same entry point in this process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from equipoise.cli.main import main

COMMAND = Path(sys.executable).parent / "equipoise"


def call(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command and wait for its end."""
    return subprocess.run(
        [COMMAND, *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, timeout=120, env=os.environ | env,
    )  # fmt: skip


def call_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in this process: a new one needs half a second to load the product.

    Tests of what the operating system sees (pipes, signals, the environment) use ``call``.
    """
    out, errors, status = io.StringIO(), io.StringIO(), 0
    with (
        patch.object(sys, "argv", ["equipoise", *arguments]),
        redirect_stdout(out),
        redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as exit_:
            status = int(exit_.code or 0)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), errors.getvalue())


def answer(*arguments: str, code: int = 0) -> Any:
    """Run the command with ``--json`` in this process and return its document."""
    done = call_here(*arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)
