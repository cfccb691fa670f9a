"""Management controllers that speak real IPMI (RMCP+), served by pyghmi. Run as a process.

    python ipmi_server.py '{"good": 6230, "deaf": 6231, ...}'

The name says how a controller behaves. It prints ``ready`` when all of them listen.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from typing import Any

from pyghmi.ipmi import bmc
from pyghmi.ipmi.private import session as client

USER, PASSWORD = "root", "right"

_BOOT_S = 1.5
_BUSY = 0xC0
_NO_COMMON_CIPHER = 0x11


class Controller(bmc.Bmc):  # type: ignore[misc]  # pyghmi has no types
    """``good`` boots in a moment, ``deaf`` accepts and does nothing, ``busy`` refuses two times."""

    def __init__(self, behaviour: str, port: int) -> None:
        super().__init__({USER: PASSWORD}, port=port, address="127.0.0.1")
        self.behaviour = behaviour
        self.power = "off"
        self.turns: tuple[float, str] | None = None
        self.refusals = 2 if behaviour == "busy" else 0

    def sessionless_data(self, data: bytes, sockaddr: Any) -> None:
        """Refuse SHA-256, which is not supported: pyghmi's server would accept it and then fail."""
        is_open_request = len(data) > 28 and data[4] == 6 and data[5] == 0x10
        if is_open_request and data[28] != 1:
            payload = bytes([data[16], _NO_COMMON_CIPHER, 0, 0]) + bytes(data[20:24])
            header = b"\x06\x00\xff\x07\x06\x11" + bytes(8) + struct.pack("<H", len(payload))
            client._io_sendto(self.serversocket, header + payload, sockaddr)
        else:
            super().sessionless_data(data, sockaddr)

    def handle_raw_request(self, request: Any, session: Any) -> None:
        if self.refusals:
            self.refusals -= 1
            session.send_ipmi_response(code=_BUSY)
        else:
            super().handle_raw_request(request, session)

    def get_power_state(self) -> str:
        if self.turns is not None and time.monotonic() >= self.turns[0]:
            self.power, self.turns = self.turns[1], None
        return self.power

    def power_on(self) -> None:
        self._turn("on")

    def power_shutdown(self) -> None:
        if self.behaviour == "stubborn":
            raise NotImplementedError  # pyghmi's word for "invalid command" on the wire
        self._turn("off")

    def _turn(self, power: str) -> None:
        if self.behaviour != "deaf":
            self.turns = (time.monotonic() + _BOOT_S, power)


if __name__ == "__main__":
    controllers = [Controller(name, port) for name, port in json.loads(sys.argv[1]).items()]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    bmc.Bmc.listen()
