"""A management controller (BMC): requests to it, each in a worker process, with retries.

Controllers are unreliable: each request has a time limit and is repeated a few times with a pause,
except after an answer that would not change. A wrong password is tried only once, because
controllers lock out users after repeated failures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from equipoise.adapters.bmc.host_power import (
    HostPower,
    PowerAccepted,
    PowerReading,
    PowerRefusal,
    PowerRefusalCause,
    WaitClock,
)

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
