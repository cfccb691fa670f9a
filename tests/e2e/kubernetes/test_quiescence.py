"""What tells a stock scheduler quiet: its threads, its sockets and the server's own work."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from clock_probe import NoServer
from equipoise.adapters.kubernetes.clock import sockets, threads
from equipoise.adapters.kubernetes.clock.quiescence import ProcessActivity, wait_until_quiet
from equipoise.adapters.kubernetes.clock.sockets import Pair, SocketQueues
from equipoise.errors import WorldError

LIMIT_S = 30.0
SHORT_S = 0.3
# Reads a line and works that many ms; "end" ends it.
WORKER = """
import sys, threading, time
threading.Thread(target=threading.Event().wait, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    if line == "end\\n":
        break
    until = time.perf_counter() + int(line) / 1000
    while time.perf_counter() < until:
        pass
    print("done", flush=True)
"""


@contextmanager
def worker() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        (sys.executable, "-c", WORKER), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def send(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


@contextmanager
def connection(host: str = "127.0.0.1") -> Iterator[tuple[socket.socket, socket.socket, Pair]]:
    """Both ends of a connection, and their addresses."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listening:
        client = socket.create_connection(listening.getsockname()[:2])
        server, _ = listening.accept()
    with client, server:
        yield client, server, (client.getsockname()[:2], server.getsockname()[:2])


@contextmanager
def quiet_server() -> Iterator[NoServer]:
    server = NoServer()
    try:
        yield server
    finally:
        server.listening.close()


def is_quiet(activity: ProcessActivity, server: NoServer, limit_s: float) -> bool:
    return asyncio.run(wait_until_quiet([activity], server, limit_s=limit_s))


def test_a_process_that_sleeps_is_quiet_and_one_that_works_is_not() -> None:
    with worker() as process, quiet_server() as server:
        activity = ProcessActivity(process.pid)
        assert is_quiet(activity, server, LIMIT_S)
        assert activity.is_quiet()
        send(process, "600")
        assert not is_quiet(activity, server, SHORT_S)
        assert is_quiet(activity, server, LIMIT_S)
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        activity.close()


def test_work_between_two_looks_is_noticed() -> None:
    with worker() as process, quiet_server() as server:
        activity = ProcessActivity(process.pid)
        assert is_quiet(activity, server, LIMIT_S)
        send(process, "1")
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        assert not activity.is_quiet()
        assert is_quiet(activity, server, LIMIT_S)
        activity.close()


def test_each_of_several_processes_counts() -> None:
    with worker() as first, worker() as second, quiet_server() as server:
        activities = [ProcessActivity(process.pid) for process in (first, second)]
        wait = partial(wait_until_quiet, activities, server)
        assert asyncio.run(wait(limit_s=LIMIT_S))
        send(second, "600")
        assert not asyncio.run(wait(limit_s=SHORT_S))
        assert asyncio.run(wait(limit_s=LIMIT_S))
        for activity in activities:
            activity.close()


def test_a_process_that_has_ended_is_an_error_of_the_world() -> None:
    with worker() as process, quiet_server() as server:
        activity = ProcessActivity(process.pid)
        assert is_quiet(activity, server, LIMIT_S)
        send(process, "end")
        process.wait()
        with pytest.raises(WorldError) as raised:
            is_quiet(activity, server, SHORT_S)
        assert raised.value.code == "scheduler-ended"
        activity.close()


def test_open_requests_unread_bytes_and_waiting_connections_are_work() -> None:
    with worker() as process, quiet_server() as server, connection() as (client, accepted, pair):
        activity = ProcessActivity(process.pid)
        server.pairs = [pair]
        assert is_quiet(activity, server, LIMIT_S)
        server.requests_open = 1
        assert not is_quiet(activity, server, SHORT_S)
        server.requests_open = 0
        accepted.sendall(b"event")
        assert not is_quiet(activity, server, SHORT_S)
        client.recv(100)
        client.sendall(b"request")
        assert not is_quiet(activity, server, SHORT_S)
        accepted.recv(100)
        with socket.create_connection(server.listening.getsockname()):
            assert not is_quiet(activity, server, SHORT_S)
            server.listening.accept()[0].close()
            assert is_quiet(activity, server, LIMIT_S)
        activity.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_unread_bytes_of_both_ends_count(host: str) -> None:
    try:
        with connection(host):
            pass
    except OSError:
        pytest.skip(f"this machine has no address {host}")
    with SocketQueues() as queues, connection(host) as (client, server, pair):
        assert queues.unread([pair]) == 0
        server.sendall(b"12345")
        assert queues.unread([pair]) == 5
        client.sendall(b"123")
        assert queues.unread([pair]) == 8
        client.recv(2)
        assert queues.unread([pair]) == 6
        client.recv(100)
        server.recv(100)
        assert queues.unread([pair]) == 0


def test_bytes_that_do_not_fit_are_on_their_way() -> None:
    with SocketQueues() as queues, connection() as (client, server, pair):
        server.setblocking(False)
        sent = 0
        while True:
            try:
                sent += server.send(b"x" * 100_000)
            except BlockingIOError:
                break
        while sent:
            assert queues.unread([pair]) >= sent
            sent -= len(client.recv(1_000_000))
        assert queues.unread([pair]) == 0


def test_the_end_of_a_connection_counts_with_the_bytes_before_it() -> None:
    with SocketQueues() as queues, connection() as (client, server, pair):
        server.sendall(b"bye")
        server.close()
        assert queues.unread([pair]) == 3 + 1
        assert client.recv(3) == b"bye"
        assert queues.unread([pair]) == 0


def test_many_connections_are_queried_in_parts() -> None:
    with SocketQueues() as queues, socket.create_server(("127.0.0.1", 0)) as listening:
        clients = [socket.create_connection(listening.getsockname()) for _ in range(100)]
        servers = [listening.accept()[0] for _ in clients]
        pairs = [(each.getpeername(), each.getsockname()) for each in servers]
        for each in servers[::3]:
            each.sendall(b"ab")
        assert queues.unread(pairs) == 2 * len(servers[::3])
        for each in (*clients, *servers):
            each.close()


def test_connections_that_were_not_accepted_are_counted() -> None:
    with SocketQueues() as queues, socket.create_server(("127.0.0.1", 0)) as listening:
        assert queues.waiting_connections(listening) == 0
        clients = [socket.create_connection(listening.getsockname()) for _ in range(3)]
        assert queues.waiting_connections(listening) == 3
        listening.accept()[0].close()
        assert queues.waiting_connections(listening) == 2
        for each in clients:
            each.close()


def test_a_kernel_without_the_queues_is_an_error_of_the_world(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nowhere = sockets._request(("127.0.0.1", 1), ("127.0.0.1", 1))
    monkeypatch.setattr(sockets, "_request", lambda here, there: nowhere)
    with pytest.raises(WorldError) as raised:
        SocketQueues()
    assert raised.value.code == "clock-unsupported"


def test_a_system_without_proc_is_an_error_of_the_world(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(threads, "PROC", tmp_path)
    with pytest.raises(WorldError) as raised:
        ProcessActivity(1)
    assert raised.value.code == "clock-unsupported"
