"""One run at a time holds the lock of a journal, and the lock ends with its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise.errors import InvalidInput
from equipoise.store import MemoryJournal, open_journal
from postgres import Server, fixture_postgres

assert fixture_postgres  # pytest finds it by its name

_HOLDER = """
import sys, time
from equipoise.store import open_journal
journal = open_journal(sys.argv[1])
print(journal.try_lock(), flush=True)
time.sleep(600)
"""


@pytest.fixture(name="url", params=["sqlite", "postgresql"])
def fixture_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "journal.db")
    server: Server = request.getfixturevalue("postgres")
    return server.fresh()


def test_a_second_run_gets_the_lock_when_the_first_has_closed(url: str) -> None:
    with open_journal(url) as first, open_journal(url) as second:
        assert first.try_lock()
        assert first.try_lock(), "the holder may ask again"
        assert not second.try_lock()
        with open_journal(url, journal="other") as other:
            assert other.try_lock(), "another journal of the database has its own lock"
        first.close()
        assert second.try_lock()


def test_a_killed_process_releases_its_lock(url: str) -> None:
    with subprocess.Popen([sys.executable, "-c", _HOLDER, url], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == b"True"
        with open_journal(url) as journal:
            assert not journal.try_lock()
            os.kill(holder.pid, signal.SIGKILL)
            holder.wait()
            for _ in range(600):  # a server takes some time to detect the broken connection
                if journal.try_lock():
                    break
                signal.sigtimedwait([], 0.05)
            assert journal.try_lock()


def test_closing_removes_the_lock_file(tmp_path: Path) -> None:
    with open_journal(str(tmp_path / "journal.db")) as journal:
        assert journal.try_lock()
    assert os.listdir(tmp_path) == ["journal.db"]


def test_a_lock_file_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    with open_journal(str(tmp_path / "journal.db")) as journal:
        (tmp_path / "journal.db-main-held").mkdir()
        with pytest.raises(InvalidInput) as caught:
            journal.try_lock()
        assert caught.value.code == "database-not-writable"


def test_a_journal_in_memory_is_always_locked() -> None:
    assert MemoryJournal().try_lock()
    with open_journal("sqlite://") as journal:
        assert journal.try_lock()
