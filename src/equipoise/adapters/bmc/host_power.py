"""The power of one host: the interface of all protocols, and the wait until a change is complete.

An accepted command is not a success: the power is read until the host is on or off, or the time
limit is reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol


class HostPower(StrEnum):
    """The power of a host."""

    ON = "on"
    OFF = "off"
    CHANGING = "changing"
    """The host has power and is not ready, or it is shutting down."""


class PowerRefusalCause(StrEnum):
    """Why a command failed, divided by what the operator can do about it."""

    UNREACHABLE = "unreachable"
    DENIED = "denied"
    """The user or the password is wrong, or the user may not do this."""
    CERTIFICATE = "certificate"
    UNSUPPORTED = "unsupported"
    """The protocol or the controller cannot do it, now or later."""
    CONTROLLER_ERROR = "trouble"
    """The controller answers with an error or with nonsense; a later request may work."""
    TIMEOUT = "timeout"
    """The host accepted the command, and its power did not change in time."""

    @property
    def code(self) -> str:
        """The key of ``errors.CODES``."""
        return _CODES[self]


_CODES: Final = {
    PowerRefusalCause.UNREACHABLE: "controller-unreachable",
    PowerRefusalCause.DENIED: "controller-denied",
    PowerRefusalCause.CERTIFICATE: "controller-certificate",
    PowerRefusalCause.UNSUPPORTED: "controller-unsupported",
    PowerRefusalCause.CONTROLLER_ERROR: "controller-error",
    PowerRefusalCause.TIMEOUT: "power-timeout",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRefusal:
    """A command or a reading that failed, with the reason."""

    by: str
    """The protocol: ``redfish``, ``ipmi`` or ``wol``."""
    cause: PowerRefusalCause
    reason: str
    tried: tuple[PowerRefusal, ...] = ()
    """The failures of the protocols that were tried before."""

    def __str__(self) -> str:
        refusals = (*self.tried, self)
        return "; ".join(f"{refusal.by}: {refusal.reason}" for refusal in refusals)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerAccepted:
    """The host or controller accepted a command. It may still not execute it."""

    by: str
    note: str = ""
    tried: tuple[PowerRefusal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerReading:
    """A reading of the power of a host."""

    by: str
    power: HostPower
    note: str = ""
    tried: tuple[PowerRefusal, ...] = ()


class PowerControl(Protocol):
    """The power of one host. Each method returns in bounded time; failures are values."""

    def wake(self) -> PowerAccepted | PowerRefusal:
        """Switch the host on; without effect if it is on."""
        ...

    def sleep(self) -> PowerAccepted | PowerRefusal:
        """Shut the operating system down; the power is never cut."""
        ...

    def state(self) -> PowerReading | PowerRefusal:
        """Read the power of the host."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitClock:
    """A clock and a way to wait. Tests pass a clock that does not wait."""

    now: Callable[[], float]
    """Seconds since any fixed time."""
    pause: Callable[[float], object]


TIMEOUT_S: Final = 600.0
"""Large servers test their memory for minutes before they boot."""
POLL_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerReached:
    """The host has the desired power."""

    power: HostPower
    by: str
    took_s: float
    already: bool = False
    """The host had this power before the command."""
    note: str = ""
    tried: tuple[PowerRefusal, ...] = ()
    """The protocols that failed before one worked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerNotReached:
    """The host does not have the desired power, with the reason."""

    refusal: PowerRefusal
    took_s: float


def wake_and_wait(
    control: PowerControl, clock: WaitClock, timeout_s: float = TIMEOUT_S, poll_s: float = POLL_S
) -> PowerReached | PowerNotReached:
    """Wake a host and wait until it is on; return how long it took, or why it failed.

    The function returns after at most ``timeout_s`` and the time of one reading.
    """
    return _switch_and_wait(control, HostPower.ON, clock, timeout_s, poll_s)


def sleep_and_wait(
    control: PowerControl, clock: WaitClock, timeout_s: float = TIMEOUT_S, poll_s: float = POLL_S
) -> PowerReached | PowerNotReached:
    """Shut a host down and wait until it is off; return how long it took, or why it failed."""
    return _switch_and_wait(control, HostPower.OFF, clock, timeout_s, poll_s)


def _switch_and_wait(
    control: PowerControl, wanted: HostPower, clock: WaitClock, timeout_s: float, poll_s: float
) -> PowerReached | PowerNotReached:
    start = clock.now()
    # Read first: some controllers answer a needless command with an error, and a host whose power
    # cannot be read could never be seen to succeed.
    first = control.state()
    if isinstance(first, PowerRefusal):
        return PowerNotReached(refusal=first, took_s=clock.now() - start)
    if first.power is wanted:
        return PowerReached(
            power=wanted, by=first.by, took_s=0.0, already=True, note=first.note, tried=first.tried
        )
    accepted = control.wake() if wanted is HostPower.ON else control.sleep()
    if isinstance(accepted, PowerRefusal):
        return PowerNotReached(refusal=accepted, took_s=clock.now() - start)
    tried = _distinct(*first.tried, *accepted.tried)
    last: PowerReading | PowerRefusal = first
    while (remaining_s := start + timeout_s - clock.now()) > 0:
        clock.pause(min(poll_s, remaining_s))
        # A controller that is switching often does not answer. Only the time limit is a failure.
        last = control.state()
        if isinstance(last, PowerReading) and last.power is wanted:
            took_s = clock.now() - start
            return PowerReached(
                power=wanted, by=accepted.by, took_s=took_s, note=last.note, tried=tried
            )
    refusal = _timed_out(accepted, wanted, timeout_s, last, tried)
    return PowerNotReached(refusal=refusal, took_s=clock.now() - start)


def _timed_out(
    accepted: PowerAccepted,
    wanted: HostPower,
    timeout_s: float,
    last: PowerReading | PowerRefusal,
    tried: tuple[PowerRefusal, ...],
) -> PowerRefusal:
    if isinstance(last, PowerReading):
        note = f" ({last.note})" if last.note else ""
        reading = f"the last reading was {last.power}{note}"
    else:
        reading = f"the last reading failed ({last})"
    return PowerRefusal(
        by=accepted.by,
        cause=PowerRefusalCause.TIMEOUT,
        reason=f"the host accepted, but is not {wanted} after {timeout_s:g} s; {reading}",
        tried=tried,
    )


def _distinct(*refusals: PowerRefusal) -> tuple[PowerRefusal, ...]:
    """Return each refusal once, although several requests in a row had it."""
    return tuple(dict.fromkeys(refusals))
