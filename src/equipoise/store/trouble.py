"""What databases complain of, in words that say what to do.

The one place that knows error codes. Nothing of SQLAlchemy, no SQL and no password leaves here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from equipoise.errors import EquipoiseError, WorldError
from equipoise.store.address import Address, refused

_RESTORE: Final = "restore it from a copy, or try 'sqlite3 FILE .recover'"
_WRITABLE: Final = "make the file and its directory writable for you, or name another path"

_FILE_AT_FAULT: Final = {
    sqlite3.SQLITE_NOTADB: ("is not a SQLite database", "name the file of a journal, or a new one"),
    sqlite3.SQLITE_CORRUPT: ("is damaged", _RESTORE),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened or made", _WRITABLE),
    sqlite3.SQLITE_READONLY: ("cannot be written to", _WRITABLE),
    sqlite3.SQLITE_PERM: ("may not be opened", _WRITABLE),
}
_WORLD_AT_FAULT: Final = {
    sqlite3.SQLITE_FULL: "the disk is full; make room and try again",
    sqlite3.SQLITE_IOERR: "the disk refuses to read or write; look at the system's log",
    sqlite3.SQLITE_BUSY: "another process keeps the file locked; end it and try again",
    sqlite3.SQLITE_LOCKED: "another part of this process keeps the file locked",
}


@contextmanager
def explained(address: Address) -> Iterator[None]:
    """Turn whatever the database library raises inside into an error of the house."""
    try:
        yield
    except DBAPIError as error:
        raise _explain(address, error) from error
    except SQLAlchemyError as error:
        raise WorldError(f"{address.shown}: {_first_line(address, error)}") from error


def is_busy(error: DBAPIError) -> bool:
    """Whether SQLite gave up because somebody else was at the file."""
    return _sqlite_code(error) == sqlite3.SQLITE_BUSY


def _explain(address: Address, error: DBAPIError) -> EquipoiseError:
    code = _sqlite_code(error)
    if code in _FILE_AT_FAULT:
        what, cure = _FILE_AT_FAULT[code]
        return refused(address.shown, what, cure)
    message = _WORLD_AT_FAULT.get(code) or _first_line(address, error.orig or error)
    return WorldError(f"{address.shown}: {message}")


def _sqlite_code(error: DBAPIError) -> int:
    """The kind of error, without the finer distinctions in the higher bits; 0 for others."""
    code: int = getattr(error.orig, "sqlite_errorcode", 0)
    return code & 0xFF


def _first_line(address: Address, error: BaseException) -> str:
    # The further lines of a server's message repeat the statement.
    lines = str(error).strip().splitlines()
    return address.without_secrets(lines[0] if lines else type(error).__name__)
