"""Runs a command and measures its time and peak memory.

Never imports equipoise: this file is also run by itself, as a small program between the benchmark
and the process. A child inherits the peak memory of its parent, and a benchmark has a lot.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The result of a process that has ended."""

    code: int | None
    """``None`` if the time limit ended it."""
    stdout_text: str
    stderr_text: str
    wall_s: float
    peak_mib: int


def run_measured(line: Sequence[str], *, seconds_max: float) -> ProcessResult:
    """Run a command to its end, or until the time limit."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        process = subprocess.Popen(
            # Isolated and without site packages, so that this process itself is small.
            [sys.executable, "-I", "-S", __file__, str(report), *line],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            said, complained = process.communicate(timeout=seconds_max)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # it and what it started
            said, complained = process.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return ProcessResult(None, said, complained, seconds_max, 0)
        known = json.loads(report.read_text()) if report.exists() else {}
    code = known.get("code", process.returncode)
    return ProcessResult(code, said, complained, known.get("wall_s", 0.0), known.get("peak_mib", 0))


def _main(report: str, *line: str) -> int:
    began = perf_counter()
    code = subprocess.call(line)
    wall_s = perf_counter() - began
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    peak_mib = most // (1024 * 1024 if sys.platform == "darwin" else 1024)
    Path(report).write_text(json.dumps({"code": code, "wall_s": wall_s, "peak_mib": peak_mib}))
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
