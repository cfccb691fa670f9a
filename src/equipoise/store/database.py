"""A journal in a database: SQLite in one file, or PostgreSQL, with the same statements.

One process writes a journal. A second writer is detected: each counts from the length it knows,
the primary key gives the next number to one of them, and the other one gets ``Conflict`` before
anything of it is written. A run also locks its journal, so that a second run stops before it
acts. Readers never block.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Engine,
    LargeBinary,
    Select,
    Text,
    bindparam,
    cast,
    func,
    insert,
    select,
)
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from equipoise.errors import Conflict
from equipoise.model.event import Event
from equipoise.model.quantity import ID_PATTERN
from equipoise.store.address import DatabaseAddress, invalid_database
from equipoise.store.connect import connect, for_writing, translated_errors
from equipoise.store.journal import Journal
from equipoise.store.lock import Release, try_lock
from equipoise.store.schema import EVENTS

# Small enough for the first events to come at once; later batches double up to the byte limit.
_FIRST_BATCH: Final = 1024
_BATCH_BYTES: Final = 2 * 1024 * 1024

_INSERT: Final = insert(EVENTS)
_LENGTH: Final = select(func.max(EVENTS.c.sequence)).where(
    EVENTS.c.journal == bindparam("journal", type_=Text)
)
_NAMES: Final = select(EVENTS.c.journal).distinct().order_by(EVENTS.c.journal)
# SQLite stores a line that was edited by hand as text; the cast reads it as bytes all the same.
_LINES: Final = (
    select(EVENTS.c.sequence, cast(EVENTS.c.payload, LargeBinary).label("line"))
    .where(EVENTS.c.journal == bindparam("journal", type_=Text))
    .where(
        EVENTS.c.sequence.between(
            bindparam("first", type_=BigInteger), bindparam("last", type_=BigInteger)
        )
    )
    .order_by(EVENTS.c.sequence)
)


def open_database(url: str, *, journal: str, create: bool) -> DatabaseJournal:
    """Open a journal in the database at a path or URL, and migrate its tables."""
    address = DatabaseAddress.of(url)
    if not re.match(ID_PATTERN, journal):
        what = f"cannot hold a journal named {journal!r}"
        cure = "use letters, digits and _ . : @ / + -, at most 128 of them"
        raise invalid_database(address.shown, what, cure, code="journal-name-invalid")
    with translated_errors(address):
        engine = connect(address, create=create)
        try:
            opened = DatabaseJournal(engine, address, journal)
            if not create:
                opened.require_events()
        except BaseException:
            engine.dispose()
            raise
    return opened


class DatabaseJournal(Journal):
    """A journal in a database. ``open_journal`` creates it."""

    def __init__(self, engine: Engine, address: DatabaseAddress, name: str) -> None:
        super().__init__(source=address.shown, name=name)
        self._address = address
        self._engine = engine
        self._writing = for_writing(engine)
        self._closed = False
        self._release: Release | None = None
        self._known = len(self)
        """The number of events when this writer last read or wrote it."""

    def append(self, events: Sequence[Event]) -> int:
        """Append all events or none, and return the new length.

        When the call returns the events are on disk. It raises ``Conflict`` if another process has
        appended events. If the connection breaks before the answer, the events may be on disk: the
        next call then raises ``Conflict``.
        """
        assert not self._closed, "a closed journal must not be written"
        rows = [
            {
                "journal": self.name,
                "sequence": sequence,
                "at_ms": entry.at_ms,
                "kind": entry.kind,
                "payload": entry.line,
            }
            for sequence, entry in enumerate(self._entries(events), start=self._known + 1)
        ]
        if rows:
            with translated_errors(self._address):
                self._insert(rows)
        self._known += len(rows)
        return self._known

    def try_lock(self) -> bool:
        """Lock the journal until it is closed; return ``False`` if another run holds the lock."""
        if self._release is None:
            with translated_errors(self._address):
                self._release = try_lock(self._engine, self._address, self.name)
        return self._release is not None

    def __len__(self) -> int:
        with translated_errors(self._address), self._connect() as connection:
            return self._length(connection)

    def close(self) -> None:
        """Release the lock and close all connections; SQLite then merges the WAL into its file."""
        self._closed = True
        if self._release is not None:
            self._release()
            self._release = None
        self._engine.dispose()

    def require_events(self) -> None:
        """Raise ``InvalidInput`` for a journal without events: its name is probably misspelt."""
        if self._known:
            return
        with self._connect() as connection:
            names = connection.scalars(_NAMES).all()
        what = f"holds no journal named {self.name}"
        cure = f"it has: {', '.join(names)}" if names else "it has none yet"
        raise invalid_database(self.source, what, cure, code="journal-not-found")

    def _insert(self, rows: list[dict[str, Any]]) -> None:
        try:
            with self._writing.begin() as connection:
                # SQLite holds the write lock; in PostgreSQL the primary key decides.
                if self._length(connection) != self._known:
                    raise self._write_conflict()
                connection.execute(_INSERT, rows)
        except IntegrityError as error:
            raise self._write_conflict() from error

    def _write_conflict(self) -> Conflict:
        return Conflict(
            f"{self._place}: another process has appended to it since this writer counted"
            f" {self._known} events; nothing was added: open the journal again and retry",
            code="journal-conflict",
        )

    def _batches(self, start: int, kinds: Collection[str]) -> Iterator[list[tuple[int, bytes]]]:
        assert start >= 0, "start must not be negative"
        query = _LINES.where(EVENTS.c.kind.in_(sorted(kinds))) if kinds else _LINES
        # Events that are appended while a reader reads belong to its next call.
        end, size = len(self), _FIRST_BATCH
        while start < end:
            # No connection stays open between two batches, so a slow reader blocks no writer.
            with translated_errors(self._address), self._connect() as connection:
                size, weight = self._fitting_batch(connection, query, start, min(size, end - start))
                rows = connection.execute(query, self._range_parameters(start, size))
                batch = [(sequence, line) for sequence, line in rows]
            if not kinds:
                self._check_gapless(start, size, batch)
            yield batch
            start += size
            size = 2 * size if 2 * weight <= _BATCH_BYTES else size

    def _fitting_batch(
        self, connection: Connection, query: Select[int, bytes], start: int, size: int
    ) -> tuple[int, int]:
        """Return the number of events to read at once, and their total length in bytes.

        One observation of a large cluster has megabytes; most other events have a hundred bytes.
        """
        weigh = query.with_only_columns(func.sum(func.length(EVENTS.c.payload))).order_by(None)
        while True:
            weight = int(connection.scalar(weigh, self._range_parameters(start, size)) or 0)
            if weight <= _BATCH_BYTES or size == 1:
                return size, weight
            # Half of what would fit on average: the large events may come first.
            size = max(1, size * _BATCH_BYTES // (2 * weight))

    def _range_parameters(self, start: int, size: int) -> dict[str, str | int]:
        return {"journal": self.name, "first": start + 1, "last": start + size}

    def _check_gapless(self, start: int, size: int, batch: list[tuple[int, bytes]]) -> None:
        if len(batch) == size:
            return
        present = {sequence for sequence, _ in batch}
        missing = next(n for n in range(start + 1, start + size + 1) if n not in present)
        cure = "restore the database from a copy"
        raise self._damaged(missing, what="is missing", cure=cure, code="event-missing")

    def _length(self, connection: Connection) -> int:
        return connection.scalar(_LENGTH, {"journal": self.name}) or 0

    def _connect(self) -> Connection:
        assert not self._closed, "a closed journal must not be read"

        return self._engine.connect()
