"""Redfish, through sushy: two requests to look at a host, a third to switch it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any, Final

import sushy
from sushy import auth, connector, exceptions
from sushy.resources.constants import PowerState, ResetType

from equipoise.hosts.wake.port import Accepted, Cause, Power, Refusal, Seen
from equipoise.hosts.wake.talk.words import Answer, Question, Verb

BY: Final = "redfish"
CONNECT_S: Final = 5
READ_S: Final = 10
"""Controllers are slow, but one that is silent for so long is not thinking any more."""

_POWER: Final = {PowerState.ON: Power.ON, PowerState.OFF: Power.OFF}
_FORBIDDEN: Final = 403


def ask(question: Question) -> Answer:
    """Ask once; whatever comes of it is a value."""
    try:
        return _ask(_system(question), Verb(question.verb))
    except exceptions.SushyError as error:
        return _refusal(error, question)
    except Exception as error:  # sushy trusts what it reads, so that nonsense breaks it anywhere
        return _no(Cause.TROUBLE, f"answered something that is not Redfish ({_kind(error)})")


def _system(question: Question) -> Any:
    line = connector.Connector(
        question.url,
        verify=question.ca_file or True,
        # One try; zero would mean three. Whether to ask again is for the caller to say.
        server_side_retries=1,
        server_side_retries_delay=1,
        default_request_timeout=READ_S,
        connect_timeout=CONNECT_S,
    )
    # Not a session, of which controllers have few and forget to end those of who went away.
    basic = auth.BasicAuth(username=question.user, password=question.password)
    root = sushy.Sushy(question.url, connector=line, auth=basic)
    name = question.system
    if name is not None and not name.startswith("/"):
        name = f"/redfish/v1/Systems/{name}"
    return root.get_system(name)


def _ask(system: Any, verb: Verb) -> Answer:
    found = system.power_state
    if verb is Verb.STATE:
        if found is None:
            return _no(Cause.TROUBLE, "does not say whether the host is on")
        power = _POWER.get(found, Power.CHANGING)
        return Seen(by=BY, power=power, note="" if found in _POWER else f"it says {found.value}")
    allowed = system.get_allowed_reset_system_values()
    if verb is Verb.WAKE:
        if found in (PowerState.ON, PowerState.POWERING_ON):
            return Accepted(by=BY, note="it has power already")
        choices = [ResetType.ON, ResetType.FORCE_ON]
    else:
        if found in (PowerState.OFF, PowerState.POWERING_OFF):
            return Accepted(by=BY, note="it is off already or on its way")
        choices = [ResetType.GRACEFUL_SHUTDOWN]
    chosen = next((one for one in choices if one in allowed), None)
    if chosen is None:
        wanted = " or ".join(one.value for one in choices)
        return _no(Cause.UNSUPPORTED, f"does not offer {wanted}")
    system.reset_system(chosen)
    return Accepted(by=BY)


def _refusal(error: exceptions.SushyError, question: Question) -> Refusal:
    match error:
        case exceptions.AccessError(status_code=code) if code == _FORBIDDEN:
            return _no(Cause.DENIED, f"the user {question.user} may not do this (HTTP {code})")
        case exceptions.AccessError(status_code=code):
            what = f"the password or the user {question.user} is wrong (HTTP {code})"
            return _no(Cause.DENIED, what)
        case exceptions.ResourceNotFoundError():
            what = f"there is no system {question.system or 'here'} at {question.url} (HTTP 404)"
            return _no(Cause.UNSUPPORTED, what)
        case exceptions.HTTPError(status_code=code):
            said = f": {error.detail}" if error.detail else ""
            return _no(Cause.TROUBLE, f"answered with an error (HTTP {code}){said}")
        case exceptions.ConnectionError():
            return _unconnected(error, question)
        case exceptions.MissingActionError() | exceptions.UnknownDefaultError():
            return _no(Cause.UNSUPPORTED, str(error))
        case _:
            return _no(Cause.TROUBLE, f"answered something that is not Redfish ({error})")


def _unconnected(error: Exception, question: Question) -> Refusal:
    """Say in few words what the libraries wrap in many."""
    for reason in _reasons(error):
        match reason:
            case ssl.SSLCertVerificationError():
                what = (
                    f"the certificate of {question.url} is not trusted "
                    f"({reason.verify_message}); name its CA with ca_file"
                )
                return _no(Cause.CERTIFICATE, what)
            case ssl.SSLError():
                what = f"no TLS with {question.url} ({reason.reason or reason})"
                return _no(Cause.UNSUPPORTED, what)
            case socket.gaierror():
                return _no(Cause.UNREACHABLE, f"the name in {question.url} is not known")
            case TimeoutError():
                return _no(Cause.UNREACHABLE, f"{question.url} does not answer in time")
            case OSError(strerror=str(said)):
                return _no(Cause.UNREACHABLE, f"cannot connect to {question.url}: {said.lower()}")
    return _no(Cause.UNREACHABLE, f"cannot connect to {question.url} ({_kind(error)})")


def _reasons(error: BaseException | None) -> Iterator[BaseException]:
    """What lies behind an error, the root of it first."""
    if error is not None:
        yield from _reasons(error.__cause__ or error.__context__)
        yield error


def _kind(error: Exception) -> str:
    return type(error).__name__


def _no(cause: Cause, sentence: str) -> Refusal:
    return Refusal(by=BY, cause=cause, sentence=sentence)
