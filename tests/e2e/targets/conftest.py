"""The tests of foreign schedulers wait until ``make test`` has made them in the background."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

WAIT_S_MAX = 900


@pytest.fixture(scope="session", autouse=True)
def targets_are_made() -> None:
    """Wait for the process that makes the environments, if there is one."""
    pid = os.environ.get("EQUIPOISE_TARGETS_PID", "")
    until = time.monotonic() + WAIT_S_MAX
    while pid and _is_running(pid):
        # A skip would hide hundreds of tests. Only what the registries lack is skipped.
        assert time.monotonic() < until, f"the targets are not made after {WAIT_S_MAX} s"
        time.sleep(1)


def _is_running(pid: str) -> bool:
    """Tell whether a process still works; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[-1].split()[0] != "Z"
    except OSError:
        return False
