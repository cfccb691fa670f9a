"""The lock of a journal: one run at a time. It ends with the process that holds it.

The journal would detect a second writer, but only after that one has acted: a run takes the lock
before it sends anything to the world.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Engine, Select, func, select
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from equipoise.store.address import DatabaseAddress, invalid_database

_LOCK_SEED: Final = 0x45515549
"""An arbitrary number ("EQUI"); every version of Equipoise must use the same one."""


Release = Callable[[], None]
"""Releases the lock of one journal."""


def try_lock(engine: Engine, address: DatabaseAddress, journal: str) -> Release | None:
    """Lock a journal; return how it is released, or ``None`` if another process holds the lock."""
    if not address.is_sqlite:
        return _lock_in_postgresql(engine, journal)
    if address.path is None:
        return lambda: None  # no other process can open a database in memory
    return _lock_file(address.path, journal)


def _lock_file(database: Path, journal: str) -> Release | None:
    """Lock a file beside the database. The kernel releases it when the process ends.

    The database file itself is not locked: closing any of its handles would release the locks of
    SQLite, as POSIX defines it.
    """
    path = database.with_name(f"{database.name}-{quote(journal, safe='')}-held")
    while True:
        handle = _open_lock_file(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        if _is_same_file(path, handle):
            return partial(_release_file, path, handle)
        # The last holder removed the file between open and flock: lock the new file instead.
        os.close(handle)


def _release_file(path: Path, handle: int) -> None:
    with suppress(OSError):
        # Before the release: afterwards the file may belong to the next holder.
        path.unlink()
    os.close(handle)


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


def _lock_in_postgresql(engine: Engine, journal: str) -> Release | None:
    """Take an advisory lock. The server releases it when the connection ends."""
    # Without a transaction: one that stays open for hours would block the server's vacuum.
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    name = func.concat(func.current_schema(), "/", journal)
    key = func.hashtextextended(name, _LOCK_SEED)
    if connection.scalar(select(func.pg_try_advisory_lock(key))):
        return partial(_release_connection, connection, select(func.pg_advisory_unlock(key)))
    connection.close()
    return None


def _release_connection(connection: Connection, unlock: Select[Any]) -> None:
    with suppress(SQLAlchemyError):
        # The server notices a closed connection some time later; the next run may start at once.
        connection.scalar(unlock)
    # A pooled connection would stay open and keep a lock that could not be released.
    connection.invalidate()
    connection.close()
