"""Management controllers for tests: real protocols on loopback, each server a process or a thread.

Redfish is sushy-tools' emulator with its fake driver, IPMI is pyghmi's own server.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

USER, PASSWORD = "root", "right"
WITHIN_S = 30


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Return a port on which no program listens."""
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def system_id(number: int) -> str:
    """The name of one of the emulator's systems."""
    return f"00000000-0000-4000-8000-{number:012d}"


@contextmanager
def running(*line: str | Path, log: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended with the block."""
    with (
        log.open("w") as sink,
        subprocess.Popen(line, stdout=subprocess.PIPE, stderr=sink, text=True) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def redfish_emulator(
    folder: Path, *, systems: int = 6, certificate: tuple[Path, Path] | None = None
) -> Iterator[str]:
    """The URL of an emulator whose systems are off; the odd ones are on."""
    command = Path(sys.executable).parent / "sushy-emulator"
    if not command.exists():
        pytest.skip(f"sushy-tools is not installed: there is no {command}")
    folder.mkdir()
    secret = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (folder / "users").write_text(f"{USER}:{secret}\n")
    (folder / "state").mkdir()
    fakes: list[dict[str, object]] = [
        {
            "uuid": system_id(n),
            "name": f"fake{n}",
            "power_state": "On" if n % 2 else "Off",
            "nics": [],
        }
        for n in range(systems)
    ]
    (folder / "settings.py").write_text(
        f"SUSHY_EMULATOR_FAKE_SYSTEMS = {fakes!r}\n"
        f"SUSHY_EMULATOR_AUTH_FILE = {str(folder / 'users')!r}\n"
        f"SUSHY_EMULATOR_STATE_DIR = {str(folder / 'state')!r}\n"
    )
    port = free_port()
    tls: tuple[str | Path, ...] = ()
    if certificate is not None:
        tls = ("--ssl-certificate", certificate[0], "--ssl-key", certificate[1])
    line = (command, "--fake", "--config", folder / "settings.py", "-i", "127.0.0.1")
    with running(*line, "-p", str(port), *tls, log=folder / "log"):
        _await_port(port, folder / "log")
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{port}"


@contextmanager
def ipmi_controllers(folder: Path, *behaviours: str) -> Iterator[dict[str, int]]:
    """The UDP ports of controllers, by behaviour."""
    ports = {name: free_port(socket.SOCK_DGRAM) for name in behaviours}
    script = Path(__file__).parent / "ipmi_server.py"
    log = folder / "ipmi.log"
    with running(sys.executable, script, json.dumps(ports), log=log) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", log.read_text()
        yield ports


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that only itself vouches for, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a controller")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "controller.crt", folder / "controller.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, secret


Reply = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def http_server(reply: Reply) -> Iterator[tuple[str, list[str]]]:
    """A server whose answers come from a function; yields its URL and the requests."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.path}")
            reply(self)

        do_POST = do_GET  # noqa: N815  (the name is the library's)

        def log_message(self, *_arguments: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()


def answer_with(request: BaseHTTPRequestHandler, code: int, body: bytes) -> None:
    """Send a whole answer."""
    request.send_response(code)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def passing_on(url: str, *first: tuple[int, bytes]) -> Reply:
    """Answer the first requests as given, and let a better server answer the others."""
    spoilt = list(first)

    def reply(request: BaseHTTPRequestHandler) -> None:
        if spoilt:
            answer_with(request, *spoilt.pop(0))
            return
        length = int(request.headers.get("Content-Length", 0))
        body = request.rfile.read(length) if length else None
        names = ("Authorization", "Content-Type", "Accept", "OData-Version")
        headers = {name: request.headers[name] for name in names if name in request.headers}
        further = urllib.request.Request(
            url + request.path, data=body, headers=headers, method=request.command
        )
        try:
            with urllib.request.urlopen(further, timeout=WITHIN_S) as found:
                answer_with(request, found.status, found.read())
        except urllib.error.HTTPError as error:
            with error:
                answer_with(request, error.code, error.read())

    return reply


def _await_port(port: int, log: Path) -> None:
    for _ in range(WITHIN_S * 10):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the emulator does not listen: {log.read_text()}")
