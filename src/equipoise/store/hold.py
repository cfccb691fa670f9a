"""Holding a journal: one run at a time, known to all others from its start to its certain end.

A second writer would be found out by the journal itself, but only after it has acted: a run holds
its journal before it asks the world for anything. What holds it ends with its process.
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

from equipoise.store.address import Address, refused

_SEED: Final = 0x45515549
"""Any number will do, as long as every Equipoise uses the same ("EQUI")."""


class Hold(Protocol):
    """What holds a journal."""

    def release(self) -> None:
        """Let others hold it."""
        ...


def hold(engine: Engine, address: Address, journal: str) -> Hold | None:
    """Hold a journal; nothing if somebody else does."""
    if not address.is_sqlite:
        return _HeldOnServer.of(engine, journal)
    if address.path is None:
        return _HeldInMemory()
    return _HeldByFile.of(address.path, journal)


class _HeldInMemory:
    """Nobody else can see it."""

    def release(self) -> None:
        """There is nothing to let go of."""


class _HeldByFile:
    """A lock on a file beside the database; the system lifts it when the process is gone.

    Not on the database itself: closing any handle of that would lift the locks of SQLite.
    """

    def __init__(self, path: Path, handle: int) -> None:
        self._path = path
        self._handle = handle

    @classmethod
    def of(cls, database: Path, journal: str) -> _HeldByFile | None:
        path = database.with_name(f"{database.name}-{quote(journal, safe='')}-held")
        while True:
            handle = _opened(path)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return None
            if _is_still(path, handle):
                return cls(path, handle)
            os.close(handle)  # it was removed by who held it before: lock the new one

    def release(self) -> None:
        """Let go, and leave nothing behind."""
        with suppress(OSError):
            self._path.unlink()
        os.close(self._handle)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        what = f"cannot be made: {(error.strerror or str(error)).lower()}"
        raise refused(str(path), what, "let its directory be writable for you") from error


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


class _HeldOnServer:
    """A lock of PostgreSQL; the server lifts it when the connection is gone."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def of(cls, engine: Engine, journal: str) -> _HeldOnServer | None:
        # Without a transaction: one that stays open for hours would be in the server's way.
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        name = func.concat(func.current_schema(), "/", journal)
        key = func.hashtextextended(name, _SEED)
        if connection.scalar(select(func.pg_try_advisory_lock(key))):
            return cls(connection)
        connection.close()
        return None

    def release(self) -> None:
        """End the connection, and the lock with it."""
        self._connection.invalidate()
        self._connection.close()
