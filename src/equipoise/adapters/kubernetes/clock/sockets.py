"""Bytes that a TCP socket has received and its program has not read, asked from the kernel.

The kernel finds one socket by its two addresses in microseconds (NETLINK_SOCK_DIAG), where reading
the table of all sockets takes milliseconds. IPv4 and IPv6 work alike.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple, Self

from equipoise.errors import WorldError

Address = tuple[str, int]
Pair = tuple[Address, Address]
"""The address of the client, then that of the server."""

_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_ANY: Final = 0xFFFFFFFF
_WITH_INFO: Final = 1 << 1
_HEADER: Final = struct.Struct("=IHHII")
_ASK: Final = struct.Struct("=BBBBI")
_QUEUES_AT: Final = _HEADER.size + 56
_ATTRIBUTES_AT: Final = _HEADER.size + 72
_ATTRIBUTE: Final = struct.Struct("=HH")
_INFO_ATTRIBUTE: Final = 2
_QUEUED: Final = struct.Struct("=I")
_RECEIVED: Final = struct.Struct("=Q")
_SENT: Final = struct.Struct("=QQ")
# Offsets in the kernel's struct tcp_info.
_RECEIVED_AT: Final = 128
_NOT_SENT_AT: Final = 144
_SENT_AT: Final = 200
_BATCH: Final = 64
_ANSWER_S_MAX: Final = 10.0


class _Counts(NamedTuple):
    """What the kernel says of one socket."""

    queued: int
    received: int = 0
    sent: int = 0


class SocketQueues:
    """Asks the kernel for the queues of sockets."""

    def __init__(self) -> None:
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
        except (AttributeError, OSError) as error:
            raise _unsupported(error) from error
        try:
            self._socket.bind((0, 0))
            self._socket.settimeout(_ANSWER_S_MAX)
            self._check()
        except OSError as error:
            self._socket.close()
            raise _unsupported(error) from error

    def unread(self, pairs: Iterable[Pair]) -> int:
        """The bytes that are queued at, or on their way to, either end of these connections.

        The end of a connection counts as a byte as long as bytes before it are unread. Of a
        connection that one end has closed, what the other end has counts.
        """
        requests = [
            _request(*pair)
            for client, server in pairs
            for pair in ((client, server), (server, client))
        ]
        answers = iter(self._ask(requests))
        total = 0
        for here, there in zip(answers, answers, strict=True):
            total += (here.queued if here else 0) + (there.queued if there else 0)
            if here and there:
                # The kernel counts the end of a connection as a byte that was received.
                total += max(0, here.sent - there.received) + max(0, there.sent - here.received)
        return total

    def waiting_connections(self, listening: socket.socket) -> int:
        """The connections that the kernel has completed and the server has not accepted."""
        address = listening.getsockname()[:2]
        nothing = ("::" if listening.family == socket.AF_INET6 else "0.0.0.0", 0)
        (answer,) = self._ask([_request(address, nothing)])
        return answer.queued if answer is not None else 0

    def close(self) -> None:
        """Close the socket to the kernel."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(self, requests: list[bytes]) -> list[_Counts | None]:
        answers: list[_Counts | None] = []
        for start in range(0, len(requests), _BATCH):
            batch = requests[start : start + _BATCH]
            self._socket.send(b"".join(batch))
            for _ in batch:
                answer = self._socket.recv(8192)
                kind = _HEADER.unpack_from(answer)[1]
                answers.append(_counts(answer) if kind == _BY_FAMILY else None)
        return answers

    def _check(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            (answer,) = self._ask([_request(server.getsockname(), ("0.0.0.0", 0))])
        if answer is None:
            raise OSError("it does not know a socket that exists")


def _unsupported(error: Exception) -> WorldError:
    message = f"this kernel does not report the queues of sockets ({error})"
    return WorldError(message, code="clock-unsupported")


def _counts(answer: bytes) -> _Counts:
    (queued,) = _QUEUED.unpack_from(answer, _QUEUES_AT)
    at, end = _ATTRIBUTES_AT, len(answer)
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(answer, at)
        info = at + _ATTRIBUTE.size
        if kind == _INFO_ATTRIBUTE and info + _SENT_AT + _SENT.size <= end:
            (received,) = _RECEIVED.unpack_from(answer, info + _RECEIVED_AT)
            (not_sent,) = _QUEUED.unpack_from(answer, info + _NOT_SENT_AT)
            sent, again = _SENT.unpack_from(answer, info + _SENT_AT)
            return _Counts(queued, received, sent - again + not_sent)
        at += max(_ATTRIBUTE.size, (length + 3) & ~3)
    return _Counts(queued)


@lru_cache(maxsize=8192)
def _request(here: Address, there: Address) -> bytes:
    """The question for the socket at ``here`` whose other end is ``there``."""
    mine, other = (ipaddress.ip_address(address[0].partition("%")[0]) for address in (here, there))
    family = socket.AF_INET if isinstance(mine, ipaddress.IPv4Address) else socket.AF_INET6
    ask = _ASK.pack(family, socket.IPPROTO_TCP, _WITH_INFO, 0, _ANY)
    ports = struct.pack("!HH", here[1], there[1])
    ends = b"".join(end.packed.ljust(16, b"\0") for end in (mine, other))
    body = ask + ports + ends + struct.pack("=III", 0, _ANY, _ANY)
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 0, 0) + body
