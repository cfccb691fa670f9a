"""How a person ends a campaign: asked once it tells what it has found, asked twice it is gone.

Whoever works on it, in whichever process of this machine, looks now and then whether that is so.
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

PATIENCE_S: Final = 10.0
"""For how long cases are still made smaller after somebody has asked to stop."""
ECHO_S: Final = 0.5
"""Within this, two interrupts are one: some senders tell the process, and then its group."""
_NEVER: Final = 0.0


class Stop:
    """Whether, and when, somebody has asked; processes that are given it at their start see it."""

    def __init__(self) -> None:
        # Memory that is shared and has no lock: a signal comes whatever one is doing just then.
        self._asked_at = get_context("forkserver").RawValue(c_double, _NEVER)

    @property
    def is_asked(self) -> bool:
        """Whether somebody has asked to stop."""
        return self._asked_at.value != _NEVER

    def is_asked_since(self, seconds: float) -> bool:
        """Whether that was longer ago."""
        return self.is_asked and perf_counter() - self._asked_at.value > seconds

    def ask(self) -> None:
        """Ask to stop."""
        self._asked_at.value = perf_counter()


HEEDED: Final[ContextVar[Stop | None]] = ContextVar("stop", default=None)
"""What this process looks at; nothing, where nobody can ask."""


def is_asked_to_stop() -> bool:
    """Whether no more work should be begun."""
    stop = HEEDED.get()
    return stop is not None and stop.is_asked


def is_out_of_time() -> bool:
    """Whether work that has been begun should end as well."""
    stop = HEEDED.get()
    return stop is not None and stop.is_asked_since(PATIENCE_S)


@contextmanager
def interruptible(tell: Callable[[], None]) -> Iterator[None]:
    """Take the first Ctrl-C for a wish to stop, and tell that it was heard; the second ends it."""
    stop = Stop()

    def hear(_number: int, _frame: FrameType | None) -> None:
        if stop.is_asked_since(ECHO_S):
            raise KeyboardInterrupt
        if not stop.is_asked:
            stop.ask()
            tell()

    token, before = HEEDED.set(stop), signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        HEEDED.reset(token)
