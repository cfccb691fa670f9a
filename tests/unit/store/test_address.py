"""Addresses of journals: paths, URLs, and passwords that are never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.errors import InvalidInput
from equipoise.store.address import DatabaseAddress


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("cluster.db", Path.cwd() / "cluster.db"),
        ("sub/../cluster.db", Path.cwd() / "cluster.db"),
        ("/var/lib/cluster.db", Path("/var/lib/cluster.db")),
        ("sqlite:///cluster.db", Path.cwd() / "cluster.db"),
        ("sqlite:////var/lib/cluster.db", Path("/var/lib/cluster.db")),
        ("file:odd?mode=ro", Path.cwd() / "file:odd?mode=ro"),
        ("sqlite:///what?.db", Path.cwd() / "what?.db"),
    ],
)
def test_a_path_is_a_sqlite_file(text: str, path: Path) -> None:
    address = DatabaseAddress.of(text)
    assert address.is_sqlite
    assert address.path == path
    assert address.url.database == str(path)
    assert address.shown == text


@pytest.mark.parametrize("text", ["sqlite://", "sqlite:///:memory:", ":memory:"])
def test_an_address_can_denote_a_database_in_memory(text: str) -> None:
    address = DatabaseAddress.of(text)
    assert address.is_sqlite
    assert address.path is None


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_every_postgresql_url_uses_psycopg(scheme: str) -> None:
    address = DatabaseAddress.of(f"{scheme}://kim:secret@db.example:5433/cluster?sslmode=require")
    assert not address.is_sqlite
    assert address.url.drivername == "postgresql+psycopg"
    assert address.url.password == "secret"
    assert address.url.query["sslmode"] == "require"
    assert address.shown == "postgresql://kim@db.example:5433/cluster"


def test_connecting_to_a_server_has_a_timeout() -> None:
    assert DatabaseAddress.of("postgresql://h/d").url.query["connect_timeout"] == "10"
    assert (
        DatabaseAddress.of("postgresql://h/d?connect_timeout=3").url.query["connect_timeout"] == "3"
    )


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://kim:s3cret@host/db",
        "postgresql://kim@host/db?password=s3cret",
        "postgresql://kim@host/db?sslpassword=s3cret",
    ],
)
def test_a_password_is_not_shown(text: str) -> None:
    address = DatabaseAddress.of(text)
    assert "s3cret" not in address.shown + repr(address)
    assert address.without_secrets("no entry with s3cret here") == "no entry with *** here"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://kim:s3cret@host:port/db",
        "postgresql://kim:half@s3cret@host/db",
        "postgresql://kim:s3cret",
        "postgresql+asyncpg://kim:s3cret@host/db",
        "mysql://kim:s3cret@host/db",
        "://s3cret",
        "sqlite://s3cret",
        "",
        "a\0b",
    ],
)
def test_an_invalid_address_is_refused_with_a_fix(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        DatabaseAddress.of(text)
    assert caught.value.code == "address-invalid"
    assert "write " in str(caught.value)
    assert caught.value.__cause__ is None
    if "@" in text or "kim" in text:
        assert "s3cret" not in str(caught.value)
