"""Interrupting a campaign: the first Ctrl-C asks for the results so far, the second one ends it.

The processes of this machine that work for the campaign check the request regularly.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ctypes import c_double
from multiprocessing import get_context
from time import perf_counter
from types import FrameType
from typing import Final

SHRINK_GRACE_S: Final = 10.0
"""How long cases are still shrunk after a stop request."""
REPEATED_SIGNAL_S: Final = 0.5
"""Two signals within this time count as one: some senders signal the process and its group."""
_NEVER: Final = 0.0


class StopRequest:
    """The time of the stop request, shared with the processes that receive it at their start."""

    def __init__(self) -> None:
        # Shared memory without a lock: a signal handler must not wait for the code it interrupts.
        self._requested_at = get_context("forkserver").RawValue(c_double, _NEVER)

    @property
    def is_requested(self) -> bool:
        """Whether the user has requested to stop."""
        return self._requested_at.value != _NEVER

    def is_requested_since(self, seconds: float) -> bool:
        """Whether the request is older than some seconds."""
        return self.is_requested and perf_counter() - self._requested_at.value > seconds

    def ask(self) -> None:
        """Record the request."""
        self._requested_at.value = perf_counter()


ACTIVE_STOP: Final[ContextVar[StopRequest | None]] = ContextVar("stop", default=None)
"""The request that this process checks; ``None`` if it cannot be interrupted."""


def is_stop_requested() -> bool:
    """Whether no further work should start."""
    stop = ACTIVE_STOP.get()
    return stop is not None and stop.is_requested


def is_grace_over() -> bool:
    """Whether running work should end as well."""
    stop = ACTIVE_STOP.get()
    return stop is not None and stop.is_requested_since(SHRINK_GRACE_S)


@contextmanager
def interruptible(notify: Callable[[], None]) -> Iterator[None]:
    """Turn the first Ctrl-C into a stop request and call ``notify``; the second one interrupts."""
    stop = StopRequest()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if stop.is_requested_since(REPEATED_SIGNAL_S):
            raise KeyboardInterrupt
        if not stop.is_requested:
            stop.ask()
            notify()

    token, before = ACTIVE_STOP.set(stop), signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        ACTIVE_STOP.reset(token)
