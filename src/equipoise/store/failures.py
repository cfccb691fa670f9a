"""Database errors, translated into messages that say what to do.

The one place that knows error codes. No SQL, no password and no exception of SQLAlchemy leaves
it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from equipoise.errors import EquipoiseError, WorldError
from equipoise.store.address import DatabaseAddress, invalid_database

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
