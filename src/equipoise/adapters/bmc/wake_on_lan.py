"""Wake-on-LAN: the magic packet that wakes a host, and a TCP port that shows when the host is on.

A magic packet has no answer, and there is no packet for standby.
"""

from __future__ import annotations

import errno
import re
import socket
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from equipoise.adapters.bmc.host_power import (
    HostPower,
    PowerAccepted,
    PowerControl,
    PowerReading,
    PowerRefusal,
    PowerRefusalCause,
)

BY: Final = "wol"
PACKETS: Final = 3
"""Packets can be lost; a host that received one ignores the others."""
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


class ProbeAnswer(Enum):
    """The result of a connection attempt."""

    OPEN = auto()
    CLOSED = auto()
    """The host answers, and no program listens on the port."""
    SILENT = auto()


def parse_mac(mac: str) -> bytes | None:
    """Return the bytes of a MAC address in any usual notation; ``None`` if it is none."""
    lower = mac.lower()
    return bytes.fromhex(re.sub(r"[:.-]", "", lower)) if _MAC.fullmatch(lower) else None


def magic_packet(mac: bytes) -> bytes:
    """Return the magic packet: six times 0xff, then sixteen times the address."""
    assert len(mac) == _MAC_BYTES
    return b"\xff" * 6 + mac * 16


def parse_endpoint(text: str) -> Endpoint | None:
    """Return the endpoint of ``host:22`` or ``[fe80::1]:22``; ``None`` for other texts."""
    host, _, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    is_port = port.isascii() and port.isdigit() and 1 <= int(port) <= _PORT_MAX
    has_space = any(character.isspace() for character in host)
    if not host or not is_port or has_space or (":" in host) != bracketed:
        return None
    return Endpoint(host, int(port))


def probe(endpoint: Endpoint, timeout_s: float = CONNECT_S) -> ProbeAnswer | str:
    """Try to connect; return the answer, or a text if the attempt says nothing about the host."""
    try:
        with socket.create_connection(endpoint, timeout=timeout_s):
            return ProbeAnswer.OPEN
    except (ConnectionRefusedError, ConnectionResetError):
        return ProbeAnswer.CLOSED
    except (socket.gaierror, UnicodeError):
        return f"the name {endpoint.host} cannot be resolved"
    except TimeoutError:
        return ProbeAnswer.SILENT
    except OSError as error:
        # In the same network, a host that is off does not answer ARP either.
        if error.errno in (errno.EHOSTUNREACH, errno.EHOSTDOWN):
            return ProbeAnswer.SILENT
        return f"cannot connect to {endpoint}: {error.strerror or error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeOnLan:
    """The power of a host that a magic packet wakes and a TCP port shows."""

    mac: bytes
    broadcast: str
    port: int
    check: Endpoint

    def wake(self) -> PowerAccepted | PowerRefusal:
        """Send the packet."""
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                self.broadcast, self.port, type=socket.SOCK_DGRAM
            )[0]
            with socket.socket(family, kind, protocol) as sender:
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                for _copy in range(PACKETS):
                    sender.sendto(magic_packet(self.mac), address)
        except OSError as error:
            what = f"cannot send to {self.broadcast}: {error.strerror or error}"
            return PowerRefusal(by=BY, cause=PowerRefusalCause.UNREACHABLE, reason=what)
        return PowerAccepted(by=BY, note="the packet is sent; it has no confirmation")

    def sleep(self) -> PowerAccepted | PowerRefusal:
        """Refuse: there is no packet for standby."""
        what = "Wake-on-LAN can only wake a host; add redfish or ipmi to the access file"
        return PowerRefusal(by=BY, cause=PowerRefusalCause.UNSUPPORTED, reason=what)

    def state(self) -> PowerReading | PowerRefusal:
        """Read the power of the host from the answer of its port."""
        match probe(self.check):
            case ProbeAnswer.OPEN:
                return PowerReading(by=BY, power=HostPower.ON)
            case ProbeAnswer.CLOSED:
                note = f"the host answers, but {self.check} is closed"
                return PowerReading(by=BY, power=HostPower.CHANGING, note=note)
            case ProbeAnswer.SILENT:
                note = f"{self.check} does not answer"
                return PowerReading(by=BY, power=HostPower.OFF, note=note)
            case str(what):
                return PowerRefusal(by=BY, cause=PowerRefusalCause.UNREACHABLE, reason=what)


@dataclass(frozen=True, slots=True, kw_only=True)
class PortCheckedControl:
    """A power control that reports a host as on only when a port of the host answers.

    A controller reports "on" as soon as the host has power, minutes before it can run VMs.
    """

    inner: PowerControl
    check: Endpoint

    def wake(self) -> PowerAccepted | PowerRefusal:
        """Switch the host on."""
        return self.inner.wake()

    def sleep(self) -> PowerAccepted | PowerRefusal:
        """Shut the host down."""
        return self.inner.sleep()

    def state(self) -> PowerReading | PowerRefusal:
        """Read the power and, if the host has power, the port."""
        reading = self.inner.state()
        if isinstance(reading, PowerRefusal) or reading.power is not HostPower.ON:
            return reading
        answer = probe(self.check)
        if answer is ProbeAnswer.OPEN:
            return reading
        what = answer if isinstance(answer, str) else f"{self.check} does not answer"
        note = f"the host has power, but {what}"
        return PowerReading(by=reading.by, power=HostPower.CHANGING, note=note, tried=reading.tried)
