"""Asks a host to switch on or off, and waits until it really has. Never believes an "accepted"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from equipoise.hosts.wake.port import Accepted, Cause, Clock, Power, Refusal, Seen, Waker

TIMEOUT_S: Final = 600.0
"""Large servers test their memory for minutes before they start anything."""
POLL_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The host is as it was wanted."""

    power: Power
    by: str
    took_s: float
    already: bool = False
    """It was like this before anybody asked."""
    note: str = ""
    tried: tuple[Refusal, ...] = ()
    """The ways that failed before one worked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """The host is not as it was wanted, and why."""

    refusal: Refusal
    took_s: float


def woken(
    waker: Waker, clock: Clock, timeout_s: float = TIMEOUT_S, poll_s: float = POLL_S
) -> Reached | Missed:
    """Wake a host, and say how long it took until it was on, or why it is not.

    It comes back after ``timeout_s`` and the time that the last look at the host takes.
    """
    return _brought(waker, Power.ON, clock, timeout_s, poll_s)


def asleep(
    waker: Waker, clock: Clock, timeout_s: float = TIMEOUT_S, poll_s: float = POLL_S
) -> Reached | Missed:
    """Let a host shut down, and say how long it took until it was off, or why it is not."""
    return _brought(waker, Power.OFF, clock, timeout_s, poll_s)


def _brought(
    waker: Waker, wanted: Power, clock: Clock, timeout_s: float, poll_s: float
) -> Reached | Missed:
    start = clock.now()
    # Looking first spares a host that is on the command, which some controllers answer with an
    # error, and finds out whether success could be seen at all.
    first = waker.state()
    if isinstance(first, Refusal):
        return Missed(refusal=first, took_s=clock.now() - start)
    if first.power is wanted:
        return Reached(
            power=wanted, by=first.by, took_s=0.0, already=True, note=first.note, tried=first.tried
        )
    asked = waker.wake() if wanted is Power.ON else waker.sleep()
    if isinstance(asked, Refusal):
        return Missed(refusal=asked, took_s=clock.now() - start)
    last: Seen | Refusal = first
    while (left_s := start + timeout_s - clock.now()) > 0:
        clock.pause(min(poll_s, left_s))
        # A controller that is busy switching often does not answer: only the end of time counts.
        last = waker.state()
        if isinstance(last, Seen) and last.power is wanted:
            took_s = clock.now() - start
            tried = _each_once(*first.tried, *asked.tried)
            return Reached(power=wanted, by=asked.by, took_s=took_s, note=last.note, tried=tried)
    return Missed(
        refusal=_too_late(asked, wanted, timeout_s, last, _each_once(*first.tried, *asked.tried)),
        took_s=clock.now() - start,
    )


def _too_late(
    asked: Accepted,
    wanted: Power,
    timeout_s: float,
    last: Seen | Refusal,
    tried: tuple[Refusal, ...],
) -> Refusal:
    said = f"it was {last.power}" if isinstance(last, Seen) else f"it could not be seen ({last})"
    note = f" ({last.note})" if isinstance(last, Seen) and last.note else ""
    return Refusal(
        by=asked.by,
        cause=Cause.TIMEOUT,
        sentence=f"it accepted, but is not {wanted} after {timeout_s:g} s; at last {said}{note}",
        tried=tried,
    )


def _each_once(*refusals: Refusal) -> tuple[Refusal, ...]:
    """What several questions in a row have in common is told once."""
    return tuple(dict.fromkeys(refusals))
