"""The journal: an append-only list of events; in memory, and as the text file of a run.

Events are counted from 1 without gaps. They are kept as the lines of JSON that ``encode_event``
writes, so equal events are equal bytes. A damaged line is refused with its number.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, Self

from equipoise.errors import InputProblem, InvalidInput, WorldError
from equipoise.model.event import Event, decode_event, encode_event, event_kind
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import replay


class JournalEntry(NamedTuple):
    """An event in its stored form."""

    at_ms: int
    kind: str
    line: bytes


class Journal(ABC):
    """An append-only list of events. The caller closes it, or uses it in a ``with`` statement."""

    def __init__(self, *, source: str, name: str) -> None:
        self.source = source
        """The address of the database for messages, without a password."""
        self.name = name

    @abstractmethod
    def append(self, events: Sequence[Event]) -> int:
        """Append all events or none, and return the new length.

        When the call returns the events are on disk.
        """

    @abstractmethod
    def try_lock(self) -> bool:
        """Lock the journal until it is closed; return ``False`` if another run holds the lock."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def close(self) -> None:
        """Close connections and release the lock. A closed journal must not be used."""

    @abstractmethod
    def _batches(self, start: int, kinds: Collection[str]) -> Iterator[list[tuple[int, bytes]]]:
        """Yield batches of (number, line) in order, without the first ``start`` events."""

    def lines(self, start: int = 0, *, kinds: Collection[str] = ()) -> Iterator[bytes]:
        """Yield the events in their stored form: lines of JSON, without line ends."""
        for batch in self._batches(start, kinds):
            for _, line in batch:
                yield line

    def events(self, start: int = 0, *, kinds: Collection[str] = ()) -> Iterator[Event]:
        """Yield the events without the first ``start``; with ``kinds`` only events of these."""
        for batch in self._batches(start, kinds):
            for sequence, line in batch:
                try:
                    event = decode_event(line)
                except ValueError as error:
                    raise self._unreadable(sequence, error) from error
                yield event

    def sha256(self) -> str:
        """Return the hash of all lines, each with a line end. Equal runs have equal hashes."""
        digest = sha256()
        for batch in self._batches(0, ()):
            digest.update(b"".join(line + b"\n" for _, line in batch))
        return digest.hexdigest()

    def snapshot(self) -> Snapshot:
        """Return the state of the cluster after the last event."""
        return replay(Snapshot(), self.events())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _entries(self, events: Sequence[Event]) -> list[JournalEntry]:
        """Return events in their stored form, after checking that each can be decoded."""
        return [self._entry(event) for event in events]

    def _entry(self, event: Event) -> JournalEntry:
        line = encode_event(event)
        try:
            # Encoding does not validate. An id with a space, or a gain that is not a number, would
            # be recorded now and make every later read of the journal fail.
            decode_event(line)
        except ValueError as error:
            problem = InputProblem(
                key=f"a new event {event_kind(event)}",
                what=f"cannot be decoded: {error}",
                cure="nothing was recorded; correct the code that created the event",
                code="event-invalid",
            )
            raise InvalidInput(self._place, (problem,)) from error
        return JournalEntry(event.at_ms, event_kind(event), line)

    @property
    def _place(self) -> str:
        return f"{self.source}, journal {self.name}"

    def _unreadable(self, sequence: int, error: ValueError) -> InvalidInput:
        return self._damaged(
            sequence,
            what=f"cannot be decoded: {error}",
            cure="if a newer Equipoise wrote it, upgrade this one; if not, restore a copy",
            code="event-unreadable",
        )

    def _damaged(self, sequence: int, *, what: str, cure: str, code: str) -> InvalidInput:
        problem = InputProblem(key=f"event {sequence}", what=what, cure=cure, code=code)
        return InvalidInput(self._place, (problem,))


# In batches like a database, so that a reader meets the same limits in tests.
_BATCH: Final = 1024


class MemoryJournal(Journal):
    """A journal in the memory of the process."""

    def __init__(self, *, name: str = "main") -> None:
        super().__init__(source="memory", name=name)
        self._lines: list[bytes] = []
        self._kinds: list[str] = []

    def append(self, events: Sequence[Event]) -> int:
        """Append all events or none, and return the new length."""
        entries = self._entries(events)
        self._lines.extend(entry.line for entry in entries)
        self._kinds.extend(entry.kind for entry in entries)
        return len(self._lines)

    def try_lock(self) -> bool:
        """Return ``True``: no other process can open this journal."""
        return True

    def __len__(self) -> int:
        return len(self._lines)

    def close(self) -> None:
        """Do nothing: the events stay readable."""

    def _batches(self, start: int, kinds: Collection[str]) -> Iterator[list[tuple[int, bytes]]]:
        assert start >= 0, "start must not be negative"
        end = len(self._lines)
        for first in range(start, end, _BATCH):
            last = min(first + _BATCH, end)
            yield [
                (place + 1, self._lines[place])
                for place in range(first, last)
                if not kinds or self._kinds[place] in kinds
            ]


SUFFIX: Final = ".jsonl"


class LinesJournal(Journal):
    """A journal in a text file: one line of JSON per event. ``open_journal`` creates it.

    The file is the bytes of ``Journal.lines`` with line ends, so its hash is that of the journal.
    One process writes it; a database journal has locks and detects a second writer.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        super().__init__(source=str(path), name="main")
        self._path = path.absolute()
        try:
            self._file = self._path.open("ab" if create else "rb")
            with self._path.open("rb") as stored:
                self._length = sum(1 for _ in stored)
        except OSError as error:
            raise _problem(path, error, create=create) from error

    def append(self, events: Sequence[Event]) -> int:
        """Append all events and return the new length. They are on disk when the call returns."""
        entries = self._entries(events)
        try:
            self._file.write(b"".join(entry.line + b"\n" for entry in entries))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            message = f"{self.source}: cannot write the journal: {error.strerror}"
            raise WorldError(message, code="journal-failed") from error
        self._length += len(entries)
        return self._length

    def try_lock(self) -> bool:
        """Return ``True``: the caller has just made the file in a folder of its own."""
        return True

    def __len__(self) -> int:
        return self._length

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _batches(self, start: int, kinds: Collection[str]) -> Iterator[list[tuple[int, bytes]]]:
        assert start >= 0, "start must not be negative"
        # The kind is the first key of a line, so that lines need not be decoded to be chosen.
        heads = tuple(b'{"event":"%s"' % kind.encode() for kind in kinds)
        batch: list[tuple[int, bytes]] = []
        with self._path.open("rb") as stored:
            for number, line in enumerate(stored, 1):
                if number > start and (not heads or line.startswith(heads)):
                    batch.append((number, line.rstrip(b"\r\n")))
                if len(batch) >= _BATCH:
                    yield batch
                    batch = []
        if batch:
            yield batch


def _problem(path: Path, error: OSError, *, create: bool) -> InvalidInput:
    if isinstance(error, FileNotFoundError) and not create:
        what, cure, code = "does not exist", "name the journal of a run", "database-not-found"
    else:
        what = f"cannot be opened: {(error.strerror or '').lower()}"
        cure, code = "name another file", "database-not-writable" if create else "file-not-readable"
    return InvalidInput(str(path), [InputProblem(key="", what=what, cure=cure, code=code)])
