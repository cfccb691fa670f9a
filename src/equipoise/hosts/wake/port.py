"""What can be asked of a sleeping host, and the answers. Never says how: each way does that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Power(StrEnum):
    """What is known about the power of a host."""

    ON = "on"
    OFF = "off"
    CHANGING = "changing"
    """In between: it has power and is not ready, or it is on its way down."""


class Cause(StrEnum):
    """Why somebody outside refused, as far as it makes a difference what to do about it."""

    UNREACHABLE = "unreachable"
    DENIED = "denied"
    """The user or the password is wrong, or the user may not do this."""
    CERTIFICATE = "certificate"
    UNSUPPORTED = "unsupported"
    """It cannot be done in this way, now or later."""
    TROUBLE = "trouble"
    """It answered with an error or with nonsense; later it may not."""
    TIMEOUT = "timeout"
    """It was accepted, and has not come true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Nothing came of it, and why."""

    by: str
    """The way: ``redfish``, ``ipmi`` or ``wol``."""
    cause: Cause
    sentence: str
    tried: tuple[Refusal, ...] = ()
    """What the other ways said before."""

    def __str__(self) -> str:
        return "; ".join(f"{one.by}: {one.sentence}" for one in (*self.tried, self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The request was taken. That says nothing about when it will have come true, or whether."""

    by: str
    note: str = ""
    tried: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The power of a host as it was found."""

    by: str
    power: Power
    note: str = ""
    tried: tuple[Refusal, ...] = ()


class Waker(Protocol):
    """One host. Each verb comes back within a bounded time, and never raises for the world."""

    def wake(self) -> Accepted | Refusal:
        """Ask it to switch on; nothing happens if it is on."""
        ...

    def sleep(self) -> Accepted | Refusal:
        """Ask it to shut down in good order; it is never switched off the hard way."""
        ...

    def state(self) -> Seen | Refusal:
        """Look whether it is on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The time, and a way to let some of it pass. It comes from outside, so that tests are fast."""

    now: Callable[[], float]
    """In seconds, from any beginning."""
    pause: Callable[[float], object]
