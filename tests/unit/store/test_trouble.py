from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy.exc import OperationalError, PendingRollbackError

from equipoise.errors import Conflict, InvalidInput, WorldError
from equipoise.store.address import Address
from equipoise.store.trouble import explained, is_busy

FILE = Address.of("/var/lib/journal.db")
SERVER = Address.of("postgresql://kim:s3cret@host/db")


def sqlite_error(code: int) -> OperationalError:
    cause = sqlite3.OperationalError("as SQLite puts it")
    cause.sqlite_errorcode = code
    return OperationalError("SELECT secret_statement", {}, cause)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_NOTADB, "is not a SQLite database"),
        (sqlite3.SQLITE_CORRUPT, "is damaged"),
        (sqlite3.SQLITE_CORRUPT_INDEX, "is damaged"),
        (sqlite3.SQLITE_CANTOPEN, "cannot be opened or made"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "cannot be written to"),
        (sqlite3.SQLITE_PERM, "may not be opened"),
    ],
)
def test_a_bad_file_is_bad_input_with_a_cure(code: int, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught, explained(FILE):
        raise sqlite_error(code)
    assert caught.value.source == "/var/lib/journal.db"
    assert caught.value.problems[0].cure


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_FULL, "the disk is full"),
        (sqlite3.SQLITE_IOERR_WRITE, "the disk refuses"),
        (sqlite3.SQLITE_BUSY, "another process"),
        (sqlite3.SQLITE_LOCKED, "locked"),
        (sqlite3.SQLITE_ERROR, "as SQLite puts it"),
    ],
)
def test_a_bad_disk_is_the_worlds_fault(code: int, words: str) -> None:
    with pytest.raises(WorldError, match=words) as caught, explained(FILE):
        raise sqlite_error(code)
    assert str(caught.value).startswith("/var/lib/journal.db: ")
    assert "secret_statement" not in str(caught.value)


def test_a_servers_words_are_passed_on_without_the_password() -> None:
    cause = Exception("FATAL: s3cret is wrong\nSELECT everything")
    with pytest.raises(WorldError) as caught, explained(SERVER):
        raise OperationalError("SELECT 1", {}, cause)
    assert str(caught.value) == "postgresql://kim@host/db: FATAL: *** is wrong"


def test_whatever_else_the_library_raises_is_ours_as_well() -> None:
    with pytest.raises(WorldError, match="no connection"), explained(SERVER):
        raise PendingRollbackError("no connection")
    with pytest.raises(WorldError, match=r"host/db: Exception$"), explained(SERVER):
        raise OperationalError("SELECT 1", {}, Exception())


def test_our_own_errors_pass_unchanged() -> None:
    with pytest.raises(Conflict, match=r"^moved$"), explained(SERVER):
        raise Conflict("moved")


def test_only_a_lock_is_busy() -> None:
    assert is_busy(sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT))
    assert not is_busy(sqlite_error(sqlite3.SQLITE_FULL))
    assert not is_busy(OperationalError("SELECT 1", {}, Exception()))
