"""The HTTP server in the running event loop: uvicorn's protocol, with limits and a count of work.

A simulation asks after each turn whether anything is left to answer, so the server counts requests
from their first byte, connections that it has accepted, and events that it has not sent.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from equipoise.adapters.kubernetes.api.app import KubernetesApp, RequestRecord
from equipoise.adapters.kubernetes.api.store import ObjectStore
from equipoise.adapters.kubernetes.api.watch import Watches, WatchLimits
from equipoise.errors import InputProblem, InvalidInput, MissingExtra, WorldError

if TYPE_CHECKING:
    from uvicorn.server import ServerState

_TURNS: Final = 6
"""Turns of the event loop from a connection that waits to its answer: accept, start, read, run."""
_BACKLOG: Final = 512
_STOP_S: Final = 5.0
_ACCEPT_TURNS: Final = 5
"""Turns from the acceptance of a connection until it is made, and some more."""

Address = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Where the server listens, and its limits."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 for a free one."""
    token: str = ""
    """What clients send as ``Authorization: Bearer``; required on any other address."""
    certificate: Path | None = None
    key: Path | None = None
    """The certificate and its key in PEM, for TLS. Clients written in Go send a token only then."""
    body_bytes_max: int = 3 * 1024 * 1024
    header_bytes_max: int = 64 * 1024
    stored_objects_max: int = 1_000_000
    connections_max: int = 2_000
    request_s: float = 0.0
    """Real seconds until a new connection, or one that has begun a request, must have sent a whole
    one; 0 for no limit, as in a run, whose programs wait for virtual time."""
    watches: WatchLimits = field(default_factory=WatchLimits)


