"""The tables, and how an older database becomes one of today.

Every change of the tables is a function at the end of ``MIGRATIONS``, run in a transaction of its
own under a lock, so that any number of processes may open the same database at once. What is in
the list is never edited: databases in the field have been through it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    column,
    func,
    insert,
    inspect,
    select,
    table,
    text,
    tuple_,
    update,
)
from sqlalchemy.engine import Connection, Engine

from equipoise.store.address import Address, refused

_METADATA: Final = MetaData()

EVENTS: Final = Table(
    "events",
    _METADATA,
    Column("journal", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    # Bytes, not text: what is read is what was written, whatever a server's encoding.
    Column("payload", LargeBinary, nullable=False),
)
_SCHEMA: Final = Table("equipoise_schema", _METADATA, Column("version", Integer, nullable=False))

_LOCK: Final = 0x45515549
"""Any number will do, as long as every Equipoise asks PostgreSQL for the same ("EQUI")."""
_BATCH: Final = 1000
_HEAD_BYTES: Final = 100


def version_of(connection: Connection, address: Address) -> int:
    """Return how many migrations a database has seen; 0 if it is none of ours."""
    if not inspect(connection).has_table(_SCHEMA.name):
        return 0
    version = connection.scalar(select(_SCHEMA.c.version)) or 0
    if version > len(MIGRATIONS):
        raise refused(
            address.shown,
            f"was made by a newer Equipoise (schema {version}, known here: {len(MIGRATIONS)})",
            "upgrade Equipoise",
        )
    return version


def upgrade(engine: Engine, address: Address) -> None:
    """Run the migrations that a database has not seen. The engine's transactions must lock."""
    for target, migrate in enumerate(MIGRATIONS, start=1):
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
            # Asked anew under the lock: another process may just have done it.
            version = version_of(connection, address)
            if version == 0:
                _refuse_strangers(connection, address)
            if version < target:
                migrate(connection)
                connection.execute(update(_SCHEMA).values(version=target))


def _refuse_strangers(connection: Connection, address: Address) -> None:
    """A name like ``events`` may be in use by somebody else; leave theirs alone."""
    if inspect(connection).has_table(EVENTS.name):
        what = "holds a table 'events' that is not Equipoise's"
        raise refused(address.shown, what, "name another file or database")


def _make_events(connection: Connection) -> None:
    """1: the version itself, and the events."""
    metadata = MetaData()
    Table("equipoise_schema", metadata, Column("version", Integer, nullable=False))
    Table(
        "events",
        metadata,
        Column("journal", Text, primary_key=True),
        Column("sequence", BigInteger, primary_key=True, autoincrement=False),
        Column("at_ms", BigInteger, nullable=False),
        Column("payload", LargeBinary, nullable=False),
    )
    metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(_SCHEMA).values(version=0))


def _add_kind(connection: Connection) -> None:
    """2: the kind of each event beside it, so that reports need not read everything."""
    connection.execute(text("ALTER TABLE events ADD COLUMN kind TEXT NOT NULL DEFAULT ''"))
    events = table("events", *(column(name) for name in ("journal", "sequence", "payload", "kind")))
    key = (events.c.journal, events.c.sequence)
    # An event may be megabytes long, but it begins with its kind.
    heads = select(*key, func.substr(events.c.payload, 1, _HEAD_BYTES)).order_by(*key)
    set_kind = (
        update(events)
        .values(kind=bindparam("its_kind"))
        .where(*(field == bindparam(f"its_{field.name}") for field in key))
    )
    last: tuple[str, int] = ("", 0)
    while rows := connection.execute(heads.where(tuple_(*key) > last).limit(_BATCH)).all():
        given = [
            {"its_journal": journal, "its_sequence": sequence, "its_kind": _kind_in(bytes(head))}
            for journal, sequence, head in rows
        ]
        connection.execute(set_kind, given)
        last = (rows[-1][0], rows[-1][1])
    connection.execute(text("CREATE INDEX events_by_kind ON events (journal, kind, sequence)"))


def _kind_in(head: bytes) -> str:
    """Read the kind off the first bytes of an event; a damaged one is of no kind."""
    found = re.match(rb'\{"event":"(\w+)"', head)
    return found[1].decode() if found else ""


MIGRATIONS: Final[tuple[Callable[[Connection], None], ...]] = (_make_events, _add_kind)
"""In the order of their numbers: the first one makes version 1."""
