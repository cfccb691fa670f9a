"""How a database is opened and set up, and its errors translated into messages that say what to do.

The one place where SQLite and PostgreSQL differ, and the one that knows their error codes. No SQL,
no password and no exception of SQLAlchemy leaves it. A connection of ``for_writing(engine)`` takes
SQLite's write lock at its start: a read that turns into a write would fail instead of waiting.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from equipoise.errors import EquipoiseError, MissingExtra, WorldError
from equipoise.store.address import DatabaseAddress, invalid_database
from equipoise.store.schema import MIGRATIONS, migrate_schema, version_of

_RESTORE: Final = "restore it from a copy, or try 'sqlite3 FILE .recover'"
_WRITABLE: Final = "make the file and its directory writable for you, or name another path"
_DAMAGED: Final = "database-damaged"
_NOT_WRITABLE: Final = "database-not-writable"

_FILE_ERRORS: Final = {
    sqlite3.SQLITE_NOTADB: ("is not a SQLite database", "name a journal or a new file", _DAMAGED),
    sqlite3.SQLITE_CORRUPT: ("is damaged", _RESTORE, _DAMAGED),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened or created", _WRITABLE, _NOT_WRITABLE),
    sqlite3.SQLITE_READONLY: ("cannot be written to", _WRITABLE, _NOT_WRITABLE),
    sqlite3.SQLITE_PERM: ("may not be opened", _WRITABLE, _NOT_WRITABLE),
}
"""Errors of the user's file: what is wrong, the fix and the code."""
_SYSTEM_ERRORS: Final = {
    sqlite3.SQLITE_FULL: ("the disk is full; free some space and try again", "disk-full"),
    sqlite3.SQLITE_IOERR: ("the disk fails to read or write; check the log", "database-failed"),
    sqlite3.SQLITE_BUSY: ("another process locks the file; end it and retry", "database-busy"),
    sqlite3.SQLITE_LOCKED: ("another connection of this process locks the file", "database-busy"),
}
"""Errors of the system: the message and the code."""


@contextmanager
def translated_errors(address: DatabaseAddress) -> Iterator[None]:
    """Raise an ``EquipoiseError`` in place of each error of the database library."""
    try:
        yield
    except DBAPIError as error:
        raise _translate(address, error) from error
    except SQLAlchemyError as error:
        message = f"{address.shown}: {_first_line(address, error)}"
        raise WorldError(message, code="database-failed") from error


def is_busy(error: DBAPIError) -> bool:
    """Whether SQLite failed because another connection holds the lock."""
    return _sqlite_code(error) == sqlite3.SQLITE_BUSY


def _translate(address: DatabaseAddress, error: DBAPIError) -> EquipoiseError:
    number = _sqlite_code(error)
    if number in _FILE_ERRORS:
        what, cure, code = _FILE_ERRORS[number]
        return invalid_database(address.shown, what, cure, code=code)
    if number in _SYSTEM_ERRORS:
        message, code = _SYSTEM_ERRORS[number]
    else:
        message, code = _first_line(address, error.orig or error), "database-failed"
    return WorldError(f"{address.shown}: {message}", code=code)


def _sqlite_code(error: DBAPIError) -> int:
    """Return the primary result code of SQLite (the low byte); 0 for other databases."""
    code: int = getattr(error.orig, "sqlite_errorcode", 0)
    return code & 0xFF


def _first_line(address: DatabaseAddress, error: BaseException) -> str:
    # The further lines of a server's message repeat the statement, with its values.
    lines = str(error).strip().splitlines()
    return address.without_secrets(lines[0] if lines else type(error).__name__)


# Another process may be migrating a large journal.
_BUSY_SECONDS: Final = 30
_WAL_ATTEMPTS: Final = 50
_NOT_FOUND: Final = "database-not-found"


def connect(address: DatabaseAddress, *, create: bool) -> Engine:
    """Open a database and migrate its tables to the present schema."""
    _check_file(address, create=create)
    engine = _engine(address)
    try:
        _prepare(engine, address, create=create)
    except BaseException:
        engine.dispose()
        raise
    return engine


