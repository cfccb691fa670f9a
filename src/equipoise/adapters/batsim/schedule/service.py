"""A policy behind a ZeroMQ socket that Batsim connects to; version 4 and 5 are recognised."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from equipoise.adapters.batsim.protocol.codec import JsonCodec
from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.adapters.batsim.schedule.decider import PolicyDecider
from equipoise.adapters.batsim.transport.connection import import_zmq
from equipoise.adapters.batsim.v5.codec import DecisionCodec
from equipoise.adapters.batsim.v5.session import WantedFeatures
from equipoise.errors import WorldError

_LAST_REPLY_MS: Final = 5000
"""How long the last reply may take to leave."""


@dataclass(slots=True)
class SimulationCodec:
    """Reads and writes the frames of one simulation, whose version the first frame shows."""

    name: str
    release: str
    version: int = 0
    """The version of the protocol: 4 or 5; 0 before the first frame."""
    _codec: DecisionCodec | None = None

    def greet(self, frame: bytes) -> bytes | None:
        """Return the answer to a first frame that is a greeting; None if it has a message."""
        if self.version:
            return None
        self.version = 4 if _is_text(frame) else 5
        if self.version == 4:  # noqa: PLR2004
            return None
        # Run times come from profiles; all of them are in the first message.
        self._codec = DecisionCodec(WantedFeatures(forward_profiles_on_simulation_begins=True))
        return self._codec.hello(self.name, self.release)

    def decode(self, frame: bytes) -> dict[str, Any]:
        """Return the message in a frame, in version 4."""
        if self._codec is not None:
            return self._codec.decode(frame)
        return _check(JsonCodec().decode(frame))

    def encode(self, reply: dict[str, Any]) -> bytes:
        """Return the frame of a reply."""
        return (self._codec or JsonCodec()).encode(reply)


class DecisionProcess:
    """Answers the frames of one simulation, one after another."""

    def __init__(self, decider: PolicyDecider, name: str, release: str) -> None:
        self.decider = decider
        self.name = name
        self.messages = 0
        self._codec = SimulationCodec(name, release)

    @property
    def version(self) -> int:
        """The version of the protocol: 4 or 5; 0 before the first frame."""
        return self._codec.version

    def answer(self, frame: bytes) -> bytes:
        """Return the reply to a frame."""
        greeting = self._codec.greet(frame)
        if greeting is not None:
            return greeting
        self.messages += 1
        return self._codec.encode(self.decider.answer(self._codec.decode(frame)))


def _is_text(frame: bytes) -> bool:
    """True for a JSON object; the first frame of version 5 begins with a length of four bytes."""
    return frame[:1] == b"{" and frame[1:2] != b"\0"


def _check(message: object) -> dict[str, Any]:
    if not isinstance(message, dict) or not {"now", "events"} <= message.keys():
        raise SchedulerError("message", "lacks now or events", "connect a Batsim")
    return message


class SimulationSocket:
    """The socket that a simulation connects to; it is closed at the end of the block."""

    def __init__(self, endpoint: str) -> None:
        self._zmq = import_zmq()
        self._context = self._zmq.Context()
        self._socket = self._context.socket(self._zmq.REP)
        self._socket.linger = _LAST_REPLY_MS
        self._monitor = self._socket.get_monitor_socket(self._zmq.EVENT_DISCONNECTED)
        try:
            self._socket.bind(endpoint)
        except self._zmq.ZMQError as error:
            self.close()
            what = f"{endpoint}: cannot be bound: {str(error).lower()}"
            raise WorldError(what, code="address-not-available") from None

    def poll(self, limit_ms: int) -> bool:
        """Whether a frame is there, or arrives in this time.

        ``WorldError`` if the simulation has closed its connection instead.
        """
        if self._socket.poll(limit_ms):
            return True
        if self._monitor.poll(0) and not self._socket.poll(0):
            raise WorldError("the simulation has ended too early", code="simulation-ended")
        return False

    def receive(self) -> bytes:
        """Return the next frame."""
        frame: bytes = self._socket.recv()
        return frame

    def send(self, frame: bytes) -> None:
        """Answer the last frame."""
        self._socket.send(frame)

    def close(self) -> None:
        """Close the socket once the last reply has left."""
        self._socket.disable_monitor()
        self._monitor.close()
        self._socket.close()
        self._context.term()


def serve_simulation(
    endpoint: str, process: DecisionProcess, notice: Callable[[str], None]
) -> None:
    """Answer one simulation up to its end; ``WorldError`` if the address is taken."""
    with closing(SimulationSocket(endpoint)) as socket:
        notice(f"{process.name} awaits a simulation at {endpoint}")
        while not process.decider.finished:
            socket.send(process.answer(socket.receive()))
