"""One connection: uvicorn's protocol with limits, and a flag while it holds unfinished work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from equipoise.adapters.kubernetes.api.server import ServerOptions

_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)
_TOO_MANY: Final = (
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)


class _Gathering:
    """A transport that sends the pieces of one turn together.

    uvicorn writes the head and the body of an answer one after the other, which would wake the
    client twice.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, piece: bytes) -> None:
        """Keep a piece until the answer is whole, at most until the next turn."""
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.append(piece)

    def flush(self) -> None:
        """Send what is kept."""
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            self._transport.write(b"".join(pieces))

    def close(self) -> None:
        """Close the connection after what is kept."""
        self.flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes have not left."""
        return sum(map(len, self._pieces)) + self._transport.get_write_buffer_size()


class _Connection(HttpToolsProtocol):
    """A connection whose request heads are bounded."""

    header_bytes_max = 64 * 1024
    connections_max = 2_000
    request_s = 0.0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._is_in_head = False
        self._head_bytes = 0
        self._piece_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def is_busy(self) -> bool:
        """Return whether a request is read in part, or an answer has not left."""
        return self._is_in_head or (
            self.transport is not None and self.transport.get_write_buffer_size() > 0
        )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, unless there are too many."""
        gathering: Any = _Gathering(transport, asyncio.get_running_loop())
        super().connection_made(gathering)
        if len(self.connections) > self.connections_max:
            gathering.write(_TOO_MANY)
            gathering.close()
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a piece of a request."""
        if self.transport.is_closing():
            return
        self._piece_bytes = len(data)
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self.header_bytes_max:
                self._refuse()

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        self._is_in_head = True
        self._head_bytes = 0
        self._expect_request()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Answer a request whose head is whole, unless it is too large."""
        self._is_in_head = False
        # Only a head in a large piece was not counted before: it may be whole, and too large.
        large = self._piece_bytes > self.header_bytes_max
        if large and self._parsed_bytes() > self.header_bytes_max:
            self._refuse()
        else:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the request is whole."""
        self._cancel_deadline()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Send the answer, which is whole."""
        self.transport.flush()  # type: ignore[attr-defined]
        super().on_response_complete()

    def _parsed_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _expect_request(self) -> None:
        """Close the connection if its request is not whole in time: slow clients hold no places."""
        self._cancel_deadline()
        if self.request_s:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(self.request_s, self._abort)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _abort(self) -> None:
        self.transport.abort()

    def _refuse(self) -> None:
        self._is_in_head = False
        self.transport.write(_TOO_LARGE)
        self.transport.close()


def protocol_class(options: ServerOptions) -> type[_Connection]:
    """Return the class of the connections of one server."""

    class Connection(_Connection):
        header_bytes_max = options.header_bytes_max
        connections_max = options.connections_max
        request_s = options.request_s

    return Connection
