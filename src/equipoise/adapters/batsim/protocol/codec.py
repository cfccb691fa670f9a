"""How messages are written: one codec per dialect of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.adapters.batsim.protocol.options import ProtocolOptions

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder()

Request = Callable[[bytes], bytes]
"""Sends a frame to the scheduler and returns its answer."""


class Codec(Protocol):
    """A dialect: what precedes the first message, and the bytes of each message.

    The simulation speaks in messages of version 4; a codec of another version translates them.
    """

    def greet(self, request: Request, options: ProtocolOptions) -> ProtocolOptions:
        """Exchange what precedes the first message; return the options that the scheduler wants."""
        ...

    def encode(self, message: dict[str, Any]) -> bytes:
        """Return the frame of a message."""
        ...

    def decode(self, frame: bytes) -> object:
        """Return the reply in a frame; ``SchedulerError`` if it is unreadable."""
        ...


class JsonCodec:
    """Versions 3 and 4: one JSON text per frame, and no greeting."""

    def greet(self, request: Request, options: ProtocolOptions) -> ProtocolOptions:
        """Return the options as they are."""
        del request
        return options

    def encode(self, message: dict[str, Any]) -> bytes:
        """Return the JSON text of a message."""
        return _ENCODER.encode(message)

    def decode(self, frame: bytes) -> object:
        """Return the object in a JSON text."""
        try:
            return _DECODER.decode(frame)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SchedulerError("reply", f"is no JSON: {error}", "send one JSON text") from None
