"""Errors of the database library become errors with a code, without SQL and passwords."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy.exc import OperationalError, PendingRollbackError

from equipoise.errors import Conflict, InvalidInput, WorldError
from equipoise.store.address import DatabaseAddress
from equipoise.store.connect import is_busy, translated_errors

FILE = DatabaseAddress.of("/var/lib/journal.db")
SERVER = DatabaseAddress.of("postgresql://kim:s3cret@host/db")


def sqlite_error(number: int) -> OperationalError:
    cause = sqlite3.OperationalError("text of SQLite")
    cause.sqlite_errorcode = number
    return OperationalError("SELECT secret_statement", {}, cause)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (sqlite3.SQLITE_NOTADB, "database-damaged"),
        (sqlite3.SQLITE_CORRUPT, "database-damaged"),
        (sqlite3.SQLITE_CORRUPT_INDEX, "database-damaged"),
        (sqlite3.SQLITE_CANTOPEN, "database-not-writable"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "database-not-writable"),
        (sqlite3.SQLITE_PERM, "database-not-writable"),
    ],
)
def test_an_error_of_the_file_is_invalid_input_with_a_fix(number: int, code: str) -> None:
    with pytest.raises(InvalidInput) as caught, translated_errors(FILE):
        raise sqlite_error(number)
    assert caught.value.code == code
    assert caught.value.source == "/var/lib/journal.db"
    assert caught.value.problems[0].cure


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (sqlite3.SQLITE_FULL, "disk-full"),
        (sqlite3.SQLITE_IOERR_WRITE, "database-failed"),
        (sqlite3.SQLITE_BUSY, "database-busy"),
        (sqlite3.SQLITE_LOCKED, "database-busy"),
        (sqlite3.SQLITE_ERROR, "database-failed"),
    ],
)
def test_an_error_of_the_system_is_a_world_error(number: int, code: str) -> None:
    with pytest.raises(WorldError) as caught, translated_errors(FILE):
        raise sqlite_error(number)
    assert caught.value.code == code
    assert str(caught.value).startswith("/var/lib/journal.db: ")
    assert "secret_statement" not in str(caught.value)


def test_the_message_of_a_server_is_shown_without_the_password() -> None:
    cause = Exception("FATAL: s3cret is wrong\nSELECT everything")
    with pytest.raises(WorldError) as caught, translated_errors(SERVER):
        raise OperationalError("SELECT 1", {}, cause)
    assert str(caught.value) == "postgresql://kim@host/db: FATAL: *** is wrong"


def test_every_other_error_of_the_library_is_a_world_error() -> None:
    with pytest.raises(WorldError) as caught, translated_errors(SERVER):
        raise PendingRollbackError("no connection")
    assert caught.value.code == "database-failed"
    with pytest.raises(WorldError, match=r"host/db: Exception$"), translated_errors(SERVER):
        raise OperationalError("SELECT 1", {}, Exception())


def test_errors_of_equipoise_pass_unchanged() -> None:
    with pytest.raises(Conflict, match=r"^moved$"), translated_errors(SERVER):
        raise Conflict("moved")


def test_only_a_lock_counts_as_busy() -> None:
    assert is_busy(sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT))
    assert not is_busy(sqlite_error(sqlite3.SQLITE_FULL))
    assert not is_busy(OperationalError("SELECT 1", {}, Exception()))
