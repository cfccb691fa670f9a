"""The ZeroMQ side of the simulation: a REQ socket that connects, sends a frame, awaits the answer.

Virtual time stands still meanwhile. A scheduler that has ended, has closed its socket or takes too
long is an error; a scheduler that is not there yet is awaited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter
from typing import Any, Final, Self

from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.errors import MissingExtra, WorldError

_CHECK_MS: Final = 100
"""How often a waiting connection checks whether the scheduler is still there."""
_LAST_WORDS_MS: Final = 500
"""How long an answer may still arrive after the scheduler has ended."""
_END_S: Final = 5.0
"""How long a process may take to end after it has closed its connection."""
_NOTICE_S: Final = 2.0


class NoAnswer(WorldError):
    """The scheduler did not answer: it has ended, closed its connection, or takes too long."""


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """How long the scheduler may take; None for no limit."""

    first_s: float | None = 60.0
    """For the first answer, with the start of the scheduler."""
    each_s: float | None = 600.0


class SchedulerConnection:
    """A connection to a scheduler. ``has_ended`` says why its process cannot answer any more."""

    def __init__(
        self,
        endpoint: str,
        limits: AnswerLimits,
        *,
        has_ended: Callable[[], str] | None = None,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.endpoint = endpoint
        self.waited_s = 0.0
        """The time from sending to receiving, over all messages."""
        self._limits = limits
        self._limit_s = limits.first_s
        self._has_ended = has_ended
        self._notice: Callable[[str], None] | None = notice
        self._zmq = import_zmq()
        self._context = self._zmq.Context()
        self._socket = self._context.socket(self._zmq.REQ)
        self._socket.linger = 0
        self._socket.rcvtimeo = _CHECK_MS
        self._is_connected = self._was_lost = False
        events = self._zmq.EVENT_HANDSHAKE_SUCCEEDED | self._zmq.EVENT_DISCONNECTED
        self._monitor = self._socket.get_monitor_socket(events)
        self._socket.connect(endpoint)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.disable_monitor()
        self._context.destroy(linger=0)

    def request(self, frame: bytes, meanwhile: Callable[[], None] | None = None) -> bytes:
        """Send a frame and return the answer; ``NoAnswer`` if there will be none.

        ``meanwhile`` is called after the frame was sent: work that can wait until then.
        """
        sent_s = perf_counter()
        try:
            self._socket.send(frame)
        except self._zmq.ZMQError as error:
            if error.errno != self._zmq.EFSM:
                raise
            # To ask after each reply whether a frame follows takes longer than to send.
            raise SchedulerError("reply", "has several frames", "send one frame") from None
        try:
            if meanwhile is not None:
                meanwhile()
            answer: bytes = self._receive(sent_s)
        finally:
            self.waited_s += perf_counter() - sent_s
        self._limit_s = self._limits.each_s
        self._notice = None
        return answer

    def _receive(self, sent_s: float) -> bytes:
        while True:
            try:
                return self._socket.recv()  # type: ignore[no-any-return]
            except self._zmq.Again:
                why = self._process_ended() or self._connection_lost()
                if why:
                    return self._receive_last(why)
                self._check_time(perf_counter() - sent_s)

    def _receive_last(self, why: str) -> bytes:
        """Return an answer that is still on its way from a scheduler that has ended."""
        if self._socket.poll(_LAST_WORDS_MS):
            return self._socket.recv()  # type: ignore[no-any-return]
        # A process closes its connection before it ends; its exit code says more.
        give_up_s = perf_counter() + _END_S
        while self._has_ended is not None and perf_counter() < give_up_s:
            ended = self._has_ended()
            if ended:
                why = ended
                break
            self._socket.poll(_CHECK_MS)
        raise NoAnswer(f"the scheduler {why} and did not answer", code="scheduler-ended")

    def _process_ended(self) -> str:
        return "" if self._has_ended is None else self._has_ended()

    def _connection_lost(self) -> str:
        while self._monitor.poll(0):
            event = int.from_bytes(self._monitor.recv_multipart()[0][:2], "little")
            if event == self._zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._is_connected = True
            elif self._is_connected:
                # A scheduler that comes back has not received the message.
                self._was_lost = True
        return "closed the connection" if self._was_lost else ""

    def _check_time(self, passed_s: float) -> None:
        if self._limit_s is not None and passed_s > self._limit_s:
            there = "answered nothing" if self._is_connected else f"is not at {self.endpoint}"
            raise NoAnswer(
                f"the scheduler {there} within {self._limit_s:g} s", code="scheduler-timeout"
            )
        if self._notice is not None and not self._is_connected and passed_s > _NOTICE_S:
            self._notice(f"waiting for a scheduler at {self.endpoint}")
            self._notice = None


def import_zmq() -> Any:
    """Return the library; ``MissingExtra`` names what to install."""
    try:
        return import_module("zmq")
    except ImportError:
        raise MissingExtra("batsim", "a Batsim scheduler over ZeroMQ") from None
