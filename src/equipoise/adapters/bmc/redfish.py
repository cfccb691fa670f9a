"""Redfish, through sushy: two requests to read the power of a host, a third to switch it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any, Final

import sushy
from sushy import auth, connector, exceptions
from sushy.resources.constants import PowerState, ResetType

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

BY: Final = "redfish"
CONNECT_S: Final = 5
READ_S: Final = 10
"""Controllers are slow, but they answer within this time if they answer at all."""

_POWER: Final = {PowerState.ON: HostPower.ON, PowerState.OFF: HostPower.OFF}
_FORBIDDEN: Final = 403


def send_request(request: BmcRequest) -> BmcAnswer:
    """Send a request once; every outcome is a value."""
    try:
        return _run_command(_system(request), BmcOperation(request.operation))
    except exceptions.SushyError as error:
        return _error_refusal(error, request)
    except Exception as error:  # sushy does not validate: bad answers raise errors of any type
        return _refusal(
            PowerRefusalCause.CONTROLLER_ERROR, f"the answer is not Redfish ({_kind(error)})"
        )


def _system(request: BmcRequest) -> Any:
    connection = connector.Connector(
        request.url,
        verify=request.ca_file or True,
        # One attempt; 0 would mean three. The caller decides about retries.
        server_side_retries=1,
        server_side_retries_delay=1,
        default_request_timeout=READ_S,
        connect_timeout=CONNECT_S,
    )
    # Not a session: controllers have few of them and do not end abandoned ones.
    basic = auth.BasicAuth(username=request.user, password=request.password)
    root = sushy.Sushy(request.url, connector=connection, auth=basic)
    name = request.system
    if name is not None and not name.startswith("/"):
        name = f"/redfish/v1/Systems/{name}"
    return root.get_system(name)


def _run_command(system: Any, operation: BmcOperation) -> BmcAnswer:
    current = system.power_state
    if operation is BmcOperation.STATE:
        if current is None:
            what = "the controller does not report the power of the host"
            return _refusal(PowerRefusalCause.CONTROLLER_ERROR, what)
        power = _POWER.get(current, HostPower.CHANGING)
        note = "" if current in _POWER else f"the controller reports {current.value}"
        return PowerReading(by=BY, power=power, note=note)
    allowed = system.get_allowed_reset_system_values()
    if operation is BmcOperation.WAKE:
        if current in (PowerState.ON, PowerState.POWERING_ON):
            return PowerAccepted(by=BY, note="the host already has power")
        choices = [ResetType.ON, ResetType.FORCE_ON]
    else:
        if current in (PowerState.OFF, PowerState.POWERING_OFF):
            return PowerAccepted(by=BY, note="the host is already off or shutting down")
        choices = [ResetType.GRACEFUL_SHUTDOWN]
    chosen = next((reset for reset in choices if reset in allowed), None)
    if chosen is None:
        names = " or ".join(reset.value for reset in choices)
        what = f"the controller does not offer {names}"
        return _refusal(PowerRefusalCause.UNSUPPORTED, what)
    system.reset_system(chosen)
    return PowerAccepted(by=BY)


def _error_refusal(error: exceptions.SushyError, request: BmcRequest) -> PowerRefusal:
    match error:
        case exceptions.AccessError(status_code=code) if code == _FORBIDDEN:
            return _refusal(
                PowerRefusalCause.DENIED, f"the user {request.user} may not do this (HTTP {code})"
            )
        case exceptions.AccessError(status_code=code):
            what = f"the password or the user {request.user} is wrong (HTTP {code})"
            return _refusal(PowerRefusalCause.DENIED, what)
        case exceptions.ResourceNotFoundError():
            system = f"no system {request.system}" if request.system else "no system"
            what = f"{request.url} has {system} (HTTP 404)"
            return _refusal(PowerRefusalCause.UNSUPPORTED, what)
        case exceptions.HTTPError(status_code=code):
            detail = f": {error.detail}" if error.detail else ""
            what = f"the controller answers with an error (HTTP {code}){detail}"
            return _refusal(PowerRefusalCause.CONTROLLER_ERROR, what)
        case exceptions.ConnectionError():
            return _connection_refusal(error, request)
        case exceptions.MissingActionError() | exceptions.UnknownDefaultError():
            return _refusal(PowerRefusalCause.UNSUPPORTED, str(error))
        case _:
            return _refusal(
                PowerRefusalCause.CONTROLLER_ERROR, f"the answer is not Redfish ({error})"
            )


def _connection_refusal(error: Exception, request: BmcRequest) -> PowerRefusal:
    """Return the refusal for the first known cause: libraries wrap it in several errors."""
    for reason in _causes(error):
        match reason:
            # From the special to the general: all of these errors are kinds of ``OSError``.
            case ssl.SSLCertVerificationError():
                what = (
                    f"the certificate of {request.url} is not trusted "
                    f"({reason.verify_message}); name its CA with ca_file"
                )
                return _refusal(PowerRefusalCause.CERTIFICATE, what)
            case ssl.SSLError():
                what = f"no TLS with {request.url} ({reason.reason or reason})"
                return _refusal(PowerRefusalCause.UNSUPPORTED, what)
            case socket.gaierror():
                what = f"the name in {request.url} cannot be resolved"
                return _refusal(PowerRefusalCause.UNREACHABLE, what)
            case TimeoutError():
                return _refusal(
                    PowerRefusalCause.UNREACHABLE, f"{request.url} does not answer in time"
                )
            case OSError(strerror=str(text)):
                what = f"cannot connect to {request.url}: {text.lower()}"
                return _refusal(PowerRefusalCause.UNREACHABLE, what)
    return _refusal(
        PowerRefusalCause.UNREACHABLE, f"cannot connect to {request.url} ({_kind(error)})"
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the chain of causes of an error, the root first."""
    if error is not None:
        yield from _causes(error.__cause__ or error.__context__)
        yield error


def _kind(error: Exception) -> str:
    return type(error).__name__


def _refusal(cause: PowerRefusalCause, reason: str) -> PowerRefusal:
    return PowerRefusal(by=BY, cause=cause, reason=reason)
