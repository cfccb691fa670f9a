"""How a database is reached and set up, so that what it acknowledges is on disk.

The one place where SQLite and PostgreSQL differ, besides the words of their complaints. A
connection of ``writing(engine)`` holds the writer's lock from its beginning on in SQLite, where a
read that turns into a write would fail instead of waiting.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import Connection
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from equipoise.errors import MissingExtra, WorldError
from equipoise.store.address import Address, refused
from equipoise.store.schema import MIGRATIONS, upgrade, version_of
from equipoise.store.trouble import is_busy

_BUSY_SECONDS: Final = 30
_WAL_ATTEMPTS: Final = 50


def connect(address: Address, *, create: bool) -> Engine:
    """Reach a database and bring its tables up to date."""
    _look_at_file(address, create=create)
    engine = _engine(address)
    try:
        _prepare(engine, address, create=create)
    except BaseException:
        engine.dispose()
        raise
    return engine


def writing(engine: Engine) -> Engine:
    """Return the same engine for those who mean to write."""
    return engine.execution_options(writing=True)


def _look_at_file(address: Address, *, create: bool) -> None:
    """Say early what SQLite would say less clearly, or not at all."""
    if address.path is None:
        return
    try:
        trouble = _file_trouble(address.path, create=create)
    except OSError as error:
        trouble = (f"cannot be looked at: {error.strerror}", "name another path")
    if trouble is not None:
        raise refused(address.shown, *trouble)


def _file_trouble(path: Path, *, create: bool) -> tuple[str, str] | None:
    if path.is_dir():
        return "is a directory", "name a file in it, e.g. journal.db"
    if path.exists() and not path.is_file():
        return "is not a regular file", "name another path"
    if not path.exists() and not create:
        return "is not there", "check the path"
    if not path.parent.is_dir():
        return "cannot be made, for its directory is not there", f"make {path.parent} first"
    return None


def _engine(address: Address) -> Engine:
    return _sqlite(address) if address.is_sqlite else _postgresql(address)


def _postgresql(address: Address) -> Engine:
    try:
        # A ping before use: a server may have been restarted since the last event.
        engine = create_engine(address.url, pool_pre_ping=True, isolation_level="READ COMMITTED")
    except ImportError as error:
        raise MissingExtra("postgres", "a journal in PostgreSQL") from error
    event.listen(engine, "connect", _insist_on_durability)
    return engine


def _sqlite(address: Address) -> Engine:
    options: dict[str, Any] = {"check_same_thread": False, "timeout": _BUSY_SECONDS}
    if address.path is None:
        # The database is its connection: there must be one, for all threads in turn.
        engine = create_engine(
            address.url, connect_args=options, poolclass=QueuePool, pool_size=1, max_overflow=0
        )
    else:
        engine = create_engine(address.url, connect_args=options)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin)
    return engine


def _insist_on_durability(connection: Any, _entry: ConnectionPoolEntry) -> None:
    """PostgreSQL can be told to acknowledge before it has written; not to us."""
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') = 'off'"
    )
    connection.commit()


def _set_up_sqlite(connection: Any, _entry: ConnectionPoolEntry) -> None:
    # Python's driver would begin transactions at moments of its own choice, never before DDL.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous=FULL")


def _begin(connection: Connection) -> None:
    """Lock at the start, where SQLite waits its turn; a read that turns into a write fails."""
    if connection.get_execution_options().get("writing"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _prepare(engine: Engine, address: Address, *, create: bool) -> None:
    with engine.connect() as connection:
        version = version_of(connection, address)
    if version == 0 and not create:
        raise refused(address.shown, "holds no journal", "check the path or the database's name")
    if version < len(MIGRATIONS):
        upgrade(writing(engine), address)
    if address.path is not None:
        _use_wal(engine, address)


def _use_wal(engine: Engine, address: Address) -> None:
    """Let readers and the writer work side by side. The file remembers it."""
    for _ in range(_WAL_ATTEMPTS):
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            return
        except OperationalError as error:
            if not is_busy(error):
                raise
        # Unlike everything else in SQLite this does not wait for a process that is at the same
        # thing; so wait by asking for the writer's lock, and try again.
        with writing(engine).begin():
            pass
    raise WorldError(f"{address.shown}: other processes never let go of the file; end them")
