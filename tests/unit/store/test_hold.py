"""A journal is held by one run at a time, whatever becomes of it."""

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
print(journal.hold(), flush=True)
time.sleep(600)
"""


@pytest.fixture(name="url", params=["sqlite", "postgresql"])
def fixture_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "journal.db")
    server: Server = request.getfixturevalue("postgres")
    return server.fresh()


def test_a_second_one_is_turned_away_until_the_first_has_closed(url: str) -> None:
    with open_journal(url) as first, open_journal(url) as second:
        assert first.hold()
        assert first.hold(), "who holds it holds it"
        assert not second.hold()
        with open_journal(url, journal="other") as other:
            assert other.hold(), "another journal of the same database is another matter"
        first.close()
        assert second.hold()


def test_a_process_that_was_killed_holds_nothing(url: str) -> None:
    with subprocess.Popen([sys.executable, "-c", _HOLDER, url], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == b"True"
        with open_journal(url) as journal:
            assert not journal.hold()
            os.kill(holder.pid, signal.SIGKILL)
            holder.wait()
            for _ in range(600):  # a server needs a moment to notice
                if journal.hold():
                    break
                signal.sigtimedwait([], 0.05)
            assert journal.hold()


def test_nothing_is_left_beside_a_database_that_was_held(tmp_path: Path) -> None:
    with open_journal(str(tmp_path / "journal.db")) as journal:
        assert journal.hold()
    assert os.listdir(tmp_path) == ["journal.db"]


def test_a_place_where_nothing_can_be_kept_is_told(tmp_path: Path) -> None:
    with open_journal(str(tmp_path / "journal.db")) as journal:
        (tmp_path / "journal.db-main-held").mkdir()
        with pytest.raises(InvalidInput, match="cannot be made: is a directory"):
            journal.hold()


def test_what_nobody_else_can_see_is_held_at_once() -> None:
    assert MemoryJournal().hold()
    with open_journal("sqlite://") as journal:
        assert journal.hold()
