"""Clients of the Kubernetes API for benchmarks, in a process of their own.

    python -m equipoise.bench.kubernetes.clients PORT KIND COUNT CONNECTIONS

It prints the seconds from the first request to the last answer. The kind ``watch`` opens as many
watches as connections, prints a line when they are open, and ends when each has had COUNT events.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
from collections.abc import Iterator
from time import perf_counter
from typing import Any, Final

from equipoise.adapters.kubernetes.workload.pod_workload import pod_object

NAMESPACE_PATH: Final = "/api/v1/namespaces/default/pods"
REQUEST_KINDS: Final = ("create", "get", "status", "bind")
NODES: Final = 200
_HEAD_END: Final = b"\r\n\r\n"
_EVENT_END: Final = b"}\n"
_PATCH: Final = "application/strategic-merge-patch+json"
_RECEIVED_MAX: Final = 1 << 20
_FIRST_ERROR: Final = 400


def pod_name(number: int) -> str:
    """Return the name of a pod of the benchmark."""
    return f"pod-{number:06d}"


def main(arguments: list[str]) -> None:
    """Run one measurement."""
    port, kind, count, connections = arguments
    if kind == "watch":
        _watch(int(port), int(count), int(connections))
        return
    requests = [_request(kind, number) for number in range(int(count))]
    seconds = _request_all(int(port), requests, int(connections))
    sys.stdout.write(f"{seconds}\n")


def _request(kind: str, number: int) -> bytes:
    """Return a request as it is sent."""
    name = pod_name(number)
    path = f"{NAMESPACE_PATH}/{name}"
    if kind == "create":
        return _encoded("POST", NAMESPACE_PATH, pod_object(name, cpu_milli=100))
    if kind == "get":
        return _encoded("GET", path, None)
    if kind == "bind":
        target = {"apiVersion": "v1", "kind": "Node", "name": f"node-{number % NODES:03d}"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        return _encoded("POST", f"{path}/binding", body)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    condition["message"] = f"0/{NODES} nodes are available: {NODES} Insufficient cpu."
    return _encoded("PATCH", f"{path}/status", {"status": {"conditions": [condition]}}, _PATCH)


def _encoded(method: str, path: str, body: Any, kind: str = "application/json") -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n"
    if content:
        head += f"content-type: {kind}\r\ncontent-length: {len(content)}\r\n"
    return f"{head}\r\n".encode() + content


def _connect(port: int) -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", port))
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def _request_all(port: int, requests: list[bytes], connections: int) -> float:
    """Send each request on the first connection that has its answer."""
    waiting = iter(requests)
    with selectors.DefaultSelector() as selector:
        opened = [_connect(port) for _ in range(connections)]
        for connection in opened:
            selector.register(connection, selectors.EVENT_READ, bytearray())
        began = perf_counter()
        active = sum(_send_next(connection, waiting) for connection in opened)
        while active:
            for key, _ in selector.select():
                answering = key.fileobj
                assert isinstance(answering, socket.socket)
                if _has_answer(answering, key.data) and not _send_next(answering, waiting):
                    active -= 1
        seconds = perf_counter() - began
        for connection in opened:
            connection.close()
    return seconds


def _send_next(connection: socket.socket, waiting: Iterator[bytes]) -> bool:
    request = next(waiting, None)
    if request is not None:
        connection.sendall(request)
    return request is not None


def _has_answer(connection: socket.socket, received: bytearray) -> bool:
    """Read what is there; whether the answer is whole."""
    piece = connection.recv(_RECEIVED_MAX)
    if not piece:
        raise ConnectionError("the server closed the connection")
    received += piece
    head_end = received.find(_HEAD_END)
    if head_end < 0:
        return False
    head = bytes(received[:head_end]).lower()
    if int(head.split(b" ", 2)[1]) >= _FIRST_ERROR:
        raise ConnectionError(received.decode())
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    if len(received) < head_end + len(_HEAD_END) + length:
        return False
    received.clear()
    return True


def _watch(port: int, events: int, watchers: int) -> None:
    """Read so many events on each watch, after the line that says that all are open."""
    last: dict[int, bytes] = {}
    with selectors.DefaultSelector() as selector:
        for _ in range(watchers):
            opened = _connect(port)
            opened.sendall(_encoded("GET", f"{NAMESPACE_PATH}?watch=true", None))
            selector.register(opened, selectors.EVENT_READ)
            last[opened.fileno()] = b""
        sys.stdout.write("open\n")
        sys.stdout.flush()
        missing = events * watchers
        while missing > 0:
            for key, _ in selector.select():
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                received = connection.recv(_RECEIVED_MAX)
                if not received:
                    raise ConnectionError("the server closed a watch")
                # The end of an event may be divided between two pieces.
                missing -= (last[key.fd] + received).count(_EVENT_END)
                last[key.fd] = received[-1:]


if __name__ == "__main__":
    main(sys.argv[1:])
