"""Starts a scheduler in a process group of its own, drains its output, and ends all of it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from threading import Event, Thread
from typing import Final, Self

from equipoise.errors import InputProblem, InvalidInput

_PIPE_BYTES: Final = 1 << 20
_READ_S: Final = 0.02
_TAIL_BYTES: Final = 8192
_TAIL_LINES: Final = 10
_LINE_CHARACTERS: Final = 300
_TERMINATION_S: Final = 5.0
_DRAIN_S: Final = 2.0


class SchedulerProcess:
    """A running scheduler. Leaving the context ends it and its children."""

    def __init__(
        self,
        words: Sequence[str],
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.words = words
        self.exit_code: int | None = None
        """The exit code, minus the signal if one ended it; None while it runs."""
        self.was_stopped = False
        """True if the scheduler did not end by itself."""
        self._tail = b""
        self._log: FileIO | None = None if log is None else _open_log(log)
        try:
            # A session of its own: Ctrl-C goes to the simulation, which then ends the scheduler.
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,
                env=environment,
            )
        except OSError as error:
            self._close_log()
            what = f"cannot be started: {(error.strerror or str(error)).lower()}"
            problem = InputProblem(key="--scheduler", what=what, cure="name a program that runs")
            raise InvalidInput("batsim", [problem]) from None
        self._ending = Event()
        self._enlarge_pipe()
        self._reader = Thread(target=self._drain, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop(grace_s=0)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def has_ended(self, wait_s: float = 0.0) -> str:
        """Return how the scheduler has ended; empty while it runs."""
        if wait_s:
            self._wait(wait_s)
        code = self._process.poll()
        return "" if code is None else f"ended with {describe_exit_code(code)}"

    def stop(self, *, grace_s: float) -> None:
        """Wait until the scheduler ends by itself, then end it and its children."""
        if self.exit_code is not None:
            return
        try:
            if not self._wait(grace_s):
                self.was_stopped = True
                self._signal(signal.SIGTERM)
                self._wait(_TERMINATION_S)
        finally:
            # Also after a second Ctrl-C: no process of the group may stay.
            self._signal(signal.SIGKILL)
            self.exit_code = self._process.wait()
            self._ending.set()
            self._reader.join(_DRAIN_S)
            self._close_log()

    def last_lines(self) -> str:
        """Return the end of its output."""
        lines = self._tail.decode("utf-8", "replace").splitlines()
        return "\n".join(line[:_LINE_CHARACTERS] for line in lines[-_TAIL_LINES:])

    def _wait(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _enlarge_pipe(self) -> None:
        """Let the scheduler write much between two reads, where the system can do it."""
        assert self._process.stdout is not None
        with suppress(OSError, AttributeError):
            fcntl.fcntl(self._process.stdout, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def _drain(self) -> None:
        """Read all output: a scheduler blocks on a full pipe."""
        assert self._process.stdout is not None
        with self._process.stdout as output:
            while chunk := output.read(_PIPE_BYTES):
                self._tail = (self._tail + chunk)[-_TAIL_BYTES:]
                # A full disk must not block the scheduler.
                with suppress(OSError, ValueError):
                    if self._log is not None:
                        self._log.write(chunk)
                # Few large reads: each one takes time from the simulation.
                self._ending.wait(_READ_S)

    def _close_log(self) -> None:
        if self._log is not None:
            self._log.close()


def describe_exit_code(code: int) -> str:
    """Return an exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def _open_log(path: Path) -> FileIO:
    try:
        return path.open("wb", buffering=0)
    except OSError as error:
        what = f"cannot be written: {(error.strerror or str(error)).lower()}"
        cure = "name another file"
        problem = InputProblem(key="", what=what, cure=cure, code="file-not-writable")
        raise InvalidInput(str(path), [problem]) from None
