"""A child process that answers JSON lines: its start, its time limits, its end.

The process leads a session of its own, so that Ctrl-C goes to its parent, which ends it with all
its children.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Self

from equipoise.errors import WorldError

_EXIT_S_MAX: Final = 0.5
_STDERR_BYTES_MAX: Final = 2000


@contextlib.contextmanager
def call_when_late(delay_s: float, callback: Callable[[], object]) -> Iterator[None]:
    """Call ``callback`` in a thread if the body takes longer than ``delay_s``."""
    timer = threading.Timer(delay_s, callback)
    timer.daemon = True  # it must not keep a program alive that ends during the delay
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class LineProcess:
    """A long-lived process; end it with ``with`` or ``close``.

    ``line`` is the command that starts it, ``name`` its name in error messages.
    """

    def __init__(
        self, line: Sequence[str | Path], *, name: str, environ: Mapping[str, str] | None = None
    ) -> None:
        self._name = name
        self._lost = ""
        """Why the process cannot be used any more; later questions get the same error."""
        self._lost_code = "worker-closed"
        self._timed_out = threading.Event()
        # A file, not a pipe: it is read only after the process has ended, and a pipe would fill up.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        try:
            self._process = subprocess.Popen(
                line,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
                start_new_session=True, env=environ,
            )  # fmt: skip
        except OSError as error:
            self._stderr.close()
            text = f"{self._name} does not start: {error}"
            raise WorldError(text, code="worker-not-started") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def is_timed_out(self) -> bool:
        """Whether the process was ended because it exceeded its time limit."""
        return self._timed_out.is_set()

    def close(self) -> None:
        """End the process. Further calls have no effect."""
        self._kill()  # first: closing a stream would wait for a process that does not read
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # unsent data is lost, as intended
                if stream is not None:
                    stream.close()
        self._stderr.close()
        self._lost = self._lost or f"{self._name} is closed"

    def exchange(
        self, question: Mapping[str, Any], seconds_max: float | None = None
    ) -> dict[str, Any]:
        """Send one line and read one line. The time limit kills the process, which ends both."""
        if self._lost:
            raise WorldError(self._lost, code=self._lost_code)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = b""
        with self._time_limit(seconds_max), contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        # Checked first: a process that the time limit killed also leaves an incomplete line.
        if self._timed_out.is_set():
            raise self._fail(f"gave no answer within {seconds_max:g} s", "scheduler-timeout")
        if not line.endswith(b"\n"):
            raise self._fail("died", "worker-died")
        try:
            reply = json.loads(line)
        except ValueError as error:
            how = f"sent an invalid answer: {line[:200]!r}"
            raise self._fail(how, "worker-answer-invalid") from error
        if not isinstance(reply, dict):
            raise self._fail(f"sent an invalid answer: {line[:200]!r}", "worker-answer-invalid")
        return reply

    def _time_limit(self, seconds_max: float | None) -> AbstractContextManager[None]:
        """Kill the process if the body takes longer."""
        if seconds_max is None:
            return contextlib.nullcontext()
        return call_when_late(seconds_max, self._kill_at_time_limit)

    def _kill_at_time_limit(self) -> None:
        self._timed_out.set()
        self._kill()

    def _fail(self, how: str, code: str) -> WorldError:
        """End the process and return the error, with the end of its standard error."""
        # A process that closed its pipe may be exiting: its own exit code is more precise.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_S_MAX)
        self._kill()
        exit_code = self._process.wait()
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - _STDERR_BYTES_MAX))
        output = self._stderr.read().decode(errors="replace").strip()
        ended = f" (exit code {exit_code})" if code == "worker-died" else ""
        self._lost = f"{self._name} {how}{ended}" + (f":\n{output}" if output else "")
        self._lost_code = code
        return WorldError(self._lost, code=code)

    def _kill(self) -> None:
        """Kill the process and its children: all of them are in the session that it leads."""
        if self._process.returncode is None:  # otherwise another process may have its id
            os.killpg(self._process.pid, signal.SIGKILL)
