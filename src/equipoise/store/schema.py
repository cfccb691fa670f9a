"""The tables, and the migrations of older databases.

Every change of the tables is a function at the end of ``MIGRATIONS``. Each runs in a transaction
of its own under a lock, so that many processes may open one database at once. The functions in
the list are never edited: existing databases have been through them.
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

from equipoise.store.address import DatabaseAddress, invalid_database

_METADATA: Final = MetaData()

EVENTS: Final = Table(
    "events",
    _METADATA,
    Column("journal", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    # Bytes, not text: the encoding of a server must not change what was written.
    Column("payload", LargeBinary, nullable=False),
)
_SCHEMA: Final = Table("equipoise_schema", _METADATA, Column("version", Integer, nullable=False))

_ADVISORY_LOCK_ID: Final = 0x45515549
"""An arbitrary number ("EQUI"); every version of Equipoise must use the same one."""
_BATCH: Final = 1000
# More than any kind is long.
_HEAD_BYTES: Final = 100


def version_of(connection: Connection, address: DatabaseAddress) -> int:
    """Return the number of migrations of a database; 0 if Equipoise did not create it."""
    if not inspect(connection).has_table(_SCHEMA.name):
        return 0
    version = connection.scalar(select(_SCHEMA.c.version)) or 0
    if version > len(MIGRATIONS):
        raise invalid_database(
            address.shown,
            f"has schema {version} of a newer Equipoise; this one knows {len(MIGRATIONS)}",
            "upgrade Equipoise",
            code="database-too-new",
        )
    return version


def migrate_schema(engine: Engine, address: DatabaseAddress) -> None:
    """Run the missing migrations of a database. The engine's transactions must lock it."""
    for target, migrate in enumerate(MIGRATIONS, start=1):
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(_ADVISORY_LOCK_ID)))
            # Read again under the lock: another process may have migrated the database meanwhile.
            version = version_of(connection, address)
            if version == 0:
                _refuse_foreign_tables(connection, address)
            if version < target:
                migrate(connection)
                connection.execute(update(_SCHEMA).values(version=target))


def _refuse_foreign_tables(connection: Connection, address: DatabaseAddress) -> None:
    """Raise ``InvalidInput`` if another program has created a table named ``events``."""
    if inspect(connection).has_table(EVENTS.name):
        what = "holds a table 'events' of another program"
        cure = "name another file or database"
        raise invalid_database(address.shown, what, cure, code="database-foreign")


def _create_events(connection: Connection) -> None:
    """Migration 1: the table of the version, and the table of events."""
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
    """Migration 2: a column with the kind of each event, so that reports read only some kinds."""
    connection.execute(text("ALTER TABLE events ADD COLUMN kind TEXT NOT NULL DEFAULT ''"))
    events = table("events", *(column(name) for name in ("journal", "sequence", "payload", "kind")))
    key = (events.c.journal, events.c.sequence)
    # An event may have megabytes, but its first key is the kind.
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
    """Return the kind in the first bytes of an event; empty for a damaged event."""
    match = re.match(rb'\{"event":"(\w+)"', head)
    return match[1].decode() if match else ""


def _rename_kinds(connection: Connection) -> None:
    """Migration 3: the present names of event kinds.

    The payloads stay as they are, so that the hash of a journal does not change; ``decode_event``
    reads them with ``OLD_EVENT_KINDS``.
    """
    events = table("events", column("kind"))
    for old, new in _KINDS_RENAMED_BY_3.items():
        connection.execute(update(events).values(kind=new).where(events.c.kind == old))


_KINDS_RENAMED_BY_3: Final = {
    "campaign_began": "campaign_started",
    "iteration_began": "iteration_started",
    "order_refused": "command_rejected",
    "reign_began": "leader_epoch_started",
    "role_move_asked": "role_move_requested",
    "scaling_asked": "scaling_requested",
    "set_undo_began": "set_undo_started",
}
"""A copy, not the table of the model: a migration must not change when that table grows."""

MIGRATIONS: Final[tuple[Callable[[Connection], None], ...]] = (
    _create_events,
    _add_kind,
    _rename_kinds,
)
"""In the order of their numbers: the first one creates version 1."""
