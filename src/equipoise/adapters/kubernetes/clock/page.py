"""The clock page: memory that the simulator shares with one program built with the overlay.

``virtual_clock.go`` describes the same layout. Two pipes beside the page carry no data, only the
wake-ups: the simulator writes to ``PAGE.wake`` after it advanced the clock, and the program writes
to ``PAGE.idle`` when it became idle and the simulator asked for that.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Final, Self

from equipoise.adapters.kubernetes.clock.threads import ThreadStates
from equipoise.errors import WorldError

CLOCK_VARIABLE: Final = "EQUIPOISE_CLOCK"
"""The environment variable that gives a program the path of its page."""
PAGE_BYTES: Final = 4096
MAGIC: Final = int.from_bytes(b"Equipcl1", "little")
START_NS: Final = 1_000_000_000
_CHANGE: Final = 1 << 32


class Cell(IntEnum):
    """The 64-bit cells of the page."""

    MAGIC = 0
    NOW = 1
    WALL = 2
    READS = 3
    REQUEST = 4
    SEEN = 5
    STATE = 6
    NEXT = 7
    NOTIFY = 8
    PID = 9
    POLLER = 10
    SEED = 11


class VirtualClockPage:
    """The clock of one process. ``now_ns`` is its monotonic time, which starts at ``start_ns``.

    ``wall_ns`` is the time since 1970 at the start. The process reads the page from its first
    instruction on, so the clock need not run while it starts: advance it from timer to timer.
    ``seed`` is that of the shared functions of Go's package math/rand.
    """

    def __init__(
        self, path: Path, *, wall_ns: int, start_ns: int = START_NS, seed: int = 0
    ) -> None:
        assert start_ns > 0, "Go takes a monotonic time of 0 for no time"
        self.path = path
        self._wake_path, self._idle_path = (Path(f"{path}.{end}") for end in ("wake", "idle"))
        try:
            with path.open("w+b") as file:
                file.truncate(PAGE_BYTES)
                self._memory = mmap.mmap(file.fileno(), PAGE_BYTES)
            self._wake_fd, self.idle_fd = (
                _open_pipe(pipe) for pipe in (self._wake_path, self._idle_path)
            )
        except OSError as error:
            message = f"{error.filename or path} cannot be written ({error.strerror})"
            raise WorldError(message, code="file-not-writable") from error
        self._threads: ThreadStates | None = None
        self._bytes = memoryview(self._memory)
        self._cells = self._bytes.cast("q")
        self._cells[Cell.NOW] = start_ns
        self._cells[Cell.WALL] = wall_ns - start_ns
        self._cells[Cell.SEED] = seed
        self._cells[Cell.MAGIC] = MAGIC

    @property
    def environment(self) -> dict[str, str]:
        """What the environment of the process needs besides."""
        return {CLOCK_VARIABLE: str(self.path)}

    @property
    def now_ns(self) -> int:
        """The virtual monotonic time."""
        return self._cells[Cell.NOW]

    @property
    def next_timer_ns(self) -> int:
        """When the first timer of the process is due, 0 for none; known while it is idle.

        A timer that was stopped may still count: then nothing happens at that time.
        """
        return self._cells[Cell.NEXT]

    @property
    def pid(self) -> int:
        """The process that uses the page, 0 before it has started."""
        return self._cells[Cell.PID]

    @property
    def idle(self) -> bool:
        """Whether the process waits for an input or for the clock, with every timer run."""
        is_taken = self._cells[Cell.SEEN] == self._cells[Cell.REQUEST]
        return is_taken and self.pid != 0 and self._cells[Cell.STATE] % _CHANGE == 0

    @property
    def sequence(self) -> int:
        """A number that is another one if the process was active in between."""
        return self._cells[Cell.STATE] // _CHANGE

    def is_asleep(self) -> bool:
        """Whether the threads really sleep that wait for the network and for signals.

        An input or a signal wakes one of them in the kernel before the process can say that it is
        active. The kernel gives a signal to the main thread.
        """
        states = self._states()
        return states.is_asleep(self._cells[Cell.POLLER]) and states.is_asleep(self.pid)

    def check_alive(self) -> None:
        """Raise ``WorldError`` if the process has started and ended."""
        if self.pid:
            self._states().check_alive()

    def advance(self, to_ns: int) -> None:
        """Set the clock of an idle process, and wake the process: it runs the timers that are due.

        Readings go on where they were if there were more of them than nanoseconds have passed.
        """
        cells = self._cells
        passed_ns = to_ns - cells[Cell.NOW]
        assert passed_ns >= 0, "time does not go back"
        cells[Cell.READS] = max(0, cells[Cell.READS] - passed_ns)
        cells[Cell.NOW] = to_ns
        cells[Cell.REQUEST] += 1
        os.write(self._wake_fd, b"\1")

    def ask_for_idle(self) -> None:
        """Make ``idle_fd`` readable when the process becomes idle the next time."""
        self._cells[Cell.NOTIFY] = 1

    def take_idle(self) -> None:
        """Empty ``idle_fd``."""
        with suppress(BlockingIOError):
            os.read(self.idle_fd, PAGE_BYTES)

    def close(self) -> None:
        """Remove the page and its pipes. The process must have ended."""
        if self._memory.closed:
            return
        if self._threads is not None:
            self._threads.close()
        self._cells.release()
        self._bytes.release()
        self._memory.close()
        os.close(self._wake_fd)
        os.close(self.idle_fd)
        for path in (self.path, self._wake_path, self._idle_path):
            path.unlink(missing_ok=True)

    def _states(self) -> ThreadStates:
        if self._threads is None:
            self._threads = ThreadStates(self.pid)
        return self._threads

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _open_pipe(path: Path) -> int:
    """A pipe with a name, opened at both ends, so that neither side sees the other one's end."""
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
