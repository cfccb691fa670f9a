"""What every journal can do, wherever it keeps its lines.

A journal is a list of events, counted from 1 without gaps, that only ever grows at its end. It is
kept as the lines of JSON that ``encode_event`` writes, so equal stories are equal bytes.
It never hands out an event it cannot vouch for: a damaged line is refused with its number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from types import TracebackType
from typing import NamedTuple, Self

from equipoise.errors import InvalidInput, Problem
from equipoise.model.change.transition import replay
from equipoise.model.event import Event, decode_event, encode_event, kind_of
from equipoise.model.snapshot import Snapshot


class Entry(NamedTuple):
    """An event on its way into a journal."""

    at_ms: int
    kind: str
    line: bytes


class Journal(ABC):
    """An append-only list of events. Close it after use, or use it in a ``with``."""

    def __init__(self, *, source: str, name: str) -> None:
        self.source = source
        """Where it is kept, fit to be shown: no passwords."""
        self.name = name

    @abstractmethod
    def append(self, events: Sequence[Event]) -> int:
        """Write events behind the last one, all or none, and return the new length.

        When it returns they are acknowledged: nothing short of losing the disk loses them.
        """

    @abstractmethod
    def hold(self) -> bool:
        """Keep other runs from this journal until it is closed; false if one has it."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def close(self) -> None:
        """Let go of everything held open. A closed journal is not used again."""

    @abstractmethod
    def _batches(self, start: int, kinds: Collection[str]) -> Iterator[list[tuple[int, bytes]]]:
        """Give numbers and lines behind the first ``start``, in order, a few at a time."""

    def lines(self, start: int = 0, *, kinds: Collection[str] = ()) -> Iterator[bytes]:
        """Give what ``events`` gives as it was written: JSON, without line ends."""
        for batch in self._batches(start, kinds):
            for _, line in batch:
                yield line

    def events(self, start: int = 0, *, kinds: Collection[str] = ()) -> Iterator[Event]:
        """Give the events behind the first ``start``, all of them or only those of some kinds."""
        for batch in self._batches(start, kinds):
            for sequence, line in batch:
                try:
                    event = decode_event(line)
                except ValueError as error:
                    raise self._unreadable(sequence, error) from error
                yield event

    def sha256(self) -> str:
        """Return the hash of all lines, each with a line end: equal for equal stories."""
        digest = sha256()
        for batch in self._batches(0, ()):
            digest.update(b"".join(line + b"\n" for _, line in batch))
        return digest.hexdigest()

    def snapshot(self) -> Snapshot:
        """Return the state of the cluster after everything in the journal."""
        return replay(Snapshot(), self.events())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _entries(self, events: Sequence[Event]) -> list[Entry]:
        """Put events into their form on disk, sure that each can be read again."""
        return [self._entry(event) for event in events]

    def _entry(self, event: Event) -> Entry:
        line = encode_event(event)
        try:
            # Encoding checks nothing: an id with a space or a gain that is not a number would be
            # acknowledged now and stop every later start. Better to say so before it is written.
            decode_event(line)
        except ValueError as error:
            problem = Problem(
                key=f"a new event {kind_of(event)}",
                what=f"cannot be read back: {error}",
                cure="nothing was written; mend what made the event",
            )
            raise InvalidInput(self._place, (problem,)) from error
        return Entry(event.at_ms, kind_of(event), line)

    @property
    def _place(self) -> str:
        return f"{self.source}, journal {self.name}"

    def _unreadable(self, sequence: int, error: ValueError) -> InvalidInput:
        return self._damaged(
            sequence,
            what=f"cannot be read: {error}",
            cure="if a newer Equipoise wrote it, upgrade this one; if not, restore a copy",
        )

    def _damaged(self, sequence: int, *, what: str, cure: str) -> InvalidInput:
        return InvalidInput(self._place, (Problem(key=f"event {sequence}", what=what, cure=cure),))
