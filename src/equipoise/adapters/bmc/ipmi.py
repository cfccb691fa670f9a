"""IPMI over LAN, through pyghmi: the two chassis commands that every controller has."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Final

from pyghmi import exceptions
from pyghmi.ipmi import command

from equipoise.adapters.bmc.host_power import (
    BmcAnswer,
    BmcOperation,
    BmcRequest,
    HostPower,
    PowerAccepted,
    PowerReading,
    PowerRefusal,
    PowerRefusalCause,
)

BY: Final = "ipmi"

_CHASSIS: Final = 0x00
_STATUS, _CONTROL = 0x01, 0x02
_POWER_UP, _SOFT_OFF = 1, 5
_HAS_POWER: Final = 0b1

_CAUSES: Final = {
    0xC1: PowerRefusalCause.UNSUPPORTED,  # no such command
    0xCC: PowerRefusalCause.UNSUPPORTED,  # no such chassis control
    0xD4: PowerRefusalCause.DENIED,  # the user lacks the privilege
    0xFFFF: PowerRefusalCause.UNREACHABLE,  # pyghmi's own code for a timeout
}
_DENIALS: Final = ("incorrect password", "unauthorized", "invalid role", "username")


def send_request(request: BmcRequest) -> BmcAnswer:
    """Send a request once; every outcome is a value."""
    try:
        connection = command.Command(
            bmc=request.address,
            userid=request.user,
            password=request.password,
            port=request.port,
            keepalive=False,
        )
    except (socket.gaierror, UnicodeError):
        what = f"the name {request.address} cannot be resolved"
        return _refusal(PowerRefusalCause.UNREACHABLE, what)
    except exceptions.IpmiException as error:
        return _login_refusal(str(error), request)
    except Exception as error:  # pyghmi does not validate: bad answers raise errors of any type
        return _nonsense(error)
    try:
        return _run_command(connection, BmcOperation(request.operation))
    except Exception as error:  # as above
        return _nonsense(error)
    finally:
        connection.ipmi_session.logout()


def _run_command(connection: Any, operation: BmcOperation) -> BmcAnswer:
    # Raw commands: the high-level ones of pyghmi first send a dozen vendor-specific requests.
    status = connection.raw_command(netfn=_CHASSIS, command=_STATUS)
    if "error" in status:
        return _error(status)
    is_on = bool(status["data"][0] & _HAS_POWER)
    if operation is BmcOperation.STATE:
        return PowerReading(by=BY, power=HostPower.ON if is_on else HostPower.OFF)
    if is_on is (operation is BmcOperation.WAKE):
        note = "the host already has power" if is_on else "the host is already off"
        return PowerAccepted(by=BY, note=note)
    control = _POWER_UP if operation is BmcOperation.WAKE else _SOFT_OFF
    response = connection.raw_command(netfn=_CHASSIS, command=_CONTROL, data=[control])
    return _error(response) if "error" in response else PowerAccepted(by=BY)


def _error(response: Mapping[str, Any]) -> PowerRefusal:
    code = response.get("code", 0)
    cause = _CAUSES.get(code, PowerRefusalCause.CONTROLLER_ERROR)
    if cause is PowerRefusalCause.UNREACHABLE:
        return _refusal(cause, "the controller stopped answering")
    what = f"the controller answers with an error (0x{code:02x}): {response['error']}"
    return _refusal(cause, what)


def _login_refusal(message: str, request: BmcRequest) -> PowerRefusal:
    if message in ("", "None", "timeout"):  # pyghmi loses the reason after a timeout
        what = f"{request.address} does not answer on UDP port {request.port}"
        return _refusal(PowerRefusalCause.UNREACHABLE, what)
    if any(word in message.lower() for word in _DENIALS):
        what = f"the password or the user {request.user} is wrong ({message})"
        return _refusal(PowerRefusalCause.DENIED, what)
    return _refusal(
        PowerRefusalCause.CONTROLLER_ERROR, f"the controller refuses the login: {message}"
    )


def _nonsense(error: Exception) -> PowerRefusal:
    what = f"the answer is not IPMI ({type(error).__name__}: {error})"
    return _refusal(PowerRefusalCause.CONTROLLER_ERROR, what)


def _refusal(cause: PowerRefusalCause, reason: str) -> PowerRefusal:
    return PowerRefusal(by=BY, cause=cause, reason=reason)
