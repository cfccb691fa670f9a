"""IPMI over LAN, through pyghmi: the two commands about the chassis that every controller knows."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Final

from pyghmi import exceptions
from pyghmi.ipmi import command

from equipoise.hosts.wake.port import Accepted, Cause, Power, Refusal, Seen
from equipoise.hosts.wake.talk.words import Answer, Question, Verb

BY: Final = "ipmi"

_CHASSIS: Final = 0x00
_STATUS, _CONTROL = 0x01, 0x02
_POWER_UP, _SOFT_OFF = 1, 5
_HAS_POWER: Final = 0b1

_CAUSES: Final = {
    0xC1: Cause.UNSUPPORTED,  # no such command
    0xCC: Cause.UNSUPPORTED,  # no such way to switch
    0xD4: Cause.DENIED,  # not with the rights of this user
    0xFFFF: Cause.UNREACHABLE,  # pyghmi's own, when time is up
}
_DENIALS: Final = ("incorrect password", "unauthorized", "invalid role", "username")


def ask(question: Question) -> Answer:
    """Ask once; whatever comes of it is a value."""
    try:
        line = command.Command(
            bmc=question.address,
            userid=question.user,
            password=question.password,
            port=question.port,
            keepalive=False,
        )
    except (socket.gaierror, UnicodeError):
        return _no(Cause.UNREACHABLE, f"the name {question.address} is not known")
    except exceptions.IpmiException as error:
        return _not_let_in(str(error), question)
    except Exception as error:  # pyghmi trusts what it reads, so that nonsense breaks it anywhere
        return _nonsense(error)
    try:
        return _ask(line, Verb(question.verb))
    except Exception as error:  # as above
        return _nonsense(error)
    finally:
        line.ipmi_session.logout()


def _ask(line: Any, verb: Verb) -> Answer:
    # Raw commands, because the comfortable ones first ask a dozen questions about the vendor.
    status = line.raw_command(netfn=_CHASSIS, command=_STATUS)
    if "error" in status:
        return _error(status)
    is_on = bool(status["data"][0] & _HAS_POWER)
    if verb is Verb.STATE:
        return Seen(by=BY, power=Power.ON if is_on else Power.OFF)
    if is_on is (verb is Verb.WAKE):
        return Accepted(by=BY, note="it has power already" if is_on else "it is off already")
    way = _POWER_UP if verb is Verb.WAKE else _SOFT_OFF
    done = line.raw_command(netfn=_CHASSIS, command=_CONTROL, data=[way])
    return _error(done) if "error" in done else Accepted(by=BY)


def _error(response: Mapping[str, Any]) -> Refusal:
    code = response.get("code", 0)
    cause = _CAUSES.get(code, Cause.TROUBLE)
    if cause is Cause.UNREACHABLE:
        return _no(cause, "stopped answering")
    return _no(cause, f"answered with an error (0x{code:02x}): {response['error']}")


def _not_let_in(said: str, question: Question) -> Refusal:
    if said in ("", "None", "timeout"):  # it forgets why when time was up
        what = f"{question.address} does not answer on UDP port {question.port}"
        return _no(Cause.UNREACHABLE, what)
    if any(word in said.lower() for word in _DENIALS):
        what = f"the password or the user {question.user} is wrong ({said})"
        return _no(Cause.DENIED, what)
    return _no(Cause.TROUBLE, f"does not let us in: {said}")


def _nonsense(error: Exception) -> Refusal:
    what = f"answered something that is not IPMI ({type(error).__name__}: {error})"
    return _no(Cause.TROUBLE, what)


def _no(cause: Cause, sentence: str) -> Refusal:
    return Refusal(by=BY, cause=cause, sentence=sentence)
