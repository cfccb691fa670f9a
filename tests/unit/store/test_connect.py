"""Opening a database: durability settings, and the errors of files and servers."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import sys
import threading
import traceback
from multiprocessing.synchronize import Barrier
from pathlib import Path

import psycopg
import pytest

from equipoise.errors import InvalidInput, MissingExtra, WorldError
from equipoise.model.event import HostLeft
from equipoise.model.quantity import HostId
from equipoise.store import open_journal
from equipoise.store.address import DatabaseAddress
from equipoise.store.connect import connect
from postgres import Server

EVENT = HostLeft(at_ms=1, host=HostId("h"))


def refusal(path: Path | str, *, create: bool = True) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        open_journal(str(path), create=create)
    assert caught.value.source == str(path)
    assert caught.value.problems[0].cure
    return caught.value


def test_sqlite_uses_a_write_ahead_log_and_closes_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with open_journal(str(path)) as journal:
        journal.append((EVENT,))
        assert (tmp_path / "journal.db-wal").exists()
    assert os.listdir(tmp_path) == ["journal.db"]
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    raw.close()


def test_sqlite_waits_for_the_disk_before_it_acknowledges(tmp_path: Path) -> None:
    """FULL is 2. NORMAL is 1 and loses the last commits when the power fails."""
    engine = connect(DatabaseAddress.of(str(tmp_path / "journal.db")), create=True)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000
    engine.dispose()


@pytest.mark.parametrize(("setting", "expected"), [("off", "on"), ("remote_apply", "remote_apply")])
def test_postgresql_waits_for_the_disk_whatever_its_settings(
    postgres: Server, setting: str, expected: str
) -> None:
    url = postgres.fresh(f"-csynchronous_commit={setting}")
    engine = connect(DatabaseAddress.of(url), create=True)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == expected
    engine.dispose()


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path).code == "database-not-writable"


def test_a_path_whose_directory_does_not_exist_is_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path / "none" / "journal.db")
    assert error.code == "database-not-found"
    assert str(tmp_path / "none") in error.problems[0].cure
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file" / "journal.db").code == "database-not-found"


def test_a_path_that_cannot_be_created_is_refused() -> None:
    assert refusal("/proc/journal.db").code == "database-not-writable"


def test_a_path_that_is_too_long_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / ("x" * 300)).code == "database-not-writable"


def test_a_device_is_refused() -> None:
    """SQLite would open /dev/null and acknowledge every event."""
    assert refusal("/dev/null").code == "database-not-writable"


def test_a_file_of_another_kind_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing to see here\n" * 100)
    before = path.read_bytes()
    assert refusal(path).code == "database-damaged"
    assert path.read_bytes() == before


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with open_journal(str(path)) as journal:
        journal.append([EVENT] * 5000)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert refusal(path).code == "database-damaged"


def test_damage_in_the_middle_of_a_file_is_reported_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with open_journal(str(path)) as journal:
        journal.append([EVENT] * 5000)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 8192 * 4096)
        file.write(b"\xff" * 3 * 4096)
    with open_journal(str(path)) as journal, pytest.raises(InvalidInput) as caught:
        list(journal.events())
    assert caught.value.code == "database-damaged"
    assert caught.value.source == str(path)


def test_a_missing_file_is_created_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    assert refusal(path, create=False).code == "database-not-found"
    assert not path.exists()
    path.touch()
    assert refusal(path, create=False).code == "journal-not-found"
    assert path.read_bytes() == b""
    open_journal(str(path)).close()


def test_tables_on_a_server_are_created_only_on_request(postgres: Server) -> None:
    url = postgres.fresh()
    with pytest.raises(InvalidInput) as caught:
        open_journal(url, create=False)
    assert caught.value.code == "journal-not-found"
    with psycopg.connect(url) as raw:
        tables = raw.execute("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()")
        assert tables.fetchone() == (0,)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://kim:s3cret@127.0.0.1:1/db",
        "postgresql://kim:s3cret@/db?host=/nowhere",
        "postgresql://kim:s3cret@no.such.host.invalid/db",
        "postgresql://kim:s3cret@127.0.0.1:1/db?nonsense=1",
    ],
)
def test_an_unreachable_server_raises_a_world_error(url: str) -> None:
    with pytest.raises(WorldError) as caught:
        open_journal(url)
    assert caught.value.code == "database-failed"
    assert str(caught.value).startswith("postgresql://kim@")
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_server_that_refuses_the_user_raises_a_world_error(postgres: Server) -> None:
    postgres.do("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    wrong = "s3cret"
    with pytest.raises(WorldError) as e:
        open_journal(postgres.url(user=f"guarded:{wrong}"))
    assert e.value.code == "database-failed"
    assert wrong not in "".join(traceback.format_exception(e.value))
    for url in (postgres.url("nowhere"), postgres.url(user="guarded:right")):
        with pytest.raises(WorldError) as e:
            open_journal(url)
        assert e.value.code == "database-failed"


def test_the_error_names_the_extra_of_a_missing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"pip install 'equipoise\[postgres\]'"):
        open_journal("postgresql://host/db")


def test_all_threads_share_a_database_in_memory() -> None:
    with open_journal("sqlite://") as journal:
        journal.append((EVENT,))
        seen: list[int] = []
        threads = [threading.Thread(target=lambda: seen.append(len(journal))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == [1] * 8


def open_at_once(url: str, name: str, together: Barrier) -> None:
    together.wait(30)
    with open_journal(url, journal=name) as journal:
        assert journal.append((EVENT,)) == 1


def test_two_processes_may_open_a_new_database_at_once(
    url: str, tmp_path: Path, postgres: Server
) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["equipoise.store.database", "psycopg", "pytest"])
    for attempt in range(3):
        fresh = str(tmp_path / f"{attempt}.db") if "://" not in url else postgres.fresh()
        together = context.Barrier(2)
        pair = [
            context.Process(target=open_at_once, args=(fresh, name, together))
            for name in ("one", "two")
        ]
        for process in pair:
            process.start()
        for process in pair:
            process.join(60)
        assert [process.exitcode for process in pair] == [0, 0]
        with open_journal(fresh, journal="two", create=False) as journal:
            assert len(journal) == 1, "each journal has its own event"
