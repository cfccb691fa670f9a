"""Wake-on-LAN: a packet that a network card waits for, and a port that tells when the host is on.

Nobody confirms such a packet, and there is none for going to sleep.
"""

from __future__ import annotations

import errno
import re
import socket
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from equipoise.hosts.wake.port import Accepted, Cause, Power, Refusal, Seen, Waker

BY: Final = "wol"
COPIES: Final = 3
"""Packets are lost; a host that got one ignores the others."""
CONNECT_S: Final = 3.0

_MAC: Final = re.compile(
    r"[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}"
    r"|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}"
    r"|[0-9a-f]{12}"
)
_MAC_BYTES: Final = 6
_PORT_MAX: Final = 65535


class Endpoint(NamedTuple):
    """A TCP port of a host."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Answer(Enum):
    """What came of connecting to an endpoint."""

    OPEN = auto()
    CLOSED = auto()
    """Something answers, but nobody listens."""
    SILENT = auto()


def mac_bytes(mac: str) -> bytes | None:
    """Read a hardware address in any of its usual spellings; ``None`` if it is none."""
    spelt = mac.lower()
    return bytes.fromhex(re.sub(r"[:.-]", "", spelt)) if _MAC.fullmatch(spelt) else None


def magic_packet(mac: bytes) -> bytes:
    """Six times 0xff, then sixteen times the address."""
    assert len(mac) == _MAC_BYTES
    return b"\xff" * 6 + mac * 16


def endpoint(text: str) -> Endpoint | None:
    """Read ``host:22`` or ``[fe80::1]:22``; ``None`` if it is neither."""
    host, _, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    is_port = port.isascii() and port.isdigit() and 1 <= int(port) <= _PORT_MAX
    if not host or not is_port or any(one.isspace() for one in host) or (":" in host) != bracketed:
        return None
    return Endpoint(host, int(port))


def probe(place: Endpoint, timeout_s: float = CONNECT_S) -> Answer | str:
    """Try to connect; text says why nothing can be learnt from it."""
    try:
        with socket.create_connection(place, timeout=timeout_s):
            return Answer.OPEN
    except (ConnectionRefusedError, ConnectionResetError):
        return Answer.CLOSED
    except (socket.gaierror, UnicodeError):
        return f"the name {place.host} is not known"
    except TimeoutError:
        return Answer.SILENT
    except OSError as error:
        # On one's own network a host that is off does not even say where it is.
        if error.errno in (errno.EHOSTUNREACH, errno.EHOSTDOWN):
            return Answer.SILENT
        return f"cannot connect to {place}: {error.strerror or error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeOnLan:
    """A host that is woken by a magic packet, and looked at through a TCP port."""

    mac: bytes
    broadcast: str
    port: int
    check: Endpoint

    def wake(self) -> Accepted | Refusal:
        """Send the packet."""
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                self.broadcast, self.port, type=socket.SOCK_DGRAM
            )[0]
            with socket.socket(family, kind, protocol) as sender:
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                for _copy in range(COPIES):
                    sender.sendto(magic_packet(self.mac), address)
        except OSError as error:
            what = f"cannot send to {self.broadcast}: {error.strerror or error}"
            return Refusal(by=BY, cause=Cause.UNREACHABLE, sentence=what)
        return Accepted(by=BY, note="the packet is sent; nobody confirms one")

    def sleep(self) -> Accepted | Refusal:
        """Refuse: there is no packet for it."""
        what = "Wake-on-LAN can only wake; name a redfish or ipmi way as well"
        return Refusal(by=BY, cause=Cause.UNSUPPORTED, sentence=what)

    def state(self) -> Seen | Refusal:
        """Tell by the port whether the host is on."""
        match probe(self.check):
            case Answer.OPEN:
                return Seen(by=BY, power=Power.ON)
            case Answer.CLOSED:
                note = f"it answers, but nobody listens at {self.check}"
                return Seen(by=BY, power=Power.CHANGING, note=note)
            case Answer.SILENT:
                return Seen(by=BY, power=Power.OFF, note=f"{self.check} is silent")
            case str(what):
                return Refusal(by=BY, cause=Cause.UNREACHABLE, sentence=what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A host that counts as on only when a port of it answers, whatever its controller says.

    A controller says "on" as soon as there is power, minutes before anything runs.
    """

    inner: Waker
    check: Endpoint

    def wake(self) -> Accepted | Refusal:
        """Ask it to switch on."""
        return self.inner.wake()

    def sleep(self) -> Accepted | Refusal:
        """Ask it to shut down."""
        return self.inner.sleep()

    def state(self) -> Seen | Refusal:
        """Look at its power and, if there is any, at the port."""
        seen = self.inner.state()
        if isinstance(seen, Refusal) or seen.power is not Power.ON:
            return seen
        found = probe(self.check)
        if found is Answer.OPEN:
            return seen
        what = found if isinstance(found, str) else f"{self.check} does not answer"
        note = f"it has power, but {what}"
        return Seen(by=seen.by, power=Power.CHANGING, note=note, tried=seen.tried)
