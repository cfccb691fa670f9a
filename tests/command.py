"""Runs the installed command in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).parent / "equipoise"


def call(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command and wait for its end."""
    return subprocess.run(
        [COMMAND, *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, timeout=120, env=os.environ | env,
    )  # fmt: skip


def answer(*arguments: str, code: int = 0) -> Any:
    """Run the command with ``--json`` and return its document."""
    done = call(*arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)
