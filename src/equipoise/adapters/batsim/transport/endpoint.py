"""Endpoints: where the scheduler binds and the simulation connects.

A command of a scheduler may have placeholders: ``{endpoint}`` for the whole address, ``{port}`` for
the number of the TCP port. Without an address from the user, a free local port is chosen for them.
"""

from __future__ import annotations

import re
import shlex
import shutil
import socket
from collections.abc import Sequence
from typing import Final

from equipoise.errors import InputProblem, InvalidInput

DEFAULT_ENDPOINT: Final = "tcp://localhost:28000"
"""The default of Batsim; pybatsim and batsched bind this port if they get no other."""
ENDPOINT_MARK: Final = "{endpoint}"
PORT_MARK: Final = "{port}"
_TCP: Final = re.compile(r"tcp://(?P<host>\[[^\]]+\]|[^:/\[\]]+):(?P<port>\d{1,5})")
_IPC: Final = re.compile(r"ipc://.+")
_ANY_HOST: Final = frozenset({"*", "0.0.0.0", "[::]"})
_LOOPBACK: Final = "127.0.0.1"
_PORT_MAX: Final = 65535
_IPC_PATH_BYTES_MAX: Final = 107
"""The longest path of a UNIX socket on Linux."""


def _problem(key: str, what: str, cure: str, code: str = "invalid-value") -> InvalidInput:
    return InvalidInput("batsim", [InputProblem(key=key, what=what, cure=cure, code=code)])


def check_endpoint(endpoint: str) -> str:
    """Return the address to connect to; a scheduler that binds all interfaces is on this host."""
    key = "--socket-endpoint"
    if _IPC.fullmatch(endpoint):
        if len(endpoint.removeprefix("ipc://").encode()) > _IPC_PATH_BYTES_MAX:
            raise _problem(key, "has a path that is too long", "name a shorter path", "too-large")
        return endpoint
    found = _TCP.fullmatch(endpoint)
    if found is None or not 0 < int(found["port"]) <= _PORT_MAX:
        what = f"{endpoint!r} is no endpoint"
        raise _problem(key, what, f"write an address such as {DEFAULT_ENDPOINT}")
    host = _LOOPBACK if found["host"] in _ANY_HOST else found["host"]
    return f"tcp://{host}:{found['port']}"


def choose_endpoint(command: str | None, endpoint: str | None) -> str:
    """Return the address of the scheduler: the given one, a free one, or the default."""
    marked = command is not None and (ENDPOINT_MARK in command or PORT_MARK in command)
    if endpoint is not None:
        return check_endpoint(endpoint)
    if not marked:
        return DEFAULT_ENDPOINT
    return f"tcp://{_LOOPBACK}:{_free_port()}"


def scheduler_words(command: str, endpoint: str) -> list[str]:
    """Return the words of a command with the endpoint in place; no shell reads them."""
    key = "--scheduler"
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise _problem(
            key, f"cannot be read: {error}", "close the quotes", "syntax-error"
        ) from None
    if not words:
        raise _problem(key, "is empty", "write the command of a scheduler", "empty-value")
    found = _TCP.fullmatch(endpoint)
    if PORT_MARK in command and found is None:
        what = f"has {PORT_MARK}, but {endpoint} has no port"
        raise _problem(key, what, f"write {ENDPOINT_MARK}")
    port = found["port"] if found else ""
    words = [word.replace(ENDPOINT_MARK, endpoint).replace(PORT_MARK, port) for word in words]
    if shutil.which(words[0]) is None:
        what = f"{words[0]!r} is no program that can be run"
        raise _problem(key, what, "write its path, or install it", "unknown-name")
    _check_unused(endpoint)
    return words


def _check_unused(endpoint: str) -> None:
    """Reject a port on which another scheduler listens: the run would connect to that one."""
    found = _TCP.fullmatch(endpoint)
    if found is None:
        return
    try:
        with socket.create_connection((found["host"].strip("[]"), int(found["port"])), timeout=1):
            pass
    except OSError:
        return
    what = f"{endpoint} is in use by another process"
    cure = f"write {ENDPOINT_MARK} in --scheduler, so that a free one is chosen"
    raise _problem("--socket-endpoint", what, cure, "already-exists")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((_LOOPBACK, 0))
        port: int = listener.getsockname()[1]
        return port


def short_name(words: Sequence[str]) -> str:
    """Return a name of a scheduler for results: its program and first argument."""
    program = words[0].rsplit("/", 1)[-1]
    return " ".join([program, *(word for word in words[1:2] if not word.startswith("-"))])
