"""A journal in a database: SQLite in one file, or PostgreSQL, by the same statements.

One process writes a journal. A second writer is not locked out but found out: each counts from the
length it knows, the primary key lets one of them have the next number, and the other one is told
(``Conflict``) before anything of it is written. A run that acts holds its journal besides, so that
a second one is turned away before it acts. Readers are never in the way.
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
from equipoise.store.address import Address, refused
from equipoise.store.connect import connect, writing
from equipoise.store.hold import Hold, hold
from equipoise.store.journal import Journal
from equipoise.store.schema import EVENTS
from equipoise.store.trouble import explained

_FIRST_BATCH: Final = 1024
_BATCH_BYTES: Final = 2 * 1024 * 1024

_INSERT: Final = insert(EVENTS)
_LENGTH: Final = select(func.max(EVENTS.c.sequence)).where(
    EVENTS.c.journal == bindparam("journal", type_=Text)
)
_NAMES: Final = select(EVENTS.c.journal).distinct().order_by(EVENTS.c.journal)
# The cast changes nothing but lets a line pass that somebody has edited by hand in SQLite.
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
    """Open a journal in the database at a path or URL, and bring its tables up to date."""
    address = Address.of(url)
    if not re.match(ID_PATTERN, journal):
        cure = "use letters, digits and _ . : @ / + -, at most 128 of them"
        raise refused(address.shown, f"cannot hold a journal named {journal!r}", cure)
    with explained(address):
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
    """A journal in a database. Made by ``open_journal``."""

    def __init__(self, engine: Engine, address: Address, name: str) -> None:
        super().__init__(source=address.shown, name=name)
        self._address = address
        self._engine = engine
        self._writing = writing(engine)
        self._closed = False
        self._hold: Hold | None = None
        self._known = len(self)
        """How many events there are as far as this writer knows."""

    def append(self, events: Sequence[Event]) -> int:
        """Write events behind the last one, all or none, and return the new length.

        When it returns they are on disk. If another process wrote in between: ``Conflict``. If the
        connection broke before the answer came, the next call finds out what became of them.
        """
        assert not self._closed, "a closed journal is not written to"
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
            with explained(self._address):
                self._insert(rows)
        self._known += len(rows)
        return self._known

    def hold(self) -> bool:
        """Keep other runs from this journal until it is closed; false if one has it."""
        if self._hold is None:
            with explained(self._address):
                self._hold = hold(self._engine, self._address, self.name)
        return self._hold is not None

    def __len__(self) -> int:
        with explained(self._address), self._reading() as connection:
            return self._length(connection)

    def close(self) -> None:
        """Close all connections; SQLite then puts everything back into its one file."""
        self._closed = True
        if self._hold is not None:
            self._hold.release()
            self._hold = None
        self._engine.dispose()

    def require_events(self) -> None:
        """Refuse a journal nobody ever wrote to: its name is most likely a slip."""
        if self._known:
            return
        with self._reading() as connection:
            names = connection.scalars(_NAMES).all()
        cure = f"it has: {', '.join(names)}" if names else "it has none yet"
        raise refused(self.source, f"holds no journal named {self.name}", cure)

    def _insert(self, rows: list[dict[str, Any]]) -> None:
        try:
            with self._writing.begin() as connection:
                if self._length(connection) != self._known:
                    raise self._outdated()
                connection.execute(_INSERT, rows)
        except IntegrityError as error:
            raise self._outdated() from error

    def _outdated(self) -> Conflict:
        return Conflict(
            f"{self._place}: another process has written to it since this writer counted"
            f" {self._known} events; nothing was added: open the journal again and decide anew"
        )

    def _batches(self, start: int, kinds: Collection[str]) -> Iterator[list[tuple[int, bytes]]]:
        assert start >= 0, "events are counted from the first one"
        query = _LINES.where(EVENTS.c.kind.in_(sorted(kinds))) if kinds else _LINES
        end, size = len(self), _FIRST_BATCH
        while start < end:
            # Between two batches nothing is held, so a slow reader is in nobody's way.
            with explained(self._address), self._reading() as connection:
                size, weight = self._affordable(connection, query, start, min(size, end - start))
                found = connection.execute(query, self._span(start, size))
                batch = [(sequence, line) for sequence, line in found]
            if not kinds:
                self._check_gapless(start, size, batch)
            yield batch
            start += size
            size = 2 * size if 2 * weight <= _BATCH_BYTES else size

    def _affordable(
        self, connection: Connection, query: Select[int, bytes], start: int, size: int
    ) -> tuple[int, int]:
        """How many events to read at once, and how long they are together.

        One observation of a large cluster has megabytes, most other events a hundred bytes.
        """
        weigh = query.with_only_columns(func.sum(func.length(EVENTS.c.payload))).order_by(None)
        while True:
            weight = int(connection.scalar(weigh, self._span(start, size)) or 0)
            if weight <= _BATCH_BYTES or size == 1:
                return size, weight
            size = max(1, size * _BATCH_BYTES // (2 * weight))

    def _span(self, start: int, size: int) -> dict[str, str | int]:
        return {"journal": self.name, "first": start + 1, "last": start + size}

    def _check_gapless(self, start: int, size: int, batch: list[tuple[int, bytes]]) -> None:
        if len(batch) == size:
            return
        present = {sequence for sequence, _ in batch}
        missing = next(n for n in range(start + 1, start + size + 1) if n not in present)
        raise self._damaged(missing, what="is missing", cure="restore the database from a copy")

    def _length(self, connection: Connection) -> int:
        return connection.scalar(_LENGTH, {"journal": self.name}) or 0

    def _reading(self) -> Connection:
        assert not self._closed, "a closed journal is not read"
        return self._engine.connect()
