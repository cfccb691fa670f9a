"""Stores the exchange of a run, one JSON object per line, and replays it without the scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import msgspec

from equipoise.adapters.batsim.protocol.replay import first_difference
from equipoise.errors import InputProblem, InvalidInput, WorldError

SIMULATOR, SCHEDULER = "batsim", "sched"


class ExchangeRecorder:
    """Writes each message as it passes: ``seq``, ``from`` (``batsim`` or ``sched``), ``msg``."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("wb")
        except OSError as error:
            what = f"cannot be written: {(error.strerror or str(error)).lower()}"
            code = "file-not-writable"
            problem = InputProblem(key="", what=what, cure="name another file", code=code)
            raise InvalidInput(str(path), [problem]) from None
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __call__(self, sender: str, message: object) -> None:
        """Write one message."""
        entry = {"seq": self._count, "from": sender, "msg": message}
        self._file.write(msgspec.json.encode(entry) + b"\n")
        self._count += 1


class RecordEnded(WorldError):
    """The replay stops: the record has no more replies, or a message differs from it."""

    code = "record-ended"


class RecordedScheduler:
    """Answers with the replies of a record, and compares each message with the recorded one."""

    def __init__(self, path: Path) -> None:
        self.waited_s = 0.0
        self.differences: list[str] = []
        """The first difference; empty if all messages are equal."""
        self._entries = _read_entries(path)
        self._next = next(self._entries, None)
        self._messages = 0
        if self._next is None:
            problem = InputProblem(key="", what="has no message", cure="name a recorded exchange")
            raise InvalidInput(str(path), [problem])

    def answer(self, message: dict[str, Any]) -> object:
        """Compare the message and return the recorded reply."""
        self._messages += 1
        recorded = self._take(SIMULATOR)
        if recorded is None:
            raise self._difference(": one more than in the record")
        found = first_difference(recorded["msg"], message)
        if found is not None:
            raise self._difference(found)
        reply = self._take(SCHEDULER)
        if reply is not None:
            return reply["msg"]
        if self._next is not None:
            raise self._difference(": the record has no reply")
        # The recorded run ended here too: its scheduler never answered.
        raise RecordEnded("the record has no reply")

    def check_end(self) -> None:
        """Compare the ends: note a difference if the record goes further than the run."""
        if self._next is not None and not self.differences:
            self.differences.append(f"message {self._messages + 1}: the run has ended before it")

    def _take(self, sender: str) -> dict[str, Any] | None:
        """Return the next entry if it is from this sender."""
        entry = self._next
        if entry is None or entry["from"] != sender:
            return None
        self._next = next(self._entries, None)
        return entry

    def _difference(self, what: str) -> RecordEnded:
        self.differences.append(f"message {self._messages}{what}")
        return RecordEnded(self.differences[-1])


def _read_entries(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _read_entry(path, number, line)
    except OSError as error:
        what = f"cannot be read: {(error.strerror or '').lower()}"
        code = "file-not-readable"
        problem = InputProblem(key="", what=what, cure="name a recorded exchange", code=code)
        raise InvalidInput(str(path), [problem]) from None


def _read_entry(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry = msgspec.json.decode(line, type=dict[str, Any])
        if entry["from"] in {SIMULATOR, SCHEDULER} and "msg" in entry:
            return entry
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        pass
    cure = "write a JSON object with from and msg"
    problem = InputProblem(key="", what="is no recorded message", cure=cure, line=number)
    raise InvalidInput(str(path), [problem])


def format_message(message: object) -> str:
    """Return the JSON text of a message."""
    return msgspec.json.encode(message).decode()