class ApiServer:
    """The Kubernetes API of a store, at a URL."""

    def __init__(self, store: ObjectStore, options: ServerOptions | None = None) -> None:
        self._options = options or ServerOptions()
        _check_address(self._options)
        self._tls = _tls_of(self._options)
        self.url = ""
        self._watches = Watches(store, self._options.watches)
        self._app = KubernetesApp(
            store, self._watches,
            token=self._options.token,
            body_bytes_max=self._options.body_bytes_max,
            objects_max=self._options.stored_objects_max,
        )  # fmt: skip
        self._listening: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._state: ServerState | None = None

    # Life

    async def start(self) -> None:
        """Listen and answer from now on."""
        protocol, state, config = _protocol_of(self._app, self._options)
        self._state = state
        self._listening = _listen(self._options)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: protocol(config, state, {}, loop), sock=self._listening, backlog=_BACKLOG,
            ssl=self._tls,
        )  # fmt: skip
        host, port = self._listening.getsockname()[:2]
        scheme = "http" if self._tls is None else "https"
        self.url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    async def stop(self) -> None:
        """End the watches, answer what is open, and close all connections."""
        self._watches.close()
        if self._server is None or self._state is None:
            return
        # asyncio leaves a connection open that it accepted just before its server was closed, so
        # no more are accepted first, and the last of them are made.
        asyncio.get_running_loop().remove_reader(self.listening_socket())
        for _ in range(_ACCEPT_TURNS):
            await asyncio.sleep(0)
        self._server.close()
        state = self._state
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            await asyncio.wait(list(state.tasks), timeout=_STOP_S)
        for connection in list(state.connections):
            transport: Any = connection.transport
            transport.abort()
        await asyncio.sleep(0)
        self._server = None

    # What a simulation asks

    @property
    def app(self) -> KubernetesApp:
        """Return the ASGI application, for callers in the same process."""
        return self._app

    @property
    def requests_open(self) -> int:
        """Return the requests that are not answered whole, and watches with events to send."""
        return self._app.requests_open + self._watches.unsent + self._unparsed()

    @property
    def requests_total(self) -> int:
        """Return how many requests have been read."""
        return self._app.requests_total

    @property
    def watches_open(self) -> int:
        """Return how many watches are open."""
        return self._watches.count

    @property
    def bugs(self) -> list[str]:
        """Return the traces of the last errors of the server itself."""
        return self._app.bugs

    @property
    def on_request(self) -> Callable[[RequestRecord], None] | None:
        """Return what is called after each request."""
        return self._app.on_request

    @on_request.setter
    def on_request(self, listener: Callable[[RequestRecord], None] | None) -> None:
        self._app.on_request = listener

    def connections(self) -> list[tuple[Address, Address]]:
        """Return the addresses of the accepted sockets: the client's and the server's."""
        if self._state is None:
            return []
        return sorted((connection.client, connection.server) for connection in self._connections())

    def listening_socket(self) -> socket.socket:
        """Return the socket whose queue holds connections that are not accepted yet."""
        assert self._listening is not None, "the server has not started"
        return self._listening

    async def turn(self) -> None:
        """Let the event loop accept, read and answer what is there now."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    def poke(self, *, everywhere: bool = False) -> int:
        """Send one bookmark on one watch of pods, or on every watch: it wakes the client."""
        return self._watches.poke(everywhere=everywhere)

    def hold(self, clients: frozenset[str]) -> None:
        """Keep the events of these clients, by their names, and send those of all others."""
        self._watches.hold(clients)

    def has_events(self, client: str) -> bool:
        """Return whether events wait for a client."""
        return self._watches.has_events(client)

    def _unparsed(self) -> int:
        """Return how many connections hold a part of a request, or bytes that did not leave."""
        return sum(connection.is_busy for connection in self._connections())

    def _connections(self) -> list[Any]:
        return list(self._state.connections) if self._state is not None else []


def _check_address(options: ServerOptions) -> None:
    if options.token:
        return
    try:
        is_local = ipaddress.ip_address(options.host).is_loopback
    except ValueError:
        is_local = options.host == "localhost"
    if not is_local:
        what = f"the address {options.host} is open to other machines"
        raise _option_problem("host", what, "give a token, or use 127.0.0.1")


def _tls_of(options: ServerOptions) -> ssl.SSLContext | None:
    """Return how connections are encrypted, if they are."""
    if options.certificate is None and options.key is None:
        return None
    if options.certificate is None or options.key is None:
        key = "certificate" if options.certificate is None else "key"
        raise _option_problem(key, "is missing", "name the certificate and its key")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # A function for the password keeps the library from asking at the terminal.
        tls.load_cert_chain(options.certificate, options.key, password=lambda: "")
    except (ssl.SSLError, OSError, ValueError) as error:
        what = f"cannot be used: {getattr(error, 'strerror', None) or error}"
        cure = "name a certificate and its key in PEM, without a password"
        raise _option_problem("certificate", what, cure, "invalid-value") from None
    return tls


def _option_problem(key: str, what: str, cure: str, code: str = "option-conflict") -> InvalidInput:
    return InvalidInput("kubernetes API", [InputProblem(key=key, what=what, cure=cure, code=code)])


def _listen(options: ServerOptions) -> socket.socket:
    listening: socket.socket | None = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio sends small pieces at once only on sockets that name their protocol.
        listening = socket.socket(family, kind, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setblocking(False)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        if listening is not None:
            listening.close()
        raise WorldError(f"cannot listen on {options.host}:{options.port}: {error}") from None
    return listening


def _protocol_of(app: KubernetesApp, options: ServerOptions) -> tuple[Any, ServerState, Any]:
    """Return the protocol class of uvicorn with our limits, its state and its configuration."""
    try:
        uvicorn = import_module("uvicorn")
        state = import_module("uvicorn.server").ServerState()
        connection = import_module("equipoise.adapters.kubernetes.api.connection")
    except ModuleNotFoundError:
        raise MissingExtra("kube", "the Kubernetes API") from None
    config = uvicorn.Config(
        app, http="httptools", ws="none", lifespan="off", log_config=None, access_log=False,
        proxy_headers=False, server_header=False, date_header=False, timeout_keep_alive=600,
    )  # fmt: skip
    config.load()
    return connection.protocol_class(options), state, config
