"""A real PostgreSQL server for tests, in a temporary directory, one per pytest process.

It listens on a socket in that directory and nowhere else, so no two servers ever meet. PostgreSQL
refuses to run as root; then it runs as the user ``postgres``, whom its package made.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

_PLACES = "/usr/lib/postgresql/*/bin"
_SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{home}'
max_connections = 50
"""
_ACCESS = """
local all guarded scram-sha-256
local all all trust
"""


class Server:
    """A running server with room for any number of journals."""

    def __init__(self, binaries: Path, user: str | None) -> None:
        self._binaries, self._user = binaries, user
        self._counter = itertools.count(1)
        # Not in pytest's own directory: the server's user could not pass through that one.
        self._home = Path(tempfile.mkdtemp(prefix="equipoise-pg-"))
        self._cluster = self._home / "cluster"
        if user is not None:
            shutil.chown(self._home, user)
        self._run("initdb", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
        with (self._cluster / "postgresql.conf").open("a") as settings:
            settings.write(_SETTINGS.format(home=self._home))
        (self._cluster / "pg_hba.conf").write_text(_ACCESS)
        self._run("pg_ctl", "-w", "-l", str(self._home / "log"), "start")

    def url(self, database: str = "postgres", *, user: str = "postgres") -> str:
        """Return the URL of a database, whether it is there or not."""
        return f"postgresql://{user}@/{database}?host={self._home}"

    def fresh(self, settings: str = "") -> str:
        """Return the URL of a place without tables.

        It is a schema, which looks like a database to who connects, and costs 300 files less.
        """
        name = f"fresh{next(self._counter)}"
        self.do(f"CREATE SCHEMA {name}")
        return f"{self.url()}&options={quote(f'-csearch_path={name} {settings}')}"

    def do(self, *statements: str) -> None:
        """Run statements as the owner of the server."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def break_connections(self) -> None:
        """End every connection but this one, as a restart of the server would."""
        self.do(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type ="
            " 'client backend' AND pid <> pg_backend_pid()"
        )

    def stop(self) -> None:
        """End the server and remove what it wrote; once is enough."""
        if self._home.exists():
            self._run("pg_ctl", "-w", "-m", "immediate", "stop")
            shutil.rmtree(self._home)

    def _run(self, command: str, *arguments: str) -> None:
        line: Sequence[str] = (
            str(self._binaries / command),
            *("-D", str(self._cluster)),
            *arguments,
        )
        # Into a file, not a pipe: the server would inherit the pipe and keep it open.
        output = self._home / "output"
        with output.open("a") as sink:
            done = subprocess.run(
                line,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=self._home,
                user=self._user,
                group=self._user,
                extra_groups=[] if self._user else None,
                check=False,
            )
        assert done.returncode == 0, f"{command} failed:\n{output.read_text()}"


@cache
def running_server() -> Server:
    """Start the server of this process, or skip the test that asks if there is no PostgreSQL."""
    found = shutil.which("initdb", path=_search_path())
    if found is None:
        pytest.skip(f"PostgreSQL is not installed: no initdb in {_PLACES} nor in PATH")
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None and user not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip("PostgreSQL refuses to run as root, and there is no user postgres")
    return Server(Path(found).parent, user)


def _search_path() -> str:
    newest_first = sorted(Path("/").glob(_PLACES[1:]), key=_release, reverse=True)
    return os.pathsep.join([*map(str, newest_first), os.environ.get("PATH", "")])


def _release(binaries: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in binaries.parent.name.split(".") if part.isdigit())


@pytest.fixture(scope="session", name="postgres")
def fixture_postgres() -> Iterator[Server]:
    """The server; a test asks it for a ``fresh()`` place. Import it to have it.

    Each module that imports it has a fixture of its own, and all of them end with the session.
    """
    server = running_server()
    yield server
    server.stop()
