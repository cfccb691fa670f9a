"""The address of a journal: from a path or URL to what the database library needs.

Passwords leave this module only in the URL for the library. Everything that is shown or raised in
this package uses ``DatabaseAddress.shown``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from equipoise.errors import InputProblem, InvalidInput

_MEMORY: Final = ":memory:"
_FORMS: Final = "write a file path, sqlite:///path or postgresql://user@host/database"
_SQLITE_FORM: Final = "write sqlite:///path"
_ADDRESS_INVALID: Final = "address-invalid"
_POSTGRESQL: Final = ("postgresql", "postgres", "postgresql+psycopg")
_SECRET_OPTIONS: Final = ("password", "sslpassword")
# Without a limit the library waits for minutes when a firewall drops the packets.
_CONNECT_SECONDS: Final = "10"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseAddress:
    """The address of a database: the URL that opens it, and a text without secrets."""

    shown: str
    """The address for messages, without a password."""
    url: URL = field(repr=False)
    path: Path | None = None
    """The file of a SQLite database; ``None`` for a database in memory or on a server."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Passwords of the URL."""

    @classmethod
    def of(cls, text: str) -> DatabaseAddress:
        """Return the address that a path or a URL denotes."""
        if "://" not in text:
            return _file(text, text)
        scheme = text.partition("://")[0]
        if scheme == "sqlite":
            return _sqlite(text)
        if scheme in _POSTGRESQL:
            return _postgresql(text)
        raise invalid_database(
            f"{scheme}://...", "is not a supported kind of database", _FORMS, code=_ADDRESS_INVALID
        )

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a SQLite database, in a file or in memory."""
        return self.url.drivername == "sqlite"

    def without_secrets(self, message: str) -> str:
        """Return a message of the database library with every password replaced."""
        for secret in self.secrets:
            message = message.replace(secret, "***")
        return message


def invalid_database(source: str, what: str, cure: str, *, code: str) -> InvalidInput:
    """Return the exception for a database that cannot be used."""
    return InvalidInput(source, (InputProblem(key="", what=what, cure=cure, code=code),))


def _sqlite(text: str) -> DatabaseAddress:
    # Not by make_url: in a URL of SQLite everything after the third slash is the path, also "?".
    rest = text.removeprefix("sqlite://")
    if not rest:
        return _file(_MEMORY, text)
    if not rest.startswith("/"):
        raise invalid_database(
            text, "names a server, but SQLite has none", _SQLITE_FORM, code=_ADDRESS_INVALID
        )
    return _file(rest[1:], text)


def _file(path: str, shown: str) -> DatabaseAddress:
    if path == _MEMORY:
        return DatabaseAddress(shown=shown, url=URL.create("sqlite"))
    if not path or "\0" in path:
        raise invalid_database(shown or "''", "is not a path", _FORMS, code=_ADDRESS_INVALID)
    # Absolute, because the process may change its directory while the journal is open.
    absolute = os.path.abspath(path)
    return DatabaseAddress(
        shown=shown, url=URL.create("sqlite", database=absolute), path=Path(absolute)
    )


def _postgresql(text: str) -> DatabaseAddress:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The cause is dropped, because its message may contain the password.
        raise _malformed_url() from None
    # An "@" in the password splits the URL at the wrong place and would show a part of it.
    if "@" in (url.host or ""):
        raise _malformed_url()
    secrets = [url.password, *(url.query.get(option) for option in _SECRET_OPTIONS)]
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
    if "connect_timeout" not in url.query:
        url = url.update_query_dict({"connect_timeout": _CONNECT_SECONDS})
    return DatabaseAddress(
        shown=shown.render_as_string(),
        url=url.set(drivername="postgresql+psycopg"),
        secrets=tuple(str(secret) for secret in secrets if secret),
    )


def _malformed_url() -> InvalidInput:
    return invalid_database(
        "postgresql://...",
        "is not a valid URL",
        "write postgresql://user:password@host:port/database, and in a password write @ as %40",
        code=_ADDRESS_INVALID,
    )
