"""The server on real sockets: limits, what it counts as open work, and its end."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from equipoise.adapters.kubernetes.api.resources import PODS
from equipoise.adapters.kubernetes.api.server import ApiServer, ServerOptions
from equipoise.adapters.kubernetes.api.store import ObjectStore
from equipoise.errors import InvalidInput, MissingExtra, WorldError
from kubernetes_api import a_pod
from kubernetes_server import ServedApi

pytest.importorskip("uvicorn", reason="equipoise[kube] is missing")

GET = b"GET /api/v1/pods HTTP/1.1\r\nhost: localhost\r\n\r\n"
WATCH = b"GET /api/v1/pods?watch=true&allowWatchBookmarks=true HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.fixture
def api() -> Iterator[ServedApi]:
    with ServedApi(ServerOptions(header_bytes_max=2000, body_bytes_max=5000)) as served:
        yield served


@pytest.fixture
def connection(api: ServedApi) -> Iterator[socket.socket]:
    with connected(api) as opened:
        yield opened


def connected(api: ServedApi) -> socket.socket:
    host, port = api.server.listening_socket().getsockname()
    return socket.create_connection((host, port), timeout=20)


def until(opened: socket.socket, text: bytes) -> bytes:
    received = b""
    while text not in received:
        piece = opened.recv(65536)
        assert piece, received
        received += piece
    return received


def rest(opened: socket.socket) -> bytes:
    received = b""
    while piece := opened.recv(65536):
        received += piece
    return received


def test_requests_in_a_row_on_one_connection_are_answered_in_order(
    connection: socket.socket,
) -> None:
    connection.sendall(GET + GET.replace(b"pods", b"nodes"))
    received = until(connection, b"NodeList")
    assert received.index(b"PodList") < received.index(b"NodeList")


def test_a_request_of_which_a_part_is_read_is_open(
    api: ServedApi, connection: socket.socket
) -> None:
    connection.sendall(GET)
    until(connection, b"PodList")
    assert api.call(lambda: api.server.requests_open) == 0
    connection.sendall(GET[:20])
    while api.call(lambda: api.server.requests_open) == 0:
        api.run(api.server.turn())
    connection.sendall(GET[20:])
    until(connection, b"PodList")
    assert api.call(lambda: api.server.requests_open) == 0
    post = GET.replace(b"GET /api/v1", b"POST /api/v1/namespaces/default")
    connection.sendall(post[:-2] + b"content-length: 9\r\n\r\n")
    while api.call(lambda: api.server.requests_open) == 0:
        api.run(api.server.turn())
    connection.sendall(b"{" * 9)
    assert b" 400 " in until(connection, b"Status")


def test_a_head_or_a_body_that_is_too_large_is_refused(api: ServedApi) -> None:
    with connected(api) as opened:
        opened.sendall(GET[:-2] + b"x: " + b"y" * 3000)
        assert b" 431 " in rest(opened)
    with connected(api) as opened:
        opened.sendall(
            b"PUT /api/v1/pods HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999\r\n\r\n"
        )
        assert b" 413 " in until(opened, b"Status")
    with connected(api) as opened:
        opened.sendall(b"\x00\x01 nonsense\r\n\r\n")
        assert b" 400 " in rest(opened)
    with connected(api) as opened:
        opened.sendall(b"GET /api/v1/p\xffds HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert b" 400 " in rest(opened)


def test_a_large_head_that_arrives_whole_is_refused(api: ServedApi) -> None:
    for part in (b"x: " + b"y" * 3000 + b"\r\n", b"".join(b"x%d: y\r\n" % i for i in range(500))):
        with connected(api) as opened:
            opened.sendall(GET[:-2] + part + b"\r\n")
            assert b" 431 " in rest(opened)
    with connected(api) as opened:
        opened.sendall(GET.replace(b"pods", b"pods?x=" + b"y" * 3000))
        assert b" 431 " in rest(opened)


def test_a_client_without_the_token_is_refused_before_its_body() -> None:
    with ServedApi(ServerOptions(token="s3cret")) as api, connected(api) as opened:
        opened.sendall(GET.replace(b"GET", b"POST")[:-2] + b"content-length: 99\r\n\r\n")
        assert b" 401 " in until(opened, b"Status")


@pytest.mark.parametrize("sent", [b"", GET[:20], GET[:-2] + b"content-length: 9\r\n\r\n{"])
def test_a_connection_without_a_whole_request_is_closed(sent: bytes) -> None:
    with ServedApi(ServerOptions(request_s=0.3)) as api, connected(api) as opened:
        opened.sendall(sent)
        with suppress(ConnectionResetError):
            assert rest(opened) == b""


def test_a_watch_and_a_second_request_outlive_the_time_for_a_request() -> None:
    with (
        ServedApi(ServerOptions(request_s=0.3)) as api,
        connected(api) as opened,
        connected(api) as watching,
    ):
        watching.sendall(WATCH)
        until(watching, b"\r\n\r\n")
        opened.sendall(GET)
        until(opened, b"PodList")
        with connected(api) as idle, suppress(ConnectionResetError):
            # When this connection is closed, the time of the others is over, too.
            assert rest(idle) == b""
        api.call(lambda: api.store.create(PODS, a_pod("p")))
        until(watching, b"ADDED")
        opened.sendall(GET)
        until(opened, b"PodList")


def test_connections_are_named_by_both_addresses(api: ServedApi, connection: socket.socket) -> None:
    connection.sendall(GET)
    until(connection, b"PodList")
    pair = (connection.getsockname(), connection.getpeername())
    assert api.call(api.server.connections) == [pair]


def test_a_watch_gets_pokes_and_events_and_ends_with_the_server(api: ServedApi) -> None:
    with connected(api) as opened:
        opened.sendall(WATCH)
        until(opened, b"\r\n\r\n")
        while api.call(lambda: api.server.watches_open) == 0:
            api.run(api.server.turn())
        assert api.call(api.server.poke) == 1
        until(opened, b"BOOKMARK")
        api.call(lambda: api.store.create(PODS, a_pod("p")))
        until(opened, b"ADDED")
        api.run(api.server.stop())
        assert rest(opened).endswith(b"0\r\n\r\n")


def test_a_client_that_leaves_ends_its_watch(api: ServedApi) -> None:
    with connected(api) as opened:
        opened.sendall(WATCH)
        until(opened, b"\r\n\r\n")
        while api.call(lambda: api.server.watches_open) == 0:
            api.run(api.server.turn())
    while api.call(lambda: api.server.watches_open) == 1:
        api.run(api.server.turn())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_another_address_needs_a_token(host: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ApiServer(ObjectStore(lambda: 0), ServerOptions(host=host))
    assert refused.value.code == "option-conflict"
    ApiServer(ObjectStore(lambda: 0), ServerOptions(host=host, token="t"))


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    store, other = ObjectStore(lambda: 0), tmp_path / "other.pem"
    other.write_text("no key")
    for options, code in (
        (ServerOptions(certificate=other), "option-conflict"),
        (ServerOptions(key=other), "option-conflict"),
        (ServerOptions(certificate=other, key=other), "invalid-value"),
        (ServerOptions(certificate=tmp_path / "none.pem", key=other), "invalid-value"),
    ):
        with pytest.raises(InvalidInput) as refused:
            ApiServer(store, options)
        assert refused.value.code == code


def test_an_address_in_use_is_an_error_of_the_world(api: ServedApi) -> None:
    port = api.server.listening_socket().getsockname()[1]
    second = ApiServer(ObjectStore(lambda: 0), ServerOptions(port=port))
    with pytest.raises(WorldError):
        api.run(second.start())


def test_without_the_extra_the_error_names_it(
    api: ServedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtra) as missing:
        api.run(ApiServer(ObjectStore(lambda: 0)).start())
    assert "equipoise[kube]" in str(missing.value)


@pytest.mark.parametrize("turns", range(8))
def test_a_connection_that_arrives_as_the_server_stops_is_closed(turns: int) -> None:
    """Whatever turn of the loop the server stops in, the client sees the end of the connection."""
    server = ApiServer(ObjectStore(lambda: 0))

    async def stop_after() -> socket.socket:
        await server.start()
        opened = socket.create_connection(server.listening_socket().getsockname(), timeout=20)
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.stop()
        return opened

    with asyncio.run(stop_after()) as opened, suppress(ConnectionResetError):
        assert opened.recv(1) == b""
    # A transport that was left open says so when it is collected.
    gc.collect()