def for_writing(engine: Engine) -> Engine:
    """Return an engine on the same database whose transactions lock it for writing."""
    return engine.execution_options(writing=True)


def _check_file(address: DatabaseAddress, *, create: bool) -> None:
    """Raise ``InvalidInput`` for a path that SQLite would refuse with an unclear message."""
    if address.path is None:
        return
    try:
        problem = _file_problem(address.path, create=create)
    except OSError as error:
        problem = (f"cannot be read: {error.strerror}", "name another path", _NOT_WRITABLE)
    if problem is not None:
        what, cure, code = problem
        raise invalid_database(address.shown, what, cure, code=code)


def _file_problem(path: Path, *, create: bool) -> tuple[str, str, str] | None:
    """Return what is wrong with a path, the fix and the code; ``None`` if it can be opened."""
    if path.is_dir():
        return "is a directory", "name a file in it, e.g. journal.db", _NOT_WRITABLE
    if path.exists() and not path.is_file():
        return "is not a regular file", "name another path", _NOT_WRITABLE
    if not path.exists() and not create:
        return "does not exist", "check the path", _NOT_FOUND
    if not path.parent.is_dir():
        cure = f"create the directory {path.parent} first"
        return "cannot be created, because its directory does not exist", cure, _NOT_FOUND
    return None


def _engine(address: DatabaseAddress) -> Engine:
    return _sqlite(address) if address.is_sqlite else _postgresql(address)


def _postgresql(address: DatabaseAddress) -> Engine:
    try:
        # A ping before each use: the server may have been restarted since the last event.
        engine = create_engine(address.url, pool_pre_ping=True, isolation_level="READ COMMITTED")
    except ImportError as error:
        raise MissingExtra("postgres", "a journal in PostgreSQL") from error
    event.listen(engine, "connect", _require_durability)
    return engine


def _sqlite(address: DatabaseAddress) -> Engine:
    options: dict[str, Any] = {"check_same_thread": False, "timeout": _BUSY_SECONDS}
    if address.path is None:
        # A database in memory lives in its connection: all threads share this one.
        engine = create_engine(
            address.url, connect_args=options, poolclass=QueuePool, pool_size=1, max_overflow=0
        )
    else:
        engine = create_engine(address.url, connect_args=options)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin)
    return engine


def _require_durability(connection: Any, _entry: ConnectionPoolEntry) -> None:
    """Turn ``synchronous_commit`` on, so that an acknowledged event is on disk."""
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') = 'off'"
    )
    connection.commit()


def _set_up_sqlite(connection: Any, _entry: ConnectionPoolEntry) -> None:
    # By default Python's driver starts transactions itself, and never before DDL statements.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous=FULL")


def _begin(connection: Connection) -> None:
    """Take the write lock at the start of a transaction: there SQLite waits until it is free."""
    if connection.get_execution_options().get("writing"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _prepare(engine: Engine, address: DatabaseAddress, *, create: bool) -> None:
    with engine.connect() as connection:
        version = version_of(connection, address)
    if version == 0 and not create:
        cure = "check the path or the name of the database"
        raise invalid_database(address.shown, "holds no journal", cure, code="journal-not-found")
    if version < len(MIGRATIONS):
        migrate_schema(for_writing(engine), address)
    if address.path is not None:
        _use_wal(engine, address)


def _use_wal(engine: Engine, address: DatabaseAddress) -> None:
    """Set the WAL mode, in which readers and the writer do not block each other.

    SQLite stores the mode in the file.
    """
    for _ in range(_WAL_ATTEMPTS):
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            return
        except OperationalError as error:
            if not is_busy(error):
                raise
        # This statement does not wait for a process that sets the same mode, unlike all others.
        # Taking the write lock waits for that process; then the statement is tried again.
        with for_writing(engine).begin():
            pass
    raise WorldError(
        f"{address.shown}: other processes keep the file locked; end them and try again",
        code="database-busy",
    )
