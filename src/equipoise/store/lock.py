"""The lock of a journal: one run at a time. It ends with the process that holds it.

The journal would detect a second writer, but only after that one has acted: a run takes the lock
before it sends anything to the world.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

from sqlalchemy import Engine, func, select
from sqlalchemy.engine import Connection

from equipoise.store.address import DatabaseAddress, invalid_database

_LOCK_SEED: Final = 0x45515549
"""An arbitrary number ("EQUI"); every version of Equipoise must use the same one."""


class JournalLock(Protocol):
    """The lock of one journal."""

    def release(self) -> None:
        """Release the lock."""
        ...


def try_lock(engine: Engine, address: DatabaseAddress, journal: str) -> JournalLock | None:
    """Lock a journal; return ``None`` if another process holds the lock."""
    if not address.is_sqlite:
        return _PostgresqlLock.of(engine, journal)
    if address.path is None:
        return _NoLock()
    return _FileLock.of(address.path, journal)


class _NoLock:
    """The lock of a database in memory: no other process can open it."""

    def release(self) -> None:
        """Do nothing."""


class _FileLock:
    """A lock on a file beside the database. The kernel releases it when the process ends.

    The database file itself is not locked: closing any of its handles would release the locks of
    SQLite, as POSIX defines it.
    """

    def __init__(self, path: Path, handle: int) -> None:
        self._path = path
        self._handle = handle

    @classmethod
    def of(cls, database: Path, journal: str) -> _FileLock | None:
        path = database.with_name(f"{database.name}-{quote(journal, safe='')}-held")
        while True:
            handle = _open_lock_file(path)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return None
            if _is_same_file(path, handle):
                return cls(path, handle)
            # The last holder removed the file between open and flock: lock the new file instead.
            os.close(handle)

    def release(self) -> None:
        """Remove the lock file and release the lock."""
        with suppress(OSError):
            self._path.unlink()
        os.close(self._handle)


def _open_lock_file(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        what = f"cannot be created: {(error.strerror or str(error)).lower()}"
        cure = "make its directory writable for you"
        raise invalid_database(str(path), what, cure, code="database-not-writable") from error


def _is_same_file(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


class _PostgresqlLock:
    """An advisory lock of PostgreSQL. The server releases it when the connection ends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def of(cls, engine: Engine, journal: str) -> _PostgresqlLock | None:
        # Without a transaction: one that stays open for hours would block the server's vacuum.
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        name = func.concat(func.current_schema(), "/", journal)
        key = func.hashtextextended(name, _LOCK_SEED)
        if connection.scalar(select(func.pg_try_advisory_lock(key))):
            return cls(connection)
        connection.close()
        return None

    def release(self) -> None:
        """Close the connection, which releases the lock."""
        self._connection.invalidate()
        self._connection.close()
