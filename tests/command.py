"""The installed command, called as a person or a program calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).parent / "equipoise"


def call(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Call and wait for the end."""
    return subprocess.run(
        [COMMAND, *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, timeout=120, env=os.environ | env,
    )  # fmt: skip


def answer(*arguments: str, code: int = 0) -> Any:
    """Call with ``--json`` and read the one document that comes out."""
    done = call(*arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)
