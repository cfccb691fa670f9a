"""The states of the threads of a process, read from /proc with files that stay open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from equipoise.errors import WorldError

PROC: Final = Path("/proc")
_SLEEPING: Final = b"S"
_ENDED: Final = (b"", b"Z", b"X")


class Scan(NamedTuple):
    """One look at all threads of a process."""

    all_asleep: bool
    used_ns: dict[str, int]
    """The CPU time that each thread has used."""


class ThreadStates:
    """Reads the states of the threads of one process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._folder = PROC / str(pid) / "task"
        self._files: dict[str, tuple[int, int]] = {}
        if not (PROC / "self" / "schedstat").exists():
            message = "this system has no /proc with the CPU time of threads"
            raise WorldError(message, code="clock-unsupported")

    def is_asleep(self, thread: int) -> bool:
        """Whether a thread sleeps in the kernel."""
        files = self._open(str(thread))
        state = _state(files[0]) if files is not None else b""
        if state in _ENDED:
            self.check_alive()
        return state == _SLEEPING

    def scan(self) -> Scan:
        """Look at all threads. A thread that has ended in between is left out."""
        try:
            threads = os.listdir(self._folder)
        except OSError:
            threads = []
        all_asleep, used_ns = True, {}
        for thread in threads:
            files = self._open(thread)
            times = _read(files[1]).split() if files is not None else []
            if files is None or not times:
                continue
            used_ns[thread] = int(times[0])
            state = _state(files[0])
            all_asleep = all_asleep and (state == _SLEEPING or state in _ENDED)
        for thread in self._files.keys() - set(threads):
            self._forget(thread)
        if not threads or str(self.pid) not in used_ns or not all_asleep:
            self.check_alive()
        return Scan(all_asleep, used_ns)

    def check_alive(self) -> None:
        """Raise ``WorldError`` if the process has ended."""
        try:
            state = _state_of((self._folder.parent / "stat").read_bytes())
        except OSError:
            state = b""
        if state in _ENDED:
            raise WorldError(f"process {self.pid} has ended", code="scheduler-ended")

    def close(self) -> None:
        """Close all files."""
        for thread in list(self._files):
            self._forget(thread)

    def _open(self, thread: str) -> tuple[int, int] | None:
        files = self._files.get(thread)
        if files is None:
            opened: list[int] = []
            try:
                for name in ("stat", "schedstat"):
                    path = self._folder / thread / name
                    opened.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                for file in opened:
                    os.close(file)
                return None  # the thread has ended in between
            files = self._files[thread] = opened[0], opened[1]
        return files

    def _forget(self, thread: str) -> None:
        for file in self._files.pop(thread):
            os.close(file)


def _read(file: int) -> bytes:
    """The text of a file in /proc; nothing if its thread has ended."""
    try:
        return os.pread(file, 1024, 0)
    except ProcessLookupError:
        return b""


def _state(file: int) -> bytes:
    return _state_of(_read(file))


def _state_of(stat: bytes) -> bytes:
    """The letter after the name, which may itself contain brackets and spaces."""
    return stat[stat.rfind(b")") + 2 :][:1]
