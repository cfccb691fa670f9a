"""Fixtures: empty journals and databases of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise.store import Journal, MemoryJournal, open_journal
from postgres import Server, fixture_postgres

__all__ = ["fixture_postgres"]


@pytest.fixture(name="url", params=["sqlite", "postgresql"])
def fixture_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "journal.db")
    server: Server = request.getfixturevalue("postgres")
    return server.fresh()


@pytest.fixture(name="journal", params=["memory", "file", "sqlite in memory", "postgresql"])
def fixture_journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    """An empty journal of each kind."""

    with _journal(request, tmp_path) as opened:
        yield opened


def _journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    match request.param:
        case "memory":
            return MemoryJournal()
        case "file":
            return open_journal(str(tmp_path / "journal.db"))
        case "sqlite in memory":
            return open_journal("sqlite://")
        case _:
            server: Server = request.getfixturevalue("postgres")
            return open_journal(server.fresh())
