"""Requests to the API: pages, watches, and a code for each way to fail."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from equipoise.adapters.kubernetes.api.resources import NODES, PODS
from equipoise.adapters.kubernetes.api.server import ServerOptions
from equipoise.adapters.kubernetes.client import connection
from equipoise.adapters.kubernetes.client.connection import ApiConnection, ApiRefusal, address_of
from equipoise.errors import InvalidInput, WorldError
from kubernetes_api import a_node, a_pod
from kubernetes_certificate import certificate
from kubernetes_server import ServedApi

pytest.importorskip("uvicorn", reason="equipoise[kube] is missing")
TOKEN = "a-token"


def list_nodes(url: str, token: str = "") -> list[str]:
    client = ApiConnection(address_of(url, token=token))
    try:
        return [node["metadata"]["name"] for node in client.list_all("/api/v1/nodes")[0]]
    finally:
        client.close()


@contextmanager
def answering(status: int, body: bytes, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve one answer to every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_list_is_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAGE", 2)
    with ServedApi() as api:
        for number in range(5):
            api.call(partial(api.store.create, NODES, a_node(f"n{number}")))
        assert list_nodes(api.url) == ["n0", "n1", "n2", "n3", "n4"]
        assert api.server.requests_total == 3


def test_a_token_is_sent_and_a_wrong_one_has_a_code() -> None:
    with ServedApi(ServerOptions(token=TOKEN)) as api:
        assert list_nodes(api.url, TOKEN) == []
        for token in ("", "wrong"):
            with pytest.raises(WorldError) as refused:
                list_nodes(api.url, token)
            assert refused.value.code == "api-unauthorized"
        with pytest.raises(InvalidInput):
            list_nodes(api.url, "two\nlines")


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (403, b'{"message": "nodes is forbidden"}', "api-forbidden"),
        (404, b"not here", "api-not-found"),
        (500, b"", "api-error"),
        (200, b"<html>", "api-error"),
        (200, b"{}", "api-error"),
    ],
)
def test_every_failure_has_a_code(status: int, body: bytes, code: str) -> None:
    with answering(status, body) as url, pytest.raises(WorldError) as failed:
        list_nodes(url)
    assert failed.value.code == code


def test_a_closed_port_is_unreachable() -> None:
    with answering(200, b"{}") as url:
        pass
    with pytest.raises(WorldError) as failed:
        list_nodes(url)
    assert failed.value.code == "api-unreachable"


def test_a_certificate_of_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with answering(200, b'{"items": []}', tls) as url:
        with pytest.raises(WorldError) as failed:
            list_nodes(url)
        assert failed.value.code == "api-certificate"
        trusting = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        client = ApiConnection(address_of(url, tls=trusting))
        assert client.list_all("/api/v1/nodes")[0] == []
        client.close()


def test_a_watch_yields_events_until_the_server_ends() -> None:
    with ServedApi() as api:
        events = ApiConnection(address_of(api.url)).watch("/api/v1/pods", "1")
        api.call(lambda: api.store.create(PODS, a_pod("p"), "default"))
        kind, body = next(events)
        assert (kind, body["metadata"]["name"]) == ("ADDED", "p")
    assert list(events) == []


def test_a_watch_that_is_refused_has_the_status() -> None:
    with ServedApi() as api:
        with pytest.raises(ApiRefusal) as refused:
            next(ApiConnection(address_of(api.url)).watch("/api/v1/nodes", "x"))
        assert refused.value.status == 400


@pytest.mark.parametrize("status", [410, 500])
def test_an_error_in_a_watch_has_the_status(status: int) -> None:
    event = {"type": "ERROR", "object": {"kind": "Status", "code": status, "message": "no"}}
    with answering(200, json.dumps(event).encode() + b"\n") as url:
        with pytest.raises(ApiRefusal) as refused:
            next(ApiConnection(address_of(url)).watch("/api/v1/nodes", "1"))
        assert refused.value.status == status
