"""The power of one host: the interface of all protocols, and requests to its controller (BMC)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Protocol


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
    CONTROLLER_ERROR = "controller-error"
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


def switch_and_wait(
    control: PowerControl,
    wanted: HostPower,
    clock: WaitClock,
    timeout_s: float = TIMEOUT_S,
    poll_s: float = POLL_S,
) -> PowerReached | PowerNotReached:
    """Wake a host or shut it down, and wait; return how long it took, or why it failed.

    The function returns after at most ``timeout_s`` and the time of one reading.
    """
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


BmcAnswer = PowerAccepted | PowerReading | PowerRefusal


class BmcOperation(StrEnum):
    """The command of a request."""

    WAKE = "wake"
    SLEEP = "sleep"
    STATE = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcRequest:
    """One request to a controller; fields that its protocol does not use are empty."""

    by: str
    operation: str
    user: str
    password: str = field(repr=False)
    url: str = ""
    system: str | None = None
    ca_file: str | None = None
    address: str = ""
    port: int = 0


def answer_to_document(answer: BmcAnswer) -> dict[str, str]:
    """Return an answer as a JSON document."""
    match answer:
        case PowerAccepted():
            return {"by": answer.by, "is": "accepted", "note": answer.note}
        case PowerReading():
            return {"by": answer.by, "is": "seen", "power": answer.power, "note": answer.note}
        case PowerRefusal():
            return {
                "by": answer.by,
                "is": "refused",
                "cause": answer.cause,
                "reason": answer.reason,
            }


def answer_from_document(document: Mapping[str, Any]) -> BmcAnswer:
    """Return the answer of a JSON document."""
    by = document["by"]
    match document["is"]:
        case "accepted":
            return PowerAccepted(by=by, note=document["note"])
        case "seen":
            return PowerReading(by=by, power=HostPower(document["power"]), note=document["note"])
        case _:
            cause = PowerRefusalCause(document["cause"])
            return PowerRefusal(by=by, cause=cause, reason=document["reason"])


REQUEST_TIMEOUT_S: Final = {"redfish": 30.0, "ipmi": 10.0}
"""The time limit of one request; its steps have shorter limits of their own."""
ATTEMPTS: Final = 3
PAUSE_S: Final = 2.0

SendRequest = Callable[[BmcRequest], BmcAnswer]

_TRANSIENT: Final = frozenset((PowerRefusalCause.UNREACHABLE, PowerRefusalCause.CONTROLLER_ERROR))
"""Causes that a repeated request may not have."""


def send_request(request: BmcRequest, timeout_s: float | None = None) -> BmcAnswer:
    """Send a request once, in a worker process that is killed at the time limit."""
    timeout_s = REQUEST_TIMEOUT_S[request.by] if timeout_s is None else timeout_s
    line = (sys.executable, "-P", "-m", "equipoise.adapters.bmc.worker")
    try:
        done = subprocess.run(
            line,
            input=json.dumps(asdict(request)),  # other users can read a command line
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        what = f"no result within {timeout_s:g} s"
        if request.by == "ipmi":
            what += "; some controllers do not answer unknown users"
        return PowerRefusal(by=request.by, cause=PowerRefusalCause.UNREACHABLE, reason=what)
    except OSError as error:  # for example, no memory for another process
        what = f"the worker process cannot start: {error.strerror}"
        return PowerRefusal(by=request.by, cause=PowerRefusalCause.CONTROLLER_ERROR, reason=what)
    if done.returncode < 0:
        what = f"the worker process was killed (signal {-done.returncode})"
        return PowerRefusal(by=request.by, cause=PowerRefusalCause.CONTROLLER_ERROR, reason=what)
    assert done.returncode == 0, f"the worker process failed:\n{done.stderr}"
    return answer_from_document(json.loads(done.stdout))


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcPowerControl:
    """The power of a host, controlled by Redfish or IPMI."""

    request: BmcRequest
    """The request without its command, which each method sets."""
    clock: WaitClock
    send: SendRequest = send_request
    attempts: int = ATTEMPTS
    pause_s: float = PAUSE_S

    def wake(self) -> PowerAccepted | PowerRefusal:
        """Switch the host on."""
        answer = self._send_with_retries(BmcOperation.WAKE)
        assert not isinstance(answer, PowerReading)
        return answer

    def sleep(self) -> PowerAccepted | PowerRefusal:
        """Shut the host down."""
        answer = self._send_with_retries(BmcOperation.SLEEP)
        assert not isinstance(answer, PowerReading)
        return answer

    def state(self) -> PowerReading | PowerRefusal:
        """Read the power of the host."""
        answer = self._send_with_retries(BmcOperation.STATE)
        assert not isinstance(answer, PowerAccepted)
        return answer

    def _send_with_retries(self, operation: BmcOperation) -> BmcAnswer:
        request = replace(self.request, operation=operation)
        answer = self.send(request)
        for _again in range(self.attempts - 1):
            if not isinstance(answer, PowerRefusal) or answer.cause not in _TRANSIENT:
                return answer
            self.clock.pause(self.pause_s)
            # Every attempt reads the power first, so an earlier attempt that worked without an
            # answer does no harm.
            answer = self.send(request)
        if isinstance(answer, PowerRefusal) and answer.cause in _TRANSIENT and self.attempts > 1:
            return replace(answer, reason=f"{answer.reason} ({self.attempts} attempts)")
        return answer
