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
from equipoise.store.address import Address
from equipoise.store.connect import connect
from postgres import Server

EVENT = HostLeft(at_ms=1, host=HostId("h"))


def refusal(path: Path | str, *, create: bool = True) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        open_journal(str(path), create=create)
    assert caught.value.source == str(path)
    assert caught.value.problems[0].cure
    return caught.value


def test_sqlite_writes_ahead_and_ends_as_one_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with open_journal(str(path)) as journal:
        journal.append((EVENT,))
        assert (tmp_path / "journal.db-wal").exists()
    assert os.listdir(tmp_path) == ["journal.db"]
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    raw.close()


def test_sqlite_waits_for_the_disk_before_it_acknowledges(tmp_path: Path) -> None:
    """FULL is 2; NORMAL, which loses the last commits with the power, is 1."""
    engine = connect(Address.of(str(tmp_path / "journal.db")), create=True)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000
    engine.dispose()


@pytest.mark.parametrize(("setting", "expected"), [("off", "on"), ("remote_apply", "remote_apply")])
def test_postgresql_waits_for_the_disk_whatever_its_settings(
    postgres: Server, setting: str, expected: str
) -> None:
    url = postgres.fresh(f"-csynchronous_commit={setting}")
    engine = connect(Address.of(url), create=True)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == expected
    engine.dispose()


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert "is a directory" in str(refusal(tmp_path))


def test_a_path_in_no_directory_is_refused(tmp_path: Path) -> None:
    assert f"make {tmp_path / 'none'} first" in str(refusal(tmp_path / "none" / "journal.db"))
    (tmp_path / "file").touch()
    assert "directory is not there" in str(refusal(tmp_path / "file" / "journal.db"))


def test_a_path_where_nothing_can_be_made_is_refused() -> None:
    assert "cannot be opened or made" in str(refusal("/proc/journal.db"))


def test_a_path_that_is_too_long_is_refused(tmp_path: Path) -> None:
    assert "too long" in str(refusal(tmp_path / ("x" * 300)))


def test_a_device_is_refused() -> None:
    """SQLite would take /dev/null and acknowledge everything."""
    assert "is not a regular file" in str(refusal("/dev/null"))


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing to see here\n" * 100)
    before = path.read_bytes()
    assert "is not a SQLite database" in str(refusal(path))
    assert path.read_bytes() == before


def test_a_torn_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with open_journal(str(path)) as journal:
        journal.append([EVENT] * 5000)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "is damaged" in str(refusal(path))


def test_a_file_damaged_in_its_middle_is_refused_when_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with open_journal(str(path)) as journal:
        journal.append([EVENT] * 5000)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 8192 * 4096)
        file.write(b"\xff" * 3 * 4096)
    with open_journal(str(path)) as journal, pytest.raises(InvalidInput, match="damaged") as caught:
        list(journal.events())
    assert caught.value.source == str(path)


def test_a_file_that_is_not_there_is_made_only_when_wanted(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    assert "is not there" in str(refusal(path, create=False))
    assert not path.exists()
    path.touch()
    assert "holds no journal" in str(refusal(path, create=False))
    assert path.read_bytes() == b""
    open_journal(str(path)).close()


def test_a_database_on_a_server_is_filled_only_when_wanted(postgres: Server) -> None:
    url = postgres.fresh()
    with pytest.raises(InvalidInput, match="holds no journal"):
        open_journal(url, create=False)
    with psycopg.connect(url) as raw:
        found = raw.execute("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()")
        assert found.fetchone() == (0,)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://kim:s3cret@127.0.0.1:1/db", "refused"),
        ("postgresql://kim:s3cret@/db?host=/nowhere", "No such file"),
        ("postgresql://kim:s3cret@no.such.host.invalid/db", "resolve|known|name"),
        ("postgresql://kim:s3cret@127.0.0.1:1/db?nonsense=1", "nonsense"),
    ],
)
def test_a_server_that_cannot_be_reached_is_the_worlds_fault(url: str, words: str) -> None:
    with pytest.raises(WorldError, match=words) as caught:
        open_journal(url)
    assert str(caught.value).startswith("postgresql://kim@")
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_server_that_does_not_let_us_in_is_the_worlds_fault(postgres: Server) -> None:
    postgres.do("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    wrong = "s3cret"
    with pytest.raises(WorldError, match='password authentication failed for user "guarded"') as e:
        open_journal(postgres.url(user=f"guarded:{wrong}"))
    assert wrong not in "".join(traceback.format_exception(e.value))
    with pytest.raises(WorldError, match='database "nowhere" does not exist'):
        open_journal(postgres.url("nowhere"))
    with pytest.raises(WorldError, match="permission denied"):
        open_journal(postgres.url(user="guarded:right"))


def test_the_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"pip install 'equipoise\[postgres\]'"):
        open_journal("postgresql://host/db")


def test_a_database_in_memory_is_one_for_all_threads() -> None:
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
            assert len(journal) == 1
