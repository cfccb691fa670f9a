"""Where a journal is: from what a person writes to what the database library wants.

Passwords go in here and come out only in the URL for the library: whatever is shown or raised
anywhere in this room goes through ``Address``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from equipoise.errors import InvalidInput, Problem

_MEMORY: Final = ":memory:"
_FORMS: Final = "write a file path, sqlite:///path or postgresql://user@host/database"
_POSTGRESQL: Final = ("postgresql", "postgres", "postgresql+psycopg")
_SECRET_OPTIONS: Final = ("password", "sslpassword")
_CONNECT_SECONDS: Final = "10"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A database, by the name that is shown and by the one that opens it."""

    shown: str
    url: URL = field(repr=False)
    path: Path | None = None
    """The file of a SQLite database; none in memory and on a server."""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, text: str) -> Address:
        """Understand a path or a URL."""
        if "://" not in text:
            return _file(text, text)
        scheme = text.partition("://")[0]
        if scheme == "sqlite":
            return _sqlite(text)
        if scheme in _POSTGRESQL:
            return _postgresql(text)
        raise refused(f"{scheme}://...", "is no kind of database Equipoise knows", _FORMS)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file, or a database that lasts as long as it is open."""
        return self.url.drivername == "sqlite"

    def without_secrets(self, message: str) -> str:
        """Take what must not be shown out of a message that others have made."""
        for secret in self.secrets:
            message = message.replace(secret, "***")
        return message


def refused(source: str, what: str, cure: str) -> InvalidInput:
    """Say that a database, as a whole, cannot be used."""
    return InvalidInput(source, (Problem(key="", what=what, cure=cure),))


def _sqlite(text: str) -> Address:
    # Taken apart by hand: in a URL for SQLite everything after the third slash is the path.
    rest = text.removeprefix("sqlite://")
    if not rest:
        return _file(_MEMORY, text)
    if not rest.startswith("/"):
        raise refused(text, "names a server, and SQLite has none", "write sqlite:///path")
    return _file(rest[1:], text)


def _file(path: str, shown: str) -> Address:
    if path == _MEMORY:
        return Address(shown=shown, url=URL.create("sqlite"))
    if not path or "\0" in path:
        raise refused(shown or "''", "is not a path", _FORMS)
    # Absolute, because the process may change its directory while the journal is open.
    absolute = os.path.abspath(path)
    return Address(shown=shown, url=URL.create("sqlite", database=absolute), path=Path(absolute))


def _postgresql(text: str) -> Address:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Not even the cause is kept: what could not be understood may hold a password.
        raise _garbled() from None
    if "@" in (url.host or ""):
        raise _garbled()
    secrets = [url.password, *(url.query.get(option) for option in _SECRET_OPTIONS)]
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
    if "connect_timeout" not in url.query:
        url = url.update_query_dict({"connect_timeout": _CONNECT_SECONDS})
    return Address(
        shown=shown.render_as_string(),
        url=url.set(drivername="postgresql+psycopg"),
        secrets=tuple(str(secret) for secret in secrets if secret),
    )


def _garbled() -> InvalidInput:
    return refused(
        "postgresql://...",
        "cannot be understood",
        "write postgresql://user:password@host:port/database, and in a password write @ as %40",
    )
